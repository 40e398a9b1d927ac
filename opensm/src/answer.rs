//! Tables that were proved, as OpenSM takes them; or why there are none.

use mapper_proto::map::Fabric;
use mapper_routing::engines::{NotRouted, Selection};
use mapper_routing::tables::{Layers, SlotEnd};
use mapper_routing::{Former, Subnet, Tables, Transition, transition};
use serde::{Deserialize, Serialize};

use crate::choosing::{Choosing, Served, why_none};
use crate::reading::{RequestedFabric, read};
use crate::{Options, Request, Switch};

/// Tables and layers, proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What an administrator should read, a line each: the engine, what was proved, what changed.
    pub said: Vec<String>,
    /// The engine that serves.
    pub engine: String,
    /// A table for each switch of the request, in its order.
    pub tables: Vec<Table>,
    /// How many layers there are.
    pub layer_count: u8,
    /// The switch that each LID is at, by LID; [`Self::NOWHERE`] for those that nobody has.
    pub places: Vec<u32>,
    /// The service level of each pair of switches, by destination, then source; empty if all is in 0.
    pub levels: Vec<u8>,
    /// LIDs whose entries are to be emptied, wherever they change, before any other entry changes, so that no mixture of
    /// tables in force and new ones can deadlock.
    pub emptied_first: Vec<u16>,
    /// Entries, by the switch's GUID and LID, that are to change after all others, when no packet is under way by an old entry
    /// any more. No host's packets pass them by the new tables.
    pub last: Vec<(u64, u16)>,
    /// Whether nothing may change before all packets are gone that are under way by tables from before those in force.
    pub must_wait: bool,
}

/// The table of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its GUID.
    pub guid: u64,
    /// The port for each LID, [`Tables::NONE`] where none leads.
    pub ports: Vec<u8>,
}

/// Why there are no tables, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    /// What an administrator should read.
    pub said: Vec<String>,
}

/// What became of a request.
pub type Outcome = Result<Answer, Declined>;

impl Answer {
    /// No switch: no node has that LID.
    pub const NOWHERE: u32 = u32::MAX;

    /// The service level from one LID to another, if there are layers and both LIDs are somebody's.
    pub fn level(&self, from: u16, to: u16) -> Option<u8> {
        let place = |lid: u16| self.places.get(usize::from(lid)).copied().filter(|&at| at != Self::NOWHERE);
        let (from, to) = (place(from)? as usize, place(to)? as usize);
        self.levels.get(to * self.tables.len() + from).copied()
    }
}

/// Reads a subnet, has the engines try, and proves what they compute.
///
/// # Errors
/// If the subnet cannot be read, or no engine's tables are proved.
pub fn answer(request: &Request) -> Outcome {
    let unreadable = |why: String| Declined {
        said: vec![format!("the subnet cannot be routed: {why}"), request.asker.left().to_owned()],
    };
    let RequestedFabric { fabric, lmc, isolated } =
        read(request).map_err(|bad| unreadable(bad.to_string()))?;
    let subnet = Subnet::new(&fabric, Some(lmc)).map_err(|error| unreadable(error.to_string()))?;
    check_lids(&subnet, &fabric).map_err(unreadable)?;
    let notes = notes_of(&subnet, &request.options, &isolated);
    let in_force = tables_of(request, &subnet, |switch| Some(&switch.in_force));
    let choosing = Choosing { request, subnet: &subnet, in_force: in_force.as_ref() };
    let Served { selection, why } = match choosing.serve() {
        Ok(served) => served,
        Err(NotRouted { tried }) => {
            let why = why_none(&tried, request, &subnet);
            return Err(Declined { said: [notes, why, vec![request.asker.left().to_owned()]].concat() });
        }
    };
    let Transition { emptied_first, last, must_wait } = in_force
        .map_or_else(Transition::default, |in_force| transition_from(in_force, request, &subnet, &selection));
    let lid = |slot: u32| u16::try_from(subnet.destinations.lid(slot)).ok();
    let entry = |&(slot, xbar): &(u32, u32)| Some((request.switches[xbar as usize].guid, lid(slot)?));
    Ok(Answer {
        said: [notes, why].concat(),
        engine: selection.engine.name().to_owned(),
        tables: tables(request, &subnet, &selection.routing.tables),
        layer_count: selection.routing.layers.first.saturating_add(selection.routing.layers.count),
        places: places(request, &subnet),
        levels: levels(&subnet, &selection),
        emptied_first: emptied_first.into_iter().filter_map(lid).collect(),
        last: last.iter().filter_map(entry).collect(),
        must_wait,
    })
}

