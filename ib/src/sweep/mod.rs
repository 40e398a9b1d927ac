//! Exploration of a fabric: breadth-first, by GUID, with a window of questions under way.
//!
//! The sweep asks the node that sends what it is (NodeInfo), what people call it (NodeDescription), and the state
//! of its ports (PortInfo): all ports of a switch, and of an adapter the one that the question came in by, as others
//! may lead into other fabrics. Behind every port whose cable works it asks what is there.
//!
//! A cable between switches is asked about from both ends, so that two nodes with one GUID show, as the ends
//! do not agree.
//!
//! A node that does not answer is asked again once everything else was asked, so that silent nodes do not
//! hold up others. A question waits only for answers without which it could not be asked. All is bounded: by
//! the greatest number of nodes, by the ports that a node can have, and by the length of routes.
//!
//! Whoever drives sends what [`Sweep::poll_transmit`] gives, hands what comes to [`Sweep::handle_mad`], and calls
//! [`Sweep::handle_timeout`] at the moment that [`Sweep::poll_timeout`] names, until [`Sweep::is_done`].

mod cables;
mod found;
mod question;
mod tables;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use mapper_proto::time::Instant;

pub use found::{Found, Node, NodeIndex, Port, PortOf, Problem, ProblemKind};
pub use tables::{TableReading, TablesFound};

use crate::exchange::BUSY;
use crate::mad::{
    Data, Method, NodeDescription, NodeInfo, NodeInfoError, NodeKind, PortInfo, PortSettings, Route, Smp,
};
use crate::requests::Requests;
use question::SweepQuestion;

/// How a fabric is explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SweepSettings {
    /// Most questions under way at a time.
    pub window: NonZeroUsize,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How often a question is asked again.
    pub retries: u32,
    /// Most nodes that are taken note of. Further ones are reported and left out.
    pub max_nodes: usize,
    /// The key of management, for ports that tell nothing without it; 0 for none.
    pub key: u64,
}

/// The exploration of a fabric.
#[derive(Debug)]
pub struct Sweep {
    settings: SweepSettings,
    requests: Requests<SweepQuestion>,
    nodes: Vec<Node>,
    by_guid: BTreeMap<u64, NodeIndex>,
    /// What answered behind each port, and by which of its ports.
    behind: BTreeMap<PortOf, PortOf>,
    problems: Vec<Problem>,
}

impl Sweep {
    /// A sweep that begins at the node that sends.
    pub fn new(settings: SweepSettings) -> Self {
        Self::with_transactions_from(settings, 1)
    }

    /// A sweep whose transactions are numbered from `first_tid` on, so that late answers to others do not
    /// count.
    pub(crate) fn with_transactions_from(settings: SweepSettings, first_tid: u32) -> Self {
        let mut requests = Requests::new(settings.window.get(), first_tid);
        requests.ask(SweepQuestion::Node { behind: None }, Route::LOCAL);
        Self {
            settings,
            requests,
            nodes: Vec::new(),
            by_guid: BTreeMap::new(),
            behind: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// The next question to send, if one may go out now. Its type makes sure that it is a question, and does
    /// not write.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Smp> {
        let (tid, request) = self.requests.send(now + self.settings.timeout)?;
        Some(Smp::asking(tid, request.question.asks(), self.settings.key, request.route.clone()))
    }

    /// The number that follows those of all transactions so far.
    pub(crate) fn next_tid(&self) -> u32 {
        self.requests.next_tid()
    }

    /// The moment at which to call [`Self::handle_timeout`]; `None` if nothing is under way.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requests.next_deadline()
    }

    /// Whether everything was answered or given up.
    pub fn is_done(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes note of which questions were not answered in time.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(tid) = self.requests.expired(now) {
            self.try_again(tid, ProblemKind::Silent);
        }
    }

