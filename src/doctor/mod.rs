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
mod repair;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::daemons::Heard;
use mapper_daemon::agent::driver;
use mapper_daemon::agent::options::{Config, ConfigError, Options, OptionsError, Source};
use mapper_machine::link::interface::Interface;
use mapper_machine::mad_port::PortName;
use mapper_machine::options::default_run_dir;
pub use repair::{Mended, Repair, mend};

/// What is to be examined.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The interfaces that are cabled to the fabric. If there are none, the configuration names them.
    pub interfaces: Vec<String>,
    /// The interfaces of a node. If there are none, the configuration names them.
    pub ports: Vec<String>,
    /// Options as an agent would be given them.
    pub options: Options,
    /// The configuration file, or the directory of such files.
    pub file: Option<PathBuf>,
}

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
    /// What to do, unless all is well.
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
    let patterns = directory.map(installation::patterns);
    if configs.is_empty() {
        if let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) {
            let named = patterns.into_iter().collect::<Vec<_>>().join(", ");
            checks.push(Check::warning(
                "interfaces",
                format!("crossbars take what matches {named}, and no crossbar that runs has an interface"),
                "start the crossbar, or name interfaces that match with --interface",
            ));
            return checks;
        }
        checks.push(Check::warning(
            "interfaces",
            "no interface is named: nothing runs before it is said what is cabled to the fabric",
            "name it with --interface or --ports; or enable mapper@IF.service, or write `ports` into node.toml",
        ));
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
    for config in &configs {
        heard.turn_to(&config.service.run_dir);
        let is_set_up = !is_asked_for && !crossbars.contains(&config.interface);
        let found = interface::check(config, &heard, is_set_up);
        checks.extend(found.into_iter().map(|check| check.of(&config.interface)));
    }
    checks.extend(examine_fast_path(&configs, &crossbars, &heard));
    checks
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
    fast_path::check(&fast_path::Examined {
        ports: there.filter(|interface| interface.ethernet).collect(),
        choice: first.data_path,
        avoid: &first.kernel_avoid,
        forwards: configs.iter().any(|config| is_node(config) || is_crossbar(config)),
        is_at_work: heard.interfaces().any(named),
        cables: heard.cable_troubles().filter(|(interface, _)| named(interface)).collect(),
    })
}