/// How to get to new tables from those that switches hold, and from those that they held before.
fn transition_from(
    in_force: Tables,
    request: &Request,
    subnet: &Subnet,
    selection: &Selection,
) -> Transition {
    let count = request.switches.iter().map(|switch| switch.before.len()).max().unwrap_or_default();
    let before = (0..count).filter_map(|nth| tables_of(request, subnet, |switch| switch.before.get(nth)));
    let old: Vec<Tables> = std::iter::once(in_force).chain(before).collect();
    let old: Vec<&Tables> = old.iter().collect();
    let told = request.told.as_ref();
    let told: Option<Vec<Layers>> =
        told.map(|told| told.iter().map(|levels| levels.among(&request.switches)).collect());
    let former = Former { tables: &old, layers: told.as_deref() };
    transition(subnet, former, &selection.routing.tables, &selection.routing.layers)
}

/// Checks that all nodes keep their LIDs: a [`Subnet`] gives another to a node whose own it cannot use, and those that
/// OpenSM gave are not ours to change.
fn check_lids(subnet: &Subnet, fabric: &Fabric) -> Result<(), String> {
    for (host, label) in (0..).zip(&fabric.hosts) {
        let slots = subnet.destinations.slots_of_host(host);
        if let Some(lid) = label.lid
            && !slots.is_empty()
            && subnet.destinations.lid(slots.start) != u32::from(lid)
        {
            let name = &subnet.names.hosts[host as usize];
            return Err(format!("{name} has LID {lid}, where its LMC leaves no room for the others"));
        }
    }
    Ok(())
}

fn notes_of(subnet: &Subnet, options: &Options, isolated: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    for &root in options.roots.iter().filter(|&&root| subnet.xbar_by_guid(root).is_none()) {
        notes.push(format!("the root {root:#018x} is no switch that is there"));
    }
    if let Some(first) = isolated.first() {
        let more = match isolated.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!("no cable leads to {first}{more}: left out"));
    }
    notes
}

/// Tables that switches hold or held, unless they hold none.
fn tables_of<'a>(
    request: &'a Request,
    subnet: &Subnet,
    table: impl Fn(&'a Switch) -> Option<&'a Vec<u8>>,
) -> Option<Tables> {
    let destinations = &subnet.destinations;
    let mut tables = Tables::empty(request.switches.len(), destinations.slot_count());
    let mut any = false;
    for slot in 0..destinations.slot_count() as u32 {
        let lid = destinations.lid(slot) as usize;
        for (xbar, switch) in (0..).zip(&request.switches) {
            let port = table(switch).and_then(|table| table.get(lid)).copied().unwrap_or(Tables::NONE);
            if port != Tables::NONE && destinations.end(slot) != SlotEnd::Xbar(xbar) {
                any = true;
                tables.set_port(xbar, slot, port);
            }
        }
    }
    any.then_some(tables)
}

/// Each switch's table by LID. To itself a switch sends by its port 0; all LIDs of its own port lead the
/// same way.
fn tables(request: &Request, subnet: &Subnet, tables: &Tables) -> Vec<Table> {
    let destinations = &subnet.destinations;
    let slots = 0..destinations.slot_count() as u32;
    let last = |slot: u32| destinations.lid(slot) as usize + lids_of(request, subnet, slot) - 1;
    let length = slots.clone().map(last).max().unwrap_or_default() + 1;
    let table = |xbar: u32, guid: u64| {
        let mut ports = vec![Tables::NONE; length];
        for slot in slots.clone() {
            let own = destinations.end(slot) == SlotEnd::Xbar(xbar);
            let port = if own { 0 } else { tables.port(xbar, slot) };
            let lid = destinations.lid(slot) as usize;
            ports[lid..lid + lids_of(request, subnet, slot)].fill(port);
        }
        Table { guid, ports }
    };
    (0..).zip(&request.switches).map(|(xbar, switch)| table(xbar, switch.guid)).collect()
}

