//! Which options count at which kind of port.

use mapper_machine::mad_port::PortName;
use mapper_machine::options::{DataPathChoice, FrameKeys};

use super::{Config, Options, OptionsError};

impl Options {
    /// Refuses options of the command line that have no effect at this port: most of those of Ethernet at a port of
    /// InfiniBand, and the few of InfiniBand elsewhere. A file is not looked at, as agents of both kinds may share it.
    ///
    /// # Errors
    /// If there is such an option.
    pub(super) fn refuse_without_effect(&self, interface: &str) -> Result<(), OptionsError> {
        let at_infiniband = interface.parse::<PortName>().is_ok();
        let (elsewhere, counts_at) = match at_infiniband {
            true => (self.by_kind().ethernet, "interfaces of Ethernet"),
            false => (self.by_kind().infiniband, "ports of InfiniBand"),
        };
        match elsewhere.into_iter().find(|(_, is_set)| *is_set) {
            Some((option, _)) => Err(OptionsError::WithoutEffect { option, counts_at }),
            None => Ok(()),
        }
    }

    /// Refuses a data path of the command line at an agent that has no interface over the fabric, and so no packets. A node
    /// without one sends on those of others. A file is not looked at, as agents with and without such an interface may share it.
    ///
    /// # Errors
    /// If there is one that is no other word for what happens anyway.
    pub(super) fn refuse_data_path_without_tap(&self, config: &Config) -> Result<(), OptionsError> {
        match self.data_path {
            Some(choice @ (DataPathChoice::Srv6 | DataPathChoice::Routes))
                if config.tap.is_none() && !config.is_node() =>
            {
                Err(OptionsError::DataPathWithoutTap(choice))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to keep the kernel's routes where the command line has nothing go by the kernel. A file is not looked at.
    ///
    /// # Errors
    /// If there would be no routes to keep.
    pub(super) fn refuse_to_keep_no_routes(&self, config: &Config) -> Result<(), OptionsError> {
        let has_no_packets = config.tap.is_none() && !config.is_node();
        match self.keep_routes == Some(true)
            && (has_no_packets || self.data_path == Some(DataPathChoice::Tap))
        {
            true => Err(OptionsError::WithoutEffect {
                option: "keep-routes",
                counts_at: "nodes, and agents with --tap, whose packets go by the kernel (another --data-path than tap)",
            }),
            false => Ok(()),
        }
    }

    /// Refuses what the command line says of packets by the kernel, and of addresses, where there are none. A file is not looked at.
    ///
    /// # Errors
    /// If there is such an option.
    pub(super) fn refuse_what_needs_a_tap(&self, config: &Config) -> Result<(), OptionsError> {
        let has_addresses = config.tap.is_some();
        let has_packets = has_addresses || config.is_node();
        let without_effect = |option, counts_at| Err(OptionsError::WithoutEffect { option, counts_at });
        match () {
            () if self.fabric_prefix.is_some() && !has_addresses => without_effect(
                "fabric-prefix",
                "agents and nodes with an interface over the fabric (--tap NAME)",
            ),
            () if self.kernel_avoid.is_some() && !has_packets => {
                without_effect("kernel-avoid", "nodes, and agents with --tap, whose packets go by the kernel")
            }
            () => Ok(()),
        }
    }

    /// The options that count at one kind of port alone, and whether each is set.
    fn by_kind(&self) -> ByKind {
        // There is no `..` here, so that a new option does not compile before it is decided where it counts.
        let Self {
            tap,
            address,
            data_path,
            kernel_avoid,
            keep_routes,
            fabric_prefix,
            hosts_file,
            key_file,
            host_type,
            host_name,
            num_passes,
            map_file,
            non_clos,
            no_xbar_check,
            map_incrementally,
            pause,
            printeur,
            thrash,
            extra_hosts,
            plain_ports,
            max_hops,
            start_delay_ms,
            probe_timeout_ms,
            probe_tries,
            probe_window,
            query_interval_ms,
            silence_limit_ms,
            verify_pause_ms,
            liveness_interval_ms,
            liveness_misses,
            liveness_limit,
            piece_bytes,
            piece_window,
            frames: FrameKeys { ethertype, destination },
            seed,
            plan,
            // These count at both kinds of port. Ports are a node's, and the table of the ACM service is not the agent's.
            interface: _,
            ports: _,
            unit: _,
            metrics: _,
            process: _,
            level: _,
            map_once: _,
            map_once_limit_s: _,
            log: _,
            acm: _,
            // These are the options of InfiniBand.
            engine,
            max_layers,
            lmc,
            lid_file,
            m_key_file,
            watch_interval_ms,
            mad_timeout_ms,
            mad_window,
            record,
        } = self;
        let infiniband = vec![
            ("engine", engine.is_some()),
            ("max-layers", max_layers.is_some()),
            ("lmc", lmc.is_some()),
            ("lid-file", lid_file.is_some()),
            ("m-key-file", m_key_file.is_some()),
            ("watch-interval-ms", watch_interval_ms.is_some()),
            ("mad-timeout-ms", mad_timeout_ms.is_some()),
            ("mad-window", mad_window.is_some()),
            ("record", record.is_some()),
        ];
        let ethernet = vec![
            ("tap", tap.is_some()),
            ("address", address.is_some()),
            ("data-path", data_path.is_some()),
            ("kernel-avoid", kernel_avoid.is_some()),
            ("keep-routes", keep_routes.is_some()),
            ("fabric-prefix", fabric_prefix.is_some()),
            ("hosts-file", hosts_file.is_some()),
            ("key-file", key_file.is_some()),
            ("host-type", host_type.is_some()),
            ("host-name", host_name.is_some()),
            ("num-passes", num_passes.is_some()),
            ("map-file", map_file.is_some()),
            ("non-clos", non_clos.is_some()),
            ("no-xbar-check", no_xbar_check.is_some()),
            ("map-incrementally", map_incrementally.is_some()),
            ("pause", pause.is_some()),
            ("printeur", printeur.is_some()),
            ("thrash", thrash.is_some()),
            ("extra-hosts", extra_hosts.is_some()),
            ("plain-ports", plain_ports.is_some()),
            ("max-hops", max_hops.is_some()),
            ("start-delay-ms", start_delay_ms.is_some()),
            ("probe-timeout-ms", probe_timeout_ms.is_some()),
            ("probe-tries", probe_tries.is_some()),
            ("probe-window", probe_window.is_some()),
            ("query-interval-ms", query_interval_ms.is_some()),
            ("silence-limit-ms", silence_limit_ms.is_some()),
            ("verify-pause-ms", verify_pause_ms.is_some()),
            ("liveness-interval-ms", liveness_interval_ms.is_some()),
            ("liveness-misses", liveness_misses.is_some()),
            ("liveness-limit", liveness_limit.is_some()),
            ("piece-bytes", piece_bytes.is_some()),
            ("piece-window", piece_window.is_some()),
            ("ethertype", ethertype.is_some()),
            ("destination", destination.is_some()),
            ("seed", seed.is_some()),
            ("plan", plan.is_some()),
        ];
        ByKind { ethernet, infiniband }
    }
}

/// Options by the kind of port at which alone they count, and whether each is set.
struct ByKind {
    ethernet: Vec<(&'static str, bool)>,
    infiniband: Vec<(&'static str, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::options::source::Role;

    #[test]
    fn options_that_count_at_another_kind_of_port_are_refused() {
        let refused = |interface: &str| {
            let tap = Some("ip0".to_owned());
            let options =
                Options { tap, lid_file: Some("lids".into()), level: Some(3), ..Options::default() };
            options.refuse_without_effect(interface).unwrap_err().to_string()
        };
        assert!(refused("umad0").starts_with("--tap has no effect here: it is for interfaces of Ethernet"));
        assert!(refused("ibsim:n1").starts_with("--tap "));
        assert!(refused("eth0").starts_with("--lid-file has no effect here: it is for ports of InfiniBand"));
        let at_both = Options { level: Some(3), unit: Some(2), ..Options::default() };
        assert_eq!(at_both.refuse_without_effect("umad0"), Ok(()));
    }

    #[test]
    fn a_data_path_of_the_command_line_is_refused_at_an_agent_without_an_interface_over_the_fabric() {
        let line = |choice| Options { data_path: Some(choice), ..Options::default() };
        let of = |role, interface: Option<&str>, tap: Option<&str>| {
            let ports = interface.is_none().then(|| vec!["e1".to_owned()]);
            let (interface, tap) = (interface.map(str::to_owned), tap.map(str::to_owned));
            Options { interface, ports, tap, ..Options::default() }.resolve(role).unwrap()
        };
        let (agent, node) = (of(Role::Agent, Some("e1"), None), of(Role::Node, None, Some("none")));
        for choice in [DataPathChoice::Srv6, DataPathChoice::Routes] {
            let refused = Err(OptionsError::DataPathWithoutTap(choice));
            assert_eq!(line(choice).refuse_data_path_without_tap(&agent), refused);
            assert_eq!(line(choice).refuse_data_path_without_tap(&node), Ok(()));
            let with_tap = of(Role::Agent, Some("e1"), Some("t0"));
            assert_eq!(line(choice).refuse_data_path_without_tap(&with_tap), Ok(()));
        }
        assert_eq!(line(DataPathChoice::Auto).refuse_data_path_without_tap(&agent), Ok(()));
        assert_eq!(Options::default().refuse_data_path_without_tap(&agent), Ok(()), "a file may say it");
    }

    #[test]
    fn what_is_said_of_packets_and_addresses_is_refused_where_there_are_none() {
        let of = |role, interface: Option<&str>, tap: Option<&str>| {
            let ports = interface.is_none().then(|| vec!["e1".to_owned()]);
            let (interface, tap) = (interface.map(str::to_owned), tap.map(str::to_owned));
            Options { interface, ports, tap, ..Options::default() }.resolve(role).unwrap()
        };
        let agent = of(Role::Agent, Some("e1"), None);
        let with_tap = of(Role::Agent, Some("e1"), Some("t0"));
        let without_tap = of(Role::Node, None, Some("none"));
        let prefix = Options { fabric_prefix: Some("none".parse().unwrap()), ..Options::default() };
        let avoid = vec!["segments".parse().unwrap()];
        let avoid = Options { kernel_avoid: Some(avoid), ..Options::default() };
        let refused = |line: &Options, config| {
            let error = line.refuse_what_needs_a_tap(config).err()?.to_string();
            error.split_once(" has no effect here").map(|(option, _)| option.to_owned())
        };
        assert_eq!(refused(&prefix, &agent).as_deref(), Some("--fabric-prefix"));
        assert_eq!(refused(&prefix, &without_tap).as_deref(), Some("--fabric-prefix"));
        assert_eq!(refused(&avoid, &agent).as_deref(), Some("--kernel-avoid"));
        for (line, config) in [(&avoid, &without_tap), (&avoid, &with_tap), (&prefix, &with_tap)] {
            assert_eq!(refused(line, config), None);
        }
        assert_eq!(refused(&Options::default(), &agent), None, "a file may say it");
    }

    #[test]
    fn routes_that_no_kernel_has_are_not_to_be_kept() {
        let keeps = |data_path| Options { keep_routes: Some(true), data_path, ..Options::default() };
        let of = |tap: Option<&str>| {
            let tap = tap.map(str::to_owned);
            Options { interface: Some("e1".to_owned()), tap, ..Options::default() }
                .resolve(Role::Agent)
                .unwrap()
        };
        let refused = |line: Options, tap| line.refuse_to_keep_no_routes(&of(tap)).is_err();
        assert!(refused(keeps(None), None));
        assert!(!refused(keeps(None), Some("t0")));
        assert!(refused(keeps(Some(DataPathChoice::Tap)), Some("t0")));
        assert!(!refused(keeps(Some(DataPathChoice::Auto)), Some("t0")));
        assert!(!refused(Options::default(), None));
    }
}
