//! Network managers that own a port: they take away addresses and routes that they did not give.

use std::path::Path;

use mapper_machine::link::interface::Interface;

use crate::doctor::Check;

/// Where managers keep what they know of each interface, by its number.
const NETWORK_MANAGER: &str = "/run/NetworkManager/devices";
const NETWORKD: &str = "/run/systemd/netif/links";

/// Names the managers that own a port, or the interface over the fabric. Their files number the interfaces of the machine itself, so
/// in another network namespace they say nothing.
pub(super) fn check(interface: &Interface) -> Vec<Check> {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    match namespace("1").zip(namespace("thread-self")) {
        Some((machine, own)) if machine != own => Vec::new(),
        _ => check_in(interface, Path::new(NETWORK_MANAGER), Path::new(NETWORKD), runs),
    }
}

/// Whether a process of this name runs, as far as the kernel tells it in the first 15 letters. A manager that has ended leaves its
/// files. Where the machine hides others' processes, one may run that is not seen, and its files count.
fn runs(name: &str) -> bool {
    let Ok(all) = std::fs::read_dir("/proc") else { return true };
    let mut names = all.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    let hides_others = !Path::new("/proc/1/comm").exists();
    hides_others || names.any(|it| it.trim_end() == name)
}

fn check_in(
    interface: &Interface,
    network_manager: &Path,
    networkd: &Path,
    runs: impl Fn(&str) -> bool,
) -> Vec<Check> {
    let Interface { name, index, .. } = interface;
    let says = |dir: &Path, is_owned: fn(&str) -> bool| {
        std::fs::read_to_string(dir.join(index.to_string())).is_ok_and(|text| text.lines().any(is_owned))
    };
    let mut checks = Vec::new();
    let by_network_manager = |line: &str| line == "managed=true" || line == "managed=full";
    if says(network_manager, by_network_manager) && runs("NetworkManager") {
        let what = "NetworkManager owns it, and may take its addresses and routes away";
        let fix = format!(
            "`nmcli device set {name} managed no`, and for ever: `printf '[keyfile]\\nunmanaged-devices+=interface-name:{name}\\n' \
             > /etc/NetworkManager/conf.d/fabric-{name}.conf`"
        );
        checks.push(Check::warning("network manager", what, fix));
    }
    let by_networkd = |line: &str| {
        line.strip_prefix("ADMIN_STATE=").is_some_and(|state| state != "unmanaged" && state != "linger")
    };
    if says(networkd, by_networkd) && runs("systemd-network") {
        let what = "systemd-networkd owns it, and may take its addresses, routes and rules away";
        let fix = format!(
            "`printf '[Match]\\nName={name}\\n[Link]\\nUnmanaged=yes\\n' > /etc/systemd/network/00-fabric-{name}.network`, \
             then `networkctl reload`"
        );
        checks.push(Check::warning("network manager", what, fix));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::interface::tests::port;

    #[test]
    fn a_manager_that_owns_a_port_is_named_and_one_that_does_not_is_not() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let found = |manager: &str, networkd: &str| -> Vec<String> {
            for (dir, text) in dirs.iter().zip([manager, networkd]) {
                std::fs::write(dir.path().join("3"), text).unwrap();
            }
            let checks = check_in(&port("eth1", 1500), dirs[0].path(), dirs[1].path(), |_| true);
            checks.into_iter().map(|check| check.what).collect()
        };
        let both = found("[device]\nmanaged=true\n", "# private\nADMIN_STATE=configured\n");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].starts_with("NetworkManager") && both[1].starts_with("systemd-networkd"));
        assert!(found("[device]\nmanaged=false\n", "ADMIN_STATE=unmanaged\n").is_empty());
        assert!(found("", "").is_empty());
        let nowhere = Path::new("/nonexistent");
        assert_eq!(check_in(&port("eth1", 1500), nowhere, nowhere, |_| true), []);
        let _both_said = found("[device]\nmanaged=true\n", "ADMIN_STATE=configured\n");
        let of_ended = check_in(&port("eth1", 1500), dirs[0].path(), dirs[1].path(), |_| false);
        assert_eq!(of_ended, [], "a manager that has ended leaves its files");
    }

    #[test]
    fn what_a_manager_is_told_of_one_port_leaves_what_it_was_told_of_another() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("3"), "managed=true\n").unwrap();
        let checks = check_in(&port("eth1", 1500), dir.path(), Path::new("/nonexistent"), |_| true);
        let fix = checks[0].fix.as_ref().unwrap();
        assert!(fix.contains("unmanaged-devices+=interface-name:eth1"), "{fix}");
        assert!(fix.contains("fabric-eth1.conf"), "{fix}");
    }

    #[test]
    fn a_process_that_runs_is_found_by_its_name() {
        let own = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert!(runs(own.trim_end()) && !runs("no such process"));
    }
}
