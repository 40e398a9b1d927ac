//! A port of InfiniBand: whether an agent can use it, and what one that runs says of the subnet.

use std::path::Path;
use std::time::{Duration, Instant as Clock};

use mapper_daemon::agent::options::Config;
use mapper_daemon::agent::status::{Board, SubnetStanding};
use mapper_daemon::subnet;
use mapper_ib::mad::{Attribute, Method, PortSettings, PortState, Route, Smp};
use mapper_machine::mad_port::{AskingPort, PortName};
use mapper_proto::wire::AgentState;
use rustix::fs::Access;

use super::Check;
use super::daemons::Heard;

/// How long this machine's port may take to answer. Questions to it pass no cable.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most nodes that are blamed by name, a check each.
const MOST_BLAMED: usize = 8;
/// The transaction of the only question.
const TRANSACTION: u32 = 1;

/// Examines the port with this name that a configuration is for.
pub(super) fn check(config: &Config, name: &PortName, heard: &Heard) -> Vec<Check> {
    let mut checks =
        vec![super::machine::check_directory("run directory", &config.service.run_dir, "--run-dir")];
    let lid_file = config.subnet.lid_file.as_deref().and_then(Path::parent);
    checks.extend(
        lid_file.map(|directory| super::machine::check_directory("LID file", directory, "--lid-file")),
    );
    let key = config.subnet.key_file.as_deref().map(|file| {
        let read = subnet::read_key(file);
        (file, read)
    });
    match &key {
        Some((_, Err(error))) => checks.push(Check::error("key of management", error)),
        Some((file, Ok(_))) => {
            checks.push(Check::ok("key of management", format!("{} has one", file.display())));
        }
        None => {}
    }
    let board = heard.boards().find(|board| board.interface.as_deref() == Some(&config.interface));
    if let Some(board) = board {
        let what = format!("the agent of unit {} works on it: {}", board.unit, board.state);
        checks.push(Check::ok("daemon", what));
        checks.extend(check_subnet(board));
        return checks;
    }
    checks.push(Check::ok("daemon", "no agent of this run directory works on it"));
    if let PortName::Umad(number) = name {
        checks.push(check_mark(Path::new(&format!("/dev/infiniband/issm{number}"))));
    }
    let key = key.and_then(|(_, read)| read.ok()).unwrap_or_default();
    checks.extend(check_port(name, key));
    checks
}

/// Checks the device that marks a port as that of a manager. It is not opened, as that would mark it.
fn check_mark(device: &Path) -> Check {
    let (name, shown) = ("manager's device", device.display());
    if !device.exists() {
        let fix = "load the kernel's module ib_umad; without it an agent cannot manage the subnet";
        return Check::failed(name, format!("there is no {shown}"), fix);
    }
    match rustix::fs::access(device, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => Check::ok(name, format!("{shown} can be opened")),
        Err(error) => Check::failed(
            name,
            format!("{shown} cannot be opened: {error}"),
            "run as root, or as whoever its group lets in",
        ),
    }
}

/// Asks the port itself how far it is.
fn check_port(name: &PortName, key: u64) -> Vec<Check> {
    let port = match AskingPort::open(name, PATIENCE) {
        Ok(port) => port,
        Err(error) => return vec![Check::error("device", &error)],
    };
    let device = Check::ok("device", "management datagrams can be sent");
    match ask_own_port(&port, key) {
        Ok(Some(settings)) => {
            let state = std::iter::once(check_state(&settings));
            std::iter::once(device).chain(state).chain(check_manager(&settings)).collect()
        }
        Ok(None) => {
            let fix = "see the kernel's log for the adapter; if the port has a key of management, name its m-key-file";
            vec![device, Check::failed("port", "it does not say what state it is in", fix)]
        }
        Err(error) => vec![device, Check::error("port", &error)],
    }
}

/// What the port by which is asked says of itself; `None` if it says nothing.
fn ask_own_port(port: &AskingPort, key: u64) -> std::io::Result<Option<PortSettings>> {
    // An adapter takes port 0 for the one that the question came in by.
    port.send(&Smp::asking(TRANSACTION, (Attribute::PortInfo, 0), key, Route::LOCAL))?;
    let deadline = Clock::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Clock::now());
        if left.is_zero() {
            return Ok(None);
        }
        let Some(mad) = port.receive(left)? else { continue };
        let Ok(answer) = Smp::<Method>::parse(&mad) else { continue };
        if answer.tid as u32 == TRANSACTION && answer.attribute == Attribute::PortInfo {
            return Ok((answer.status == 0).then(|| PortSettings::parse(&answer.data)));
        }
    }
}

fn check_state(settings: &PortSettings) -> Check {
    let name = "port";
    match settings.state() {
        PortState::Down => Check::failed(
            name,
            "it has no cable that works",
            "plug the cable in, and see that the switch at its other end has power",
        ),
        PortState::Initialize | PortState::Armed => Check::warning(
            name,
            "its cable works, and no subnet manager has brought it up",
            "start an agent here, or see what the subnet's manager says",
        ),
        PortState::Active => Check::ok(name, format!("it is active, with LID {}", settings.lid())),
    }
}

