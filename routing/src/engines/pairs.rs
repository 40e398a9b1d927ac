//! The pairs of xbars that frames travel between: those that need a route and a layer.

use crate::Subnet;

/// Which pairs of xbars frames travel between.
pub(super) struct Pairs<'a> {
    subnet: &'a Subnet,
    /// Whether each xbar has hosts.
    is_leaf: Vec<bool>,
    xbar_destinations: bool,
}

impl<'a> Pairs<'a> {
    /// The pairs of xbars that both have hosts. With `xbar_destinations`, only one of them need have hosts,
    /// as frames then also travel between hosts and xbars' own addresses.
    pub(super) fn new(subnet: &'a Subnet, xbar_destinations: bool) -> Self {
        let all = 0..subnet.topology.xbar_count() as u32;
        Self { subnet, is_leaf: all.map(|xbar| subnet.is_leaf(xbar)).collect(), xbar_destinations }
    }

    /// Whether frames travel from one xbar to another, or would if cables joined the two. It holds both ways or
    /// neither.
    pub(super) fn are_wanted(&self, from: u32, to: u32) -> bool {
        let (sends, receives) = (self.is_leaf[from as usize], self.is_leaf[to as usize]);
        sends && receives || self.xbar_destinations && (sends || receives)
    }

    /// All pairs of different xbars that cables join, as source and destination: by rising destination, and
    /// those of one destination by rising source.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        let topology = &self.subnet.topology;
        let all = 0..topology.xbar_count() as u32;
        all.clone().flat_map(move |to| all.clone().map(move |from| (from, to))).filter(move |&(from, to)| {
            from != to && self.are_wanted(from, to) && topology.component(from) == topology.component(to)
        })
    }

    /// Each of these pairs once for both directions, with the lower xbar first.
    pub(super) fn both_ways(&self) -> impl Iterator<Item = (u32, u32)> {
        self.each().filter(|&(from, to)| to < from).map(|(from, to)| (to, from))
    }
}
