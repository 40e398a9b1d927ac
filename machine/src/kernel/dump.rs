//! Reads back what the kernel holds of ours.

use std::io;

use mapper_fib::object::PROTOCOL;
use mapper_fib::{Change, Objects, changes};

use super::{
    AF_INET, AF_INET6, Kernel, KernelError, RTM_GETNEIGH, RTM_GETNEXTHOP, RTM_GETROUTE, RTM_GETRULE,
    neighbour, nexthop, route, rule,
};

/// How often what is left is taken away again, should somebody make more meanwhile.
const REMOVE_TRIES: usize = 3;

impl Kernel {
    /// All objects that have our protocol number, and no others. The lists are read one after the other, so an
    /// object that goes meanwhile may still stand in one of the first. A change that names it is then refused,
    /// and everything is to be read again.
    ///
    /// The kernel takes some away by itself without a word: nexthops of an interface that lost its carrier or
    /// was set down, the groups that have no others, and the routes of these groups. So read back after such an
    /// event, too.
    ///
    /// An object that is ours, but none that this project installs, reads as one of the same key that leads
    /// nowhere, so whoever installs what is wanted replaces or removes it.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn dump(&mut self) -> Result<Objects, KernelError> {
        let mut objects = self.dump_ways()?;
        objects.extend(self.dump_neighbours()?);
        objects.extend(self.dump_rules()?);
        objects.marked_above = self.marked_above()?;
        Ok(objects)
    }

    /// The nexthops, groups and routes of [`Self::dump`].
    fn dump_ways(&mut self) -> Result<Objects, KernelError> {
        // A route goes with its nexthops. So it is read after them, else one could be read that goes at once, and
        // be missed when its nexthops are put back.
        let mut objects = self.dump_nexthops()?;
        objects.extend(self.dump_routes(AF_INET)?);
        objects.extend(self.dump_routes(AF_INET6)?);
        Ok(objects)
    }

    /// Takes away all that has our protocol number, and nothing else. Returns what could not be taken away.
    ///
    /// # Errors
    /// If the kernel does not say what there is.
    pub fn remove_all_of_ours(&mut self) -> Result<Vec<(Change, KernelError)>, KernelError> {
        let mut failed = Vec::new();
        for _ in 0..REMOVE_TRIES {
            let there = self.dump()?;
            if there.is_empty() {
                return Ok(Vec::new());
            }
            let removals = changes(&there, &Objects::default());
            let refused = self.apply(&removals).into_iter();
            failed = refused.map(|(at, error)| (removals[at].clone(), error)).collect();
        }
        Ok(failed)
    }

    /// Whether the kernel has nexthops as objects, which is whether it has a list of them.
    pub(super) fn knows_nexthops(&mut self) -> Result<bool, KernelError> {
        match self.socket.dump(RTM_GETNEXTHOP, &nexthop::fixed_of_none(), || (), |(), _| {}) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(source) => Err(KernelError::NoAnswer { doing: "reading nexthops".to_owned(), source }),
        }
    }

    fn dump_routes(&mut self, family: u8) -> Result<Objects, KernelError> {
        let fixed = route::fixed_of_all(family);
        let routes = self.socket.dump(RTM_GETROUTE, &fixed, Objects::default, |objects, message| {
            let told = route::read(message.body).filter(|told| told.protocol == PROTOCOL);
            objects.routes.extend(told.map(|told| (told.key, told.route)));
        });
        listed(routes, "routes")
    }

    fn dump_nexthops(&mut self) -> Result<Objects, KernelError> {
        let fixed = nexthop::fixed_of_none();
        let nexthops =
            self.socket.dump(
                RTM_GETNEXTHOP,
                &fixed,
                Objects::default,
                |objects, message| match nexthop::read(message.body) {
                    Some(nexthop::Told::Single(id, nexthop)) => drop(objects.nexthops.insert(id, nexthop)),
                    Some(nexthop::Told::Group(id, members)) => drop(objects.groups.insert(id, members)),
                    None => {}
                },
            );
        listed(nexthops, "nexthops")
    }

    fn dump_neighbours(&mut self) -> Result<Objects, KernelError> {
        let fixed = neighbour::fixed_of_all();
        let neighbours = self.socket.dump(RTM_GETNEIGH, &fixed, Objects::default, |objects, message| {
            let told = neighbour::read(message.body).filter(|told| told.protocol == PROTOCOL);
            objects.neighbours.extend(told.map(|told| ((told.interface, told.ip), told.mac)));
        });
        listed(neighbours, "neighbours")
    }

    fn dump_rules(&mut self) -> Result<Objects, KernelError> {
        let fixed = rule::fixed_of_all(AF_INET6);
        let rules = self.socket.dump(RTM_GETRULE, &fixed, Objects::default, |objects, message| {
            objects.rules.extend(rule::read(message.body));
        });
        listed(rules, "rules")
    }
}

/// A list that the kernel told. It is empty for objects that the kernel does not know at all, such as nexthops
/// before Linux 5.3.
fn listed(list: io::Result<Objects>, what: &str) -> Result<Objects, KernelError> {
    match list {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(Objects::default()),
        list => {
            let doing = format!("reading {what}");
            list.map_err(|source| KernelError::NoAnswer { doing, source })
        }
    }
}
