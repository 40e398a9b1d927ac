//! What is to be examined, and the configurations that its daemons would have.

use std::path::{Path, PathBuf};

use mapper_daemon::agent::driver;
use mapper_daemon::agent::options::{Config, ConfigError, Options, OptionsError, Source};

use super::daemons::Heard;
use super::installation;

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

impl Subject {
    /// The configuration that an agent of each interface would have. The interfaces of a node are its ports,
    /// and each has the configuration of the node.
    pub(super) fn configs(&self, heard: &Heard) -> Result<Vec<Config>, ConfigError> {
        let file = self.file.as_ref();
        let read = |interface: Option<String>| self.read_agent(interface, file.cloned());
        let read_node = || self.read_node(&self.ports);
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
            let node = (!self.ports.is_empty()).then(read_node).transpose()?;
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
            // Before an installation is configured it names none, which is no mistake.
            (Err(ConfigError::Options(OptionsError::NoInterface)), Err(_)) => Ok(Vec::new()),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// The configuration of the node that is examined; `None` if it is no node.
    pub(super) fn node(&self) -> Option<Config> {
        let is_of_directory = || match &self.file {
            Some(path) if path.is_dir() => path.join("node.toml").exists(),
            Some(_) => self.options.interface.is_none(),
            None => false,
        };
        let is_node = !self.ports.is_empty() || (self.interfaces.is_empty() && is_of_directory());
        is_node.then(|| self.read_node(&self.ports).ok()).flatten()
    }

    /// The configuration of a node that takes whatever can be a port, for a machine of which no interface is named yet.
    pub(super) fn node_of_any(&self) -> Result<Config, ConfigError> {
        self.read_node(&["*".to_owned()])
    }

    /// The configuration of an agent. An agent without an interface over the fabric has no packets for a data path, and is
    /// refused one; what is examined may be a port of a node that runs, of which the line says nothing else.
    fn read_agent(&self, interface: Option<String>, file: Option<PathBuf>) -> Result<Config, ConfigError> {
        let options = Options { interface, data_path: None, ..self.options.clone() };
        let config = Source::agent(options, file).read_for_any_user()?;
        let data_path = self.options.data_path.unwrap_or(config.data_path);
        Ok(Config { data_path, ..config })
    }

    /// The configuration of a node. Its ports are those of the file, unless there are some here.
    fn read_node(&self, ports: &[String]) -> Result<Config, ConfigError> {
        let ports = (!ports.is_empty()).then(|| ports.to_vec());
        Source::node(Options { ports, ..self.options.clone() }, self.file.clone()).read_for_any_user()
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
            let mut config = self.read_agent(Some(interface.clone()), file())?;
            // A crossbar has no tap interface, even if the file that all daemons share names one.
            config.tap = config.tap.filter(|_| is_agent);
            configs.push(config);
        }
        Ok(configs)
    }
}

/// The interfaces that are ports of a node: those that are named, and those that match a pattern now.
fn ports_of(node: &Config) -> Vec<String> {
    let matching = driver::matching_interfaces(node).unwrap_or_default();
    let usable = matching.into_iter().filter(|candidate| candidate.why_not.is_none());
    node.ports.iter().cloned().chain(usable.map(|candidate| candidate.interface)).collect()
}

#[cfg(test)]
mod tests {
    use mapper_machine::options::DataPathChoice;

    use super::*;

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
    fn a_data_path_on_the_line_is_examined_at_an_interface_of_which_nothing_else_is_known() {
        let options = Options { data_path: Some(DataPathChoice::Srv6), ..Options::default() };
        let subject = Subject { interfaces: vec!["p1".to_owned()], options, ..Subject::default() };
        let [config] = subject.configs(&Heard::default()).unwrap().try_into().unwrap();
        assert_eq!((config.interface.as_str(), config.data_path), ("p1", DataPathChoice::Srv6));
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
    fn what_is_at_work_is_examined_without_any_configuration() {
        let heard = Heard::at_work(&["p1", "p2"]);
        let configs = Subject::default().configs(&heard).unwrap();
        let interfaces: Vec<_> = configs.iter().map(|config| config.interface.as_str()).collect();
        assert_eq!(interfaces, ["p1", "p2"]);
    }
}
