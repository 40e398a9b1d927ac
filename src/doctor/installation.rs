//! Which interfaces an installation works on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where the init script is told which interfaces have agents.
const INIT_DEFAULTS: &str = "/etc/default/mapper";
/// Where systemd keeps which units are enabled.
const ENABLED_UNITS: &str = "/etc/systemd/system/multi-user.target.wants";

/// The interfaces that an installation configures, by the kind of daemon that works on them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Interfaces {
    /// The interfaces of agents.
    pub(super) agents: BTreeSet<String>,
    /// The interfaces that are ports of crossbars.
    pub(super) crossbars: BTreeSet<String>,
}

/// The interfaces that the files of a configuration directory are for. For the system's own directory, also
/// those whose daemons are enabled. A file that cannot be read names none.
pub(super) fn interfaces(directory: &Path) -> Interfaces {
    let mut found = Interfaces::default();
    for name in names(directory) {
        let text = || fs::read_to_string(directory.join(&name)).unwrap_or_default();
        match name.rsplit_once('.') {
            Some(("mapper" | "node", "toml")) => {}
            Some((stem, "toml")) if stem == "xbar" || stem.starts_with("xbar-") => {
                found.crossbars.extend(listed_ports(&text()));
            }
            Some((interface, "toml")) => drop(found.agents.insert(interface.to_owned())),
            Some((_, "xbar")) => found.crossbars.extend(ports_of_line(&text())),
            _ => {}
        }
    }
    if directory == Path::new("/etc/mapper") {
        found.agents.extend(enabled(&names(Path::new(ENABLED_UNITS))));
        found.agents.extend(of_init_script(&fs::read_to_string(INIT_DEFAULTS).unwrap_or_default()));
    }
    found
}

/// The names of the files in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The interfaces whose agents are enabled: `mapper@eth1.service`.
fn enabled(units: &[String]) -> impl Iterator<Item = String> {
    let instance = |unit: &String| Some(unit.strip_prefix("mapper@")?.strip_suffix(".service")?.to_owned());
    units.iter().filter_map(instance)
}

/// The interfaces that the init script has agents for: `INTERFACES="eth1 eth2"`.
fn of_init_script(text: &str) -> impl Iterator<Item = String> {
    let list = text.lines().filter_map(|line| line.trim().strip_prefix("INTERFACES=")).next_back();
    let list = list.unwrap_or_default().trim_matches(['"', '\'']).to_owned();
    list.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// The patterns by which crossbars of a configuration directory take interfaces.
pub(super) fn patterns(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in names(directory) {
        let text = || fs::read_to_string(directory.join(&name)).unwrap_or_default();
        match name.rsplit_once('.') {
            Some((stem, "toml")) if stem == "xbar" || stem.starts_with("xbar-") => {
                found.extend(words_of_list(&text()));
            }
            Some((_, "xbar")) => found.extend(words_of_line(&text())),
            _ => {}
        }
    }
    found.retain(|word| word.contains(['*', '?']));
    found
}

/// The ports of a crossbar's file of options, without their numbers and without patterns.
fn listed_ports(text: &str) -> Vec<String> {
    words_of_list(text).iter().filter_map(|word| interface_of(word)).collect()
}

fn words_of_list(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let ports = table.get("ports").and_then(|ports| ports.as_array());
    ports.into_iter().flatten().filter_map(|port| Some(port.as_str()?.to_owned())).collect()
}

/// The ports in a line of options, as MAPPER_PORTS has them.
fn ports_of_line(text: &str) -> Vec<String> {
    words_of_line(text).iter().filter_map(|word| interface_of(word)).collect()
}

fn words_of_line(text: &str) -> Vec<String> {
    let line = text.lines().filter_map(|line| line.trim().strip_prefix("MAPPER_PORTS=")).next_back();
    let words = line.unwrap_or_default().trim_matches(['"', '\'']).replace("--port=", "--port ");
    let words: Vec<_> = words.replace("--ports=", "--ports ").split_whitespace().map(str::to_owned).collect();
    let values = words.windows(2).filter(|pair| matches!(pair[0].as_str(), "--port" | "--ports"));
    values.flat_map(|pair| pair[1].split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn interface_of(port: &str) -> Option<String> {
    let name = port.rsplit('=').next()?;
    // A word of digits alone is a number of ports, and no interface.
    let is_one = !name.is_empty() && !name.contains(['*', '?']) && name.bytes().any(|b| !b.is_ascii_digit());
    is_one.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_of_a_crossbar_are_found_in_both_spellings() {
        assert_eq!(
            ports_of_line("# so\nMAPPER_PORTS=--port eth1 --port 7=eth2 --ports 8\n"),
            ["eth1", "eth2"]
        );
        assert_eq!(ports_of_line("MAPPER_PORTS=\"--ports eth1,7=eth2,fab*\"\n"), ["eth1", "eth2"]);
        assert_eq!(listed_ports("ports = [\"eth1\", \"7=eth2\", \"fab*\"]\n"), ["eth1", "eth2"]);
        assert!(listed_ports("ports = 7\n").is_empty() && listed_ports("=").is_empty());
    }

    #[test]
    fn what_is_enabled_is_found_by_its_unit_and_in_the_defaults_of_the_init_script() {
        let units = ["mapper@eth1.service", "mapper-node.service", "ssh.service"].map(str::to_owned);
        assert_eq!(enabled(&units).collect::<Vec<_>>(), ["eth1"]);
        let text = "# INTERFACES=\"no\"\nINTERFACES=\"eth1 eth2\"\n";
        assert_eq!(of_init_script(text).collect::<Vec<_>>(), ["eth1", "eth2"]);
        assert_eq!(of_init_script("INTERFACES=\"\"\n").count(), 0);
    }
}
