//! What ports suggest: if each dimension is cabled by the same ports everywhere, these ports show its
//! directions.

use std::collections::BTreeMap;

use mapper_proto::PortSet;

use super::super::statement::TorusStatement;
use crate::Topology;

/// The directions that ports suggest, if there are few enough pairs of ports that cables join: one pair a
/// dimension, with the lower port leading up. (A hypercube joins like ports: these lead both ways.)
///
/// It is only a suggestion. Port numbers of plain xbars need not be right, and a fabric need not be cabled
/// regularly.
pub(super) fn of(topology: &Topology) -> Option<TorusStatement> {
    let mut pairs: BTreeMap<[u8; 2], usize> = BTreeMap::new();
    for channel in 0..topology.channel_count() as u32 {
        let (tail, head) = (topology.tail(channel), topology.head(channel));
        if tail.xbar != head.xbar && tail.port <= head.port {
            *pairs.entry([tail.port, head.port]).or_default() += 1;
        }
    }
    if pairs.is_empty() || pairs.len() > 3 {
        return None;
    }
    let mut statement = TorusStatement::default();
    for (i, &[up, down]) in pairs.keys().enumerate() {
        statement.ports[2 * i].insert(up);
        statement.ports[2 * i + 1].insert(down);
    }
    let ports: Vec<u8> =
        pairs.keys().flat_map(|&[up, down]| [up].into_iter().chain((up != down).then_some(down))).collect();
    let distinct: PortSet = ports.iter().copied().collect();
    (distinct.iter().count() == ports.len()).then_some(statement)
}
