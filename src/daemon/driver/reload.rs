//! A configuration that is read again while the agent runs.

use mapper_fabric::wording::with_causes;
use mapper_proto::agent::Settings;
use tracing::{error, info, warn};

use super::event_loop::Driver;
use crate::daemon::log;
use crate::daemon::options::{Config, OptionsError};

/// The keys that differ but count only at start.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = [
        // A node is called by the ports that it began with.
        ("interface", new.ports.is_empty() && old.interface != new.interface),
        ("ethertype or destination", old.marking != new.marking),
        ("seed", old.seed != new.seed),
        ("unit", new.unit_given && old.unit != new.unit),
        ("run-dir", old.run_dir != new.run_dir),
        ("group", old.group != new.group),
        ("daemon-pid-file", old.daemon_pid_file != new.daemon_pid_file),
        ("tap", old.tap != new.tap),
        ("address", old.addresses != new.addresses),
        ("map-once", old.map_once != new.map_once),
        ("metrics-listen", old.metrics_listen != new.metrics_listen),
        ("metrics-file", old.metrics_file != new.metrics_file),
        ("verbose-file", old.log.file != new.log.file),
        ("log-format", old.log.format != new.log.format),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// The new configuration, with the old values of the keys that count only at start.
fn without_restart(old: &Config, new: Config) -> Config {
    let old = old.clone();
    Config {
        interface: old.interface,
        marking: old.marking,
        seed: old.seed,
        unit: old.unit,
        unit_given: old.unit_given,
        run_dir: old.run_dir,
        group: old.group,
        daemon_pid_file: old.daemon_pid_file,
        tap: old.tap,
        addresses: old.addresses,
        map_once: old.map_once,
        metrics_listen: old.metrics_listen,
        metrics_file: old.metrics_file,
        log: crate::daemon::options::LogOptions { level: new.log.level, ..old.log },
        ..new
    }
}

impl Driver {
    /// Reads the configuration again. One that cannot be used changes nothing.
    pub(super) fn reload(&mut self) {
        let new = match self.source.read() {
            Ok(new) => new,
            Err(error) => {
                return error!("the configuration is not used: {}", with_causes(&error));
            }
        };
        // The key `tap` counts only at start, so the check of the new keys does not see the old tap.
        if self.config.tap.as_ref().is_some_and(|tap| new.ports.contains(tap)) {
            return error!("the configuration is not used: {}", OptionsError::TapIsPort);
        }
        for key in needs_restart(&self.config, &new) {
            warn!(key, "this key counts only at start; restart the agent");
        }
        let new = without_restart(&self.config, new);
        let old = std::mem::replace(&mut self.config, new);
        log::set_level(self.config.log.level);
        self.follow_ports();
        self.apply_settings(&old.settings);
        self.host.set_route_options(self.config.route_options());
        info!("the configuration was read again");
    }

    /// Gives the agent its new settings. One of another rank is another agent to all others.
    fn apply_settings(&mut self, old: &Settings) {
        let settings = Settings { mac: self.host.own(), ..self.config.settings.clone() };
        if (settings.level, settings.host_type) == (old.level, old.host_type) {
            self.host.set_settings(self.now(), &settings);
            return;
        }
        self.begin_anew(settings);
    }
}
