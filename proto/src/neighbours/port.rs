//! One port: whom it hears, and when it speaks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{INTERVAL, KnownCable, Neighbour, Own, Party, SILENCE};
use crate::wire::{Hello, HelloEnd, HelloFlags};
use crate::{Instant, Mac};

/// How many hellos a port says at most within [`INTERVAL`], however many strangers it hears.
const MOST_HELLOS: u32 = 5;

/// How long a neighbour may say that it does not hear this port before that is believed. One that starts has
/// heard nobody when it first speaks, and one hello may get lost.
const DEAF: Duration = INTERVAL.saturating_mul(2);

/// A port, with an interface or without.
#[derive(Debug, Default)]
pub(super) struct Port {
    /// What it says of itself; `None` while it has no carrier.
    pub(super) own: Option<Own>,
    /// Whom it has heard, by address and by what they are: at most [`Hello::MOST_HEARD`].
    heard: BTreeMap<Name, Heard>,
    /// Who was taken to be another now, and until when it would be a second one if it were heard again.
    replaced: Option<(Name, Instant)>,
    /// When it says hello next.
    next_at: Instant,
    /// When the interval began in which `said` hellos were said.
    counted_from: Instant,
    said: u32,
    /// What was last told of its cable.
    cable: KnownCable,
}

/// By what one sender is told from another.
type Name = (Mac, HelloEnd);

/// What was heard of somebody.
#[derive(Debug)]
struct Heard {
    /// When last.
    at: Instant,
    /// Since when it says that it does not hear this port; `None` while it does.
    deaf_since: Option<Instant>,
    /// Whether it has ever heard this port.
    has_heard_us: bool,
    mtu: u32,
    flags: HelloFlags,
    /// Whom it hears beside this port.
    others: BTreeSet<Mac>,
}

impl Port {
    pub(super) const fn cable(&self) -> &KnownCable {
        &self.cable
    }

    pub(super) fn set_own(&mut self, now: Instant, own: Option<Own>) {
        if own == self.own {
            return;
        }
        let name = |own: Own| (own.mac, own.end);
        if own.map(name) != self.own.map(name) {
            // Neighbours that were heard have not heard this port under its new name, or were at another cable.
            self.heard.clear();
        }
        self.own = own;
        self.speak_at_once(now);
    }

    /// Takes a hello. Returns whether it is used.
    pub(super) fn hear(&mut self, now: Instant, hello: &Hello) -> bool {
        let Some(own) = self.own else { return false };
        let key = (hello.mac, hello.end);
        self.heard.retain(|_, heard| now < heard.at + SILENCE);
        self.replace(now, key);
        if self.heard.len() >= Hello::MOST_HEARD && !self.heard.contains_key(&key) {
            // The cable is known to be shared already.
            return true;
        }
        let is_new = !self.heard.contains_key(&key);
        let hears_us = hello.heard.contains(&own.mac);
        let heard = self.heard.entry(key).or_insert(Heard {
            at: now,
            deaf_since: None,
            has_heard_us: false,
            mtu: 0,
            flags: HelloFlags::NONE,
            others: BTreeSet::new(),
        });
        heard.at = now;
        (heard.mtu, heard.flags) = (hello.mtu, hello.flags);
        heard.others = hello.heard.iter().copied().filter(|mac| *mac != own.mac).collect();
        heard.has_heard_us |= hears_us;
        heard.deaf_since = if hears_us { None } else { heard.deaf_since.or(Some(now)) };
        if is_new || !hears_us {
            self.speak_at_once(now);
        }
        true
    }

    /// Forgets the sender that is this one by another name: an interface that has become part of another
    /// crossbar, or a port whose interface has another address now. If both are heard, they are two.
    fn replace(&mut self, now: Instant, new: Name) {
        if self.heard.contains_key(&new)
            || self.replaced.is_some_and(|(old, until)| old == new && now < until)
        {
            return;
        }
        let is_it = |(mac, end): Name| {
            mac == new.0 || end == new.1 && !matches!(end, HelloEnd::Xbar { tag: None, .. })
        };
        if let Some(old) = self.heard.keys().copied().find(|old| is_it(*old)) {
            self.heard.remove(&old);
            self.replaced = Some((old, now + SILENCE));
        }
    }

    /// Makes a hello due now, unless there were too many lately.
    fn speak_at_once(&mut self, now: Instant) {
        if now >= self.counted_from + INTERVAL {
            (self.counted_from, self.said) = (now, 0);
        }
        if self.said < MOST_HELLOS {
            self.next_at = now;
        }
    }

    /// The hello that is due, if one is.
    pub(super) fn due_hello(&mut self, now: Instant) -> Option<Hello> {
        let Own { end, mac, mtu, flags } = self.own.filter(|_| now >= self.next_at)?;
        self.next_at = now + INTERVAL;
        self.said = self.said.saturating_add(1);
        let live = self.heard.iter().filter(|(_, heard)| now < heard.at + SILENCE);
        let heard: BTreeSet<Mac> = live.map(|((mac, _), _)| *mac).collect();
        Some(Hello { end, mac, mtu, flags, heard: heard.into_iter().collect() })
    }

    /// Looks at the cable. If it has changed, returns what it was. `owns` is what the crossbar's ports
    /// say of themselves.
    pub(super) fn look(&mut self, now: Instant, owns: &[(u8, Own)]) -> Option<KnownCable> {
        self.heard.retain(|_, heard| now < heard.at + SILENCE);
        let cable = self.judge(now, owns);
        (cable != self.cable).then(|| std::mem::replace(&mut self.cable, cable))
    }

    fn judge(&self, now: Instant, owns: &[(u8, Own)]) -> KnownCable {
        let parties = self.parties();
        if parties.len() > 1 {
            return KnownCable::Shared(parties);
        }
        let Some((&(mac, end), heard)) = self.heard.first_key_value() else { return KnownCable::Silent };
        if let Some((port, _)) = owns.iter().find(|(_, own)| (own.mac, own.end) == (mac, end)) {
            return KnownCable::Looped { port: *port };
        }
        let neighbour = Neighbour { end, mac, mtu: heard.mtu, flags: heard.flags };
        match heard.deaf_since {
            None => KnownCable::Joined(neighbour),
            Some(since) if now >= since + DEAF => KnownCable::OneWay(neighbour),
            Some(_) if heard.has_heard_us => KnownCable::Joined(neighbour),
            Some(_) => KnownCable::Silent,
        }
    }

    /// All who are known to be at the cable beside this port, at most [`Hello::MOST_HEARD`] in both ways.
    fn parties(&self) -> Vec<Party> {
        let mut parties: Vec<Party> =
            self.heard.keys().map(|&(mac, end)| Party { mac, end: Some(end) }).collect();
        let by_others: BTreeSet<Mac> =
            self.heard.values().flat_map(|heard| heard.others.iter().copied()).collect();
        let is_known = |mac: Mac| self.heard.keys().any(|(known, _)| *known == mac);
        let unheard = by_others.into_iter().filter(|mac| !is_known(*mac)).take(Hello::MOST_HEARD);
        parties.extend(unheard.map(|mac| Party { mac, end: None }));
        parties
    }

    /// When something is due next after `looked_at`.
    pub(super) fn deadline(&self, looked_at: Instant) -> Option<Instant> {
        let ends = self.heard.values().flat_map(|heard| {
            [Some(heard.at + SILENCE), heard.deaf_since.map(|since| since + DEAF)].into_iter().flatten()
        });
        let hello = self.own.map(|_| self.next_at);
        ends.filter(|end| *end > looked_at).chain(hello).min()
    }
}
