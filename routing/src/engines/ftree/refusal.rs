//! Fabrics that are refused before anything is computed.

use super::order::HostOrder;
use super::{Settings, Subnet};
use crate::{Attachment, Tiers};

/// Fewest xbars, hosts and leaves of a tree.
const FEWEST: usize = 2;

/// Says why a fabric cannot be a fat tree, or the settings do not go with one.
pub(super) fn check(
    subnet: &Subnet,
    settings: &Settings,
    order: &HostOrder,
    tiers: &Tiers,
) -> Result<(), String> {
    let topology = &subnet.topology;
    let lmc = subnet.destinations.lmc();
    if lmc > 0 {
        return Err(format!(
            "an LMC of {lmc} was asked for, and ftree gives each host one path; use --lmc 0"
        ));
    }
    let cabled_to_host = |host: &u32| matches!(topology.attachment(*host), Attachment::Host(_));
    if let Some(host) = (0..topology.host_count() as u32).find(cabled_to_host) {
        let name = host_name(subnet, host);
        return Err(format!("{name} is cabled to another host; cable both to xbars"));
    }
    let hosts = order.others.len() + order.leaves.iter().map(|leaf| leaf.hosts.len()).sum::<usize>();
    let xbars = topology.xbar_count();
    for (what, count) in [("xbars", xbars), ("cabled hosts", hosts), ("leaves", tiers.leaves().len())] {
        if count < FEWEST {
            return Err(format!("a tree has at least {FEWEST} {what}, this fabric has {count}; use minhop"));
        }
    }
    let no_xbar = |root: &&u32| **root as usize >= xbars;
    if let Some(root) = settings.roots.iter().flatten().find(no_xbar) {
        return Err(format!("root {root} is no xbar: they are numbered from 0 to {}", xbars - 1));
    }
    Ok(())
}

/// An xbar as a person can find it.
pub(super) fn xbar_name(subnet: &Subnet, xbar: u32) -> String {
    format!("{} (GUID {:#018x})", subnet.names.xbar(xbar), subnet.xbar_guids[xbar as usize])
}

/// A host as a person can find it.
pub(super) fn host_name(subnet: &Subnet, host: u32) -> String {
    let guid = subnet.host_guids[host as usize];
    match subnet.xbar_of_host(host) {
        Some(xbar) => {
            format!("{} (GUID {guid:#018x}) at {}", subnet.names.host(host), xbar_name(subnet, xbar))
        }
        None => format!("{} (GUID {guid:#018x})", subnet.names.host(host)),
    }
}
