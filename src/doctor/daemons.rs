//! The daemon that runs on an interface, and what it says.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mapper_daemon::agent::options::Config;
use mapper_daemon::agent::status::{Board, Mismatch, socket_path, units};
use mapper_daemon::xbar::cable::CableStatus;
use mapper_daemon::xbar::{self, PortStatus, XbarDataPath, XbarStatus};
use mapper_proto::wire::AgentState;
use serde::de::DeserializeOwned;

use super::Check;
use mapper_fabric::wording::plural;
use mapper_machine::interface_lock::{Holder, holder};
use mapper_machine::status::{Question, StatusSocketError, ask};

/// How long an agent may take to answer before it is taken for stuck. On a busy machine it takes a second or
/// more.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the daemons of a run directory said. They are asked only once, since a daemon that hangs costs
/// [`PATIENCE`].
#[derive(Debug, Default)]
pub(super) struct Heard {
    run_dir: PathBuf,
    boards: Vec<Board>,
    xbars: Vec<XbarStatus>,
    unheard: Vec<Unheard>,
}

/// Who works on an interface.
#[derive(Debug)]
pub(super) enum Daemon<'a> {
    /// No daemon works on it.
    None,
    /// An agent or node of this run directory.
    Agent(&'a Board),
    /// A crossbar of this run directory, by name.
    Xbar(String),
    /// A daemon that may not be asked, or that does not answer as it should.
    Unheard(Holder, &'a StatusSocketError),
    /// A daemon that has no status socket in this run directory.
    Other(Holder),
    /// The kernel does not tell which daemon works on it.
    Unknown(std::io::Error),
}

/// A status socket that gave no answer.
#[derive(Debug)]
struct Unheard {
    /// The process that serves it, if that is known.
    process_id: Option<i32>,
    error: StatusSocketError,
}

impl Unheard {
    /// Whether this may be the status socket of the daemon that holds an interface.
    fn may_be(&self, holder: Holder) -> bool {
        match (self.process_id, holder.process_id()) {
            (Some(asked), Some(holding)) => asked == holding,
            // A socket that was left behind belongs to a daemon that has ended, which holds no interface.
            _ => !matches!(self.error, StatusSocketError::LeftBehind { .. }),
        }
    }
}

impl Heard {
    /// Asks all daemons of a run directory.
    pub(super) fn in_dir(run_dir: &Path) -> Self {
        let deadline = Instant::now() + PATIENCE;
        let units = units(run_dir).unwrap_or_default();
        let names = xbar::socket::names(run_dir).unwrap_or_default();
        // All daemons are asked before the first answer is waited for, so that they answer side by side.
        let mut unheard = Vec::new();
        let agents = ask_all(units.into_iter().map(|unit| socket_path(run_dir, unit)), &mut unheard);
        let xbars = ask_all(names.iter().map(|name| xbar::socket::socket_path(run_dir, name)), &mut unheard);
        let boards: Vec<Board> = hear_all(agents, deadline, &mut unheard);
        let xbars: Vec<XbarStatus> = hear_all(xbars, deadline, &mut unheard);
        Self { run_dir: run_dir.to_owned(), boards, xbars, unheard }
    }

    /// The answers that agents on these interfaces would give.
    #[cfg(test)]
    pub(super) fn at_work(interfaces: &[&str]) -> Self {
        let board =
            |name: &&str| Board { interface: Some((*name).to_owned()), ..Board::silent(0, String::new()) };
        Self { boards: interfaces.iter().map(board).collect(), ..Self::default() }
    }

    /// The board of the agent or node on an interface, if it answered.
    pub(super) fn board_on(&self, interface: &str) -> Option<&Board> {
        self.boards.iter().find(|board| is_board_of(board, interface))
    }

    /// Whether the daemon on an interface has said that it leaves the kernel's forwarding alone.
    pub(super) fn leaves_kernel_alone(&self, interface: &str) -> bool {
        if let Some(board) = self.board_on(interface) {
            return board.data_path.as_ref().is_some_and(|path| path.leaves_kernel_alone);
        }
        let is_there = |xbar: &&XbarStatus| xbar.ports.iter().any(|port| port.interface == interface);
        let path = self.xbars.iter().find(is_there).and_then(|xbar| xbar.data_path.as_ref());
        path.is_some_and(XbarDataPath::leaves_kernel_alone)
    }

    /// The boards of the agents and nodes that answered.
    pub(super) fn boards(&self) -> impl Iterator<Item = &Board> {
        self.boards.iter()
    }

    /// Asks the daemons of another run directory, unless it is the same.
    pub(super) fn turn_to(&mut self, run_dir: &Path) {
        if self.run_dir != run_dir {
            *self = Self::in_dir(run_dir);
        }
    }

    /// The interfaces that agents, nodes and crossbars of this run directory work on.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &str> {
        // The boards of nodes are left out: their crossbars name each port, while the interface of such a
        // board is a name made of the ports that the node began with.
        let agents = self.boards.iter().filter(|board| board.ports.is_empty());
        let agents = agents.filter_map(|board| board.interface.as_deref());
        let agents = agents.filter(|name| !name.contains('+'));
        let xbars = self.xbars.iter().flat_map(|xbar| &xbar.ports);
        let xbars = xbars.map(|port| port.interface.as_str());
        agents.chain(xbars.filter(|name| !name.contains('+') && !self.is_name_of_node(name)))
    }

    /// Whether this is what a node is called after its ports, and none of them: the port of its crossbar to its agent
    /// has that name.
    fn is_name_of_node(&self, name: &str) -> bool {
        let is_so = |board: &Board| {
            board.interface.as_deref() == Some(name) && board.ports.iter().all(|port| port.interface != name)
        };
        self.boards.iter().filter(|board| !board.ports.is_empty()).any(is_so)
    }

    /// Whether an interface is a port of a crossbar that runs, be it that of a node.
    pub(super) fn is_of_crossbar(&self, interface: &str) -> bool {
        self.xbars.iter().flat_map(|xbar| &xbar.ports).any(|port| port.interface == interface)
    }

    /// Whether the agent on an interface carries users' frames.
    pub(super) fn carries_users(&self, interface: &str) -> bool {
        self.tap(interface).is_some()
    }

    /// The interface over the fabric of the agent on an interface.
    pub(super) fn tap(&self, interface: &str) -> Option<&str> {
        let board = self.boards.iter().find(|board| board.tap.is_some() && is_board_of(board, interface))?;
        board.tap.as_ref().map(|tap| tap.name.as_str())
    }

    /// What is wrong with the cables of crossbars' ports, by interface, in words, and what to do. Those of nodes are told
    /// with their boards.
    pub(super) fn cable_troubles(&self) -> impl Iterator<Item = (&str, String, String)> {
        let boards = || self.boards.iter().flat_map(|board| &board.ports);
        let ports = self.xbars.iter().flat_map(|xbar| &xbar.ports);
        let ports = ports.filter(move |port| !boards().any(|of_node| of_node.interface == port.interface));
        ports.filter_map(|PortStatus { interface, cable, .. }| {
            Some((interface.as_str(), cable.trouble(interface)?, cable.remedy(interface)))
        })
    }
}

