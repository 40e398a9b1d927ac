//! What the agent shows programs of this machine: its board, its metrics, and the map.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapper_formats::{discovered, json};
use mapper_ib::manager::{Routes, SubnetManager};
use mapper_machine::log;
use mapper_machine::metrics::{Dialect, MetricsRequest};
use mapper_machine::status::Client;
use mapper_proto::map::{Fabric, MapVersion};
use mapper_proto::{Instant, Mac};
use tracing::{debug, warn};

use super::ways;
use crate::agent::metrics::{self, KnownFabric};
use crate::agent::options::Config;
use crate::agent::status::{AgentRequest, Board, MapVersionDto, Reason, RoutesInForce};

/// The most hosts, and the most cables, that are named as gone.
const MOST_GONE: usize = 64;

/// What was shown, and what all maps of the subnet have shown since the start.
#[derive(Debug, Default)]
pub(super) struct Shown {
    known: KnownFabric,
    fabric: Arc<Fabric>,
    /// The tables that the manager wrote for it; none if it stands by.
    tables: Option<Arc<Routes>>,
    /// How many maps there were.
    maps: u32,
}

impl Shown {
    /// Takes in the subnet as it is known now.
    pub(super) fn see(&mut self, port: &str, manager: &SubnetManager) {
        match discovered::fabric(port, &manager.found()) {
            Ok(mut fabric) => {
                self.maps = self.maps.saturating_add(1);
                let mac = Mac::from_u64(manager.status().node);
                fabric.map.version = MapVersion { mac, counter: self.maps };
                self.known.see(&fabric.map);
                self.fabric = Arc::new(fabric);
                self.tables = manager.routes().cloned().map(Arc::new);
            }
            // The sweep takes no subnet that is larger than fabrics may be, so only something unforeseen leads here.
            Err(error) => warn!(%error, "the subnet cannot be shown as a map"),
        }
    }

    /// The board at this moment.
    pub(super) fn board(&self, config: &Config, manager: &SubnetManager, now: Instant) -> Board {
        let uptime_ms = now.as_nanos() / 1_000_000;
        let level = config.settings.level;
        let mut board = Board::of_subnet(config.unit, &config.interface, level, &manager.status(), uptime_ms);
        let map = &self.fabric.map;
        board.hosts = map.hosts.len();
        board.xbars = map.xbars.len();
        board.cables = map.cables.len();
        board.map_version = MapVersionDto::of(map.version).filter(|_| board.configured);
        board.host_type = mapper_proto::map::host_type::INFINIBAND;
        board.gone_hosts = self.known.gone_hosts().take(MOST_GONE).map(|mac| mac.to_string()).collect();
        board.gone_cables = self.known.gone_cables().take(MOST_GONE).map(|(ends, _)| ends).collect();
        board.counters.log_lines_lost = log::lines_lost();
        board
    }

    /// Answers one who wants metrics.
    pub(super) fn tell_metrics(&self, board: &Board, request: MetricsRequest) {
        let dialect: Dialect = request.dialect();
        let names = names(&self.fabric);
        let name_of = |mac| names.get(&mac).map(|&name| name.to_owned());
        request.answer(metrics::render(board, &self.known, &name_of, dialect));
    }

    /// Answers a request in a task of its own. What only agents of Ethernet know is not answered.
    pub(super) fn answer(&self, request: &AgentRequest, client: Client) {
        let fabric = Arc::clone(&self.fabric);
        match request {
            AgentRequest::Map => {
                let text = move || serde_json::to_vec(&json::fabric_to_json(&fabric));
                drop(tokio::spawn(client.answer_json(text)));
            }
            AgentRequest::Routes => {
                let tables = self.tables.clone();
                let text = move || serde_json::to_vec(&routes(&fabric, tables.as_deref()));
                drop(tokio::spawn(client.answer_json(text)));
            }
            other => debug!(?other, "an agent of InfiniBand does not answer this"),
        }
    }
}

/// What hosts are called, by address.
fn names(fabric: &Fabric) -> BTreeMap<Mac, &str> {
    let named = fabric.map.hosts.iter().zip(&fabric.hosts);
    named.map(|(host, label)| (host.mac, ways::name_or(&label.description, &label.name))).collect()
}

/// The map, and the ways through it by the tables of its switches.
fn routes(fabric: &Fabric, tables: Option<&Routes>) -> RoutesInForce {
    let map = json::fabric_to_json(fabric);
    let (by_lid, without_route) = tables.map(|tables| ways::of(fabric, &map, tables)).unwrap_or_default();
    let names = names(fabric);
    let named = |host: &Reason| Some((host.mac.clone(), (*names.get(&host.mac.parse().ok()?)?).to_owned()));
    RoutesInForce {
        host: fabric.map.version.mac.to_string(),
        map_version: MapVersionDto::of(fabric.map.version),
        map: Some(map),
        routes: Vec::new(),
        names: without_route.iter().filter_map(named).collect(),
        without_route,
        by_destination: Vec::new(),
        by_segments: Vec::new(),
        segments_differ: Vec::new(),
        objects_differ: Vec::new(),
        segments_not_compared: None,
        by_lid,
    }
}
