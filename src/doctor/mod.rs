//! What keeps an agent from working on this machine, found out before or while it runs.
//!
//! Every check says what it found, and if something is wrong, what to do about it. No check changes anything;
//! [`mend`] does, if it is called, what cannot cut the machine off from anything. Only the check of the neighbour sends frames, and only on interfaces where no agent runs.

mod daemons;
mod fast_path;
mod infiniband;
mod installation;
mod interface;
mod machine;
mod neighbour;
mod neighbour_table;
mod patterns;
mod repair;
mod subject;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use self::daemons::Heard;
use mapper_daemon::agent::options::{Config, Options};
use mapper_machine::kernel::is_in_use;
use mapper_machine::link::interface::Interface;
use mapper_machine::mad_port::PortName;
use mapper_machine::options::default_run_dir;
pub use repair::{Mended, Repair, mend};
pub use subject::Subject;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// What was checked is as it should be.
    Ok,
    /// Something is unusual, but the user may want it so.
    Warning,
    /// An agent will not work.
    Failed,
}

/// One check, as `mapper.doctor/1` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked, in a word or two.
    pub name: &'static str,
    /// The interface that was checked; `None` if the check is of the whole machine.
    pub interface: Option<String>,
    /// How it came out.
    pub status: Outcome,
    /// What was found.
    pub what: String,
    /// What to do, unless all is well or what was found says it.
    pub fix: Option<String>,
    /// What does that without asking, if it is known and safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

impl Check {
    fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, interface: None, status: Outcome::Ok, what: what.into(), fix: None, repair: None }
    }

    fn warning(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Outcome::Warning, fix: Some(fix.into()), ..Self::ok(name, what) }
    }

    fn failed(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Outcome::Failed, fix: Some(fix.into()), ..Self::ok(name, what) }
    }

    /// A check that failed with an error, whose text says what was wrong and what to do.
    fn error(name: &'static str, error: &dyn std::error::Error) -> Self {
        let mut what = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Some errors repeat their cause in their own text.
            if !what.ends_with(&cause_text) {
                what = format!("{what}: {cause_text}");
            }
            source = cause.source();
        }
        Self { status: Outcome::Failed, ..Self::ok(name, what) }
    }

    fn with(self, repair: Repair) -> Self {
        Self { repair: Some(repair), ..self }
    }

    fn of(self, interface: &str) -> Self {
        Self { interface: Some(interface.to_owned()), ..self }
    }
}

/// Examines this machine. It takes about a second for each interface.
pub fn examine(subject: &Subject) -> Vec<Check> {
    let run_dir = |options: &Options| options.process.run_dir.clone().unwrap_or_else(default_run_dir);
    let mut heard = Heard::in_dir(&run_dir(&subject.options));
    let configs = match subject.configs(&heard) {
        Ok(configs) => configs,
        Err(error) => return vec![Check::error("configuration", &error)],
    };
    let what = match &subject.file {
        Some(file) => format!("{} is valid", file.display()),
        None => "the options go together".to_owned(),
    };
    let mut checks = vec![Check::ok("configuration", what)];
    let directory = subject.file.as_deref().filter(|path| path.is_dir());
    let node = subject.node();
    checks.extend(
        node.as_ref().map(|node| patterns::check(node, !subject.ports.is_empty())).into_iter().flatten(),
    );
    if configs.is_empty() {
        checks.extend(examine_without_interface(subject, directory, node));
        return checks;
    }
    let (of_infiniband, configs): (Vec<Config>, Vec<Config>) =
        configs.into_iter().partition(|config| config.interface.parse::<PortName>().is_ok());
    checks.extend(configs.first().map(machine::check).into_iter().flatten());
    let is_asked_for = !subject.interfaces.is_empty() || !subject.ports.is_empty();
    // A crossbar leaves its interfaces as they are.
    let crossbars = directory.map(|path| installation::interfaces(path).crossbars).unwrap_or_default();
    for config in &of_infiniband {
        heard.turn_to(&config.service.run_dir);
        let name = config.interface.parse();
        let found = name.map(|name| infiniband::check(config, &name, &heard)).unwrap_or_default();
        checks.extend(found.into_iter().map(|check| check.of(&config.interface)));
    }
    let mut told = BTreeSet::new();
    for config in &configs {
        let run_dir = &config.service.run_dir;
        heard.turn_to(run_dir);
        // A node sets its ports up, also where they are named here.
        let is_set_up = (!is_asked_for || config.is_node()) && !crossbars.contains(&config.interface);
        let found = interface::check(config, &heard, is_set_up);
        checks.extend(found.into_iter().map(|check| check.of(&config.interface)));
        let board = heard.board_on(&config.interface);
        if let Some(board) = board.filter(|board| told.insert((run_dir.clone(), board.unit))) {
            checks.extend(daemons::check_warnings(board));
        }
    }
    checks.extend(examine_fast_path(&configs, &crossbars, &heard));
    checks
}

