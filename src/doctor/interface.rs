//! The interface that is cabled to the fabric, and what is at the other end of its cable.

use std::collections::BTreeSet;

use mapper_daemon::agent::options::Config;
use mapper_daemon::agent::status::Board;

use super::Check;
use super::daemons::{self, Daemon, Heard};
use super::neighbour::{self, Neighbour};
use super::neighbour_table;
use mapper_host::data::tap_mtu;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::tap::Tap;
use mapper_machine::link::uses;

/// Examines an interface. If it `is_set_up`, it is a port of a node, or a configuration names it, so that a daemon sets it up when
/// it starts. Any other interface must be set up already.
pub(super) fn check(config: &Config, heard: &Heard, is_set_up: bool) -> Vec<Check> {
    let name = &config.interface;
    let interface = match Interface::look_up(name) {
        Ok(Some(interface)) => interface,
        Ok(None) => {
            let fix = "`ip link` lists the interfaces of this network namespace";
            return vec![Check::failed("interface", "does not exist here", fix)];
        }
        Err(error) => return vec![Check::error("interface", &error)],
    };
    let mut checks = vec![check_kind(&interface)];
    if !interface.ethernet {
        return checks;
    }
    checks.extend(uses::default_route_interfaces().ok().and_then(|uplinks| check_use(name, &uplinks)));
    let daemon = Daemon::on(config, heard);
    checks.extend(check_state(&interface, is_set_up && matches!(daemon, Daemon::None)));
    checks.push(check_mtu(&interface, config.needed_mtu()));
    if config.tap.is_some() {
        checks.push(check_tap_mtu(&interface, config));
    }
    checks.push(daemon.check(config));
    checks.extend(config.tap.as_deref().and_then(|tap| check_tap_name(tap, &daemon, heard)));
    if let Daemon::Agent(board) = &daemon {
        checks.extend(daemons::check_fabric(board, name));
        checks.extend(neighbour_table::check(board, &neighbour_table::limits()));
    } else if interface.carrier && matches!(daemon, Daemon::None) {
        checks.push(check_neighbour(&interface, config));
    }
    checks
}

fn check_kind(interface: &Interface) -> Check {
    let name = "interface";
    if !interface.ethernet {
        return Check::failed(
            name,
            "is not Ethernet; raw frames need that",
            "name the interface of the cable",
        );
    }
    match interface.master {
        None => Check::ok(name, format!("is Ethernet, with address {}", interface.mac)),
        Some(master) => Check::warning(
            name,
            format!("is Ethernet, with address {}, and a port of interface number {master}", interface.mac),
            format!("give the fabric an interface of its own: `ip link set {} nomaster`", interface.name),
        ),
    }
}

/// Says that the machine reaches other networks by the interface, if `uplinks`, the interfaces of its default routes, name it.
fn check_use(name: &str, uplinks: &BTreeSet<String>) -> Option<Check> {
    uplinks.contains(name).then(|| {
        let what = "the machine's default route leads out of it, so it belongs to another network";
        let fix = "take it out of --ports, unless that network is to carry the fabric's frames, too";
        Check::warning("use", what, fix)
    })
}

/// Checks whether the interface can receive and send frames. `before_start` says that a daemon will set it up
/// when it starts, so that it may be down until then.
fn check_state(interface: &Interface, before_start: bool) -> Vec<Check> {
    let name = &interface.name;
    if !interface.up && before_start {
        let what = "the interface is down; the daemon sets it up when it starts";
        let fix = format!("nothing; to have its cable examined before, `ip link set {name} up`");
        return vec![Check::warning("state", what, fix)];
    }
    if !interface.up {
        let fix = format!("set it up with `ip link set {name} up`");
        return vec![Check::failed("state", "the interface is down", fix)];
    }
    let carrier = if interface.carrier {
        Check::ok("carrier", "the cable carries a signal")
    } else {
        let fix = "plug the cable in, and see that the interface at its other end is up";
        Check::failed("carrier", "there is none", fix)
    };
    vec![Check::ok("state", "the interface is up"), carrier]
}

fn check_mtu(interface: &Interface, needed: u32) -> Check {
    let (name, mtu) = (&interface.name, interface.mtu);
    if mtu >= needed {
        return Check::ok("MTU", format!("{mtu} bytes, of which messages need {needed}"));
    }
    Check::failed(
        "MTU",
        format!("{mtu} bytes, but messages need {needed}"),
        format!("raise it with `ip link set {name} mtu {needed}`, or lower piece-bytes"),
    )
}