/// How many LIDs a slot stands for: those of a host have a slot each.
fn lids_of(request: &Request, subnet: &Subnet, slot: u32) -> usize {
    match subnet.destinations.end(slot) {
        SlotEnd::Xbar(xbar) => 1 << request.switches[xbar as usize].lmc.min(7),
        SlotEnd::Host { .. } => 1,
    }
}

fn places(request: &Request, subnet: &Subnet) -> Vec<u32> {
    let mut places = Vec::new();
    for xbar in 0..subnet.topology.xbar_count() as u32 {
        for slot in subnet.destinations.slots_of(xbar) {
            let lid = subnet.destinations.lid(slot) as usize;
            let end = lid + lids_of(request, subnet, slot);
            if places.len() < end {
                places.resize(end, Answer::NOWHERE);
            }
            places[lid..end].fill(xbar);
        }
    }
    places
}

fn levels(subnet: &Subnet, selection: &Selection) -> Vec<u8> {
    let layers = &selection.routing.layers;
    if layers.count <= 1 && layers.first == 0 {
        return Vec::new();
    }
    let xbars = 0..subnet.topology.xbar_count() as u32;
    let pairs = xbars.clone().flat_map(|to| xbars.clone().map(move |from| (from, to)));
    pairs.map(|(from, to)| layers.service_level(from, to)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::ring;

    fn options(text: &str) -> Options {
        text.parse().unwrap()
    }

    #[test]
    fn every_switch_gets_a_table_by_lid() {
        let answer = answer(&Request { options: options("engines=dnup"), ..ring(4) }).unwrap();
        let table = &answer.tables[0];
        assert_eq!((table.guid, table.ports[1], table.ports[100]), (0x100, 1, 0));
        assert!((1..=4).chain(100..=103).all(|lid| table.ports[lid] != Tables::NONE));
        assert_eq!((answer.layer_count, answer.level(1, 2)), (1, None));
    }

    #[test]
    fn layers_come_as_levels_of_lids() {
        let answer = answer(&Request { options: options("engines=lash"), ..ring(6) }).unwrap();
        assert_eq!(answer.layer_count, 2);
        let levels: Vec<_> = (1..=6).filter_map(|to| answer.level(1, to)).collect();
        assert_eq!(levels.len(), 6);
        assert!((1..=6).any(|from| (1..=6).any(|to| answer.level(from, to) == Some(1))));
        assert_eq!(answer.level(1, 7), None, "a LID that nobody has");
    }

    #[test]
    fn no_more_layers_than_lanes() {
        let request = Request { options: options("engines=lash"), lanes: 1, ..ring(6) };
        let said = answer(&request).unwrap_err().said.join("\n");
        assert!(said.contains("lash does not serve"), "{said}");
    }

    #[test]
    fn a_circle_is_named() {
        let request = Request { options: options("engines=minhop"), ..ring(6) };
        let said = answer(&request).unwrap_err().said.join("\n");
        assert!(said.contains("minhop does not serve") && said.contains("s3"), "{said}");
        assert!(said.ends_with("no tables are proved: left to OpenSM's next engine"), "{said}");
    }

    #[test]
    fn what_is_in_force_and_right_stays() {
        let mut request = Request { options: options("engines=dnup"), ..ring(6) };
        let first = answer(&request).unwrap();
        for (switch, table) in request.switches.iter_mut().zip(&first.tables) {
            switch.in_force.clone_from(&table.ports);
        }
        let second = answer(&request).unwrap();
        assert_eq!(first.tables, second.tables);
        assert!(second.said.join("\n").contains("; 0 entries differ"), "{:?}", second.said);
    }
}
