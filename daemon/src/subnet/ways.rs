//! The ways from this host to all others, by the tables that its manager wrote.

use std::collections::BTreeMap;

use mapper_formats::json::MapJson;
use mapper_ib::manager::Routes;
use mapper_proto::map::{Fabric, PortRef};

use crate::agent::status::{ByLid, Reason};

/// What stands in tables where no port leads.
const NO_PORT: u8 = 0xFF;

/// The way to each host with a LID, and the hosts to which none leads, with the reason. `map` is the fabric's, for the ids of
/// its xbars.
pub(super) fn of(fabric: &Fabric, map: &MapJson, routes: &Routes) -> (Vec<ByLid>, Vec<Reason>) {
    let own = fabric.map.hosts.iter().position(|host| host.mac == fabric.map.version.mac);
    let Some(own) = own else { return (Vec::new(), Vec::new()) };
    let mut beyond: BTreeMap<PortRef, u32> = BTreeMap::new();
    for cable in &fabric.map.cables {
        beyond.insert(cable.a, cable.b.xbar);
        beyond.insert(cable.b, cable.a.xbar);
    }
    let from = fabric.hosts[own].lid.unwrap_or_default();
    let (mut ways, mut without) = (Vec::new(), Vec::new());
    for (at, (host, label)) in fabric.map.hosts.iter().zip(&fabric.hosts).enumerate() {
        if at == own {
            continue;
        }
        let to = host.mac.to_string();
        match walk(fabric, routes, &beyond, (own, at)) {
            Ok((lid, hops)) => ways.push(ByLid {
                to,
                name: name_or(&label.description, &label.name).to_owned(),
                lid,
                layer: routes.level(from, lid),
                hops: hops.iter().map(|hop| (map.xbars[hop.xbar as usize].id.clone(), hop.port)).collect(),
                hop_names: hops.iter().map(|&hop| name(fabric, hop)).collect(),
            }),
            Err(why) => without.push(Reason { mac: to, why }),
        }
    }
    (ways, without)
}

/// The LID of a host, and the ports of xbars that lead there from another.
fn walk(
    fabric: &Fabric,
    routes: &Routes,
    beyond: &BTreeMap<PortRef, u32>,
    (from, to): (usize, usize),
) -> Result<(u16, Vec<PortRef>), String> {
    let lid = fabric.hosts[to].lid.ok_or("it has no LID")?;
    let end = fabric.map.hosts[to].at;
    let mut xbar = fabric.map.hosts[from].at.ok_or("this host has no cable to an xbar")?.xbar;
    let mut hops = Vec::new();
    while hops.len() <= fabric.map.xbars.len() {
        let table = fabric.xbars[xbar as usize].guid.and_then(|guid| routes.tables.get(&guid));
        let port = table.and_then(|table| table.get(usize::from(lid))).copied();
        let here = PortRef { xbar, port: port.unwrap_or(NO_PORT) };
        if here.port == NO_PORT {
            return Err(format!("no entry for LID {lid} in the table of {}", xbar_name(fabric, xbar)));
        }
        hops.push(here);
        if end == Some(here) {
            return Ok((lid, hops));
        }
        xbar = *beyond.get(&here).ok_or_else(|| format!("nothing is behind {}", name(fabric, here)))?;
    }
    Err(format!("the tables lead LID {lid} round"))
}

/// A port of an xbar by a name for people.
fn name(fabric: &Fabric, PortRef { xbar, port }: PortRef) -> String {
    format!("{}:{port}", xbar_name(fabric, xbar))
}

fn xbar_name(fabric: &Fabric, xbar: u32) -> &str {
    let label = &fabric.xbars[xbar as usize];
    name_or(&label.description, &label.name)
}

/// What a node says of itself, or its id if it says nothing.
pub(super) const fn name_or<'a>(description: &'a str, id: &'a str) -> &'a str {
    if description.is_empty() { id } else { description }
}
