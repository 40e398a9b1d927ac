//! Settings of the kernel that forwarding needs, and those of the machine's other networks that it may hurt.

use std::collections::BTreeMap;
use std::path::Path;

use mapper_fabric::wording::with_causes;
use mapper_fib::LEAST_MTU_OF_IPV6;
use mapper_machine::link::interface::Interface;
use mapper_machine::sysctl::{ForwardingNeeds, Lacking};
use rustix::fs::Access;

use super::Examined;
use crate::doctor::{Check, Repair};

pub(super) fn check(examined: &Examined<'_>, force_forwarding: bool) -> Vec<Check> {
    if !Path::new("/proc/sys/net/ipv6").exists() {
        let fix = "start the machine without ipv6.disable=1 on the kernel's command line (/proc/cmdline)";
        return vec![Check::failed("IPv6", "this kernel has none, and probes and segments need it", fix)];
    }
    let ports = ports_in_need(examined);
    if ports.is_empty() && !examined.ports.is_empty() {
        return check_advertisements(examined);
    }
    let all = Interface::all().unwrap_or_default();
    let tap = all.iter().find(|it| examined.tap == Some(it.name.as_str())).map(|it| it.index);
    let needs = ForwardingNeeds { ports, tap, forwards: examined.forwards, force_forwarding };
    let mut checks = vec![match needs.lacking() {
        Ok(lacking) => judge(&lacking, examined.is_at_work, |setting| {
            rustix::fs::access(Path::new("/proc/sys").join(setting), Access::WRITE_OK).is_ok()
        }),
        Err(error) => Check::warning("settings", with_causes(&error), "run `mapper doctor` as root"),
    }];
    checks.extend(check_advertisements(examined));
    checks
}

/// The ports whose settings forwarding needs, by the numbers of their interfaces: neither those of a daemon that leaves the kernel
/// alone, nor those on which Linux switches IPv6 off for their MTU, so that daemons do not use them.
fn ports_in_need(examined: &Examined<'_>) -> BTreeMap<u32, String> {
    let in_need = examined.ports.iter();
    let in_need =
        in_need.filter(|port| !examined.left_alone.contains(&port.name) && port.mtu >= LEAST_MTU_OF_IPV6);
    in_need.map(|port| (port.index, port.name.clone())).collect()
}

/// What of the settings is not as it is needed. A daemon sets them when it starts; once it runs they are to stay.
fn judge(lacking: &[Lacking], is_at_work: bool, may_write: impl Fn(&str) -> bool) -> Check {
    let name = "settings";
    let shown = |it: &Lacking| format!("{}={}", it.setting, it.needed);
    let commands = |of: &[&Lacking]| -> String {
        of.iter().map(|it| format!("`sysctl -w {}`", shown(it))).collect::<Vec<_>>().join(", ")
    };
    let fixed: Vec<&Lacking> = lacking.iter().filter(|it| !may_write(&it.setting)).collect();
    if !fixed.is_empty() {
        let what = "the kernel's settings cannot be written here, as in a container or by another user than root, and \
                    are not as forwarding needs them";
        return Check::failed(name, what, format!("as root on the machine itself: {}", commands(&fixed)));
    }
    if lacking.is_empty() {
        return Check::ok(name, "the kernel's settings are as forwarding needs them");
    }
    let all: Vec<_> = lacking.iter().map(shown).collect();
    if !is_at_work {
        return Check::ok(name, format!("the daemon sets, and at its end puts back: {}", all.join(", ")));
    }
    let what = format!("somebody set what forwarding needs otherwise: {}", {
        let now: Vec<_> = lacking.iter().map(|it| format!("{} is {}", it.setting, it.is)).collect();
        now.join(", ")
    });
    let all: Vec<&Lacking> = lacking.iter().collect();
    let fix = format!(
        "find out who does that (`grep -r net /etc/sysctl.d`); a daemon whose data path is not `tap` sets them again \
         within seconds; by hand: {}",
        commands(&all)
    );
    Check::warning(name, what, fix)
}

/// Names interfaces of other networks that take no routers' advertisements, as the machine forwards IPv6.
fn check_advertisements(examined: &Examined<'_>) -> Vec<Check> {
    let value = |name: &str, key: &str| -> Option<i32> {
        std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}/{key}")).ok()?.trim().parse().ok()
    };
    if value("all", "forwarding") != Some(1) {
        return Vec::new();
    }
    let all = Interface::all().unwrap_or_default();
    let is_port = |name: &str| examined.ports.iter().any(|port| port.name == name);
    let others = all.iter().filter(|it| it.ethernet && it.up && it.kind.is_none() && !is_port(&it.name));
    let deaf = others
        .filter(|it| value(&it.name, "forwarding") == Some(1) && value(&it.name, "accept_ra") == Some(1));
    let told = deaf.map(|it| {
        let setting = format!("net/ipv6/conf/{}/accept_ra", it.name);
        let what =
            "forwards IPv6, so it takes no routes from routers, if its network has some that advertise them";
        let check = Check::warning("router advertisements", what, format!("`sysctl -w {setting}=2`"));
        check.with(Repair::of_setting(&setting, 1, 2)).of(&it.name)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mapper_machine::options::DataPathChoice;

    use super::super::super::Outcome;
    use super::*;
    use crate::doctor::interface::tests::port;

    #[test]
    fn ports_that_no_daemon_has_the_kernel_use_need_no_settings() {
        let examined = Examined {
            ports: vec![
                port("p1", 1500),
                Interface { index: 4, ..port("q1", 1500) },
                Interface { index: 5, ..port("p2", 1200) },
            ],
            left_alone: BTreeSet::from(["q1".to_owned()]),
            choice: DataPathChoice::Auto,
            avoid: &[],
            forwards: true,
            is_at_work: true,
            holds_objects: true,
            cables: Vec::new(),
            tap: None,
        };
        assert!(ports_in_need(&examined).into_values().eq(["p1".to_owned()]));
    }

    #[test]
    fn what_a_daemon_sets_itself_is_no_defect_and_what_is_set_back_or_cannot_be_set_is() {
        let lacking = [Lacking { setting: "net/ipv4/conf/eth1/forwarding".to_owned(), is: 0, needed: 1 }];
        assert_eq!(judge(&[], true, |_| true).status, Outcome::Ok);
        assert_eq!(judge(&lacking, false, |_| true).status, Outcome::Ok);
        let back = judge(&lacking, true, |_| true);
        assert_eq!(back.status, Outcome::Warning);
        assert!(back.fix.unwrap().contains("sysctl -w net/ipv4/conf/eth1/forwarding=1"));
        let fixed = judge(&lacking, false, |_| false);
        assert_eq!(fixed.status, Outcome::Failed);
        assert!(fixed.fix.unwrap().contains("`sysctl -w net/ipv4/conf/eth1/forwarding=1`"));
    }
}
