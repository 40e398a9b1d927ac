//! What may be set of the service: on the command line, in `[acm]` of mapper.toml, in the files of `ibacm`, or not at all.
//!
//! The command line wins over mapper.toml, and that over `ibacm_opts.cfg`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_acm::files::options_file::{Mode, OptionsFile};
use mapper_acm::files::{
    BadLine, PathTable, PathTableReader, address_file, hosts_file, options_file, path_dump,
};
use mapper_acm::service::Settings;
use mapper_acm::wire::Address;
use mapper_machine::options::{
    AcmKeys, Bounded, ConfigFileError, LogKeys, LogLevel, ProcessKeys, ServerMode, ServiceConfig, Shared,
    ZeroDestination,
};
use mapper_proto::quote;
use thiserror::Error;

/// The socket that clients use unless they are told otherwise.
const SOCKET: &str = "/run/ibacm-unix.sock";
/// The link to that socket, where clients look.
const SOCKET_LINK: &str = "/run/ibacm.sock";
/// The port of TCP that clients use unless they are told otherwise.
const PORT: u16 = 6125;
/// The file that tells clients the port.
pub(super) const PORT_FILE: &str = "/run/ibacm-tcp.port";
/// The link to the file of the port, where clients look.
pub(super) const PORT_LINK: &str = "/run/ibacm.port";
/// Where `ibacm` looks for names whose GIDs a file tells, and for paths.
const HOSTS_DATA: &str = "/etc/rdma/ibacm_hosts.data";
const ROUTE_DATA: &str = "/etc/rdma/ibacm_route.data";
/// How many clients there may be at once.
const MOST_CLIENTS: u32 = 1024;
/// How long a client may be silent, in milliseconds.
const CLIENT_TIMEOUT_MS: u32 = 300_000;
/// The most questions that an agent is asked at once.
const MOST_ASKED: u32 = 32;
/// The most bytes of a name that the log repeats.
const MOST_SHOWN: usize = 80;
/// The longest file of `ibacm` that is read, but for that of paths.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// The longest line of the file of paths that is read.
const MAX_LINE_BYTES: u64 = 4096;

/// Where clients reach the service, as the options of `ibacm` say.
const fn mode_of(mode: Mode) -> ServerMode {
    match mode {
        Mode::Unix => ServerMode::Unix,
        Mode::Loopback => ServerMode::Tcp,
        Mode::Open => ServerMode::Open,
    }
}

/// Where the service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenPlace {
    /// On a unix socket.
    Unix {
        /// The socket.
        socket: PathBuf,
        /// A link to the socket.
        link: Option<PathBuf>,
    },
    /// On TCP.
    Tcp {
        /// The port.
        port: u16,
        /// Whether other machines may connect.
        is_open: bool,
        /// The file that tells the port.
        file: PathBuf,
        /// A link to that file.
        link: Option<PathBuf>,
    },
}

/// The configuration of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct AcmConfig {
    /// The options that daemons of any kind have.
    pub service: ServiceConfig,
    /// Where it listens.
    pub place: ListenPlace,
    /// How many clients there may be at once.
    pub most_clients: usize,
    /// How long a client may be silent.
    pub client_timeout: Duration,
    /// What it answers from, and how long it remembers.
    pub settings: Settings,
    /// What files say that has no effect, and why.
    pub notes: Vec<String>,
}

/// Why the configuration of the service cannot be used.
#[derive(Debug, Error)]
pub enum AcmConfigError {
    /// The configuration file cannot be read, or is wrong.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The options of all daemons do not go together.
    #[error(transparent)]
    Shared(#[from] ZeroDestination),
    /// A file of `ibacm` cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of `ibacm` is wrong.
    #[error("{}:{}: {}", path.display(), error.line, error.what)]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: BadLine,
    },
}

/// A function that reads from the file of all daemons what it says to this service and to daemons of any kind.
pub(crate) type ReadFile = fn(&Path) -> Result<(AcmKeys, Shared), ConfigFileError>;

/// A command line and the configuration file that it names, which can be read again.
#[derive(Debug, Clone)]
pub struct AcmSource {
    line: AcmKeys,
    process: ProcessKeys,
    log: LogKeys,
    file: Option<PathBuf>,
    read_file: ReadFile,
}

