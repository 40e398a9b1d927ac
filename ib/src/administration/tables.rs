//! Records of tables that switches and ports hold. Forwarding tables are answered as they were written.
//! Everything else is asked of the switch or port when somebody wants to know it, as it is too much to keep:
//! each pair of a switch's ports has a table of lanes.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::Groups;
use super::records::Records;
use super::subnet::{End, Subnet};
use super::{Asker, MAX_TABLES};
use crate::mad::sa::{
    Field, GUID_FIELDS, LINEAR_TABLE_FIELDS, MULTICAST_TABLE_FIELDS, PARTITION_FIELDS, SL_TO_VL_FIELDS,
    SaAttribute, SaMad, SaStatus, TablePlace, VL_ARBITRATION_FIELDS, matches, table_record,
};
use crate::mad::{Attribute, Data, MulticastTable, PortSettings, SwitchInfo};
use crate::program::multicast::FIRST_MULTICAST_LID;
use crate::program::{BLOCK, NO_PORT};

/// How many bytes the lanes of sixteen service levels have.
const LANES_BYTES: usize = 8;
/// How many partitions a datagram has.
const PARTITIONS: u16 = 32;
/// How many GUIDs a datagram has.
const GUIDS: u8 = 8;
/// How many entries of the table by which lanes take turns a datagram has.
const TURNS: u8 = 32;

/// A part of a table, and the switch or port that holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TableOf {
    /// The GUID of the node.
    pub(crate) node: u64,
    /// The port of an adapter; 0 for a switch.
    pub(crate) port: u8,
    pub(crate) attribute: Attribute,
    pub(crate) modifier: u32,
}

/// Parts of tables, each with its place in the subnet.
type Parts<'a> = Box<dyn Iterator<Item = (TablePlace, TableOf)> + 'a>;

/// The parts of tables that were told; `None` for those that were refused or not answered.
pub(super) type Told = BTreeMap<TableOf, Option<Data>>;

/// The parts of tables that a request is about, each with its place in the subnet. `None` if the request is
/// about something else, or about what is known already.
pub(super) fn asked_for(
    subnet: &Subnet,
    groups: &Groups,
    request: &SaMad,
    asker: Asker,
) -> Result<Vec<(TablePlace, TableOf)>, SaStatus> {
    let (fields, parts): (&[Field], Parts<'_>) = match request.attribute {
        // Only managers are told who is in which partition.
        SaAttribute::PartitionRecord if !asker.has_managers_key => return Err(SaStatus::Invalid),
        SaAttribute::PartitionRecord => {
            (PARTITION_FIELDS, Box::new(subnet.ends().flat_map(|end| partitions(subnet, end))))
        }
        SaAttribute::SlToVlRecord => {
            (SL_TO_VL_FIELDS, Box::new(subnet.ends().flat_map(|end| lanes(subnet, end))))
        }
        SaAttribute::VlArbitrationRecord => {
            (VL_ARBITRATION_FIELDS, Box::new(subnet.ends().flat_map(|end| turns(subnet, end))))
        }
        SaAttribute::GuidInfoRecord => (GUID_FIELDS, Box::new(subnet.ends().flat_map(guids))),
        SaAttribute::MulticastTableRecord => (
            MULTICAST_TABLE_FIELDS,
            Box::new(subnet.ends().flat_map(|end| multicast_table(subnet, groups, end))),
        ),
        _ => return Ok(Vec::new()),
    };
    let is_wanted = |place: &TablePlace| matches(fields, request.mask, &request.data, &place.emit());
    let wanted: Vec<_> = parts.filter(|(place, _)| is_wanted(place)).take(MAX_TABLES + 1).collect();
    if wanted.len() > MAX_TABLES { Err(SaStatus::NoResources) } else { Ok(wanted) }
}

/// The records of those parts of tables that were told.
pub(super) fn records(parts: &[(TablePlace, TableOf)], told: &Told) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    for (place, table) in parts {
        if let Some(Some(data)) = told.get(table) {
            let part = if table.attribute == Attribute::SlToVl { &data[..LANES_BYTES] } else { &data[..] };
            records.push(&table_record(*place, part))?;
        }
    }
    Ok(records)
}

/// The records of forwarding tables, as they were written.
pub(super) fn linear(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    for end in subnet.ends().filter(|end| end.is_switch()) {
        let table = subnet.table(end.node);
        for (block, part) in (0..).zip(table.chunks(BLOCK)) {
            let place = TablePlace::linear_table(end.lid, block);
            if matches(LINEAR_TABLE_FIELDS, request.mask, &request.data, &place.emit()) {
                let mut whole = [NO_PORT; BLOCK];
                whole[..part.len()].copy_from_slice(part);
                records.push(&table_record(place, &whole))?;
            }
        }
    }
    Ok(records)
}