/// Examines a machine of which no interface is known yet: what daemons need of it all the same.
fn examine_without_interface(
    subject: &Subject,
    directory: Option<&Path>,
    node: Option<Config>,
) -> Vec<Check> {
    let of_crossbars = directory.map(installation::patterns).unwrap_or_default();
    if node.is_none() && !of_crossbars.is_empty() {
        let named = of_crossbars.into_iter().collect::<Vec<_>>().join(", ");
        return vec![Check::warning(
            "interfaces",
            format!("crossbars take what matches {named}, and no crossbar that runs has an interface"),
            "start the crossbar, or name interfaces that match with --interface",
        )];
    }
    let mut checks = Vec::new();
    if node.is_none() {
        let file = subject.file.as_deref().unwrap_or(Path::new("/etc/mapper"));
        let file = if directory.is_some() || subject.file.is_none() {
            file.join("node.toml")
        } else {
            file.to_owned()
        };
        checks.push(Check::warning(
            "interfaces",
            "no interface is named: nothing runs before it is said what is cabled to the fabric, and no interface was \
             looked at",
            format!(
                "name it to have it examined, as in `mapper doctor --ports 'eth*'` or `--interface eth1`; for daemons \
                 write `ports = [\"eth*\"]` into {}, or enable mapper@IF.service",
                file.display()
            ),
        ));
    }
    match node.map_or_else(|| subject.node_of_any(), Ok) {
        Ok(node) => {
            checks.extend(machine::check(&node));
            checks.extend(fast_path::check_without_ports(&fast_path::Examined {
                ports: Vec::new(),
                left_alone: BTreeSet::new(),
                choice: node.data_path,
                avoid: &node.kernel_avoid,
                forwards: true,
                is_at_work: false,
                holds_objects: any_uses_kernel(),
                cables: Vec::new(),
                tap: node.tap.as_deref(),
            }));
        }
        Err(error) => checks.push(Check::error("configuration", &error)),
    }
    checks
}

/// Whether a daemon of this network namespace has the kernel carry packets, and so needs what is in the kernel's tables. If the
/// kernel does not tell, one may.
fn any_uses_kernel() -> bool {
    is_in_use().unwrap_or(true)
}

/// Examines what lets kernels forward users' packets. `heard` are the daemons of the last interface's run directory;
/// there is one for all but in odd cases.
fn examine_fast_path(configs: &[Config], crossbars: &BTreeSet<String>, heard: &Heard) -> Vec<Check> {
    let is_crossbar =
        |config: &Config| crossbars.contains(&config.interface) || heard.is_of_crossbar(&config.interface);
    let is_node = |config: &Config| !config.ports.is_empty() || !config.patterns.is_empty();
    let of_users = |config: &&Config| {
        config.tap.is_some() || is_crossbar(config) || heard.carries_users(&config.interface)
    };
    let configs: Vec<&Config> = configs.iter().filter(of_users).collect();
    let Some(first) = configs.first() else { return Vec::new() };
    let named = |name: &str| configs.iter().any(|config| config.interface == name);
    let there = configs.iter().filter_map(|config| Interface::look_up(&config.interface).ok().flatten());
    let ports: Vec<Interface> = there.filter(|interface| interface.ethernet).collect();
    let holds_objects = any_uses_kernel();
    // Where no daemon has the kernel, its ports may well go by it once a daemon is started for that, as this is asked about.
    let names = ports.iter().map(|port| port.name.clone()).filter(|_| holds_objects);
    let left_alone = names.filter(|name| heard.leaves_kernel_alone(name)).collect();
    fast_path::check(&fast_path::Examined {
        ports,
        left_alone,
        choice: first.data_path,
        avoid: &first.kernel_avoid,
        forwards: configs.iter().any(|config| is_node(config) || is_crossbar(config)),
        // A daemon of another run directory does not count, as it is not known what it is to set.
        is_at_work: heard.interfaces().any(named),
        holds_objects,
        cables: heard.cable_troubles().filter(|(interface, ..)| named(interface)).collect(),
        tap: configs.iter().find_map(|config| config.tap.as_deref().or_else(|| heard.tap(&config.interface))),
    })
}

