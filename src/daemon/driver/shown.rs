//! The board and the routes that a running agent shows.

use mapper_host::healing::DeadCable;

use super::event_loop::Driver;
use crate::daemon::status::{self, Board, Request, Resolved, RoutesAsked, Surroundings};
use mapper_machine::log;
use mapper_machine::status::Client;

impl Driver {
    /// The agent's board at this moment.
    pub(super) fn board(&self) -> Board {
        let counters = self.host.data().map(mapper_host::data::DataPath::status).unwrap_or_default();
        let around = Surroundings {
            unit: self.config.unit,
            interface: self.attachment.link.name(),
            host_type: self.config.settings.host_type,
            carrier: self.attachment.link.carrier(),
            ports: self.attachment.outer_ports(),
            names: self.host.names(),
            routes: self.host.table().map_or(0, |table| table.count()),
            routing_failure: self.host.routing_failure(),
            traffic: self.attachment.link.traffic(),
            causes: &self.causes,
            dead_cables: self.dead_cables(),
            narrow_cables: self.narrow_cables(),
            map: self.host.newest_map().map(|map| &**map),
            known: &self.known,
            warnings: self.warnings(),
            repairs: self.repair_counters(),
            log_lines_lost: log::lines_lost(),
            tap: self.users.as_ref().map(|users| users.status(counters)),
            addresses: self.config.addresses.iter().map(ToString::to_string).collect(),
            now: self.now(),
        };
        Board::new(&self.host.agent().status(), around)
    }

    /// Answers a request in a task of its own.
    pub(super) fn answer(&self, request: &Request, client: Client) {
        match request {
            Request::Routes => {
                let asked = self.routes_asked();
                drop(tokio::spawn(client.answer_json(move || asked.to_json())));
            }
            Request::Resolve(wanted) => {
                let resolved = Resolved::of(&self.host, wanted);
                drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&resolved))));
            }
        }
    }

    /// What is needed to answer a request for the routes in use.
    fn routes_asked(&self) -> RoutesAsked {
        RoutesAsked {
            host: self.host.own(),
            table: self.host.table().cloned(),
            map: self.host.newest_map().cloned(),
            names: self.names_of_map(),
            neighbours: self.host.neighbours().to_vec(),
            uses: self.host.data().map_or_else(Vec::new, |data| data.uses(self.now())),
        }
    }

    /// The cables that are held for dead, as the board shows them.
    fn dead_cables(&self) -> Vec<status::DeadCable> {
        let now = self.now();
        let shown = |DeadCable { at, since, cause }: DeadCable| {
            let tag = self.host.table().and_then(|table| table.tag(at.xbar));
            status::DeadCable {
                xbar: at.xbar,
                tag: tag.map(|tag| format!("{tag:#018x}")),
                port: at.port,
                since_ms: now.since(since).as_millis().try_into().unwrap_or(u64::MAX),
                why: cause.to_string(),
            }
        };
        self.host.healing().dead_cables().map(shown).collect()
    }

    /// How often and why routes were repaired without a new map.
    fn repair_counters(&self) -> status::RepairCounters {
        let healing = self.host.healing().status();
        status::RepairCounters {
            repairs: healing.repairs,
            carrier_losses: healing.by_carrier,
            notices: healing.by_notice,
            silent_paths: healing.by_silence,
        }
    }
}
