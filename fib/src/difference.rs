//! The changes that lead from one set of objects to another.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mapper_proto::Mac;

use crate::object::{GroupId, Nexthop, NexthopId, Objects, Route, RouteKey, Rule};

/// One change of the kernel's tables. What is put takes the place of an object of the same key, at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets the link address of a neighbour.
    PutNeighbour {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address.
        ip: IpAddr,
        /// Its link address.
        mac: Mac,
    },
    /// Sets a nexthop object.
    PutNexthop(NexthopId, Nexthop),
    /// Sets the members of a group.
    PutGroup(GroupId, Vec<NexthopId>),
    /// Adds a rule.
    PutRule(Rule),
    /// Sets what a route does.
    PutRoute(RouteKey, Route),
    /// Has packets of more than this many bytes looked up in [`Table::TooLong`](crate::object::Table::TooLong).
    PutMark(u32),
    /// Has no packet looked up there any more.
    RemoveMark,
    /// Removes a route.
    RemoveRoute(RouteKey),
    /// Removes a rule.
    RemoveRule(Rule),
    /// Removes a group.
    RemoveGroup(GroupId),
    /// Removes a nexthop object.
    RemoveNexthop(NexthopId),
    /// Removes a neighbour's entry.
    RemoveNeighbour {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address.
        ip: IpAddr,
    },
}

impl Change {
    /// Whether it puts an object as it is among these.
    pub fn puts_one_of(&self, objects: &Objects) -> bool {
        match self {
            Self::PutNeighbour { interface, ip, mac } => {
                objects.neighbours.get(&(*interface, *ip)) == Some(mac)
            }
            Self::PutNexthop(id, nexthop) => objects.nexthops.get(id) == Some(nexthop),
            Self::PutGroup(id, members) => objects.groups.get(id) == Some(members),
            Self::PutRule(rule) => objects.rules.contains(rule),
            Self::PutRoute(key, route) => objects.routes.get(key) == Some(route),
            Self::PutMark(above) => objects.marked_above == Some(*above),
            Self::RemoveMark
            | Self::RemoveRoute(_)
            | Self::RemoveRule(_)
            | Self::RemoveGroup(_)
            | Self::RemoveNexthop(_)
            | Self::RemoveNeighbour { .. } => false,
        }
    }

    /// Whether there is an object of the same key among these: one that it takes away, or takes the place of.
    pub fn has_key_among(&self, objects: &Objects) -> bool {
        match self {
            Self::PutNeighbour { interface, ip, .. } | Self::RemoveNeighbour { interface, ip } => {
                objects.neighbours.contains_key(&(*interface, *ip))
            }
            Self::PutNexthop(id, _) | Self::RemoveNexthop(id) => objects.nexthops.contains_key(id),
            Self::PutGroup(id, _) | Self::RemoveGroup(id) => objects.groups.contains_key(id),
            Self::PutRule(rule) | Self::RemoveRule(rule) => objects.rules.contains(rule),
            Self::PutRoute(key, _) | Self::RemoveRoute(key) => objects.routes.contains_key(key),
            Self::PutMark(_) | Self::RemoveMark => objects.marked_above.is_some(),
        }
    }

    /// Whether it takes something away.
    pub const fn removes(&self) -> bool {
        match self {
            Self::PutNeighbour { .. }
            | Self::PutNexthop(..)
            | Self::PutGroup(..)
            | Self::PutRule(_)
            | Self::PutRoute(..)
            | Self::PutMark(_) => false,
            Self::RemoveMark
            | Self::RemoveRoute(_)
            | Self::RemoveRule(_)
            | Self::RemoveGroup(_)
            | Self::RemoveNexthop(_)
            | Self::RemoveNeighbour { .. } => true,
        }
    }
}

/// The changes that lead from `before` to `after`.
///
/// The order is one in which the kernel accepts them, and packets never take a way that is in neither set:
/// neighbours and plain routes come first, then nexthops, groups that name them, and routes that name groups.
/// Removals follow all of these, in the opposite order. A nexthop that changes and stays in groups
/// changes for all of them at once.
pub fn changes(before: &Objects, after: &Objects) -> Vec<Change> {
    let mut changes = Vec::new();
    // Nothing that comes in is led astray while the tables are filled, or emptied.
    let (new_rules, old_rules) =
        (after.rules.difference(&before.rules).cloned(), before.rules.difference(&after.rules).cloned());
    let (first, later): (Vec<_>, Vec<_>) = new_rules.partition(drops);
    let (last, sooner): (Vec<_>, Vec<_>) = old_rules.partition(drops);
    changes.extend(first.into_iter().map(Change::PutRule));
    for (&(interface, ip), &mac) in put(&before.neighbours, &after.neighbours) {
        changes.push(Change::PutNeighbour { interface, ip, mac });
    }
    let routes = || put(&before.routes, &after.routes);
    let put_route = |(&key, route): (&RouteKey, &Route)| Change::PutRoute(key, route.clone());
    changes.extend(routes().filter(|(_, route)| stands_alone(route)).map(put_route));
    changes
        .extend(put(&before.nexthops, &after.nexthops).map(|(&id, it)| Change::PutNexthop(id, it.clone())));
    changes.extend(put(&before.groups, &after.groups).map(|(&id, it)| Change::PutGroup(id, it.clone())));
    changes.extend(routes().filter(|(_, route)| !stands_alone(route)).map(put_route));
    changes.extend(later.into_iter().map(Change::PutRule));
    if before.marked_above != after.marked_above {
        changes.push(after.marked_above.map_or(Change::RemoveMark, Change::PutMark));
    }

    changes.extend(sooner.into_iter().map(Change::RemoveRule));
    changes.extend(gone(&before.routes, &after.routes).map(|&key| Change::RemoveRoute(key)));
    changes.extend(gone(&before.groups, &after.groups).map(|&id| Change::RemoveGroup(id)));
    changes.extend(gone(&before.nexthops, &after.nexthops).map(|&id| Change::RemoveNexthop(id)));
    for &(interface, ip) in gone(&before.neighbours, &after.neighbours) {
        changes.push(Change::RemoveNeighbour { interface, ip });
    }
    changes.extend(last.into_iter().map(Change::RemoveRule));
    changes
}

