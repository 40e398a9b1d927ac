//! The proof of tables whose layers differ from host to host of one xbar.

use rayon::prelude::*;

use super::{ProofRules, TableViolation, TablesProof, UnionProof, Violation, prove_tables, walk_tables};
use crate::tables::{Layers, ServiceLevels, SlotEnd};
use crate::{Subnet, Tables};

/// Proves tables with these levels.
///
/// Only deadlock depends on layers. For deadlock, each route counts in every layer that any host of its first
/// xbar uses. So nothing is missed, and nothing is counted that no frame can do.
pub fn prove_service_levels(
    subnet: &Subnet,
    tables: &Tables,
    levels: &ServiceLevels,
    rules: &ProofRules,
) -> TablesProof {
    let mut proof = prove_tables(subnet, tables, &Layers::single(), rules);
    let all = proof.violations.len();
    proof.violations.retain(|violation| !matches!(violation, TableViolation::Deadlock { .. }));
    proof.violation_count -= (all - proof.violations.len()) as u64;
    proof.deadlock_free = true;
    for layer in (0..Layers::MAX).filter(|layer| levels.in_use() >> layer & 1 == 1) {
        if let Err(cycle) = in_layer(subnet, tables, levels, layer).prove_acyclic() {
            proof.violations.push(TableViolation::Deadlock { layer, cycle });
            proof.violation_count += 1;
            proof.deadlock_free = false;
        }
    }
    proof
}

/// The channel dependencies of a layer.
fn in_layer<'a>(subnet: &'a Subnet, tables: &Tables, levels: &ServiceLevels, layer: u8) -> UnionProof<'a> {
    let topology = &subnet.topology;
    let begin = || UnionProof::new(topology);
    let leaves: Vec<u32> = (0..topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)).collect();
    let add = |mut union: UnionProof<'a>, &leaf: &u32| {
        let slots = (0..tables.slot_count() as u32).filter(|&slot| levels.of(leaf, slot) >> layer & 1 == 1);
        for slot in slots {
            // Routes that do not arrive are found, and told, by the proof of tables.
            let _told: Result<(), Violation> = add_route(&mut union, subnet, tables, leaf, slot);
        }
        union
    };
    let join = |mut one: UnionProof<'a>, other: UnionProof<'a>| {
        one.merge(&other);
        one
    };
    leaves.par_iter().fold(begin, add).reduce(begin, join)
}

/// Adds the route from an xbar's hosts to a slot.
fn add_route(
    union: &mut UnionProof<'_>,
    subnet: &Subnet,
    tables: &Tables,
    leaf: u32,
    slot: u32,
) -> Result<(), Violation> {
    let SlotEnd::Host { host: to, .. } = subnet.destinations.end(slot) else { return Ok(()) };
    let hosts = subnet.topology.hosts_of(leaf);
    let Some(from) = hosts.iter().copied().find(|&host| host != to) else { return Ok(()) };
    match walk_tables(subnet, tables, from, slot) {
        Some(hops) => union.add_route(from, to, &hops),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_proto::map::PortRef;

    use super::*;
    use crate::Far;

    /// A ring of 5 xbars with 2 hosts each, routed by the shorter way: a circle of dependencies each way.
    fn ring() -> (Subnet, Tables) {
        let subnet = Subnet::new(&generate("ring:n=5,hosts=2").unwrap(), None).unwrap();
        let mut tables = Tables::empty(5, subnet.destinations.slot_count());
        for to in 0..5 {
            for slot in subnet.destinations.slots_of(to) {
                for xbar in (0..5).filter(|&xbar| xbar != to) {
                    let next = if (to + 5 - xbar) % 5 <= 2 { (xbar + 1) % 5 } else { (xbar + 4) % 5 };
                    let port = subnet.topology.channels_of(xbar).map(|channel| {
                        (subnet.topology.head(channel).xbar, subnet.topology.tail(channel).port)
                    });
                    let (_, port) = port.into_iter().find(|&(head, _)| head == next).unwrap();
                    tables.set_port(xbar, slot, port);
                }
            }
            for &host in subnet.topology.hosts_of(to) {
                let is_its =
                    |port: &u8| subnet.topology.far(PortRef { xbar: to, port: *port }) == Far::Host(host);
                let port = (0..10).find(is_its).unwrap();
                tables.set_port(to, subnet.destinations.slots_of_host(host).start, port);
            }
        }
        (subnet, tables)
    }

    fn proof_with(level: impl Fn(u32, u32) -> u8) -> TablesProof {
        let (subnet, tables) = ring();
        let mut levels = ServiceLevels::new(&subnet);
        for from in 1..=10 {
            for to in (1..=10).filter(|&to| to != from) {
                let slot = subnet.destinations.slots_of_host(to - 1).start;
                levels.add(subnet.xbar_of_host(from - 1).unwrap(), slot, level(from, to));
            }
        }
        prove_service_levels(
            &subnet,
            &tables,
            &levels,
            &ProofRules { max_hops: 64, xbar_destinations: false },
        )
    }

    #[test]
    fn a_circle_counts_where_all_its_routes_are_in_one_layer() {
        // All routes are in one layer.
        let proof = proof_with(|_, _| 3);
        assert_eq!((proof.reachable, proof.loop_free, proof.deadlock_free), (true, true, false));
        assert!(matches!(&proof.violations[..], [TableViolation::Deadlock { layer: 3, .. }]));
        // The two hosts of an xbar are in different layers, so each layer has the whole circle.
        let proof = proof_with(|from, _| (from % 2) as u8);
        assert_eq!((proof.violation_count, proof.violations.len()), (2, 2));
        // The routes of the hosts at the first xbars are in a layer apart, so no circle is whole.
        let proof = proof_with(|from, to| u8::from(from <= 4) + u8::from(from == 1 && to == 9));
        assert!(proof.holds(), "{proof}");
    }
}
