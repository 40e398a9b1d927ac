//! What others have where objects of this project stand: it is left alone, and may keep packets from their way.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::object::PROTOCOL;
use mapper_fib::segments::{self, BLOCK_BITS};
use mapper_fib::{IpPrefix, Objects, RouteKey, Table};

use super::{AF_INET, AF_INET6, Kernel, KernelError, RTM_GETROUTE, RTM_GETRULE, route, rule};
use crate::netlink::message::{attributes, ip, u32_at};

/// Routes that the kernel keeps beside others are copies, and no routes of somebody's.
const RTM_F_CLONED: u32 = 0x200;
/// What becomes of packets that a route is for.
const RTN_BLACKHOLE: u8 = 6;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;
/// The most foreign routes that are named: a machine may have a million.
const MOST: usize = 16;

/// An object of somebody else's that stands where those of this project do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// A route to addresses that are segments here, in any table, or to anything in the table of segments.
    Route {
        /// Where it leads.
        to: IpPrefix,
        /// The number of its table.
        table: u32,
    },
    /// A route to a destination of ours that comes before ours, so that it takes all packets.
    Before {
        /// Where it leads.
        to: IpPrefix,
        /// What becomes of the packets, as `ip` has it before the destination; nothing where they go on.
        kind: &'static str,
        /// Of routes to one destination the one with the least metric takes the packets.
        metric: u32,
    },
    /// A rule of IPv6 with the priority of those for segments.
    Rule {
        /// The number of the table that it leads to.
        table: u32,
    },
}

impl Foreign {
    /// The command that removes it.
    pub fn removal(&self) -> String {
        match self {
            Self::Route { to: IpPrefix { ip, bits }, table } => {
                let family = if ip.is_ipv4() { "-4" } else { "-6" };
                format!("ip {family} route del {ip}/{bits} table {table}")
            }
            Self::Before { to: IpPrefix { ip, bits }, kind, metric } => {
                let family = if ip.is_ipv4() { "-4" } else { "-6" };
                let (table, space) = (Table::Main.number(), if kind.is_empty() { "" } else { " " });
                format!("ip {family} route del {kind}{space}{ip}/{bits} table {table} metric {metric}")
            }
            Self::Rule { table } => format!("ip -6 rule del priority {} table {table}", rule::PRIORITY),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route { to: IpPrefix { ip, bits }, table } => {
                write!(f, "a route to {ip}/{bits} in table {table}")
            }
            Self::Before { to: IpPrefix { ip, bits }, kind, .. } => {
                let (table, space) = (Table::Main.number(), if kind.is_empty() { "" } else { " " });
                write!(f, "a {kind}{space}route to {ip}/{bits} in table {table}")
            }
            Self::Rule { table } => write!(f, "a rule of priority {} to table {table}", rule::PRIORITY),
        }
    }
}

impl Kernel {
    /// What others have among segments, in the table of segments, and at the priority of its rules: the first of
    /// them.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn foreign(&mut self) -> Result<Vec<Foreign>, KernelError> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let routes =
                self.socket.dump(RTM_GETROUTE, &route::fixed_of_any(family), Vec::new, |found, message| {
                    if found.len() < MOST {
                        found.extend(read_route(message.body));
                    }
                });
            found.extend(routes.map_err(|source| no_answer("reading routes", source))?);
        }
        let rules =
            self.socket.dump(RTM_GETRULE, &rule::fixed_of_all(AF_INET6), Vec::new, |found, message| {
                if found.len() < MOST {
                    found.extend(read_rule(message.body));
                }
            });
        found.extend(rules.map_err(|source| no_answer("reading rules", source))?);
        Ok(found)
    }
}

impl Kernel {
    /// Routes of others to destinations of these objects that take the packets, as their metric is less: the first of them.
    /// The whole table is read, which may be long.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn before_ours(&mut self, ours: &Objects) -> Result<Vec<Foreign>, KernelError> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let routes =
                self.socket.dump(RTM_GETROUTE, &route::fixed_of_any(family), Vec::new, |found, message| {
                    if found.len() < MOST {
                        found.extend(read_before(message.body, ours));
                    }
                });
            found.extend(routes.map_err(|source| no_answer("reading routes", source))?);
        }
        Ok(found)
    }
}

