//! Where every port leads, as flat arrays by the numbers of ports, and as sets of ports.

use mapper_proto::map::PortRef;

use super::ranks::Order;
use crate::Topology;
use crate::engines::Settings;

/// No xbar.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The ports that lead to other xbars.
///
/// A set of an xbar's ports is [`Self::words`] words of 64 bits. Bit b stands for port
/// [`Self::first`] + b. The number of a port throughout the fabric is `xbar * 64 * words + b`.
pub(super) struct XbarPorts {
    /// How many xbars there are.
    pub(super) xbars: usize,
    /// Words of a set of ports.
    pub(super) words: usize,
    /// The port that bit 0 stands for.
    pub(super) first: u8,
    /// By number: the xbar that the port leads to, or [`NOWHERE`]. Cables that are dead, or lead back
    /// into their own xbar, lead nowhere.
    pub(super) heads: Vec<u32>,
    /// By number: the number of the port at the far end of the cable.
    pub(super) backs: Vec<u32>,
    /// By number: the set of ports whose cables count when loads are balanced.
    pub(super) counted: Vec<u64>,
    /// For each xbar the ports in use.
    pub(super) live: Vec<u64>,
    /// For each xbar the ports by which a step climbs; without an order all ports in use.
    pub(super) climbs: Vec<u64>,
    /// What a step out of each port counts, by number; empty if all count 1.
    pub(super) weights: Vec<u8>,
    /// Each xbar's neighbours, once each: those from which a step to it climbs, then the others.
    neighbours: Vec<u32>,
    bases: Vec<u32>,
    splits: Vec<u32>,
    ordered: bool,
    has_one_top: bool,
    /// For each xbar, whether several of its cables lead to the same neighbour.
    parallel: Vec<bool>,
}

impl XbarPorts {
    /// The ports of a fabric. With an order, routes climb in it and then descend; without, any step
    /// counts as one that climbs.
    pub(super) fn new(topology: &Topology, settings: &Settings, order: Option<&Order>) -> Self {
        let used: Vec<u32> = (0..topology.channel_count() as u32)
            .filter(|&channel| !topology.is_dead(channel))
            .filter(|&channel| topology.tail(channel).xbar != topology.head(channel).xbar)
            .collect();
        let numbers = used.iter().map(|&channel| topology.tail(channel).port);
        let (first, last) = (numbers.clone().min().unwrap_or_default(), numbers.max().unwrap_or_default());
        let words = usize::from(last - first) / 64 + 1;
        let xbars = topology.xbar_count();
        let mut ports = Self {
            xbars,
            words,
            first,
            heads: vec![NOWHERE; xbars * words * 64],
            backs: vec![NOWHERE; xbars * words * 64],
            counted: vec![u64::MAX; xbars * words],
            live: vec![0; xbars * words],
            climbs: vec![0; xbars * words],
            weights: Vec::new(),
            neighbours: Vec::new(),
            bases: vec![0],
            splits: Vec::new(),
            ordered: order.is_some(),
            has_one_top: order.is_some_and(Order::has_one_top),
            parallel: Vec::with_capacity(xbars),
        };
        for channel in used {
            let (tail, head) = (topology.tail(channel), topology.head(channel));
            let number = ports.number(tail);
            ports.heads[number] = head.xbar;
            ports.backs[number] = ports.number(head) as u32;
            ports.live[number / 64] |= 1 << (number % 64);
            if order.is_none_or(|order| order.climbs(tail.xbar, head.xbar)) {
                ports.climbs[number / 64] |= 1 << (number % 64);
            }
        }
        ports.join_neighbours();
        ports.weigh(settings);
        ports
    }

    fn join_neighbours(&mut self) {
        let mut from: Vec<(bool, u32)> = Vec::new();
        for xbar in 0..self.xbars {
            let ends =
                self.heads[xbar * self.words * 64..][..self.words * 64].iter().zip(xbar * self.words * 64..);
            let ends = ends.filter(|&(&head, _)| head != NOWHERE);
            // A step from there climbs if one to there does not, or if all do.
            from.clear();
            from.extend(ends.map(|(&head, number)| (!self.climbs_by(self.backs[number] as usize), head)));
            let cables = from.len();
            from.sort_unstable();
            from.dedup();
            self.parallel.push(from.len() < cables);
            self.splits
                .push((self.neighbours.len() + from.iter().filter(|(falls, _)| !falls).count()) as u32);
            self.neighbours.extend(from.iter().map(|&(_, head)| head));
            self.bases.push(self.neighbours.len() as u32);
        }
    }