/// The ports that a LID stands for: one of an adapter, or all of a switch.
fn ports<'a>(subnet: &'a Subnet, end: &'a End) -> Vec<(u8, &'a PortSettings)> {
    match subnet.switches.get(&end.node).filter(|_| end.is_switch()) {
        Some(switch) => switch.ports.iter().map(|(&port, settings)| (port, settings)).collect(),
        None => vec![(end.port, &end.settings)],
    }
}

/// A part of a table of the node at `end`.
fn at(end: &End, attribute: Attribute, modifier: u32) -> TableOf {
    TableOf { node: end.node, port: end.port, attribute, modifier }
}

fn partitions<'a>(subnet: &'a Subnet, end: &'a End) -> impl Iterator<Item = (TablePlace, TableOf)> + 'a {
    let own = subnet.nodes.get(&end.node).map_or(0, |(info, _)| info.make.partitions);
    let of_switch = subnet.switch_infos.get(&end.node).map_or(0, SwitchInfo::partition_capacity);
    ports(subnet, end).into_iter().flat_map(move |(port, _)| {
        let capacity = if end.is_switch() && port != 0 { of_switch } else { own };
        (0..capacity.div_ceil(PARTITIONS)).map(move |block| {
            let of_port = if end.is_switch() { u32::from(port) << 16 } else { 0 };
            let table = at(end, Attribute::PartitionTable, of_port | u32::from(block));
            (TablePlace::partitions(end.lid, port, block), table)
        })
    })
}

fn lanes<'a>(subnet: &'a Subnet, end: &'a End) -> impl Iterator<Item = (TablePlace, TableOf)> + 'a {
    // An adapter's port has only one table, which is not for a pair of ports.
    let all = ports(subnet, end).into_iter();
    let numbers: Vec<u8> = all.map(|(port, _)| if end.is_switch() { port } else { 0 }).collect();
    let pairs = numbers.clone().into_iter().flat_map(move |out| {
        let into = numbers.clone().into_iter();
        into.map(move |into| (into, out))
    });
    pairs.map(|(into, out)| {
        let table = at(end, Attribute::SlToVl, u32::from(into) << 8 | u32::from(out));
        (TablePlace::sl_to_vl(end.lid, into, out), table)
    })
}

fn turns<'a>(subnet: &'a Subnet, end: &'a End) -> impl Iterator<Item = (TablePlace, TableOf)> + 'a {
    ports(subnet, end).into_iter().flat_map(move |(port, settings)| {
        let (low, high) = (settings.low_turns(), settings.high_turns());
        let has_room = [low > 0, low > TURNS, high > 0, high > TURNS];
        let blocks = (1_u8..).zip(has_room).filter(|&(_, has_room)| has_room);
        blocks.map(move |(block, _)| {
            let of_port = if end.is_switch() { u32::from(port) } else { 0 };
            let table = at(end, Attribute::VlArbitration, u32::from(block) << 16 | of_port);
            (TablePlace::vl_arbitration(end.lid, port, block), table)
        })
    })
}

fn guids(end: &End) -> impl Iterator<Item = (TablePlace, TableOf)> + '_ {
    (0..end.settings.guid_capacity().div_ceil(GUIDS))
        .map(|block| (TablePlace::guids(end.lid, block), at(end, Attribute::GuidInfo, block.into())))
}

/// The parts of a switch's multicast table in which there are groups.
fn multicast_table<'a>(
    subnet: &'a Subnet,
    groups: &Groups,
    end: &'a End,
) -> impl Iterator<Item = (TablePlace, TableOf)> + 'a {
    let capacity = subnet.switch_infos.get(&end.node).map_or(0, SwitchInfo::multicast_capacity);
    let last = ports(subnet, end).last().map_or(0, |&(port, _)| port);
    let all = groups.all().map(|group| (group.lid() - FIRST_MULTICAST_LID) / MulticastTable::LIDS);
    let blocks: BTreeSet<u16> = all.filter(|_| end.is_switch()).collect();
    let blocks = blocks.into_iter().filter(move |block| capacity / MulticastTable::LIDS > *block);
    blocks.flat_map(move |block| {
        (0..=last / MulticastTable::PORTS).map(move |position| {
            let modifier = MulticastTable::modifier(block, position);
            (
                TablePlace::multicast_table(end.lid, block, position),
                at(end, Attribute::MulticastTable, modifier),
            )
        })
    })
}