impl<'a> Daemon<'a> {
    /// The daemon on the interface of this configuration.
    pub(super) fn on(config: &Config, heard: &'a Heard) -> Self {
        let Heard { xbars, unheard, .. } = heard;
        if let Some(board) = heard.board_on(&config.interface) {
            return Self::Agent(board);
        }
        let is_port = |xbar: &&XbarStatus| xbar.ports.iter().any(|port| port.interface == config.interface);
        if let Some(xbar) = xbars.iter().find(is_port) {
            return Self::Xbar(xbar.name.clone());
        }
        match holder(&config.interface) {
            Ok(None) => Self::None,
            Ok(Some(holder)) => match unheard.iter().find(|unheard| unheard.may_be(holder)) {
                Some(Unheard { error, .. }) => Self::Unheard(holder, error),
                None => Self::Other(holder),
            },
            Err(error) => Self::Unknown(error),
        }
    }

    pub(super) fn check(&self, config: &Config) -> Check {
        let name = "daemon";
        match self {
            Self::None => Check::ok(name, "no agent or crossbar works on it"),
            Self::Agent(board) => {
                Check::ok(name, format!("the agent of unit {} works on it: {}", board.unit, board.state))
            }
            Self::Xbar(xbar) => Check::ok(name, format!("it is a port of the crossbar {xbar}")),
            Self::Unheard(holder, error) => check_unheard(*holder, error),
            Self::Other(holder) => Check::failed(
                name,
                format!(
                    "{} works on it, and has no status socket in {}",
                    holder.describe(),
                    config.service.run_dir.display()
                ),
                "stop that one before an agent is started here, or name its --run-dir",
            ),
            Self::Unknown(error) => Check::error(name, error),
        }
    }
}

