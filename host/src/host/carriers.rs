//! The carriers that a host sees: that of its own interface, and those of a crossbar on the same machine.

use mapper_proto::{Instant, PortSet};

use super::Host;

/// The crossbar of a node, which is in one machine with its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnCrossbar {
    /// Its tag.
    pub tag: u64,
    /// All its ports, whether they have carrier or not.
    pub ports: PortSet,
    /// Its ports that have carrier.
    pub carriers: PortSet,
}

/// The carriers that a host saw last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether the interface had carrier; `None` if nobody has said so.
    own: Option<bool>,
    crossbar: Option<OwnCrossbar>,
}

impl Host {
    /// Takes in whether the host's interface has carrier. That it has it again says that it may be cabled to something else: see
    /// [`Agent::own_carrier_is_back`](mapper_proto::agent::Agent::own_carrier_is_back).
    pub fn handle_own_carrier(&mut self, now: Instant, has_carrier: bool) {
        if self.seen.own.replace(has_carrier) == Some(false) && has_carrier {
            self.agent.own_carrier_is_back(now);
            self.settle(now);
        }
    }

    /// Takes in the carriers of the host's own crossbar; `None` if it has none. They lead to routes around the ports that have
    /// none. Of a crossbar that it has no more it sees nothing, so none of that one's ports counts as without carrier then.
    pub fn handle_carriers(&mut self, now: Instant, crossbar: Option<OwnCrossbar>) {
        let before = std::mem::replace(&mut self.seen.crossbar, crossbar);
        let is_same = before.map(|it| it.tag) == crossbar.map(|it| it.tag);
        let mut changes = Vec::new();
        if let Some(former) = before.filter(|_| !is_same) {
            changes.extend(former.carriers.changes_to(PortSet::ALL).map(|change| (former.tag, change)));
        }
        if let Some(now) = crossbar {
            let known = before.filter(|_| is_same).map_or(now.ports, |before| before.carriers);
            changes.extend(known.changes_to(now.carriers).map(|change| (now.tag, change)));
        }
        let any_is_up = changes.iter().any(|&(_, (_, up))| up);
        let any = !changes.is_empty();
        for (tag, (port, up)) in changes {
            self.healing.carrier(now, tag, port, up);
        }
        if any_is_up {
            self.agent.look_again(now);
        }
        if any {
            self.settle(now);
        }
    }
}
