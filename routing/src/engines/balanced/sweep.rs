//! One destination xbar's entries: chosen near to far, then counted and completed far to near.

mod columns;
mod far;
mod near;
mod shared;

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::alike::Alike;
use super::chains::{Chains, Link};
use super::ports::{NOWHERE, XbarPorts};
use super::spread::Spread;
use super::ways::Ways;
use crate::{Subnet, Tables};
use columns::Columns;
use shared::First;

/// Slots that are computed together, a bit each.
pub(super) const LANES: usize = 64;

/// A destination that is to be computed: a place in some ways, and the slots of its hosts, at most
/// [`LANES`].
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) ways: &'a Ways,
    pub(super) place: usize,
    pub(super) first_slot: u32,
    pub(super) lanes: usize,
}

impl Target<'_> {
    pub(super) fn all(&self) -> u64 {
        if self.lanes == 0 { 0 } else { u64::MAX >> (LANES - self.lanes) }
    }

    pub(super) fn slots(&self) -> Slots {
        Slots { to: self.ways.to[self.place], first: self.first_slot, lanes: self.lanes }
    }

    /// The ports of an xbar by which ways lead on.
    pub(super) fn set(&self, ports: &XbarPorts, xbar: u32) -> &[u64] {
        &self.ways.masks_to(self.place)[xbar as usize * ports.words..][..ports.words]
    }
}

/// The slots of a target, without its ways: those of some hosts of a destination xbar.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) to: u32,
    pub(super) first: u32,
    pub(super) lanes: usize,
}

impl Slots {
    pub(super) fn range(self) -> Range<u32> {
        self.first..self.first + self.lanes as u32
    }
}

/// Works on one destination after another, and keeps the loads of channels up to date.
pub(super) struct Sweeper<'a> {
    ports: &'a XbarPorts,
    chains: &'a Chains<'a>,
    alike: &'a Alike<'a>,
    subnet: &'a Subnet,
    /// How many hosts each xbar has.
    sources: &'a [u32],
    /// For each port, by its number, how many routes cross it.
    pub(super) loads: Vec<u32>,
    /// For each xbar the slots whose routes go by the top of their chain; the slots whose chain it is in; and
    /// the slots that have no port yet.
    by_top: Vec<u64>,
    in_chain: Vec<u64>,
    open: Vec<u64>,
    /// For each xbar the slots for which frames from other xbars pass it; and if there are any, how many
    /// routes of each slot pass it, including those of its own hosts.
    passing: Vec<u64>,
    routes: Vec<u32>,
    /// The entries of the present target.
    columns: Columns,
    /// How many targets were begun.
    target: u64,
    /// For each class of xbars, the first of them for the present target.
    firsts: Vec<First>,
    /// For each xbar the class whose entries it shares.
    class_of: Vec<Option<u32>>,
    tops: Vec<(u32, u64)>,
    /// The load of the least loaded way on from each xbar, where loads decide at all.
    ahead: Vec<u64>,
    /// Whether loads decided anything so far, and for this target.
    pub(super) by_load: bool,
    decides: bool,
    /// The counts since the loads were last joined, one by one, and whether they are complete.
    pub(super) singly: Vec<(usize, u32)>,
    pub(super) only_singly: bool,
    /// The seed of random choices among the least loaded, and the generator for this target that is made of
    /// it.
    scatter: Option<u64>,
    random: Option<ChaCha8Rng>,
}

impl<'a> Sweeper<'a> {
    pub(super) fn new(
        subnet: &'a Subnet,
        ports: &'a XbarPorts,
        chains: &'a Chains<'a>,
        alike: &'a Alike<'a>,
        sources: &'a [u32],
        scatter: Option<u64>,
    ) -> Self {
        let zeros = || vec![0; ports.xbars];
        Self {
            ports,
            chains,
            alike,
            subnet,
            sources,
            loads: vec![0; ports.heads.len()],
            by_top: zeros(),
            in_chain: zeros(),
            open: zeros(),
            passing: zeros(),
            routes: vec![0; ports.xbars * LANES],
            columns: Columns::new(ports.xbars),
            target: 0,
            firsts: Vec::new(),
            class_of: vec![None; ports.xbars],
            tops: Vec::new(),
            ahead: vec![0; ports.xbars],
            by_load: false,
            decides: false,
            singly: Vec::new(),
            only_singly: true,
            scatter,
            random: None,
        }
    }

    /// Computes the entries of a target's slots into `entries`, which has a row for each slot with an entry
    /// for each xbar; all are written. Where `kept` has a slot's bit for an xbar, the entry is there and
    /// stays.
    pub(super) fn compute(&mut self, target: Target<'_>, entries: &mut [u8], kept: Option<&[u64]>) {
        if target.lanes == 0 {
            return;
        }
        self.draw(target.slots());
        self.only_singly = false;
        self.decides = false;
        self.begin(kept.is_none());
        self.mark_chains(target);
        if let Some(spread) = Spread::of(self.subnet, target.slots()) {
            // If hosts have several addresses, what one address may use depends on the others.
            self.near_to_far_spread(target, entries, kept, &spread);
        } else {
            self.near_to_far(target, entries, kept);
        }
        if self.decides {
            self.by_load = true;
            self.look_ahead(target);
        }
        self.far_to_near(target);
        self.columns.write(target.lanes, entries);
    }

    /// Forgets what was chosen for the last target. With `anew`, none of the entries of the next one are
    /// kept.
    fn begin(&mut self, anew: bool) {
        self.target += 1;
        self.columns.clear();
        self.class_of.fill(None);
        if anew {
            self.firsts.resize(self.alike.class_count(), First::default());
        }
    }

    /// Each target has random numbers of its own, so it does not matter which sweeper computes it.
    pub(super) fn draw(&mut self, slots: Slots) {
        self.random = self.scatter.map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(slots.first.into());
            random
        });
    }

    /// Marks the xbars of the chains of all slots.
    fn mark_chains(&mut self, target: Target<'_>) {
        let order = target.ways.order_to(target.place);
        for &xbar in order {
            (self.in_chain[xbar as usize], self.by_top[xbar as usize]) = (0, 0);
        }
        self.tops.clear();
        if let Some(&to) = order.first() {
            self.in_chain[to as usize] = target.all();
        }
        for lane in 0..target.lanes {
            let mut top = None;
            for &link in self.chain(target, lane) {
                if !leads(self.ports, target, link) {
                    break;
                }
                self.in_chain[link.xbar as usize] |= 1 << lane;
                top = Some(link.xbar);
            }
            if let Some(top) = top {
                self.tops.push((top, 1 << lane));
            }
        }
        for &(top, bit) in &self.tops {
            self.by_top[top as usize] |= bit;
        }
    }

    fn chain(&self, target: Target<'_>, lane: usize) -> &'a [Link] {
        self.chains.of_slot(target.first_slot + lane as u32)
    }

    /// The number of the port that an entry of an xbar names.
    fn number(&self, xbar: u32, port: u8) -> Option<usize> {
        let number = xbar as usize * self.ports.words * 64 + self.ports.bit_of_port(port)?;
        (port != Tables::NONE && self.ports.heads[number] != NOWHERE).then_some(number)
    }
}

/// Whether a link of a chain is on a legal shortest way.
fn leads(ports: &XbarPorts, target: Target<'_>, link: Link) -> bool {
    debug_assert_eq!(ports.xbar_of(link.port as usize), link.xbar, "a port of its own xbar");
    target.ways.leads(target.place, link.port as usize)
}
