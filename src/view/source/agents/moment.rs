//! How the fabric is at a moment, as boards say.

use std::collections::BTreeMap;

use mapper_daemon::agent::status::Board;
use mapper_fabric::wording::plural;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use mapper_proto::wire::AgentState;

use super::{Boards, Known};
use crate::view::feed::{CableState, HostState, Moment};

impl Known {
    /// How the fabric is, as boards say.
    pub(crate) fn moment(&self, boards: &Boards, what: String) -> Moment {
        let (map, shown) = (&self.fabric.map, &self.shown.map);
        let mut moment = Moment {
            what,
            hosts: vec![HostState::Unknown; map.hosts.len()],
            cables: vec![CableState::Whole; map.cables.len()],
            troubles: boards.why_not.iter().cloned().collect(),
            ..Moment::default()
        };
        let mut complete = 0;
        for board in &boards.boards {
            complete += usize::from(board.network_configured);
            match &board.no_answer {
                Some(why) => {
                    moment.troubles.push(format!("unit {} does not answer: {why}", board.unit));
                }
                None => self.add_board(&mut moment, board),
            }
        }
        moment.hosts.resize(shown.hosts.len().max(map.hosts.len()), HostState::Missing);
        moment.cables.resize(shown.cables.len().max(map.cables.len()), CableState::Missing);
        let silent = moment.hosts.iter().filter(|&&state| state == HostState::Silent).count();
        moment.says = match (boards.boards.len(), silent) {
            (0, _) => "no agent answers".to_owned(),
            (all, 0) if complete == all => "fully configured".to_owned(),
            (_, 0) => "not fully configured".to_owned(),
            (_, silent) => format!("{} silent", plural(silent, "host")),
        };
        moment
    }

    fn add_board(&self, moment: &mut Moment, board: &Board) {
        let hosts = self.hosts_known_to(board);
        self.add_hosts(moment, board, &hosts);
        self.add_cables(moment, board, &hosts);
        add_troubles(moment, board);
    }

    /// The states of hosts: what the board is itself, and who is configured or unreachable for it.
    fn add_hosts(&self, moment: &mut Moment, board: &Board, hosts: &BTreeMap<Mac, usize>) {
        let place = |mac: &str| mac.parse().ok().and_then(|mac: Mac| hosts.get(&mac).copied());
        // Who is configured hears of all others that are not, as far as they are in its part of the checks.
        if let Some(map) = self.map_of(board).filter(|_| board.network_configured) {
            moment.hosts[self.hosts_in(map)].fill(HostState::Configured);
        }
        if let Some(own) = board.mac.as_deref().and_then(place) {
            moment.hosts[own] = own_state(board);
        }
        for host in &board.unreachable {
            if let Some(at) = place(&host.mac) {
                moment.hosts[at] = HostState::Silent;
            }
            moment.reasons.insert(host.mac.clone(), host.why.clone());
            moment.troubles.push(format!("{}: {}", board.called(&host.mac), host.why));
        }
    }

    /// The states of cables: which are dead, and which are narrow.
    fn add_cables(&self, moment: &mut Moment, board: &Board, hosts: &BTreeMap<Mac, usize>) {
        for cable in &board.dead_cables {
            let xbar = cable.tag.as_ref().and_then(|tag| self.xbar_known_to(board, tag));
            if let Some(place) = xbar.and_then(|xbar| self.cable_at(PortRef { xbar, port: cable.port })) {
                moment.cables[place] = CableState::Dead;
            }
            moment.troubles.push(format!("the cable at {} is dead: {}", board.end_of_dead(cable), cable.why));
        }
        for cable in board.narrow_cables.iter().flat_map(|cable| &cable.ends) {
            let host = cable.host.parse().ok().and_then(|mac: Mac| hosts.get(&mac));
            let xbar = host.and_then(|&host| self.fabric.map.hosts[host].at).map(|at| at.xbar);
            let end = xbar.zip(cable.port).map(|(xbar, port)| PortRef { xbar, port });
            if let Some(place) = end.and_then(|end| self.cable_at(end)) {
                moment.cables[place] = CableState::Narrow;
            }
        }
    }
}

/// What the host of a board is.
fn own_state(board: &Board) -> HostState {
    match board.state.known() {
        Some(AgentState::Configured) => HostState::Configured,
        Some(AgentState::Isolated) => HostState::Isolated,
        Some(
            AgentState::Starting
            | AgentState::Mapping
            | AgentState::Passive
            | AgentState::Fetching
            | AgentState::Routing,
        )
        | None => HostState::AtWork,
    }
}

/// What a board complains about that is neither at a host nor at a cable of the fabric.
fn add_troubles(moment: &mut Moment, board: &Board) {
    let unit = board.unit;
    let troubles = &mut moment.troubles;
    troubles.extend(board.gone_hosts.iter().map(|mac| format!("{} is gone", board.called(mac))));
    troubles.extend(board.gone_cable_ends().map(|[a, b]| format!("the cable {a} - {b} is gone")));
    if let Some(plan) = &board.plan {
        troubles
            .extend(plan.failure.iter().map(|why| format!("unit {unit}: the plan cannot be used: {why}")));
        let advice = plan.differences.iter();
        troubles.extend(advice.map(|it| format!("not as planned: {} ({})", it.advice, it.severity)));
    }
    troubles.extend(board.warnings.iter().map(|warning| format!("unit {unit}: {warning}")));
    troubles.extend(board.routing_failure.iter().map(|why| format!("unit {unit}: routing failed: {why}")));
}
