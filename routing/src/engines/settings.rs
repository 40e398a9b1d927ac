//! All that a user may set of the engines.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::map::PortRef;

use super::torus::TorusStatement;
use super::{HopMatrix, Refusal};
use crate::RouteOptions;
use crate::tables::{Layers, Tables};

/// How equally short routes are chosen among.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// By the load of channels throughout the fabric.
    #[default]
    Fabric,
    /// By counters local to each xbar, exactly as OpenSM does.
    Opensm,
}

/// All that a user may set of the engines. Xbars, hosts and ports are those of the
/// [`Subnet`](crate::Subnet) that is routed. Which engines obey a setting, [`Setting::engines`](super::Setting::engines)
/// says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The seed of all random choices.
    pub seed: u64,
    /// How equally short routes are chosen among.
    pub balance: Balance,
    /// How many hops the longest route may have. A hop is an xbar that a frame passes.
    pub max_hops: u8,
    /// Tables that were in force. Entries that are still right stay, unless `reassign` is set.
    pub previous: Option<Tables>,
    /// Balance everything anew, whatever was in force.
    pub reassign: bool,
    /// Destinations that are served first, as hosts or xbars, in this order.
    pub order_first: Vec<SubnetNode>,
    /// Ports that do not count when loads are balanced.
    pub uncounted_ports: BTreeSet<PortRef>,
    /// For single xbars, the order in which ports are tried.
    pub port_order: BTreeMap<u32, Vec<u8>>,
    /// How much a step out of a port counts, if not 1.
    pub hop_weights: BTreeMap<PortRef, u8>,
    /// The hops to reckon with, as from a lid matrix, instead of the shortest; tables are
    /// then balanced as OpenSM does.
    pub hops: Option<HopMatrix>,
    /// Choose at random among the least loaded ports, by this seed.
    pub scatter: Option<u64>,
    /// Shift the order of ports from xbar to xbar.
    pub port_shifting: bool,
    /// The xbars that are roots; found by the engine if not given.
    pub roots: Option<Vec<u32>>,
    /// Xbars' ids, which tell up from down between xbars of one rank; GUIDs if not given.
    pub ids: BTreeMap<u32, u64>,
    /// Let roots reach each other by going down and up again, if that closes no cycle. With OpenSM's balance,
    /// dnup then lets routes pass xbars with hosts that it would otherwise keep them from.
    pub connect_roots: bool,
    /// The hosts that are compute nodes; all if not given.
    pub compute_nodes: Option<BTreeSet<u32>>,
    /// The hosts that are I/O nodes, which may be reached by some steps the wrong way.
    pub io_nodes: BTreeSet<u32>,
    /// Most steps the wrong way to or from an I/O node.
    pub max_reverse_hops: u8,
    /// The first layer, 0 to 15.
    pub first_layer: u8,
    /// Most layers, with those before the first one. If it is not given, engines that need layers take as
    /// many as they need, up to [`Layers::MAX`], and nue takes one.
    pub max_layers: Option<u8>,
    /// Whether frames to and from xbars' own addresses must be free of deadlock, too.
    pub xbar_destinations: bool,
    /// What is stated of a torus or mesh, its datelines and regions; the rest is found from the map.
    pub torus: TorusStatement,
    /// The tables to load.
    pub file: Option<Tables>,
    /// Most routes to a destination, of source routes.
    pub passes: u8,
}

impl Settings {
    /// Longest route that InfiniBand knows, in hops.
    pub const MAX_HOPS: u8 = 64;

    /// How many layers an engine that takes as many as it needs may use.
    ///
    /// # Errors
    /// If no layer is left.
    pub(super) fn layers_left(&self) -> Result<u8, Refusal> {
        let allowed = self.max_layers.unwrap_or(Layers::MAX).min(Layers::MAX);
        match allowed.saturating_sub(self.first_layer) {
            0 => Err(Refusal::NoLayerLeft { allowed, first: self.first_layer }),
            left => Ok(left),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            balance: Balance::Fabric,
            max_hops: Self::MAX_HOPS,
            previous: None,
            reassign: false,
            order_first: Vec::new(),
            uncounted_ports: BTreeSet::new(),
            port_order: BTreeMap::new(),
            hop_weights: BTreeMap::new(),
            hops: None,
            scatter: None,
            port_shifting: false,
            roots: None,
            ids: BTreeMap::new(),
            connect_roots: false,
            compute_nodes: None,
            io_nodes: BTreeSet::new(),
            max_reverse_hops: 0,
            first_layer: 0,
            max_layers: None,
            xbar_destinations: false,
            torus: TorusStatement::default(),
            file: None,
            passes: RouteOptions::default().passes,
        }
    }
}

/// An xbar or a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubnetNode {
    /// An xbar.
    Xbar(u32),
    /// A host.
    Host(u32),
}