const fn drops(rule: &Rule) -> bool {
    matches!(rule, Rule::Unknown { .. })
}

/// Whether a route names no other object.
const fn stands_alone(route: &Route) -> bool {
    !matches!(route, Route::Group { .. } | Route::StripAndLeave { .. })
}

fn put<'a, K: Ord, V: PartialEq>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    after.iter().filter(|&(key, value)| before.get(key) != Some(value))
}

fn gone<'a, K: Ord, V>(before: &'a BTreeMap<K, V>, after: &'a BTreeMap<K, V>) -> impl Iterator<Item = &'a K> {
    before.keys().filter(|&key| !after.contains_key(key))
}

impl Objects {
    /// Takes in that a change was carried out.
    pub fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::PutNeighbour { interface, ip, mac } => {
                self.neighbours.insert((interface, ip), mac);
            }
            Change::PutNexthop(id, nexthop) => {
                self.nexthops.insert(id, nexthop);
            }
            Change::PutGroup(id, members) => {
                self.groups.insert(id, members);
            }
            Change::PutRule(rule) => {
                self.rules.insert(rule);
            }
            Change::PutRoute(key, route) => {
                self.routes.insert(key, route);
            }
            Change::PutMark(above) => self.marked_above = Some(above),
            Change::RemoveMark => self.marked_above = None,
            Change::RemoveRoute(key) => {
                self.routes.remove(&key);
            }
            Change::RemoveRule(rule) => {
                self.rules.remove(&rule);
            }
            Change::RemoveGroup(id) => {
                self.groups.remove(&id);
            }
            Change::RemoveNexthop(id) => {
                self.nexthops.remove(&id);
            }
            Change::RemoveNeighbour { interface, ip } => {
                self.neighbours.remove(&(interface, ip));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;

    use super::*;
    use crate::object::{IpPrefix, Table};

    fn nexthop() -> impl Strategy<Value = Nexthop> {
        (1..3u32, 1..4u16).prop_map(|(interface, port)| Nexthop::Segments {
            interface,
            segments: vec![Ipv6Addr::new(0xfcbb, 0xbb00, port, 0xfff4, 0, 0, 0, 0)],
        })
    }

    /// Objects in which whatever is named is there.
    fn objects() -> impl Strategy<Value = Objects> {
        let nexthops = btree_map((0..4u32).prop_map(NexthopId), nexthop(), 1..4);
        nexthops.prop_flat_map(|nexthops| {
            let ids: Vec<_> = nexthops.keys().copied().collect();
            let members = proptest::sample::subsequence(ids.clone(), 1..=ids.len());
            let groups = btree_map((0..3u32).prop_map(GroupId), members, 1..3);
            groups.prop_flat_map(move |groups| {
                let (nexthops, ids) = (nexthops.clone(), groups.keys().copied().collect::<Vec<_>>());
                let key = (0..4u8).prop_map(|n| RouteKey {
                    table: Table::Main,
                    to: IpPrefix::host(IpAddr::from([10, 1, 0, n])),
                });
                let route = proptest::sample::select(ids).prop_map(|group| Route::Group {
                    group,
                    source: None,
                    mtu: 1460,
                });
                let rules = btree_set(((0..3u8).prop_map(|n| format!("eth{n}")), any::<bool>()), 0..5);
                (btree_map(key, route, 0..4), rules).prop_map(move |(routes, rules)| {
                    let to = IpPrefix::v6(Ipv6Addr::new(0xfcbb, 0xbb00, 0, 0, 0, 0, 0, 0), 32);
                    let rule = |(interface, drops)| {
                        if drops { Rule::Unknown { interface, to } } else { Rule::Segments { interface, to } }
                    };
                    let rules = rules.into_iter().map(rule).collect();
                    let (nexthops, groups) = (nexthops.clone(), groups.clone());
                    let marked_above = (!routes.is_empty()).then_some(1380 + 20 * routes.len() as u32);
                    Objects { nexthops, groups, rules, routes, marked_above, ..Objects::default() }
                })
            })
        })
    }

    /// Whether nothing names what is not there, as the kernel wants it.
    fn is_sound(objects: &Objects) -> bool {
        let named = |members: &Vec<NexthopId>| members.iter().all(|id| objects.nexthops.contains_key(id));
        let leads = |route: &Route| match route {
            Route::Group { group, .. } => objects.groups.contains_key(group),
            _ => true,
        };
        objects.groups.values().all(named) && objects.routes.values().all(leads)
    }

    proptest! {
        #[test]
        fn changes_lead_there_and_name_nothing_that_is_not_there(before in objects(), after in objects()) {
            let mut now = before.clone();
            for change in changes(&before, &after) {
                now.apply(&change);
                prop_assert!(is_sound(&now), "after {:?}", change);
                // Nexthops may lead elsewhere for a moment, so that all groups with them are whole.
                let is_passing = matches!(change, Change::PutNexthop(..) | Change::PutGroup(..));
                prop_assert!(is_passing || change.removes() != change.puts_one_of(&after), "{:?}", change);
            }
            prop_assert_eq!(&now, &after);
            prop_assert!(changes(&now, &after).is_empty());
        }
    }
}