    fn weigh(&mut self, settings: &Settings) {
        for &port in &settings.uncounted_ports {
            let Some(number) = self.known(port) else { continue };
            self.counted[number / 64] &= !(1 << (number % 64));
        }
        if settings.hop_weights.values().any(|&weight| weight > 1) {
            self.weights = vec![1; self.heads.len()];
            for (&port, &weight) in &settings.hop_weights {
                let Some(number) = self.known(port) else { continue };
                self.weights[number] = weight.max(1);
            }
        }
    }

    /// The number of a port, if sets of ports can name it.
    fn known(&self, port: PortRef) -> Option<usize> {
        self.number_at(port.xbar, port.port).filter(|_| (port.xbar as usize) < self.xbars)
    }

    /// The number of a port, which must be one that sets of ports can name.
    pub(super) fn number(&self, port: PortRef) -> usize {
        port.xbar as usize * self.words * 64 + usize::from(port.port - self.first)
    }

    /// The xbar that a numbered port is part of.
    pub(super) fn xbar_of(&self, number: usize) -> u32 {
        (number / 64 / self.words) as u32
    }

    /// What tables call a bit of a set of ports.
    pub(super) fn port_of_bit(&self, bit: usize) -> u8 {
        self.first + bit as u8
    }

    /// The bit of what tables call a port, if sets of ports can name it.
    pub(super) fn bit_of_port(&self, port: u8) -> Option<usize> {
        port.checked_sub(self.first).map(usize::from).filter(|&bit| bit < self.words * 64)
    }

    /// The number of an xbar's port by what tables call it, if sets of ports can name it.
    pub(super) fn number_at(&self, xbar: u32, port: u8) -> Option<usize> {
        Some(xbar as usize * self.words * 64 + self.bit_of_port(port)?)
    }

    /// Whether a step out of a numbered port climbs.
    pub(super) fn climbs_by(&self, number: usize) -> bool {
        self.climbs[number / 64] >> (number % 64) & 1 == 1
    }

    /// Whether a numbered port counts when loads are balanced.
    pub(super) fn counts(&self, number: usize) -> bool {
        self.counted[number / 64] >> (number % 64) & 1 == 1
    }

    /// Whether all ports of an xbar count when loads are balanced.
    pub(super) fn all_count(&self, xbar: u32) -> bool {
        self.counted[xbar as usize * self.words..][..self.words].iter().all(|&word| word == u64::MAX)
    }

    /// Whether routes keep to an order of xbars.
    pub(super) fn has_order(&self) -> bool {
        self.ordered
    }

    /// Whether in that order a leaf stands above xbars of the tree, so that their service adapters are
    /// reached.
    pub(super) fn has_one_top(&self) -> bool {
        self.has_one_top
    }

    /// Whether several of an xbar's cables lead to the same neighbour.
    pub(super) fn has_parallel(&self, xbar: u32) -> bool {
        self.parallel[xbar as usize]
    }

    /// The xbars from which a step to this one climbs.
    pub(super) fn below(&self, xbar: u32) -> &[u32] {
        &self.neighbours[self.bases[xbar as usize] as usize..self.splits[xbar as usize] as usize]
    }

    /// The xbars from which a step to this one descends.
    pub(super) fn above(&self, xbar: u32) -> &[u32] {
        &self.neighbours[self.splits[xbar as usize] as usize..self.bases[xbar as usize + 1] as usize]
    }

    /// An xbar's ports in use, by number.
    pub(super) fn numbers_of(&self, xbar: u32) -> impl Iterator<Item = usize> + '_ {
        let base = xbar as usize * self.words * 64;
        (base..base + self.words * 64).filter(|&number| self.heads[number] != NOWHERE)
    }
}
