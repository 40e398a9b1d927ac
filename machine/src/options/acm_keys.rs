//! The options of the ACM service, which are keys of a table in the file of all daemons.

use std::path::PathBuf;

use super::Bounded;

/// The options of the service. What is `None` was not set.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AcmKeys {
    /// Where clients reach the service: a unix socket, TCP of this machine alone, or TCP open to all [default: unix].
    #[arg(long, value_enum)]
    pub server_mode: Option<ServerMode>,
    /// The unix socket [default: /run/ibacm-unix.sock].
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// A symbolic link to the unix socket [default: /run/ibacm.sock to the default socket, and none to another].
    #[arg(long, value_name = "PATH")]
    pub socket_link: Option<PathBuf>,
    /// The port of TCP [default: 6125].
    #[arg(long, value_name = "N")]
    pub port: Option<Bounded<1, 65_535>>,
    /// The file that tells clients the port [default: /run/ibacm-tcp.port].
    #[arg(long, value_name = "PATH")]
    pub port_file: Option<PathBuf>,
    /// A symbolic link to the port file [default: /run/ibacm.port to the default file, and none to another].
    #[arg(long, value_name = "PATH")]
    pub port_link: Option<PathBuf>,
    /// Read more names of this machine's interfaces from this file, as ibacm_addr.cfg.
    #[arg(long, value_name = "PATH")]
    pub address_file: Option<PathBuf>,
    /// Read options from this file, as ibacm_opts.cfg; all others win over it.
    #[arg(long, value_name = "PATH")]
    pub options_file: Option<PathBuf>,
    /// Read names whose GIDs are known from this file, as addr_preload acm_hosts does.
    #[arg(long, value_name = "PATH")]
    pub hosts_data: Option<PathBuf>,
    /// Read paths from this file, as route_preload opensm_full_v1 does.
    #[arg(long, value_name = "PATH")]
    pub route_data: Option<PathBuf>,
    /// How long a question for an unknown name or address waits before it counts as tried once, in milliseconds [default:
    /// 2000].
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<Bounded<1, 600_000>>,
    /// How many more times such a question is tried [default: 2].
    #[arg(long, value_name = "N")]
    pub retries: Option<Bounded<0, 100>>,
    /// How many questions for unknown names and addresses an agent is asked at once, at most 32 [default: 16].
    #[arg(long, value_name = "N")]
    pub resolve_depth: Option<Bounded<1, 32>>,
    /// How long it is remembered whose an address is, in minutes; 0 for not at all [default: 1440].
    #[arg(long, value_name = "MINUTES")]
    pub address_minutes: Option<Bounded<0, 10_000_000>>,
    /// How long a path is remembered, in minutes; 0 for not at all [default: as long as the address].
    #[arg(long, value_name = "MINUTES")]
    pub route_minutes: Option<Bounded<0, 10_000_000>>,
    /// How long it is remembered that nobody has a name or an address, in milliseconds [default: 10000].
    #[arg(long, value_name = "MS")]
    pub negative_ms: Option<Bounded<0, 3_600_000>>,
    /// How many addresses, and how many paths, are remembered at most [default: 65536].
    #[arg(long, value_name = "N")]
    pub cache_size: Option<Bounded<1, 16_777_216>>,
    /// How many clients there may be at once [default: 1024].
    #[arg(long, value_name = "N")]
    pub max_clients: Option<Bounded<1, 65_535>>,
    /// How long a client may be silent before its connection is closed, in milliseconds [default: 300000].
    #[arg(long, value_name = "MS")]
    pub client_timeout_ms: Option<Bounded<10, 86_400_000>>,
}

/// Where clients reach the service, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerMode {
    /// On a unix socket.
    Unix,
    /// On TCP, for this machine alone.
    #[value(alias = "loop")]
    #[serde(alias = "loop")]
    Tcp,
    /// On TCP, at all addresses of the machine.
    Open,
}

impl AcmKeys {
    /// These options, and those of `file` where these are not set.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            server_mode: self.server_mode.or(file.server_mode),
            socket: self.socket.or(file.socket),
            socket_link: self.socket_link.or(file.socket_link),
            port: self.port.or(file.port),
            port_file: self.port_file.or(file.port_file),
            port_link: self.port_link.or(file.port_link),
            address_file: self.address_file.or(file.address_file),
            options_file: self.options_file.or(file.options_file),
            hosts_data: self.hosts_data.or(file.hosts_data),
            route_data: self.route_data.or(file.route_data),
            timeout_ms: self.timeout_ms.or(file.timeout_ms),
            retries: self.retries.or(file.retries),
            resolve_depth: self.resolve_depth.or(file.resolve_depth),
            address_minutes: self.address_minutes.or(file.address_minutes),
            route_minutes: self.route_minutes.or(file.route_minutes),
            negative_ms: self.negative_ms.or(file.negative_ms),
            cache_size: self.cache_size.or(file.cache_size),
            max_clients: self.max_clients.or(file.max_clients),
            client_timeout_ms: self.client_timeout_ms.or(file.client_timeout_ms),
        }
    }
}