#[cfg(test)]
mod tests {
    use mapper_machine::options::ProcessKeys;

    use super::*;

    #[test]
    fn a_configuration_that_cannot_be_used_is_the_only_finding() {
        let subject = Subject { file: Some("/nonexistent/mapper.toml".into()), ..Subject::default() };
        let checks = examine(&subject);
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].name, checks[0].status), ("configuration", Outcome::Failed));
        assert!(checks[0].what.contains("/nonexistent/mapper.toml"));
    }

    #[test]
    fn before_an_interface_is_named_the_machine_is_examined_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let process = ProcessKeys { run_dir: Some(dir.path().to_owned()), ..ProcessKeys::default() };
        let subject =
            Subject { options: Options { process, ..Options::default() }, file: None, ..Subject::default() };
        let checks = examine(&subject);
        let named = checks.iter().find(|check| check.name == "interfaces").unwrap();
        assert_eq!(named.status, Outcome::Warning, "{checks:?}");
        let fix = named.fix.as_ref().unwrap();
        assert!(fix.contains("--ports 'eth*'") && fix.contains("/etc/mapper/node.toml"), "{fix}");
        for name in ["raw sockets", "network administration", "tap device", "run directory", "kernel"] {
            assert!(checks.iter().any(|check| check.name == name), "{name}: {checks:?}");
        }
    }

    #[test]
    fn a_pattern_that_matches_no_interface_is_named() {
        let ports = vec!["nosuch*".to_owned()];
        let checks = examine(&Subject { ports, ..Subject::default() });
        let check = checks.iter().find(|check| check.name == "interfaces").unwrap();
        assert_eq!(check.status, Outcome::Failed, "{checks:?}");
        assert!(check.what.contains("nosuch*"), "{check:?}");
        assert!(checks.iter().any(|check| check.name == "raw sockets"), "{checks:?}");
    }

    #[test]
    fn a_directory_is_examined_for_all_that_it_configures() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let subject = Subject { file: Some(dir.path().to_owned()), ..Subject::default() };
        let interfaces = || -> Vec<_> {
            let configs = subject.configs(&Heard::default()).unwrap();
            configs.into_iter().map(|config| (config.interface, config.tap.is_some())).collect()
        };
        write("mapper.toml", "level = 2\ntap = \"fabric0\"\n");
        assert_eq!(interfaces(), []);
        let checks = examine(&subject);
        assert!(checks.iter().all(|check| check.status != Outcome::Failed), "{checks:?}");
        write("node.toml", "ports = [\"p1\", \"p2\"]\n");
        write("eth7.toml", "");
        write("rack1.xbar", "MAPPER_PORTS=--port x1 --port 7=x2\n");
        let found = ["p1", "p2", "x1", "x2", "eth7"].map(|name| (name.to_owned(), !name.starts_with('x')));
        assert_eq!(interfaces(), found);
    }

    #[test]
    fn ports_by_patterns_are_told_and_no_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("xbar-r.toml"), "ports = [\"nosuch*\"]\n").unwrap();
        let subject = Subject { file: Some(dir.path().to_owned()), ..Subject::default() };
        let checks = examine(&subject);
        let check = checks.iter().find(|check| check.name == "interfaces").unwrap();
        assert!(check.what.starts_with("crossbars take what matches nosuch*"), "{checks:?}");
    }

    #[test]
    fn what_is_wrong_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let error = mapper_daemon::agent::keys::read(&file).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        let what = Check::error("configuration", &error).what;
        assert_eq!(what.matches(&cause).count(), 1, "{what}");
    }

    #[test]
    fn an_interface_that_does_not_exist_fails_with_what_to_do() {
        let subject = Subject { interfaces: vec!["nosuch0".to_owned()], ..Subject::default() };
        let checks = examine(&subject);
        let check = checks.iter().find(|check| check.name == "interface").unwrap();
        assert_eq!((check.status, check.interface.as_deref()), (Outcome::Failed, Some("nosuch0")));
        assert!(check.fix.as_ref().unwrap().contains("ip link"), "{check:?}");
    }
}