fn check_tap_mtu(interface: &Interface, config: &Config) -> Check {
    let name = "MTU of the tap";
    match tap_mtu(interface.mtu, config.settings.max_hops as u8) {
        Ok(mtu) => Check::ok(name, format!("{mtu} bytes are left for users' packets")),
        Err(error) => Check::error(name, &error),
    }
}

/// Checks whether an agent can have a tap interface of this name. `None` if a daemon runs here that cannot be
/// asked: an interface of that name may be its own.
fn check_tap_name(tap: &str, daemon: &Daemon<'_>, heard: &Heard) -> Option<Check> {
    let name = "tap name";
    let has_it = |board: &Board| board.tap.as_ref().is_some_and(|made| made.name == tap);
    match daemon {
        Daemon::Agent(board) if has_it(board) => {
            return Some(Check::ok(name, format!("{tap} is that of the agent")));
        }
        Daemon::Agent(_) | Daemon::Xbar(_) => {}
        // The interface may be a port that a node is to have, and has not.
        Daemon::None => {
            if let Some(board) = heard.boards().find(|board| has_it(board)) {
                return Some(Check::ok(name, format!("{tap} is that of the agent of unit {}", board.unit)));
            }
        }
        Daemon::Unheard(..) | Daemon::Other(_) | Daemon::Unknown(_) => return None,
    }
    Some(match Tap::check_name(tap) {
        Ok(()) => Check::ok(name, format!("{tap} can be made or taken over")),
        Err(error) => Check::error(name, &error),
    })
}

fn check_neighbour(interface: &Interface, config: &Config) -> Check {
    let name = "neighbour";
    let one_key_file = "give all hosts of the network one key file, with --key-file";
    match neighbour::find(interface, config.service.marking, config.settings.keys.as_ref()) {
        Ok(Some(found @ Neighbour::OtherVersion(_))) => {
            Check::failed(name, found.to_string(), "run one version of the program on all machines")
        }
        Ok(Some(found @ (Neighbour::Signs | Neighbour::OtherKey(_) | Neighbour::Unsigned(_)))) => {
            Check::failed(name, found.to_string(), one_key_file)
        }
        Ok(Some(found)) => Check::ok(name, found.to_string()),
        Ok(None) => Check::warning(
            name,
            "nobody answers at the other end of the cable",
            "start the crossbar or agent there; if one runs, compare --ethertype, --destination and --key-file",
        ),
        Err(error) => Check::error(name, &error),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Outcome;
    use super::*;
    use mapper_proto::Mac;

    /// A port of the fabric that is as it should be.
    pub(in crate::doctor) fn port(name: &str, mtu: u32) -> Interface {
        Interface {
            name: name.to_owned(),
            index: 3,
            mac: Mac::from_position(1),
            mtu,
            ethernet: true,
            up: true,
            carrier: true,
            master: None,
            kind: None,
        }
    }

    #[test]
    fn each_defect_of_an_interface_fails_with_the_command_that_mends_it() {
        assert!(check_state(&port("eth1", 1500), true).iter().all(|check| check.status == Outcome::Ok));
        let down = Interface { up: false, carrier: false, ..port("eth1", 1500) };
        let before = &check_state(&down, true)[0];
        assert_eq!((before.name, before.status), ("state", Outcome::Warning));
        let down = &check_state(&down, false)[0];
        assert_eq!((down.name, down.status), ("state", Outcome::Failed));
        assert!(down.fix.as_ref().unwrap().contains("ip link set eth1 up"));
        let unplugged = &check_state(&Interface { carrier: false, ..port("eth1", 1500) }, true)[1];
        assert_eq!((unplugged.name, unplugged.status), ("carrier", Outcome::Failed));
        assert_eq!(check_mtu(&port("eth1", 1500), 1500).status, Outcome::Ok);
        let narrow = check_mtu(&port("eth1", 1500), 1501);
        assert!(narrow.fix.unwrap().contains("ip link set eth1 mtu 1501"));
        assert_eq!(check_kind(&port("eth1", 1500)).status, Outcome::Ok);
        assert_eq!(check_kind(&Interface { master: Some(7), ..port("eth1", 1500) }).status, Outcome::Warning);
        assert_eq!(check_kind(&Interface { ethernet: false, ..port("eth1", 1500) }).status, Outcome::Failed);
    }
}
