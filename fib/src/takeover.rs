//! What a kernel is to hold while a run of the daemon takes over from an earlier one, which ended without a word.

use crate::object::{Nexthop, Objects, Route};

/// What a kernel is to hold until this run has proved its own ways: what it holds already, and what is `wanted` of it; where
/// both have an object of the same key, the wanted one counts.
///
/// The earlier run's ways out of an interface for which `leads_nowhere` says so go at once, as nobody finds out by them
/// that they carry nothing. A host to which no other way is left is not sent to by the kernel any more.
pub fn taking_over(there: &Objects, wanted: &Objects, leads_nowhere: impl Fn(u32) -> bool) -> Objects {
    let mut kept = there.clone();
    kept.nexthops.retain(|_, nexthop| !leads_nowhere(Nexthop::interface(nexthop)));
    for members in kept.groups.values_mut() {
        members.retain(|member| kept.nexthops.contains_key(member));
    }
    kept.groups.retain(|_, members| !members.is_empty());
    kept.routes.retain(|_, route| match route {
        Route::Group { group, .. } => kept.groups.contains_key(group),
        Route::Gateway { .. }
        | Route::Link { .. }
        | Route::Strip { .. }
        | Route::StripAndLeave { .. }
        | Route::DeliverV4 { .. }
        | Route::DeliverV6 { .. } => true,
    });
    kept.extend(wanted.clone());
    kept
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;
    use crate::object::{GroupId, IpPrefix, NexthopId, RouteKey, Table};

    /// Routes to hosts of these numbers, each with a group of its own, whose nexthops leave by these interfaces.
    fn routes(hosts: &[(u16, &[u32])]) -> Objects {
        let mut objects = Objects::default();
        for &(host, interfaces) in hosts {
            let id = |interface: u32| NexthopId(u32::from(host) * 100 + interface);
            for &interface in interfaces {
                let segments = vec![Ipv6Addr::LOCALHOST];
                objects.nexthops.insert(id(interface), Nexthop::Segments { interface, segments });
            }
            let group = GroupId(host.into());
            objects.groups.insert(group, interfaces.iter().map(|&interface| id(interface)).collect());
            let to = IpPrefix::host(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host]));
            let route = Route::Group { group, source: None, mtu: 1500 };
            objects.routes.insert(RouteKey { table: Table::Main, to }, route);
        }
        objects
    }

    #[test]
    fn what_an_earlier_run_left_stays_but_what_leaves_by_an_interface_that_leads_nowhere() {
        let left = routes(&[(1, &[10, 11]), (2, &[10]), (3, &[11])]);
        assert_eq!(taking_over(&left, &Objects::default(), |_| false), left);
        let taken_over = taking_over(&left, &Objects::default(), |interface| interface == 10);
        assert_eq!(taken_over, routes(&[(1, &[11]), (3, &[11])]));
    }

    #[test]
    fn what_is_wanted_counts_wherever_it_leads() {
        let (left, wanted) = (routes(&[(1, &[10]), (2, &[11])]), routes(&[(1, &[12])]));
        let mut expected = routes(&[(2, &[11])]);
        expected.extend(wanted.clone());
        assert_eq!(taking_over(&left, &wanted, |interface| interface != 11), expected);
    }
}
