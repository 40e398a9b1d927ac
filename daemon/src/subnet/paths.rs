//! What a service of names and paths is told: this port, and the paths from it that it asks for.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use mapper_ib::mad::sa::Gid;
use mapper_ib::manager::{Destination, FoundPath, OwnPort, SubnetManager};
use mapper_machine::mad_port::PortName;
use mapper_machine::status::Client;
use mapper_proto::{Instant, Mac};
use tracing::warn;

use crate::agent::driver::Followers;
use crate::agent::options::Config;
use crate::agent::status::{
    KnownPaths, KnownPort, PathEnd, PathFound, PathTo, PathsNumber, paths_number_path,
};

/// Those who follow the paths from this port, and those who wait for one.
pub(super) struct Paths {
    unit: u8,
    interface: String,
    device: String,
    followers: Followers,
    /// What was told last: how often paths changed, whether they can be asked for, and the port.
    told: (u64, bool, Option<OwnPort>),
    waiting: BTreeMap<u64, Client>,
    next: u64,
}

impl Paths {
    /// Nobody follows or waits so far.
    pub(super) fn new(config: &Config, port: &PortName) -> Self {
        let mut followers = Followers::default();
        match PathsNumber::open(&paths_number_path(&config.service.run_dir, config.unit)) {
            Ok(number) => followers.tell_of_paths(number),
            Err(error) => {
                warn!(%error, "programs hear of new paths a moment late, as the file with their number cannot be made");
            }
        }
        Self {
            unit: config.unit,
            interface: config.interface.clone(),
            device: port.device(),
            followers,
            told: (0, false, None),
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    /// Takes in what the manager knows now, and tells those who follow if that is another, and those who wait what was found
    /// for them.
    pub(super) fn see(&mut self, manager: &mut SubnetManager) {
        let now = (manager.paths_generation(), manager.can_find_paths());
        if now != (self.told.0, self.told.1) {
            self.told = (now.0, now.1, manager.own_port());
            self.followers.paths_changed();
            self.followers.changed();
        }
        let paths_number = self.followers.paths_number();
        while let Some((number, found)) = manager.poll_found() {
            if let Some(client) = self.waiting.remove(&number) {
                let answer = PathTo { paths_number, found: shown(&found) };
                drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&answer))));
            }
        }
    }

    /// Tells a client of the next change.
    pub(super) fn follow(&mut self, seen: Option<u64>, client: Client) {
        self.followers.follow(seen, client);
    }

    /// Has the manager find a path for a client.
    pub(super) fn find(&mut self, manager: &mut SubnetManager, end: &PathEnd, client: Client, now: Instant) {
        let destination = match end {
            PathEnd::Lid(lid) => Destination::Lid(*lid),
            PathEnd::Named(text) => match text.parse::<Ipv6Addr>() {
                Ok(gid) => Destination::Gid(Gid(gid.to_bits())),
                Err(_) => Destination::Name(text.clone()),
            },
        };
        self.waiting.insert(self.next, client);
        manager.find_path(self.next, &destination, now);
        self.next += 1;
    }

    /// The port, and that paths are to be asked for.
    pub(super) fn tell(&self, client: Client) {
        let (_, can_find, own) = &self.told;
        let node = own.as_ref().map_or(0, |own| own.node);
        let known = KnownPaths {
            unit: self.unit,
            interface: self.interface.clone(),
            host: Mac::from_u64(node).to_string(),
            is_settled: *can_find,
            paths_number: self.followers.paths_number(),
            hosts: Vec::new(),
            learned: Vec::new(),
            port: Some(self.port(own.as_ref())),
        };
        drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&known))));
    }

    fn port(&self, own: Option<&OwnPort>) -> KnownPort {
        let device = self.device.clone();
        let Some(own) = own else {
            let gid = Ipv6Addr::UNSPECIFIED;
            return KnownPort {
                device,
                device_guid: 0,
                number: 1,
                count: 1,
                gid,
                lid: 0,
                lmc: 0,
                names: Vec::new(),
            };
        };
        let first = own.description.split(' ').next().unwrap_or_default();
        let mut names = vec![own.description.clone(), first.to_owned()];
        names.dedup();
        names.retain(|name| !name.is_empty());
        KnownPort {
            device,
            device_guid: own.node,
            number: own.number,
            count: own.ports,
            gid: Ipv6Addr::from_bits(Gid::of_port(own.prefix, own.guid).0),
            lid: own.lid,
            lmc: own.lmc,
            names,
        }
    }
}

fn shown(found: &FoundPath) -> PathFound {
    match found {
        FoundPath::Path(path) => PathFound::Record(path.emit().to_vec()),
        FoundPath::Nobody => PathFound::Nobody,
        FoundPath::NoPath => PathFound::NoPath,
        FoundPath::Several => PathFound::Several,
        FoundPath::Unavailable => PathFound::Unavailable,
    }
}
