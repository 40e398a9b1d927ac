//! Why a fabric is refused, and what is refused before anything is computed.

use thiserror::Error;

use super::super::refusal::Advice;
use super::super::{Engine, Refusal};
use super::order::HostOrder;
use super::{Settings, Subnet};
use crate::{Attachment, Tiers};

/// Fewest xbars, hosts and leaves of a tree.
const FEWEST: usize = 2;

/// Why a fabric is no tree that ftree can serve. Xbars and hosts are named so that a person can find them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum FtreeRefusal {
    /// Hosts have several addresses.
    #[error("an LMC of {lmc} was asked for, and ftree gives each host one path; use --lmc 0")]
    SeveralAddresses { lmc: u8 },
    /// A host's cable leads to no xbar.
    #[error("{host} is cabled to another host; cable both to xbars")]
    HostToHost { host: String },
    /// The fabric is too small for a tree.
    #[error("a tree has at least {FEWEST} {what}, this fabric has {count}")]
    TooFew { what: &'static str, count: usize },
    /// A root does not exist.
    #[error("root {root} is no xbar: they are numbered from 0 to {last}")]
    NoSuchRoot { root: u32, last: usize },
    /// A cable joins xbars whose ranks are not neighbours. Both ends are given as xbar, port and rank.
    #[error(
        "the cable from {} port {} to {} port {} joins ranks {} and {}, and a tree's cables join neighbouring ranks; {}",
        ends[0].0, ends[0].1, ends[1].0, ends[1].1, ends[0].2, ends[1].2,
        if *are_roots_named {
            "name other roots (--root-guid-file)"
        } else {
            "name the roots (--root-guid-file)"
        }
    )]
    CableAcrossRanks { ends: [(String, u8, u32); 2], are_roots_named: bool },
    /// The tree is too high or too low.
    #[error("the tree has {ranks} ranks ({lowest} is the lowest), and ftree serves {fewest} to {most}")]
    Ranks { ranks: u32, lowest: String, fewest: usize, most: usize },
    /// Compute nodes are on different ranks. Two of them are named, each with its rank.
    #[error(
        "compute nodes are on different ranks: {} on rank {}, {} on rank {}; name the compute nodes, or make one of \
         them an I/O node",
        nodes[0].0, nodes[0].1, nodes[1].0, nodes[1].1
    )]
    ComputeNodesApart { nodes: [(String, u32); 2] },
    /// No way up and then down joins two hosts. If there are I/O nodes, the number is how many steps the
    /// wrong way they may take, which are too few.
    #[error(
        "no way that goes up and then down leads from {from} to {to}; {} use updn or minhop",
        match reverse_hops {
            Some(hops) => format!(
                "nor do {hops} steps the wrong way, which I/O nodes may take; allow more (--max-reverse-hops), or"
            ),
            None => "name I/O nodes (--io-guid-file) and how many steps the wrong way they may take \
                     (--max-reverse-hops), or".to_owned(),
        }
    )]
    Apart { from: String, to: String, reverse_hops: Option<u8> },
}

impl FtreeRefusal {
    /// The engine that serves instead, where it is a single one.
    const fn instead(&self) -> Option<Advice> {
        match self {
            Self::TooFew { .. } => Some(Advice::Only(Engine::Minhop)),
            Self::CableAcrossRanks { are_roots_named: false, .. } => Some(Advice::Or(Engine::Updn)),
            Self::Ranks { .. } => Some(Advice::Only(Engine::Updn)),
            Self::CableAcrossRanks { .. }
            | Self::SeveralAddresses { .. }
            | Self::HostToHost { .. }
            | Self::NoSuchRoot { .. }
            | Self::ComputeNodesApart { .. }
            | Self::Apart { .. } => None,
        }
    }
}

impl From<FtreeRefusal> for Refusal {
    fn from(why: FtreeRefusal) -> Self {
        let instead = why.instead();
        Self::own_advising(why, instead)
    }
}

/// Says why a fabric cannot be a fat tree, or the settings do not go with one.
pub(super) fn check(
    subnet: &Subnet,
    settings: &Settings,
    order: &HostOrder,
    tiers: &Tiers,
) -> Result<(), FtreeRefusal> {
    let topology = &subnet.topology;
    let lmc = subnet.destinations.lmc();
    if lmc > 0 {
        return Err(FtreeRefusal::SeveralAddresses { lmc });
    }
    let cabled_to_host = |host: &u32| matches!(topology.attachment(*host), Attachment::Host(_));
    if let Some(host) = (0..topology.host_count() as u32).find(cabled_to_host) {
        return Err(FtreeRefusal::HostToHost { host: host_name(subnet, host) });
    }
    let hosts = order.others.len() + order.leaves.iter().map(|leaf| leaf.hosts.len()).sum::<usize>();
    let xbars = topology.xbar_count();
    for (what, count) in [("xbars", xbars), ("cabled hosts", hosts), ("leaves", tiers.leaves().len())] {
        if count < FEWEST {
            return Err(FtreeRefusal::TooFew { what, count });
        }
    }
    let no_xbar = |root: &&u32| **root as usize >= xbars;
    if let Some(root) = settings.roots.iter().flatten().find(no_xbar) {
        return Err(FtreeRefusal::NoSuchRoot { root: *root, last: xbars - 1 });
    }
    Ok(())
}

/// The name of an xbar by which a person can find it.
pub(super) fn xbar_name(subnet: &Subnet, xbar: u32) -> String {
    format!("{} (GUID {:#018x})", subnet.names.xbar(xbar), subnet.xbar_guids[xbar as usize])
}

/// The name of a host by which a person can find it.
pub(super) fn host_name(subnet: &Subnet, host: u32) -> String {
    let guid = subnet.host_guids[host as usize];
    match subnet.xbar_of_host(host) {
        Some(xbar) => {
            format!("{} (GUID {guid:#018x}) at {}", subnet.names.host(host), xbar_name(subnet, xbar))
        }
        None => format!("{} (GUID {guid:#018x})", subnet.names.host(host)),
    }
}
