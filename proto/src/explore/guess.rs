//! Where hosts are likely, learned while exploring.
//!
//! A host tells at once which xbar a sight is of, so a glance at a new sight probes first the
//! ports where hosts were found on sights like it. Likeness is whether the xbar before it has hosts:
//! in a Clos what is behind a spine is a leaf, and what is behind a leaf is a spine.

use std::cmp::Reverse;

/// Deltas run from -31 to 31.
const DELTAS: usize = 63;

/// What glances at sights of one kind have found.
#[derive(Clone, Debug)]
struct Side {
    hits: [u32; DELTAS],
    probes: [u32; DELTAS],
    anchored: u32,
    /// How many of them were by the first probe.
    at_once: u32,
    failed: u32,
}

/// Where hosts were found, behind xbars with hosts and behind those without: see the module.
#[derive(Clone, Debug)]
pub(super) struct Guess {
    sides: [Side; 2],
}

fn index(delta: i16) -> usize {
    (delta + 31).clamp(0, DELTAS as i16 - 1) as usize
}

impl Guess {
    pub(super) fn new() -> Self {
        let side = Side { hits: [0; DELTAS], probes: [0; DELTAS], anchored: 0, at_once: 0, failed: 0 };
        Self { sides: [side.clone(), side] }
    }

    /// Counts a probe at the port `delta` from the entry, behind an xbar with hosts or without.
    pub(super) fn probed(&mut self, behind_hosts: bool, delta: i16, host: bool) {
        let side = &mut self.sides[usize::from(behind_hosts)];
        side.probes[index(delta)] += 1;
        side.hits[index(delta)] += u32::from(host);
    }

    /// Counts a glance that found a host, after so many probes.
    pub(super) fn succeeded(&mut self, behind_hosts: bool, probes: u8) {
        let side = &mut self.sides[usize::from(behind_hosts)];
        side.anchored += 1;
        side.at_once += u32::from(probes <= 1);
        if side.anchored == 16 {
            // Both counts are halved, so that what is found later counts for more than what was found before.
            side.anchored /= 2;
            side.at_once /= 2;
        }
    }

    /// Counts a glance that found no host.
    pub(super) fn failed(&mut self, behind_hosts: bool) {
        self.sides[usize::from(behind_hosts)].failed += 1;
    }

    /// Whether any glance ended with a host.
    pub(super) fn was_of_use(&self, behind_hosts: bool) -> bool {
        self.sides[usize::from(behind_hosts)].anchored > 0
    }

    /// How many probes a glance may take: one, where nearly all that found a host needed no more.
    pub(super) fn glance_probes(&self, behind_hosts: bool) -> u8 {
        let side = &self.sides[usize::from(behind_hosts)];
        if side.anchored >= 4 && side.at_once * 8 >= side.anchored * 7 { 1 } else { 3 }
    }

    /// Whether a glance is worth its probes: one in eight ended well, or there were too few to say.
    pub(super) fn is_worth_a_glance(&self, behind_hosts: bool) -> bool {
        let side = &self.sides[usize::from(behind_hosts)];
        side.failed < 4 || side.anchored * 8 >= side.failed
    }

    /// Whether a probe at `delta` is more likely than not to find a host.
    pub(super) fn is_likely(&self, behind_hosts: bool, delta: i16) -> bool {
        let side = &self.sides[usize::from(behind_hosts)];
        side.hits[index(delta)] * 2 > side.probes[index(delta)]
    }

    /// The delta where a host is most likely; near ones first where nothing is known.
    pub(super) fn best(&self, behind_hosts: bool, deltas: impl Iterator<Item = i16>) -> Option<i16> {
        let side = &self.sides[usize::from(behind_hosts)];
        let score = |delta: i16| {
            let near = 32 - u32::from(delta.unsigned_abs().min(31));
            (side.hits[index(delta)] * 64 + near) * 64 / (side.probes[index(delta)] + 1)
        };
        deltas.max_by_key(|&delta| (score(delta), Reverse(delta)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ports_come_first_and_then_those_that_had_hosts() {
        let mut guess = Guess::new();
        assert_eq!(guess.best(false, [-5, 3, 7].into_iter()), Some(3));
        guess.probed(false, 3, false);
        guess.probed(false, -5, true);
        assert_eq!(guess.best(false, [-5, 3, 7].into_iter()), Some(-5));
        assert_eq!(guess.best(true, [-5, 3, 7].into_iter()), Some(3), "the other side learned nothing");
        assert!(guess.is_likely(false, -5) && !guess.is_likely(false, 3));
        assert_eq!(guess.best(false, std::iter::empty()), None);
    }

    #[test]
    fn glances_shrink_where_the_first_probe_tells_and_end_where_none_does() {
        let mut guess = Guess::new();
        assert_eq!(guess.glance_probes(false), 3);
        (0..4).for_each(|_| guess.succeeded(false, 1));
        assert_eq!(guess.glance_probes(false), 1);
        guess.succeeded(false, 3);
        assert_eq!(guess.glance_probes(false), 3);
        assert!(guess.is_worth_a_glance(true));
        (0..4).for_each(|_| guess.failed(true));
        assert!(!guess.is_worth_a_glance(true) && !guess.was_of_use(true));
    }
}