    /// Takes a datagram from the fabric. Datagrams that answer no open question are ignored.
    pub fn handle_mad(&mut self, mad: &[u8]) {
        let Ok(answer) = Smp::<Method>::parse(mad) else { return };
        // Whatever carries datagrams uses the upper half of the transaction's number.
        let tid = answer.tid as u32;
        let Some(asked) = self.requests.get(tid) else { return };
        let fits = answer.method == Method::GetResponse
            && (answer.attribute, answer.modifier) == asked.question.asks()
            && answer.route == asked.route;
        if !fits {
            return;
        }
        if answer.status & BUSY != 0 {
            return self.try_again(tid, ProblemKind::Refused { status: answer.status });
        }
        let Some((question, route)) = self.requests.take(tid) else { return };
        if answer.status != 0 {
            return self.blame(question, route, ProblemKind::Refused { status: answer.status });
        }
        match question {
            SweepQuestion::Node { behind } => match NodeInfo::parse(&answer.data) {
                Ok(info) => self.found_node(behind, info, &route),
                Err(wrong) => self.blame(question, route, ProblemKind::Wrong(wrong)),
            },
            SweepQuestion::Description { node } => {
                self.nodes[node].description = NodeDescription::parse(&answer.data).0;
            }
            SweepQuestion::Port { node, port } => {
                self.found_port((node, port), &answer.data, &route);
            }
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Found {
        let (cables, contradictions) = cables::agreed(&self.nodes, &self.behind);
        self.problems.extend(contradictions);
        Found { nodes: self.nodes, cables, problems: self.problems }
    }

    fn try_again(&mut self, tid: u32, kind: ProblemKind) {
        if let Some((question, route)) = self.requests.again(tid, self.settings.retries) {
            self.blame(question, route, kind);
        }
    }

    fn blame(&mut self, question: SweepQuestion, route: Route, kind: ProblemKind) {
        let at = match question {
            SweepQuestion::Node { behind } => behind,
            SweepQuestion::Description { node } => Some((node, 0)),
            SweepQuestion::Port { node, port } => Some((node, port)),
        };
        self.problems.push(Problem { at, attribute: question.asks().0, route, kind });
    }

    /// A node answered behind a port, or is the one that sends.
    fn found_node(&mut self, behind: Option<PortOf>, info: NodeInfo, route: &Route) {
        let question = SweepQuestion::Node { behind };
        if behind.is_some() && info.local_port == 0 {
            // Port 0 has no cable, so no question can come in by it.
            let wrong = NodeInfoError::LocalPort { port: 0, ports: info.ports };
            return self.blame(question, route.clone(), ProblemKind::Wrong(wrong));
        }
        let node = match self.by_guid.get(&info.guid) {
            Some(&node) if self.nodes[node].is_as(&info) => node,
            Some(&other) => {
                let other = self.nodes[other].route.clone();
                return self.blame(question, route.clone(), ProblemKind::SameGuid { guid: info.guid, other });
            }
            None if self.nodes.len() == self.settings.max_nodes => {
                return self.blame(
                    question,
                    route.clone(),
                    ProblemKind::TooMany { most: self.settings.max_nodes },
                );
            }
            None => self.add_node(info, route),
        };
        let end = (node, info.local_port);
        if let Some(port) = behind {
            self.behind.insert(port, end);
        }
        if info.kind != NodeKind::Switch && !self.nodes[node].ports.contains_key(&info.local_port) {
            let port = Port { guid: Some(info.port_guid), ..Port::default() };
            self.nodes[node].ports.insert(info.local_port, port);
            self.requests.ask(SweepQuestion::Port { node, port: info.local_port }, route.clone());
        }
    }

    fn add_node(&mut self, info: NodeInfo, route: &Route) -> NodeIndex {
        let node = self.nodes.len();
        self.by_guid.insert(info.guid, node);
        self.nodes.push(Node::new(info, route.clone()));
        self.requests.ask(SweepQuestion::Description { node }, route.clone());
        if info.kind == NodeKind::Switch {
            for port in 0..=info.ports {
                self.requests.ask(SweepQuestion::Port { node, port }, route.clone());
            }
        }
        node
    }

    /// A port told its state.
    fn found_port(&mut self, end: PortOf, data: &Data, route: &Route) {
        let (node, number) = end;
        let info = PortInfo::parse(data);
        let port = self.nodes[node].ports.entry(number).or_default();
        port.info = Some(info);
        port.settings = Some(PortSettings::parse(data));
        let leads_on = match self.nodes[node].info.kind {
            NodeKind::Switch => number != 0,
            // An adapter forwards nothing but its own datagrams.
            NodeKind::Adapter | NodeKind::Router => *route == Route::LOCAL,
        };
        if !leads_on || !info.is_up {
            return;
        }
        let question = SweepQuestion::Node { behind: Some(end) };
        match route.through(number) {
            Some(further) => self.requests.ask(question, further),
            None => self.blame(question, route.clone(), ProblemKind::TooFar),
        }
    }
}