impl AcmSource {
    /// The source of a configuration. The command line wins over the file.
    pub const fn new(
        line: AcmKeys,
        process: ProcessKeys,
        log: LogKeys,
        file: Option<PathBuf>,
        read_file: ReadFile,
    ) -> Self {
        Self { line, process, log, file, read_file }
    }

    /// Reads all files, and puts them and the command line together.
    ///
    /// # Errors
    /// If a file cannot be read or is wrong.
    pub fn read(&self) -> Result<AcmConfig, AcmConfigError> {
        let (keys, shared) =
            self.file.as_deref().map(|path| (self.read_file)(path)).transpose()?.unwrap_or_default();
        let keys = self.line.clone().or(keys);
        let options = read_with(keys.options_file.as_deref(), options_file::parse)?.unwrap_or_default();
        // The pid file and the log file of the file of all daemons are the agents'.
        let process =
            self.process.clone().or(ProcessKeys { daemon_pid_file: None, group: None, ..shared.process });
        let log = self.log.clone().or(LogKeys { verbose_file: None, ..shared.log }).or(log_of(&options));
        let service = Shared { process, log, ..Shared::default() }.resolve()?;
        let (settings, mut notes) = settings(&keys, &options)?;
        if let Some(path) = &keys.options_file {
            let shown = path.display();
            notes.extend(
                options
                    .notes
                    .iter()
                    .map(|it| format!("{shown}:{}: {} has no effect: {}", it.line, it.name, it.why)),
            );
        }
        Ok(AcmConfig {
            service,
            place: place(&keys, &options),
            most_clients: keys.max_clients.map_or(MOST_CLIENTS, Bounded::get) as usize,
            client_timeout: Duration::from_millis(
                keys.client_timeout_ms.map_or(CLIENT_TIMEOUT_MS, Bounded::get).into(),
            ),
            settings,
            notes,
        })
    }
}

/// What the options of `ibacm` say of the log.
fn log_of(options: &OptionsFile) -> LogKeys {
    let is_standard = |path: &&PathBuf| [Path::new("stdout"), Path::new("stderr")].contains(&path.as_path());
    LogKeys {
        log_level: options.log_level.map(|level| match level {
            0 => LogLevel::Info,
            1 => LogLevel::Debug,
            _ => LogLevel::Trace,
        }),
        verbose_file: options.log_file.as_ref().filter(|path| !is_standard(path)).cloned(),
        ..LogKeys::default()
    }
}

fn place(keys: &AcmKeys, options: &OptionsFile) -> ListenPlace {
    let or_link = |link: &Option<PathBuf>, is_default: bool, default: &str| {
        link.clone().or_else(|| is_default.then(|| default.into()))
    };
    let mode = keys.server_mode.or(options.server_mode.map(mode_of)).unwrap_or(ServerMode::Unix);
    match mode {
        ServerMode::Unix => ListenPlace::Unix {
            socket: keys.socket.clone().unwrap_or_else(|| SOCKET.into()),
            link: or_link(&keys.socket_link, keys.socket.is_none(), SOCKET_LINK),
        },
        ServerMode::Tcp | ServerMode::Open => ListenPlace::Tcp {
            port: keys.port.map(|port| port.get() as u16).or(options.server_port).unwrap_or(PORT),
            is_open: mode == ServerMode::Open,
            file: keys.port_file.clone().unwrap_or_else(|| PORT_FILE.into()),
            link: or_link(&keys.port_link, keys.port_file.is_none(), PORT_LINK),
        },
    }
}

