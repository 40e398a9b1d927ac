//! Rules in messages of rtnetlink (`fib_rule_hdr`): which table is looked up.

use std::net::Ipv6Addr;

use mapper_fib::object::{PROTOCOL, TOO_LONG};
use mapper_fib::{IpPrefix, Rule, Table};

use super::AF_INET6;
use crate::netlink::message::{Attributes, attributes, ipv6, text, u32_at};

const FRA_DST: u16 = 1;
const FRA_IIFNAME: u16 = 3;
pub(super) const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
pub(super) const FRA_TABLE: u16 = 15;
pub(super) const FRA_PROTOCOL: u16 = 21;
const FR_ACT_TO_TBL: u8 = 1;
const FR_ACT_BLACKHOLE: u8 = 6;
pub(super) const FIXED_BYTES: usize = 12;

/// The place of our rules among all: behind the one for the machine's own addresses, which is 0, and before
/// whatever else looks at packets, such as those of virtual private networks, whose tables have routes for
/// everything. It takes nothing from them, as a rule is for segments that came in by one port, or for a mark of ours
/// and a table that has routes to hosts of the fabric alone.
pub(super) const PRIORITY: u32 = 109;
/// The place of the rules that drop what those before them have no route for.
pub(super) const PRIORITY_OF_UNKNOWN: u32 = PRIORITY + 1;

/// The fixed part of a message about this rule.
pub(super) fn fixed(rule: &Rule) -> [u8; FIXED_BYTES] {
    let mut fixed = fixed_of_all(AF_INET6);
    fixed[1] = match rule {
        Rule::Segments { to, .. } | Rule::Unknown { to, .. } => to.bits,
        Rule::TooLong | Rule::Passing { .. } => 0,
    };
    fixed[7] = table(rule).map_or(FR_ACT_BLACKHOLE, |_| FR_ACT_TO_TBL);
    fixed
}

/// The fixed part of a message that asks for all rules of a version of IP. Ours are all of IPv6.
pub(super) fn fixed_of_all(family: u8) -> [u8; FIXED_BYTES] {
    let mut fixed = [0; FIXED_BYTES];
    fixed[0] = family;
    fixed
}

/// The table that a rule leads to; `None` if it drops packets.
pub(super) const fn table(rule: &Rule) -> Option<Table> {
    match rule {
        Rule::Segments { .. } => Some(Table::Segments),
        Rule::TooLong => Some(Table::TooLong),
        Rule::Passing { .. } => Some(Table::Passing),
        Rule::Unknown { .. } => None,
    }
}

/// Puts the attributes of a rule, which are also those by which it is found.
pub(super) fn put(attributes: &mut Attributes<'_>, rule: &Rule) {
    match rule {
        Rule::Segments { interface, to } | Rule::Unknown { interface, to } => {
            attributes.put_ip(FRA_DST, to.ip);
            attributes.put_text(FRA_IIFNAME, interface);
        }
        Rule::TooLong => attributes.put_u32(FRA_FWMARK, TOO_LONG),
        Rule::Passing { interface } => attributes.put_text(FRA_IIFNAME, interface),
    }
    match table(rule) {
        Some(table) => {
            attributes.put_u32(FRA_PRIORITY, PRIORITY);
            attributes.put_u32(FRA_TABLE, table.number());
        }
        None => attributes.put_u32(FRA_PRIORITY, PRIORITY_OF_UNKNOWN),
    }
    attributes.put(FRA_PROTOCOL, &[PROTOCOL]);
}

/// The protocol number of a rule that is told; `None` if it has none.
pub(super) fn protocol(body: &[u8]) -> Option<u8> {
    let protocol = attributes(body.get(FIXED_BYTES..)?).find(|(kind, _)| *kind == FRA_PROTOCOL);
    protocol?.1.first().copied()
}

/// Reads a message about a rule; `None` if it is not one of ours, or garbled.
pub(super) fn read(body: &[u8]) -> Option<Rule> {
    let (family, bits, action) = (*body.first()?, *body.get(1)?, *body.get(7)?);
    let (mut to, mut interface, mut ours) = (Ipv6Addr::UNSPECIFIED, String::new(), false);
    let (mut table, mut priority, mut mark) = (0, 0, 0);
    for (kind, value) in attributes(body.get(FIXED_BYTES..)?) {
        match kind {
            FRA_DST => to = ipv6(value)?,
            FRA_IIFNAME => interface = text(value),
            FRA_FWMARK => mark = u32_at(value, 0)?,
            FRA_TABLE => table = u32_at(value, 0)?,
            FRA_PRIORITY => priority = u32_at(value, 0)?,
            FRA_PROTOCOL => ours = value == [PROTOCOL],
            _ => {}
        }
    }
    if !ours || family != AF_INET6 {
        return None;
    }
    if priority == PRIORITY_OF_UNKNOWN && action == FR_ACT_BLACKHOLE {
        return Some(Rule::Unknown { interface, to: IpPrefix::v6(to, bits) });
    }
    if priority != PRIORITY {
        return None;
    }
    if table == Table::Segments.number() {
        return Some(Rule::Segments { interface, to: IpPrefix::v6(to, bits) });
    }
    if table == Table::Passing.number() && bits == 0 && !interface.is_empty() {
        return Some(Rule::Passing { interface });
    }
    (table == Table::TooLong.number() && mark == TOO_LONG).then_some(Rule::TooLong)
}
