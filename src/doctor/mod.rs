//! What keeps an agent from working on this machine, found out before or while it runs.
//!
//! Every check says what it found, and if that is no good, what to do. Nothing is changed; of all
//! checks only that of the neighbour sends frames, and only where no agent runs.

mod daemons;
mod interface;
mod machine;
mod neighbour;

use std::path::PathBuf;

use serde::Serialize;

use crate::daemon::options::{Config, ConfigError, Options, OptionsError, Source};

/// What is to be examined.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Interfaces cabled to the fabric; none for that of the configuration file.
    pub interfaces: Vec<String>,
    /// Options as an agent would be given them.
    pub options: Options,
    /// The configuration file.
    pub file: Option<PathBuf>,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// May be meant so.
    Warning,
    /// An agent will not work.
    Failed,
}

/// One check, as `mapper.doctor/1` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked, in a word or two.
    pub name: &'static str,
    /// Of which interface, if of one.
    pub interface: Option<String>,
    /// How it came out.
    pub status: Outcome,
    /// What was found.
    pub what: String,
    /// What to do, unless all is well.
    pub fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, interface: None, status: Outcome::Ok, what: what.into(), fix: None }
    }

    fn warning(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Outcome::Warning, fix: Some(fix.into()), ..Self::ok(name, what) }
    }

    fn failed(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Outcome::Failed, fix: Some(fix.into()), ..Self::ok(name, what) }
    }

    /// Failed with an error that says what was wrong and what to do.
    fn error(name: &'static str, error: &dyn std::error::Error) -> Self {
        let mut what = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Some errors say their cause themselves.
            if !what.ends_with(&cause_text) {
                what = format!("{what}: {cause_text}");
            }
            source = cause.source();
        }
        Self { status: Outcome::Failed, ..Self::ok(name, what) }
    }

    fn of(self, interface: &str) -> Self {
        Self { interface: Some(interface.to_owned()), ..self }
    }
}

/// Examines this machine. Takes about a second an interface.
pub fn examine(subject: &Subject) -> Vec<Check> {
    let configs = match subject.configs() {
        Ok(configs) => configs,
        Err(error) => return vec![Check::error("configuration", &error)],
    };
    let what = match &subject.file {
        Some(file) => format!("{} is valid", file.display()),
        None => "the options go together".to_owned(),
    };
    let mut checks = vec![Check::ok("configuration", what)];
    let Some(first) = configs.first() else { return checks };
    checks.extend(machine::check(first));
    for config in &configs {
        let found = interface::check(config);
        checks.extend(found.into_iter().map(|check| check.of(&config.interface)));
    }
    checks
}

impl Subject {
    /// What an agent of each interface would be configured with. The interfaces of a node are its
    /// ports.
    fn configs(&self) -> Result<Vec<Config>, ConfigError> {
        let file = self.file.as_ref();
        let read = |interface: Option<String>| {
            Source::agent(Options { interface, ..self.options.clone() }, file.cloned()).read()
        };
        let read_node = || Source::node(self.options.clone(), file.cloned()).read();
        let read_named = |interface: &String| match read(Some(interface.clone())) {
            // The file is that of a node, and the interface one of its ports, or to be one.
            Err(ConfigError::Options(OptionsError::PortsOfAgent)) => {
                read_node().map(|node| Config { interface: interface.clone(), ..node })
            }
            result => result,
        };
        if !self.interfaces.is_empty() {
            return self.interfaces.iter().map(read_named).collect();
        }
        match (read(None), read_node()) {
            (Ok(agent), _) => Ok(vec![agent]),
            (Err(_), Ok(node)) => {
                let of_port = |port: &String| Config { interface: port.clone(), ..node.clone() };
                Ok(node.ports.iter().map(of_port).collect())
            }
            (Err(error), Err(_)) => Err(error),
        }
    }
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
            subject.configs().unwrap().into_iter().map(|config| config.interface).collect()
        };
        assert_eq!(examined(&[]), ["p1", "p2"]);
        assert_eq!(examined(&["p2"]), ["p2"]);
    }

    #[test]
    fn what_is_wrong_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let error = crate::daemon::keys::read(&file).unwrap_err();
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
