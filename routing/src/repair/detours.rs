//! Shortest routes along any turns that are allowed.

use std::collections::BTreeMap;

use mapper_proto::map::PortRef;

use super::openings::onward;
use crate::{Attachment, Topology};

/// Stands for the channel before the first one, and for that before a channel which is not reached.
const NONE: u32 = u32::MAX;

/// A shortest route from a host's xbar to each of `ends` that `allows` leads to, by the ports out of the
/// xbars on the way. Routes to an end have at most `max_hops` hops, the one to the host included. Routes that
/// would pass an xbar twice are left out.
pub(super) fn detours(
    cut: &Topology,
    from: u32,
    ends: impl Iterator<Item = u32>,
    max_hops: u8,
    allows: impl Fn(u32, u32) -> bool,
) -> BTreeMap<u32, Vec<PortRef>> {
    let Attachment::Port(source) = cut.attachment(from) else {
        return BTreeMap::new();
    };
    let before = search(cut, source.xbar, max_hops, allows);
    let mut entered: BTreeMap<u32, u32> = ends.map(|end| (end, NONE)).collect();
    for &(channel, _) in &before.order {
        if let Some(first @ &mut NONE) = entered.get_mut(&cut.head(channel).xbar) {
            *first = channel;
        }
    }
    entered.retain(|_, &mut channel| channel != NONE);
    entered
        .into_iter()
        .map(|(end, channel)| (end, before.ports_to(cut, channel)))
        .filter(|(end, ports)| passes_each_once(ports, *end))
        .collect()
}

fn passes_each_once(ports: &[PortRef], end: u32) -> bool {
    let mut passed: Vec<u32> = ports.iter().map(|port| port.xbar).chain([end]).collect();
    passed.sort_unstable();
    passed.windows(2).all(|pair| pair[0] != pair[1])
}

/// A breadth-first search over channels.
struct ChannelSearch {
    /// For each channel, the one before it on the way.
    before: Vec<u32>,
    /// The channels reached, each with its distance in steps.
    order: Vec<(u32, u8)>,
}

fn search(cut: &Topology, source: u32, max_hops: u8, allows: impl Fn(u32, u32) -> bool) -> ChannelSearch {
    let mut before = vec![NONE; cut.channel_count()];
    let mut order: Vec<(u32, u8)> = Vec::new();
    let mut reached = vec![false; cut.channel_count()];
    for channel in cut.channels_of(source) {
        if !cut.is_dead(channel) && cut.head(channel).xbar != source && max_hops > 1 {
            reached[channel as usize] = true;
            order.push((channel, 1));
        }
    }
    let mut next = 0;
    while let Some(&(channel, steps)) = order.get(next) {
        next += 1;
        // The hops are those with this channel, the next one, and the hop to the host.
        if steps + 2 > max_hops {
            continue;
        }
        for on in onward(cut, channel) {
            if !reached[on as usize] && allows(channel, on) {
                reached[on as usize] = true;
                before[on as usize] = channel;
                order.push((on, steps + 1));
            }
        }
    }
    ChannelSearch { before, order }
}

impl ChannelSearch {
    fn ports_to(&self, cut: &Topology, end: u32) -> Vec<PortRef> {
        let back = |&channel: &u32| Some(self.before[channel as usize]).filter(|&before| before != NONE);
        let mut ports: Vec<_> =
            std::iter::successors(Some(end), back).map(|channel| cut.tail(channel)).collect();
        ports.reverse();
        ports
    }
}
