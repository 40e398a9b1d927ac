//! Reads the configuration again while the agent runs.

use mapper_fabric::wording::with_causes;
use mapper_proto::agent::Settings;
use tracing::{error, info, warn};

use super::state::Driver;
use crate::agent::options::{Config, OptionsError};
use mapper_machine::log;
use mapper_machine::options::changed_keys;

/// The configuration of an agent that started with `old` and whose files now say `new`, and the keys that
/// differ but count only at start.
fn read_again(old: &Config, new: Config) -> (Config, Vec<&'static str>) {
    // There is no `..` here, so that a new option does not compile before it is decided whether it counts
    // only at start.
    let Config {
        interface,
        ports,
        patterns,
        service,
        settings,
        seed,
        num_passes,
        unit,
        unit_given,
        map_file,
        map_once,
        tap,
        addresses,
        data_path,
        kernel_avoid,
        keep_routes,
        networks,
        fabric_prefix,
        hosts_file,
        key_file,
        host_name,
        plan,
        // These count only at a port of InfiniBand, where this driver does not run.
        subnet: _,
    } = new;
    let (service, mut start_only) = old.service.read_again(service);
    start_only.extend(changed_keys([
        // The `interface` of a node is a name made of its ports at the start, and no key.
        ("interface", !old.is_node() && old.interface != interface),
        ("seed", old.seed != seed),
        ("unit", unit_given && old.unit != unit),
        ("tap", old.tap != tap),
        ("data-path", old.data_path != data_path),
        ("kernel-avoid", old.kernel_avoid != kernel_avoid),
        ("address", old.addresses != addresses || old.networks != networks),
        ("fabric-prefix", old.fabric_prefix != fabric_prefix),
        ("hosts-file", old.hosts_file != hosts_file),
        ("map-once", old.map_once != map_once),
    ]));
    (
        Config {
            ports,
            patterns,
            service,
            settings,
            num_passes,
            map_file,
            keep_routes,
            key_file,
            host_name,
            plan,
            ..old.clone()
        },
        start_only,
    )
}

impl Driver {
    /// Reads the configuration again. If it cannot be used, nothing changes.
    pub(super) fn reload(&mut self) {
        let new = match self.source.read() {
            Ok(new) => new,
            Err(error) => {
                return error!("the configuration is not used: {}", with_causes(&error));
            }
        };
        // The old tap interface stays, as `tap` counts only at start, so it must not be among the new ports.
        if self.config.tap.as_ref().is_some_and(|tap| new.ports.contains(tap)) {
            return error!("the configuration is not used: {}", OptionsError::TapIsPort);
        }
        let (new, start_only) = read_again(&self.config, new);
        for key in start_only {
            warn!(key, "this key counts only at start; restart the agent");
        }
        let old = std::mem::replace(&mut self.config, new);
        log::set_level(self.config.service.log.level);
        self.follow_ports();
        self.apply_settings(&old.settings);
        self.host.set_route_options(self.config.route_options());
        self.say_name();
        self.plan_changed(old.plan.as_ref());
        info!("the configuration was read again");
    }

    /// Gives the agent its new settings. If level or host type has changed, it is replaced by a new agent, as
    /// other hosts know it by these.
    fn apply_settings(&mut self, old: &Settings) {
        let settings = Settings { mac: self.host.own(), ..self.config.settings.clone() };
        if (settings.level, settings.host_type) == (old.level, old.host_type) {
            self.host.set_settings(self.now(), &settings);
            return;
        }
        self.begin_anew(settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::options::Source;

    fn read(text: &str) -> Config {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Source::agent(crate::agent::options::Options::default(), Some(file.path().to_owned())).read().unwrap()
    }

    #[test]
    fn what_counts_only_at_start_is_named_and_stays_and_all_else_is_followed() {
        let old = read("interface = \"eth1\"\nunit = 1\nlevel = 2\nlog-level = \"info\"\n");
        let new = read(
            "interface = \"eth2\"\nunit = 2\nseed = 7\ntap = \"f0\"\ndata-path = \"tap\"\nkernel-avoid = \"segments\"\naddress = \"10.0.0.1/24\"\nfabric-prefix = \"none\"\nhosts-file = \"/h\"\nmap-once = true\n\
             run-dir = \"/tmp\"\ngroup = \"g\"\ndaemon-pid-file = \"/tmp/p\"\nethertype = \"0x88b6\"\n\
             metrics-listen = \"127.0.0.1:1\"\nmetrics-file = \"/tmp/m\"\nverbose-file = \"/tmp/v\"\n\
             log-format = \"json\"\nlevel = 3\nnum-passes = 2\nlog-level = \"warn\"\nmap-file = \"/tmp/map\"\n",
        );
        let (config, mut keys) = read_again(&old, new.clone());
        keys.sort_unstable();
        let all = [
            "address",
            "daemon-pid-file",
            "data-path",
            "ethertype or destination",
            "fabric-prefix",
            "group",
            "hosts-file",
            "interface",
            "kernel-avoid",
            "log-format",
            "map-once",
            "metrics-file",
            "metrics-listen",
            "run-dir",
            "seed",
            "tap",
            "unit",
            "verbose-file",
        ];
        assert_eq!(keys, all);
        let mut expected = old.clone();
        expected.settings.level = 3;
        expected.num_passes = 2;
        expected.map_file = Some("/tmp/map".into());
        expected.service.log.level = new.service.log.level;
        assert_eq!(config, expected);
        assert!(read_again(&config, config.clone()).1.is_empty());
    }
}
