//! Routes between all xbars as trees: one tree to each destination xbar, or one to each address of its hosts.

use std::ops::Range;

use mapper_proto::map::PortRef;

use super::filling;
use super::layer::{Dependency, DependencyNumbers};
use super::pairs::Pairs;
use crate::tables::Tables;
use crate::{Far, Subnet, UnionProof};

/// Trees, each as the port by which every xbar sends what goes to the tree's destination, or [`Tables::NONE`].
///
/// An engine begins without any ([`Self::begin`]), adds those to xbar 0 ([`Self::add`]), then those to xbar 1
/// ([`Self::next_destination`]), and so on. Each xbar has at least one. If it has several, its hosts' addresses
/// take turns among them.
pub(super) struct Trees {
    xbars: usize,
    ports: Vec<u8>,
    /// The trees to xbar d: `base[d]..base[d + 1]`.
    base: Vec<u32>,
}

impl Trees {
    /// Begins without any tree, for so many xbars.
    pub(super) fn begin(xbars: usize) -> Self {
        Self { xbars, ports: Vec::new(), base: vec![0] }
    }

    /// Adds a tree to the present destination. Returns its ports, one for each xbar, which are to be written.
    pub(super) fn add(&mut self) -> &mut [u8] {
        let start = self.ports.len();
        self.ports.resize(start + self.xbars, Tables::NONE);
        &mut self.ports[start..]
    }

    /// Goes on to the next destination xbar.
    pub(super) fn next_destination(&mut self) {
        self.base.push((self.ports.len() / self.xbars) as u32);
    }

    /// These trees, with only one to each xbar to which all trees are the same.
    pub(super) fn without_doubles(self) -> Self {
        let mut kept = Self::begin(self.xbars);
        for xbar in 0..self.xbars as u32 {
            let trees = self.to(xbar);
            let are_same = trees.clone().all(|tree| self.ports(tree) == self.ports(trees.start));
            for tree in trees.take(if are_same { 1 } else { usize::MAX }) {
                kept.add().copy_from_slice(self.ports(tree));
            }
            kept.next_destination();
        }
        kept
    }

    /// Whether some xbar has several trees.
    pub(super) fn are_several_an_xbar(&self) -> bool {
        self.ports.len() > self.xbars * self.xbars
    }

    /// The trees to an xbar.
    pub(super) fn to(&self, xbar: u32) -> Range<u32> {
        self.base[xbar as usize]..self.base[xbar as usize + 1]
    }

    /// The out ports of a tree, by xbar.
    pub(super) fn ports(&self, tree: u32) -> &[u8] {
        &self.ports[tree as usize * self.xbars..][..self.xbars]
    }

    /// The out ports of a tree, by xbar, so that they can be chosen anew.
    pub(super) fn ports_mut(&mut self, tree: u32) -> &mut [u8] {
        &mut self.ports[tree as usize * self.xbars..][..self.xbars]
    }

    /// Hands on the channels of a tree from an xbar on, in order, until there are no more or `pass` says no.
    pub(super) fn walk(&self, subnet: &Subnet, tree: u32, from: u32, mut pass: impl FnMut(u32) -> bool) {
        let ports = self.ports(tree);
        let mut xbar = from;
        while let Far::Channel(channel) = subnet.topology.far(PortRef { xbar, port: ports[xbar as usize] })
            && pass(channel)
        {
            xbar = subnet.topology.head(channel).xbar;
        }
    }

    /// Finds the dependencies that the routes from an xbar to another make, those of all trees to it, and adds
    /// them to `found`.
    pub(super) fn find_dependencies(
        &self,
        subnet: &Subnet,
        numbers: &DependencyNumbers<'_>,
        (from, to): (u32, u32),
        found: &mut Vec<Dependency>,
    ) {
        for tree in self.to(to) {
            let mut last = None;
            self.walk(subnet, tree, from, |channel| {
                if let Some(last) = last.replace(channel) {
                    found.push(numbers.dependency(last, channel));
                }
                true
            });
        }
    }

    /// Whether all frames together can go in one layer.
    pub(super) fn fit_one_layer(&self, subnet: &Subnet, xbar_destinations: bool) -> bool {
        let topology = &subnet.topology;
        let pairs = Pairs::new(subnet, xbar_destinations);
        let mut union = UnionProof::new(topology);
        let mut marks = vec![u32::MAX; topology.xbar_count()];
        let all = 0..topology.xbar_count() as u32;
        for end in all.clone() {
            for tree in self.to(end) {
                for from in all.clone().filter(|&from| pairs.are_wanted(from, end)) {
                    let mut last = None;
                    // The dependencies behind an xbar that was passed for this tree are there already.
                    self.walk(subnet, tree, from, |channel| {
                        if let Some(last) = last.replace(channel) {
                            union.add_dependency(last, channel);
                        }
                        let mark = &mut marks[topology.tail(channel).xbar as usize];
                        std::mem::replace(mark, tree) != tree
                    });
                }
            }
        }
        union.prove_acyclic().is_ok()
    }

    /// The trees as tables. An xbar's own address is reached along the first tree to it.
    pub(super) fn tables(&self, subnet: &Subnet) -> Tables {
        filling::by_block(subnet, |end, block| {
            let trees = self.to(end);
            let each = std::iter::once(trees.start).chain(trees.cycle());
            let rows = block.chunks_exact_mut(self.xbars);
            for ((row, tree), slot) in rows.zip(each).zip(subnet.destinations.slots_of(end)) {
                row.copy_from_slice(self.ports(tree));
                row[end as usize] = subnet.port_of_slot(slot);
            }
        })
    }

    /// Hops from an xbar to another.
    pub(super) fn hops(&self, subnet: &Subnet, from: u32, to: u32) -> u32 {
        let mut hops = 0;
        self.walk(subnet, self.to(to).start, from, |_| {
            hops += 1;
            true
        });
        hops
    }
}