/// What the service answers from, and what of it has no effect.
fn settings(keys: &AcmKeys, options: &OptionsFile) -> Result<(Settings, Vec<String>), AcmConfigError> {
    let defaults = Settings::default();
    let millis = |ms: Bounded<1, 600_000>| Duration::from_millis(ms.get().into());
    let minutes =
        |it: Option<Bounded<0, 10_000_000>>| it.map(|it| Some(Duration::from_secs(60 * u64::from(it.get()))));
    let preloaded = |wanted: Option<bool>, file: &Option<PathBuf>, default: &str| {
        wanted.unwrap_or(false).then(|| file.clone().unwrap_or_else(|| default.into()))
    };
    let hosts_data =
        keys.hosts_data.clone().or(preloaded(options.preload_addresses, &options.address_file, HOSTS_DATA));
    let route_data =
        keys.route_data.clone().or(preloaded(options.preload_routes, &options.route_file, ROUTE_DATA));
    let mut endpoints = read_with(keys.address_file.as_deref(), address_file::parse)?.unwrap_or_default();
    let mut notes = Vec::new();
    // An address of IP in that file counts only if the options say so, as agents know the machine's.
    if options.ips_in_address_file == Some(false) {
        endpoints.retain(|it| {
            let is_name = matches!(it.address, Address::Name(_));
            if !is_name {
                notes.push(format!(
                    "{} of the address file does not count: support_ips_in_addr_cfg is 0",
                    it.address
                ));
            }
            is_name
        });
    }
    let addresses = read_with(hosts_data.as_deref(), hosts_file::parse)?.unwrap_or_default();
    notes.extend(addresses.iter().filter(|(_, gids)| gids.len() > 1).map(|(name, gids)| {
        let all: Vec<_> = gids.iter().map(ToString::to_string).collect();
        format!(
            "{} is not answered, as its file says that it is {}",
            quote::harmless(&name.to_string(), MOST_SHOWN),
            all.join(" and ")
        )
    }));
    let settings = Settings {
        timeout: keys.timeout_ms.map(millis).or(options.timeout).unwrap_or(defaults.timeout),
        retries: keys.retries.map(Bounded::get).or(options.retries).unwrap_or(defaults.retries),
        address_keep: minutes(keys.address_minutes).or(options.address_keep).unwrap_or(defaults.address_keep),
        route_keep: minutes(keys.route_minutes).or(options.route_keep).unwrap_or(defaults.route_keep),
        negative_keep: keys
            .negative_ms
            .map_or(defaults.negative_keep, |ms| Duration::from_millis(ms.get().into())),
        most_asked: asked_at_once(keys, options, &defaults, &mut notes),
        most_cached: keys.cache_size.map_or(defaults.most_cached, |most| most.get() as usize),
        endpoints,
        addresses,
        paths: route_data.as_deref().map(read_paths).transpose()?.unwrap_or_default(),
        ..defaults
    };
    Ok((settings, notes))
}

/// How many questions an agent is asked at once. Each takes one of the places of those who may ask it for something.
fn asked_at_once(
    keys: &AcmKeys,
    options: &OptionsFile,
    defaults: &Settings,
    notes: &mut Vec<String>,
) -> usize {
    let said = keys.resolve_depth.map(Bounded::get).or(options.resolve_depth);
    if said.is_some_and(|depth| depth > MOST_ASKED) {
        notes.push(format!("resolve_depth counts as {MOST_ASKED}: agents answer no more programs at once"));
    }
    said.map_or(defaults.most_asked, |depth| depth.min(MOST_ASKED) as usize)
}

/// What a file of `ibacm` says, if one is named.
fn read_with<T>(
    path: Option<&Path>,
    parse: impl FnOnce(&str) -> Result<T, BadLine>,
) -> Result<Option<T>, AcmConfigError> {
    let Some(path) = path else { return Ok(None) };
    let unreadable = |source| AcmConfigError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes"))));
    }
    // Comments may be in any encoding.
    let text = String::from_utf8_lossy(&bytes);
    parse(&text).map(Some).map_err(|error| AcmConfigError::Wrong { path: path.to_owned(), error })
}

/// The paths of a file, which is read line by line, as that of a large fabric has gigabytes.
fn read_paths(path: &Path) -> Result<PathTable, AcmConfigError> {
    let unreadable = |source| AcmConfigError::Unreadable { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut reader = PathTableReader::default();
    let mut bytes_left = path_dump::MOST_BYTES;
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut file).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(unreadable)?;
        if line.is_empty() {
            return Ok(reader.finish());
        }
        let length = line.len() as u64;
        if length > MAX_LINE_BYTES {
            let why = format!("it has a line of more than {MAX_LINE_BYTES} bytes");
            return Err(unreadable(io::Error::other(why)));
        }
        bytes_left = bytes_left.checked_sub(length).ok_or_else(|| {
            unreadable(io::Error::other(format!("it is longer than {} bytes", path_dump::MOST_BYTES)))
        })?;
        // Comments may be in any encoding.
        let wrong = |error| AcmConfigError::Wrong { path: path.to_owned(), error };
        reader.line(&String::from_utf8_lossy(&line)).map_err(wrong)?;
    }
}