pub(super) fn no_answer(doing: &str, source: std::io::Error) -> KernelError {
    KernelError::NoAnswer { doing: doing.to_owned(), source }
}

/// The route, if somebody else has it where ours stand.
fn read_route(body: &[u8]) -> Option<Foreign> {
    let (family, bits, protocol) = (*body.first()?, *body.get(1)?, *body.get(5)?);
    let (mut table, mut to) = (u32::from(*body.get(4)?), None);
    for (kind, value) in attributes(body.get(route::FIXED_BYTES..)?) {
        match kind {
            route::RTA_TABLE => table = u32_at(value, 0)?,
            route::RTA_DST => to = ip(value),
            _ => {}
        }
    }
    let nowhere = if family == AF_INET6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::from([0; 4]) };
    let to = IpPrefix { ip: to.unwrap_or(nowhere), bits };
    let is_copy = u32_at(body, 8)? & RTM_F_CLONED != 0;
    let is_among_segments = bits >= BLOCK_BITS && segments::all().contains(to.ip);
    let is_in_the_way =
        is_among_segments || [Table::Segments, Table::Passing].map(Table::number).contains(&table);
    (protocol != PROTOCOL && !is_copy && is_in_the_way).then_some(Foreign::Route { to, table })
}

/// The route, if somebody else has it to a destination of ours, and it comes first.
fn read_before(body: &[u8], ours: &Objects) -> Option<Foreign> {
    let told = route::read(body)?;
    let is_ours_to_take = told.key.table == Table::Main && ours.routes.contains_key(&told.key);
    let is_copy = u32_at(body, 8)? & RTM_F_CLONED != 0;
    if told.protocol == PROTOCOL || !is_ours_to_take || is_copy {
        return None;
    }
    let kind = match *body.get(7)? {
        route::RTN_UNICAST => "",
        RTN_BLACKHOLE => "blackhole",
        RTN_UNREACHABLE => "unreachable",
        RTN_PROHIBIT => "prohibit",
        _ => return None,
    };
    let mut all = attributes(body.get(route::FIXED_BYTES..)?);
    let metric = all.find(|(kind, _)| *kind == route::RTA_PRIORITY).and_then(|(_, value)| u32_at(value, 0));
    let metric = metric.unwrap_or(0);
    let RouteKey { to, .. } = told.key;
    (metric < route::METRIC).then_some(Foreign::Before { to, kind, metric })
}

/// The rule, if somebody else has it at our priority.
fn read_rule(body: &[u8]) -> Option<Foreign> {
    let mut table = u32::from(*body.get(4)?);
    let (mut priority, mut protocol) = (0, 0);
    for (kind, value) in attributes(body.get(rule::FIXED_BYTES..)?) {
        match kind {
            rule::FRA_TABLE => table = u32_at(value, 0)?,
            rule::FRA_PRIORITY => priority = u32_at(value, 0)?,
            rule::FRA_PROTOCOL => protocol = *value.first()?,
            _ => {}
        }
    }
    (priority == rule::PRIORITY && protocol != PROTOCOL).then_some(Foreign::Rule { table })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_told_with_the_command_that_removes_it() {
        let route = Foreign::Route { to: segments::all(), table: 254 };
        assert_eq!(route.to_string(), "a route to fcbb:bb00::/32 in table 254");
        assert_eq!(route.removal(), "ip -6 route del fcbb:bb00::/32 table 254");
        let before = Foreign::Before { to: segments::all(), kind: "blackhole", metric: 1024 };
        assert_eq!(before.to_string(), "a blackhole route to fcbb:bb00::/32 in table 254");
        assert_eq!(before.removal(), "ip -6 route del blackhole fcbb:bb00::/32 table 254 metric 1024");
        assert_eq!(Foreign::Rule { table: 7 }.removal(), "ip -6 rule del priority 109 table 7");
    }

    #[test]
    fn what_is_cut_off_is_passed_over() {
        for bytes in 0..12 {
            assert_eq!((read_route(&vec![255; bytes]), read_rule(&vec![255; bytes])), (None, None));
            assert_eq!(read_before(&vec![255; bytes], &Objects::default()), None);
        }
    }
}