/// Whether this is the board of the daemon on an interface, or of a node by that name. A node has a name made
/// of the ports that it began with, and works on the ports that its board lists.
fn is_board_of(board: &Board, interface: &str) -> bool {
    if !board.ports.is_empty() {
        return board.ports.iter().any(|port| port.interface == interface);
    }
    let is_part = |name: &str| name == interface || name.split('+').any(|part| part == interface);
    board.interface.as_deref().is_some_and(is_part)
}

fn ask_all<T>(paths: impl Iterator<Item = PathBuf>, unheard: &mut Vec<Unheard>) -> Vec<Question<T>> {
    let mut questions = Vec::new();
    for path in paths {
        match ask(path) {
            Ok(question) => questions.extend(question),
            Err(error) => unheard.push(Unheard { process_id: None, error }),
        }
    }
    questions
}

fn hear_all<T: DeserializeOwned>(
    questions: Vec<Question<T>>,
    deadline: Instant,
    unheard: &mut Vec<Unheard>,
) -> Vec<T> {
    let mut answers = Vec::new();
    for question in questions {
        let process_id = question.process_id();
        match question.answer(deadline) {
            Ok(answer) => answers.push(answer),
            Err(error) => unheard.push(Unheard { process_id, error }),
        }
    }
    answers
}

fn check_unheard(holder: Holder, error: &StatusSocketError) -> Check {
    let name = "daemon";
    let works = format!("{} works on it", holder.describe());
    match error {
        StatusSocketError::Denied { .. } => {
            Check::failed(name, format!("{works}, but {error}"), "examine this machine as root")
        }
        StatusSocketError::Silent { path, .. } => {
            let process_id = holder.process_id().map(|id| format!(": `kill -CONT {id}`")).unwrap_or_default();
            Check::failed(
                name,
                format!("{works}, but hangs: it does not answer on {}", path.display()),
                format!("restart it; if somebody stopped it, let it go on{process_id}"),
            )
        }
        _ => Check::failed(
            name,
            format!("{works}, but {error}"),
            "restart it, so that it is of the same version of the program",
        ),
    }
}

/// What a running agent says of the fabric, and of the cable of this interface. Of each other port of a node, the cable is
/// told where that port is examined.
pub(super) fn check_fabric(board: &Board, interface: &str) -> Vec<Check> {
    let whole = board.configured && board.network_configured;
    let mut checks = vec![check_network(board, whole)];
    if let Some(why) = &board.routing_failure {
        checks.push(Check::failed("routes", why, "cable the fabric closer, or raise max-hops on all hosts"));
    }
    for Mismatch { kind, frames, what, fix } in board.counters.mismatches() {
        let what = format!("since it began the agent has dropped {frames} {what}");
        // If the whole network is configured, no host is missing. The frames then came from a stranger, or
        // from a host that has been set right since.
        checks.push(match whole {
            true => Check::warning(kind.name(), what, fix),
            false => Check::failed(kind.name(), what, fix),
        });
    }
    if let Some(gone) = board.gone() {
        let fix =
            "mend the cables and start the hosts again; if they were taken away for good, restart the agent";
        checks.push(Check::warning("gone", gone, fix));
    }
    let troubles: Vec<_> = cables_of(board)
        .filter_map(|(port, cable)| Some((port, cable.trouble(port)?, cable.remedy(port))))
        .collect();
    for (_, what, fix) in troubles.iter().filter(|(port, ..)| *port == interface) {
        checks.push(Check::warning("cable", what, fix));
    }
    checks
}