/// What the port was told of the subnet's manager. Before it was told anything there is nothing to say.
fn check_manager(settings: &PortSettings) -> Vec<Check> {
    if settings.manager_lid() == 0 {
        return Vec::new();
    }
    let name = "subnet manager";
    let is_here = settings.manager_lid() == settings.lid();
    let manager = if is_here && settings.is_manager() {
        Check::warning(
            name,
            "another program manages the subnet from this very port",
            "stop it before an agent is started here; only one program can have the port",
        )
    } else if is_here {
        Check::warning(
            name,
            "the subnet was last managed from this very port, where nobody manages it now",
            "start an agent here, unless another one has taken over meanwhile",
        )
    } else {
        let lid = settings.manager_lid();
        Check::ok(
            name,
            format!(
                "the port was last told that the one at LID {lid} manages the subnet; an agent stands by beside it"
            ),
        )
    };
    let key = match settings.is_protected() {
        true => Check::ok("key of management", "the port has one"),
        false => Check::warning(
            "key of management",
            "the port has none: whoever can send to it can write to it",
            "give the subnet's manager a key; for agents that is m-key-file",
        ),
    };
    vec![manager, key]
}

/// What a running agent says of its subnet.
fn check_subnet(board: &Board) -> Vec<Check> {
    let Some(subnet) = &board.subnet else { return Vec::new() };
    let mut checks = vec![check_network(board, subnet)];
    let masters = subnet.masters();
    if !masters.is_empty() {
        let what = format!("there are {}: {}", masters.len(), masters.join("; "));
        checks.push(Check::failed("masters", what, "stop all but one; two overwrite each other's tables"));
    }
    if let Some(why) = &board.routing_failure {
        let fix = "name other engines with --engine, or allow more layers with --max-layers";
        checks.push(Check::failed("tables", why, fix));
    }
    if let Some(open) = subnet.open_to_all() {
        checks.push(Check::warning("key of management", open, "write a key into a file, and name that file"));
    }
    let fix = "see to its cable and power; `mapper board-info` lists all";
    checks.extend(
        subnet.blamed.iter().take(MOST_BLAMED).map(|blamed| Check::warning("nodes", blamed.clone(), fix)),
    );
    if let Some(gone) = board.gone() {
        let fix =
            "mend the cables and start the hosts again; if they were taken away for good, restart the agent";
        checks.push(Check::warning("gone", gone, fix));
    }
    checks
}

fn check_network(board: &Board, subnet: &SubnetStanding) -> Check {
    let name = "network";
    let role = match (&subnet.master, subnet.is_master()) {
        (_, true) => "this agent is its master".to_owned(),
        (Some(master), _) => format!("its master is {master}"),
        (None, false) => "it has no master".to_owned(),
    };
    match board.state.known() {
        Some(AgentState::Configured) => Check::ok(name, format!("the subnet is up; {role}")),
        Some(AgentState::Isolated) => Check::failed(
            name,
            "the port has no cable that works",
            "plug the cable in, and see that the switch at its other end has power",
        ),
        Some(
            AgentState::Starting
            | AgentState::Mapping
            | AgentState::Passive
            | AgentState::Fetching
            | AgentState::Routing,
        )
        | None => Check::warning(
            name,
            format!("the subnet is not up: this agent is {}; {role}", board.state),
            "`mapper board-info` says what it waits for",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use mapper_daemon::agent::status::ManagerSeen;
    use mapper_ib::mad::SmState;

    fn board() -> Board {
        let subnet =
            SubnetStanding { role: SmState::Master.into(), switches: 2, ..SubnetStanding::default() };
        let state = AgentState::Configured.into();
        Board { state, configured: true, subnet: Some(subnet), ..Board::silent(0, String::new()) }
    }

    fn found(board: &Board) -> Vec<(&'static str, Outcome)> {
        check_subnet(board).into_iter().map(|check| (check.name, check.status)).collect()
    }

    #[test]
    fn a_second_master_is_a_failure_and_switches_without_a_key_are_to_be_looked_at() {
        assert_eq!(found(&board()), [("network", Outcome::Ok)]);
        let mut two = board();
        let subnet = two.subnet.as_mut().unwrap();
        let (guid, name) = ("0x2001".to_owned(), "h2".to_owned());
        subnet.managers = vec![ManagerSeen {
            guid,
            name,
            priority: 3,
            state: SmState::Master.into(),
            is_agent: false,
            share: 0,
        }];
        subnet.open_switches = 2;
        subnet.blamed = vec!["\"leaf1\" port 3 does not answer".to_owned()];
        let expected = [
            ("network", Outcome::Ok),
            ("masters", Outcome::Failed),
            ("key of management", Outcome::Warning),
            ("nodes", Outcome::Warning),
        ];
        assert_eq!(found(&two), expected);
    }

    #[test]
    fn each_state_of_a_port_says_what_to_do() {
        let port = |state| PortSettings::default().with_state(state);
        let outcome = |state| check_state(&port(state)).status;
        assert_eq!(outcome(PortState::Down), Outcome::Failed);
        assert_eq!(outcome(PortState::Initialize), Outcome::Warning);
        assert_eq!(outcome(PortState::Active), Outcome::Ok);
        let managed = port(PortState::Active).with_lid(5, 0).with_manager(1, 0);
        let statuses =
            |port: &PortSettings| check_manager(port).iter().map(|check| check.status).collect::<Vec<_>>();
        assert_eq!(statuses(&managed), [Outcome::Ok, Outcome::Warning]);
        assert_eq!(statuses(&managed.with_key(7)), [Outcome::Ok, Outcome::Ok]);
        assert!(check_manager(&port(PortState::Active)).is_empty());
    }

    #[test]
    fn a_device_that_is_not_there_fails_with_what_to_do() {
        let check = check_mark(Path::new("/nonexistent/issm0"));
        assert_eq!(check.status, Outcome::Failed);
        assert!(check.fix.unwrap().contains("ib_umad"));
        let checks = check_port(&PortName::Umad(9999), 0);
        assert_eq!((checks[0].name, checks[0].status), ("device", Outcome::Failed));
        assert!(checks[0].what.contains("there is no /dev/infiniband/umad9999"), "{checks:?}");
    }
}