#[cfg(test)]
mod tests {
    use mapper_machine::options::DEFAULT_RUN_DIR;

    use super::*;
    use crate::agent::options::Options;

    fn read(line: AcmKeys) -> Result<AcmConfig, AcmConfigError> {
        let nothing: ReadFile = |_| Ok(Default::default());
        AcmSource::new(line, ProcessKeys::default(), LogKeys::default(), None, nothing).read()
    }

    #[test]
    fn paths_are_read_line_by_line_and_what_is_wrong_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("paths");
        let read_text = |text: &[u8]| {
            std::fs::write(&file, text).unwrap();
            read(AcmKeys { route_data: Some(file.clone()), ..AcmKeys::default() })
        };
        let text = b"# \xff\nSwitch 0x1, base LID 1\n2 : 0 : 4 : 3\n\n3 : 0 : 4 : 3";
        assert_eq!(read_text(text).unwrap().settings.paths.len(), 2);
        let wrong = read_text(b"Switch 0x1, base LID 1\n\n2 : 16 : 4 : 3\n").unwrap_err();
        assert!(matches!(&wrong, AcmConfigError::Wrong { error, .. } if error.line == 3), "{wrong}");
        let endless = read_text(&[b'#'; 5000]).unwrap_err();
        assert!(matches!(endless, AcmConfigError::Unreadable { .. }), "{endless}");
    }

    #[test]
    fn by_default_clients_find_it_where_they_look() {
        let config = read(AcmKeys::default()).unwrap();
        let link = Some(PathBuf::from("/run/ibacm.sock"));
        assert_eq!(config.place, ListenPlace::Unix { socket: "/run/ibacm-unix.sock".into(), link });
        let elsewhere = AcmKeys { socket: Some("/tmp/s".into()), ..AcmKeys::default() };
        assert_eq!(read(elsewhere).unwrap().place, ListenPlace::Unix { socket: "/tmp/s".into(), link: None });
        let tcp = AcmKeys { server_mode: Some(ServerMode::Open), ..AcmKeys::default() };
        let place = ListenPlace::Tcp {
            port: 6125,
            is_open: true,
            file: "/run/ibacm-tcp.port".into(),
            link: Some("/run/ibacm.port".into()),
        };
        assert_eq!(read(tcp).unwrap().place, place);
    }

    #[test]
    fn the_file_of_defaults_is_the_defaults() {
        let file = |path: &str, read_file| {
            let (process, log) = (ProcessKeys::default(), LogKeys::default());
            AcmSource::new(AcmKeys::default(), process, log, Some(path.into()), read_file).read().unwrap()
        };
        let unset = file("/nonexistent", |_| Ok(Default::default()));
        let service = ServiceConfig { run_dir: DEFAULT_RUN_DIR.into(), ..unset.service };
        let defaults = concat!(env!("CARGO_MANIFEST_DIR"), "/../mapper.toml");
        assert_eq!(file(defaults, Options::read_acm), AcmConfig { service, ..unset });
    }

    #[test]
    fn the_command_line_wins_over_the_options_of_ibacm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ibacm_opts.cfg");
        std::fs::write(&path, "timeout 100\nretries 7\nmin_mtu 2048\nserver_mode open\nserver_port 7000\n")
            .unwrap();
        let line = AcmKeys {
            options_file: Some(path.clone()),
            retries: Some("1".parse().unwrap()),
            ..AcmKeys::default()
        };
        let config = read(line.clone()).unwrap();
        assert_eq!((config.settings.timeout, config.settings.retries), (Duration::from_millis(100), 1));
        assert!(matches!(config.place, ListenPlace::Tcp { port: 7000, is_open: true, .. }));
        assert_eq!(config.notes.len(), 1);
        assert!(config.notes[0].contains("ibacm_opts.cfg:3: min_mtu has no effect: no multicast groups"));
        std::fs::write(&path, "# ok\ntimeout never\n").unwrap();
        let error = read(line).unwrap_err().to_string();
        assert!(
            error.ends_with("ibacm_opts.cfg:2: timeout `never`: expected 1 to 600000 milliseconds"),
            "{error}"
        );
    }
}