/// What an agent warns of that is of no cable. That is of the whole machine, whichever of its ports is examined, and the
/// warnings say themselves what to do.
pub(super) fn check_warnings(board: &Board) -> impl Iterator<Item = Check> {
    let of_cables: Vec<_> = cables_of(board).filter_map(|(port, cable)| cable.trouble(port)).collect();
    let of_none = board.warnings.iter().filter(move |warning| !of_cables.contains(warning));
    of_none.map(|warning| Check { fix: None, ..Check::warning("users' frames", warning, "") })
}

/// The cables of an agent or a node, by interface.
fn cables_of(board: &Board) -> impl Iterator<Item = (&str, &CableStatus)> {
    let own = board.interface.as_deref().zip(board.cable.as_ref());
    own.into_iter().chain(board.ports.iter().map(|port| (port.interface.as_str(), &port.cable)))
}

fn check_network(board: &Board, whole: bool) -> Check {
    let name = "network";
    if whole && board.unreachable.is_empty() {
        return Check::ok(name, format!("fully configured, with {}", plural(board.hosts, "host")));
    }
    let hosts = board.unreachable.iter().map(|host| format!("; {}: {}", board.called(&host.mac), host.why));
    let what = format!("not fully configured: this agent is {}{}", board.state, hosts.collect::<String>());
    let fix = match board.state.known() {
        Some(AgentState::Isolated) => {
            "no other host is heard: see that their agents run, and the crossbars between"
        }
        Some(
            AgentState::Starting
            | AgentState::Mapping
            | AgentState::Passive
            | AgentState::Fetching
            | AgentState::Routing
            | AgentState::Configured,
        )
        | None => "`mapper board-info` on each host says what it waits for",
    };
    Check::warning(name, what, fix)
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use mapper_daemon::agent::status::{BoardPort, DataPath, Reason};
    use mapper_daemon::xbar::cable::{CableState, NeighbourStatus};
    use mapper_proto::agent::FrameDrop;

    fn whole() -> Board {
        Board { configured: true, network_configured: true, hosts: 3, ..Board::silent(0, String::new()) }
    }

    #[test]
    fn an_isolated_agent_is_not_well_and_a_key_that_keeps_it_so_is_a_failure() {
        let mut board = Board { configured: false, hosts: 1, state: AgentState::Isolated.into(), ..whole() };
        let check = &check_fabric(&board, "eth1")[0];
        assert_eq!((check.name, check.status), ("network", Outcome::Warning));
        board.counters.dropped.add(FrameDrop::UnknownKey, 1);
        let check = &check_fabric(&board, "eth1")[1];
        assert_eq!((check.name, check.status), ("key", Outcome::Failed));
    }

    #[test]
    fn hosts_that_keep_the_network_from_being_configured_are_called_by_their_names() {
        let mac = "02:00:00:00:00:09".to_owned();
        let why = "does not answer".to_owned();
        let board = Board {
            network_configured: false,
            names: [(mac.clone(), "n9".to_owned())].into(),
            unreachable: vec![Reason { mac, why }],
            ..whole()
        };
        let what = &check_fabric(&board, "eth1")[0].what;
        assert!(what.ends_with("; n9 (02:00:00:00:00:09): does not answer"), "{what}");
    }

    #[test]
    fn what_is_gone_or_in_the_way_is_something_to_look_at() {
        let board = Board {
            gone_hosts: vec!["02:00:00:00:00:09".to_owned()],
            warnings: vec!["the tap interface is down".to_owned()],
            ..whole()
        };
        let found: Vec<Check> =
            check_fabric(&board, "eth1").into_iter().chain(check_warnings(&board)).collect();
        let found: Vec<_> = found.into_iter().map(|check| (check.what, check.status)).collect();
        assert!(found[1].0.contains("02:00:00:00:00:09"), "{found:?}");
        assert_eq!(found[2].0, "the tap interface is down");
        assert!(found[1..].iter().all(|(_, status)| *status == Outcome::Warning));
    }

    #[test]
    fn what_is_wrong_with_a_cable_stands_under_its_own_port_alone_with_the_command() {
        let neighbour =
            NeighbourStatus { mac: "02:00:00:00:00:09".to_owned(), mtu: 1500, ..Default::default() };
        let differs = CableStatus {
            state: CableState::Joined.into(),
            mtu: Some(1400),
            neighbour: Some(neighbour),
            ..CableStatus::default()
        };
        let port = |interface: &str, cable: &CableStatus| BoardPort {
            interface: interface.to_owned(),
            cable: cable.clone(),
            ..BoardPort::default()
        };
        let board = Board {
            ports: vec![port("p1", &differs), port("p2", &CableStatus::default())],
            warnings: vec![differs.trouble("p1").unwrap(), "the tap interface is down".to_owned()],
            ..whole()
        };
        let of = |interface: &str| check_fabric(&board, interface);
        let (first, second) = (of("p1"), of("p2"));
        assert_eq!((first.len(), second.len()), (2, 1));
        assert_eq!((first[1].name, first[1].status), ("cable", Outcome::Warning));
        let fix = first[1].fix.as_ref().unwrap();
        assert!(fix.starts_with("`ip link set PORT mtu 1400` on the machine of 02:00:00:00:00:09"), "{fix}");
        assert!(fix.contains("`ip link set p1 mtu 1500` here"), "{fix}");
        let warnings: Vec<_> = check_warnings(&board).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!((warnings[0].what.as_str(), &warnings[0].fix), ("the tap interface is down", &None));
    }

    #[test]
    fn who_sends_by_the_tap_interface_alone_leaves_the_kernel_alone() {
        let port = |interface: &str| BoardPort { interface: interface.to_owned(), ..BoardPort::default() };
        let node = |name: &str, path| Board { ports: vec![port(name)], data_path: Some(path), ..whole() };
        let by_tap = DataPath::tap("another node has the kernel's forwarding");
        let tried = DataPath { leaves_kernel_alone: false, ..by_tap.clone() };
        let heard = Heard { boards: vec![node("p1", tried), node("q1", by_tap)], ..Heard::default() };
        assert_eq!(["p1", "q1", "r1"].map(|name| heard.leaves_kernel_alone(name)), [false, true, false]);
    }

    #[test]
    fn a_node_works_on_each_of_its_ports() {
        let node = Board { interface: Some("p1+p2".to_owned()), ..whole() };
        for (interface, expected) in [("p1", true), ("p2", true), ("p", false), ("p3", false)] {
            assert_eq!(is_board_of(&node, interface), expected, "{interface}");
        }
        let port = |interface: &str| BoardPort { interface: interface.to_owned(), ..BoardPort::default() };
        let changed = Board { ports: vec![port("p2"), port("p3")], ..node };
        for (interface, expected) in [("p1", false), ("p2", true), ("p3", true)] {
            assert_eq!(is_board_of(&changed, interface), expected, "{interface}");
        }
    }

    #[test]
    fn a_running_agent_tells_what_it_misses() {
        let mut board = whole();
        assert!(check_fabric(&board, "eth1").iter().all(|check| check.status == Outcome::Ok));
        board.counters.dropped.add(FrameDrop::UnknownVersion, 2);
        board.counters.dropped.add(FrameDrop::BadTag, 1);
        board.routing_failure = Some("too deep".to_owned());
        let found: Vec<_> =
            check_fabric(&board, "eth1").into_iter().map(|check| (check.name, check.status)).collect();
        let expected = [
            ("network", Outcome::Ok),
            ("routes", Outcome::Failed),
            ("protocol version", Outcome::Warning),
            ("key", Outcome::Warning),
        ];
        assert_eq!(found, expected);
    }
}