impl Subject {
    /// The configuration that an agent of each interface would have. The interfaces of a node are its ports,
    /// and each has the configuration of the node.
    fn configs(&self, heard: &Heard) -> Result<Vec<Config>, ConfigError> {
        let file = self.file.as_ref();
        let read = |interface: Option<String>| {
            Source::agent(Options { interface, ..self.options.clone() }, file.cloned()).read_for_any_user()
        };
        let ports = (!self.ports.is_empty()).then(|| self.ports.clone());
        let read_node = || {
            Source::node(Options { ports: ports.clone(), ..self.options.clone() }, file.cloned())
                .read_for_any_user()
        };
        let of_ports = |node: &Config| -> Vec<Config> {
            let of_port = |port: &String| Config { interface: port.clone(), ..node.clone() };
            ports_of(node).iter().map(of_port).collect()
        };
        let read_named = |interface: &String| match read(Some(interface.clone())) {
            // The file is that of a node, so the interface is one of its ports, or will be one.
            Err(ConfigError::Options(OptionsError::PortsOfAgent)) => {
                read_node().map(|node| Config { interface: interface.clone(), ..node })
            }
            result => result,
        };
        if !self.interfaces.is_empty() || !self.ports.is_empty() {
            let node = ports.as_ref().map(|_| read_node()).transpose()?;
            let named = self.interfaces.iter().map(read_named).collect::<Result<Vec<_>, _>>()?;
            return Ok(node.iter().flat_map(of_ports).chain(named).collect());
        }
        if let Some(directory) = self.file.as_deref().filter(|path| path.is_dir()) {
            return self.installed(Some(directory), heard);
        }
        // Without any configuration, the interfaces of the daemons that run are examined.
        if self.file.is_none() && self.options.interface.is_none() && heard.interfaces().next().is_some() {
            return self.installed(None, heard);
        }
        match (read(None), read_node()) {
            (Ok(agent), _) => Ok(vec![agent]),
            (Err(_), Ok(node)) => Ok(of_ports(&node)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// The configurations of all daemons that a directory configures, or that run.
    fn installed(&self, directory: Option<&Path>, heard: &Heard) -> Result<Vec<Config>, ConfigError> {
        let file = || directory.map(Path::to_owned);
        let mut configs = Vec::new();
        if directory.is_some_and(|directory| directory.join("node.toml").exists()) {
            let node = Source::node(self.options.clone(), file()).read_for_any_user()?;
            configs.extend(ports_of(&node).into_iter().map(|interface| Config { interface, ..node.clone() }));
        }
        let installed = directory.map(installation::interfaces).unwrap_or_default();
        let crossbars = installed.crossbars.iter().map(|name| (name, false));
        let running = heard.interfaces().map(str::to_owned).collect::<Vec<_>>();
        let agents = installed.agents.iter().chain(&running).map(|name| (name, true));
        for (interface, is_agent) in crossbars.chain(agents) {
            if configs.iter().any(|config: &Config| config.interface == *interface) {
                continue;
            }
            let options = Options { interface: Some(interface.clone()), ..self.options.clone() };
            let mut config = Source::agent(options, file()).read_for_any_user()?;
            // A crossbar has no tap interface, even if the file that all daemons share names one.
            config.tap = config.tap.filter(|_| is_agent);
            configs.push(config);
        }
        Ok(configs)
    }
}

/// The interfaces that are ports of a node: those that are named, and those that match a pattern now.
fn ports_of(node: &Config) -> Vec<String> {
    let matching = driver::matching_ports(node).unwrap_or_default();
    node.ports.iter().cloned().chain(matching).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_cannot_be_used_is_the_only_finding() {
        let checks = examine(&Subject::default());
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].name, checks[0].status), ("configuration", Outcome::Failed));
        assert!(checks[0].what.contains("--interface IF"), "{checks:?}");
        let subject = Subject { file: Some("/nonexistent/mapper.toml".into()), ..Subject::default() };
        assert!(examine(&subject)[0].what.contains("/nonexistent/mapper.toml"));
    }

    #[test]
    fn the_file_of_a_node_is_for_all_its_ports_and_for_each() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("node.toml");
        std::fs::write(&file, "ports = [\"p1\", \"p2\"]\n").unwrap();
        let examined = |interfaces: &[&str]| -> Vec<String> {
            let interfaces = interfaces.iter().map(ToString::to_string).collect();
            let subject = Subject { interfaces, file: Some(file.clone()), ..Subject::default() };
            subject.configs(&Heard::default()).unwrap().into_iter().map(|config| config.interface).collect()
        };
        assert_eq!(examined(&[]), ["p1", "p2"]);
        assert_eq!(examined(&["p2"]), ["p2"]);
    }

    #[test]
    fn ports_on_the_line_are_those_of_a_node() {
        let ports = vec!["p3".to_owned(), "p4".to_owned()];
        let subject = Subject { ports, ..Subject::default() };
        let configs = subject.configs(&Heard::default()).unwrap();
        let interfaces: Vec<_> = configs.iter().map(|config| config.interface.as_str()).collect();
        assert_eq!(interfaces, ["p3", "p4"]);
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
    fn what_is_at_work_is_examined_without_any_configuration() {
        let heard = Heard::at_work(&["p1", "p2"]);
        let configs = Subject::default().configs(&heard).unwrap();
        let interfaces: Vec<_> = configs.iter().map(|config| config.interface.as_str()).collect();
        assert_eq!(interfaces, ["p1", "p2"]);
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
