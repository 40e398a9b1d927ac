//! Fills in the defaults, and refuses options that do not go together.

use std::time::Duration;

use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::options::{Bounded, Shared, Text};
use mapper_proto::agent::Settings;
use mapper_proto::{IpNetworkAddress, Mac};

use super::node_ports::{is_pattern, node_name};
use super::source::Role;
use super::{Config, Options, OptionsError, PlanConfig, SubnetConfig, WantedAddress};

/// The name of a node's interface over the fabric, if none is given.
const DEFAULT_TAP: &str = "fabric0";
/// The word that stands in place of a name if there is to be no interface over the fabric.
const NO_TAP: &str = "none";

/// How many routes there are to each destination, as in GM-2.
const DEFAULT_NUM_PASSES: u8 = 8;
/// How long `--map-once` waits, in seconds.
const DEFAULT_MAP_ONCE_LIMIT_S: u64 = 300;

impl Options {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// If no interface was named, for which there is no default, or times do not go together.
    pub(super) fn resolve(self, role: Role) -> Result<Config, OptionsError> {
        let (interface, words) = match (role, self.interface.clone(), self.ports.clone().unwrap_or_default())
        {
            (Role::Agent, Some(interface), ports) if ports.is_empty() => (interface, ports),
            (Role::Agent, None, ports) if ports.is_empty() => return Err(OptionsError::NoInterface),
            (Role::Agent, ..) => return Err(OptionsError::PortsOfAgent),
            (Role::Node, None, ports) => (node_name(&ports)?, ports),
            (Role::Node, Some(_), _) => return Err(OptionsError::InterfaceOfNode),
        };
        let tap = match self.tap.as_deref() {
            Some(NO_TAP) => None,
            Some(name) => Some(name.to_owned()),
            None => (role == Role::Node).then(|| DEFAULT_TAP.to_owned()),
        };
        let (patterns, ports): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| is_pattern(word));
        let is_of_agent = |tap: &String| role == Role::Agent && *tap == interface;
        if tap.as_ref().is_some_and(|tap| is_of_agent(tap) || ports.contains(tap)) {
            return Err(OptionsError::TapIsPort);
        }
        let (addresses, networks) = self.wanted_addresses();
        if tap.is_none() && !(addresses.is_empty() && networks.is_empty()) {
            return Err(OptionsError::AddressWithoutTap);
        }
        let data_path = self.data_path.unwrap_or_default();
        let plan = PlanConfig::of(self.plan.clone().unwrap_or_default())?;
        let settings = self.settings();
        let subnet = SubnetConfig::of(&self);
        let shared =
            Shared { process: self.process, frames: self.frames, metrics: self.metrics, log: self.log };
        let service = shared.resolve()?;
        if settings.silence_limit <= settings.query_interval {
            return Err(OptionsError::SilenceBelowQuery {
                silence_limit_ms: settings.silence_limit.as_millis(),
                query_interval_ms: settings.query_interval.as_millis(),
            });
        }
        let limit_s = self.map_once_limit_s.map_or(DEFAULT_MAP_ONCE_LIMIT_S, |n| u64::from(n.get()));
        Ok(Config {
            interface,
            ports,
            patterns,
            service,
            settings,
            seed: self.seed.map(|n| u64::from(n.get())),
            num_passes: self.num_passes.map_or(DEFAULT_NUM_PASSES, |n| n.get() as u8),
            unit: self.unit.unwrap_or(0),
            unit_given: self.unit.is_some(),
            tap,
            addresses,
            data_path,
            kernel_avoid: self.kernel_avoid.into_iter().flatten().map(Text::value).collect(),
            keep_routes: self.keep_routes.unwrap_or_default(),
            networks,
            fabric_prefix: self.fabric_prefix.map(Text::value).unwrap_or_default(),
            hosts_file: self.hosts_file,
            key_file: self.key_file,
            host_name: self.host_name.map(Text::value),
            map_file: self.map_file,
            plan,
            subnet,
            map_once: self.map_once.unwrap_or(false).then(|| Duration::from_secs(limit_s)),
        })
    }

    /// The addresses that are stated, and the networks out of which one is to be picked.
    fn wanted_addresses(&self) -> (Vec<InterfaceAddress>, Vec<IpNetworkAddress>) {
        let (mut addresses, mut networks) = (Vec::new(), Vec::new());
        // An address or a network that is named twice counts once.
        for wanted in self.address.iter().flatten().map(|text| text.value()) {
            match wanted {
                WantedAddress::Stated(address) if !addresses.contains(&address) => addresses.push(address),
                WantedAddress::Picked(network) if !networks.contains(&network) => networks.push(network),
                WantedAddress::Stated(_) | WantedAddress::Picked(_) => {}
            }
        }
        (addresses, networks)
    }

    /// The agent's own settings.
    fn settings(&self) -> Settings {
        let defaults = Settings::new(Mac::default());
        Settings {
            mac: defaults.mac,
            level: self.level.unwrap_or(defaults.level),
            host_type: self.host_type.map_or(defaults.host_type, |text| text.value().number()),
            plain_ports: self.plain_ports.map_or(defaults.plain_ports, |n| n.get() as u8),
            max_hops: self.max_hops.map_or(defaults.max_hops, |n| n.get() as usize),
            start_delay: millis(self.start_delay_ms, defaults.start_delay),
            probe_timeout: millis(self.probe_timeout_ms, defaults.probe_timeout),
            probe_tries: self.probe_tries.map_or(defaults.probe_tries, |n| n.get() as u8),
            probe_window: self.probe_window.map_or(defaults.probe_window, |n| n.get() as usize),
            query_interval: millis(self.query_interval_ms, defaults.query_interval),
            silence_limit: millis(self.silence_limit_ms, defaults.silence_limit),
            verify_pause: millis(self.verify_pause_ms, defaults.verify_pause),
            liveness_interval: millis(self.liveness_interval_ms, defaults.liveness_interval),
            liveness_misses: self.liveness_misses.map_or(defaults.liveness_misses, |n| n.get() as u8),
            liveness_limit: self.liveness_limit.map_or(defaults.liveness_limit, |n| n.get() as usize),
            piece_bytes: self.piece_bytes.map_or(defaults.piece_bytes, |n| n.get() as usize),
            piece_window: self.piece_window.map_or(defaults.piece_window, |n| n.get() as usize),
            printeur: self.printeur.unwrap_or(defaults.printeur),
            thrash: self.thrash.unwrap_or(defaults.thrash),
            extra_hosts: self.extra_hosts.map_or(defaults.extra_hosts, Bounded::get),
            pause: self.pause.unwrap_or(defaults.pause),
            non_clos: self.non_clos.unwrap_or(defaults.non_clos),
            map_incrementally: self.map_incrementally.unwrap_or(defaults.map_incrementally),
            xbar_check: self.no_xbar_check.map_or(defaults.xbar_check, |skip| !skip),
            // The MTU is found out when the interfaces are opened.
            mtu: defaults.mtu,
            // The keys are in a file of their own, which `Source` reads.
            keys: None,
        }
    }
}

/// The time that was set, or else the default.
pub(super) fn millis<const MIN: u32, const MAX: u32>(
    value: Option<Bounded<MIN, MAX>>,
    default: Duration,
) -> Duration {
    value.map_or(default, |ms| Duration::from_millis(ms.get().into()))
}
