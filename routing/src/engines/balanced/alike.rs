//! Xbars that differ in nothing that decides their entries: the leaves of one group of a tree, the tops of one plane.

use std::sync::OnceLock;

use super::ports::{NOWHERE, XbarPorts};
use crate::{Tiers, Topology};

/// Which xbars lead to the same neighbours by the same ports.
///
/// Two such xbars with the same ways on to a destination get the same entries, so these need be computed only
/// once. Such xbars are looked for when they are first asked for, as tables in which little is to be mended
/// do not need them.
pub(super) struct Alike<'a> {
    topology: &'a Topology,
    ports: &'a XbarPorts,
    found: OnceLock<AlikeClasses>,
}

struct AlikeClasses {
    /// For each xbar the ports that lead to a higher tier.
    up: Vec<u64>,
    /// For each xbar two classes: of xbars with the same neighbours above, and of xbars with all the same
    /// neighbours.
    classes: Vec<[Option<u32>; 2]>,
    /// How many classes there are.
    count: usize,
}

impl<'a> Alike<'a> {
    pub(super) fn new(topology: &'a Topology, ports: &'a XbarPorts) -> Self {
        Self { topology, ports, found: OnceLock::new() }
    }

    /// A grouping in which every xbar is by itself.
    #[cfg(test)]
    pub(super) fn nobody(topology: &'a Topology, ports: &'a XbarPorts) -> Self {
        let up = vec![0; ports.xbars * ports.words];
        let found = AlikeClasses { up, classes: vec![[None; 2]; ports.xbars], count: 0 };
        Self { topology, ports, found: OnceLock::from(found) }
    }

    /// How many classes there are.
    pub(super) fn class_count(&self) -> usize {
        self.found().count
    }

    /// The class of xbars whose ports of `set` lead to the same neighbours as those of this xbar. `None` if
    /// there are no others.
    pub(super) fn class(&self, xbar: u32, set: &[u64]) -> Option<u32> {
        let found = self.found();
        let up = &found.up[xbar as usize * self.ports.words..][..self.ports.words];
        let is_above = set.iter().zip(up).all(|(set, up)| set & !up == 0);
        let [above, throughout] = found.classes[xbar as usize];
        if is_above { above } else { throughout }
    }

    fn found(&self) -> &AlikeClasses {
        self.found.get_or_init(|| AlikeClasses::new(self.ports, &Tiers::of(self.topology)))
    }
}

impl AlikeClasses {
    fn new(ports: &XbarPorts, tiers: &Tiers) -> Self {
        let mut found =
            Self { up: vec![0; ports.xbars * ports.words], classes: vec![[None; 2]; ports.xbars], count: 0 };
        for xbar in 0..ports.xbars as u32 {
            for number in ports.numbers_of(xbar) {
                if tiers.height(ports.heads[number]) > tiers.height(xbar) {
                    found.up[number / 64] |= 1 << (number % 64);
                }
            }
        }
        let up = std::mem::take(&mut found.up);
        found.group(0, ports, |number| up[number / 64] >> (number % 64) & 1 == 1);
        found.group(1, ports, |_| true);
        found.up = up;
        found
    }

    /// Makes classes of xbars that are alike in those of their ports that count.
    fn group(&mut self, kind: usize, ports: &XbarPorts, counts: impl Fn(usize) -> bool) {
        let width = ports.words * 64;
        let head = |number: usize| if counts(number) { ports.heads[number] } else { NOWHERE };
        let row = |&xbar: &u32| (xbar as usize * width..(xbar as usize + 1) * width).map(head);
        let mut xbars: Vec<u32> = (0..ports.xbars as u32).collect();
        xbars.sort_by(|one, other| row(one).cmp(row(other)));
        for class in xbars.chunk_by(|one, other| row(one).eq(row(other))) {
            if class.len() > 1 {
                class.iter().for_each(|&xbar| self.classes[xbar as usize][kind] = Some(self.count as u32));
                self.count += 1;
            }
        }
    }
}
