//! Network managers that own a port: they take away addresses and routes that they did not give.

use std::path::Path;

use mapper_machine::link::interface::Interface;

use crate::doctor::Check;

/// Where managers keep what they know of each interface, by its number.
const NETWORK_MANAGER: &str = "/run/NetworkManager/devices";
const NETWORKD: &str = "/run/systemd/netif/links";

/// Names the managers that own a port. Their files number the interfaces of the machine itself, so in another network
/// namespace they say nothing.
pub(super) fn check(port: &Interface) -> Vec<Check> {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    match namespace("1").zip(namespace("thread-self")) {
        Some((machine, own)) if machine != own => Vec::new(),
        _ => check_in(port, Path::new(NETWORK_MANAGER), Path::new(NETWORKD)),
    }
}

fn check_in(port: &Interface, network_manager: &Path, networkd: &Path) -> Vec<Check> {
    let Interface { name, index, .. } = port;
    let says = |dir: &Path, is_owned: fn(&str) -> bool| {
        std::fs::read_to_string(dir.join(index.to_string())).is_ok_and(|text| text.lines().any(is_owned))
    };
    let mut checks = Vec::new();
    if says(network_manager, |line| line == "managed=true" || line == "managed=full") {
        let what = "NetworkManager owns it, and may take its addresses and routes away";
        let fix = format!(
            "`nmcli device set {name} managed no`, and for ever: `printf '[keyfile]\\nunmanaged-devices=interface-name:{name}\\n' \
             > /etc/NetworkManager/conf.d/fabric-{name}.conf`"
        );
        checks.push(Check::warning("network manager", what, fix));
    }
    let by_networkd = |line: &str| {
        line.strip_prefix("ADMIN_STATE=").is_some_and(|state| state != "unmanaged" && state != "linger")
    };
    if says(networkd, by_networkd) {
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
            let checks = check_in(&port("eth1", 1500), dirs[0].path(), dirs[1].path());
            checks.into_iter().map(|check| check.what).collect()
        };
        let both = found("[device]\nmanaged=true\n", "# private\nADMIN_STATE=configured\n");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].starts_with("NetworkManager") && both[1].starts_with("systemd-networkd"));
        assert!(found("[device]\nmanaged=false\n", "ADMIN_STATE=unmanaged\n").is_empty());
        assert!(found("", "").is_empty());
        let nowhere = Path::new("/nonexistent");
        assert_eq!(check_in(&port("eth1", 1500), nowhere, nowhere), []);
    }
}
