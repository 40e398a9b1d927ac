//! `ibacm_opts.cfg`: the options of `ibacm`. A line is `name value`.
//!
//! Each is obeyed, or there is a note that says why it has no effect here. A value that `ibacm` would not understand is
//! an error.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{BadLine, lines, quoted};

/// Where the service listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On a unix socket.
    Unix,
    /// On TCP, for this machine alone.
    Loopback,
    /// On TCP, at all addresses of the machine.
    Open,
}

/// Why a line has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line, counted from 1.
    pub line: usize,
    /// The option's name.
    pub name: String,
    /// Why it has no effect.
    pub why: &'static str,
}

/// What the file says. What is `None` it does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptionsFile {
    /// The log file; `stdout` and `stderr` are standard output and error.
    pub log_file: Option<PathBuf>,
    /// How much is logged: 0 for what every administrator wants to know, 1 and 2 for more.
    pub log_level: Option<u8>,
    /// How long the service remembers which host has an address; `Some(None)` for ever.
    pub address_keep: Option<Option<Duration>>,
    /// How long a path is remembered; `Some(None)` as long as the address.
    pub route_keep: Option<Option<Duration>>,
    /// The port of TCP.
    pub server_port: Option<u16>,
    /// Where the service listens.
    pub server_mode: Option<Mode>,
    /// How long a question waits before it counts as tried once.
    pub timeout: Option<Duration>,
    /// How many more times it is tried.
    pub retries: Option<u32>,
    /// How many questions for unknown names and addresses are under way at once.
    pub resolve_depth: Option<u32>,
    /// Whether addresses are read from a file.
    pub preload_addresses: Option<bool>,
    /// The file that addresses are read from.
    pub address_file: Option<PathBuf>,
    /// Whether paths are read from a file.
    pub preload_routes: Option<bool>,
    /// The file that paths are read from.
    pub route_file: Option<PathBuf>,
    /// Whether addresses of IP in `ibacm_addr.cfg` count.
    pub ips_in_address_file: Option<bool>,
    /// The lines that have no effect.
    pub notes: Vec<Note>,
}

/// The options that have no effect, and why.
const WITHOUT_EFFECT: [(&str, &str); 13] = [
    ("lock_file", "the socket or port itself tells whether another service runs"),
    (
        "loopback_prot",
        "this machine's own addresses are known without asking anybody, whichever way they are looked up",
    ),
    ("sa_depth", "there is no subnet administrator to ask: paths come from this machine's map and routes"),
    (
        "send_depth",
        "no queue pairs are opened: agents send at most 64 questions of all their services at once",
    ),
    ("recv_depth", "no queue pairs are opened: agents answer what comes, up to 20000 questions a second"),
    (
        "min_mtu",
        "no multicast groups are joined: a path has the MTU that both ends take, on Ethernet often less than 2048",
    ),
    ("min_rate", "no multicast groups are joined: a path has the rate that both ends have"),
    ("provider", "the agents of this machine are the only provider"),
    ("provider_lib_path", "the agents of this machine are the only provider"),
    ("umad_debug_level", "no device of InfiniBand's is opened"),
    ("kernel_only", "the kernel is not served"),
    ("acme_plus_kernel_only", "the kernel is not served"),
    ("dump_route", "`mapper board-info --routes` tells the routes"),
];

/// Reads the file.
///
/// # Errors
/// If a line is no `name value`, or its value none of the option's.
pub fn parse(text: &str) -> Result<OptionsFile, BadLine> {
    let mut options = OptionsFile::default();
    for (line, words) in lines(text) {
        let [name, value, ref rest @ ..] = words[..] else {
            return Err(BadLine::new(
                line,
                format!("expected `name value`, found {} alone", quoted(words[0])),
            ));
        };
        if name != "provider" && !rest.is_empty() {
            return Err(BadLine::new(line, format!("expected `name value`, found {} words", words.len())));
        }
        options.take(&OptionLine { line, name: &name.to_ascii_lowercase(), value })?;
    }
    Ok(options)
}

/// An option as a line of the file gives it.
struct OptionLine<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
}

impl OptionLine<'_> {
    /// The value as `read` reads it; an error that says what was expected if it cannot.
    fn read<T>(
        &self,
        read: impl FnOnce(&str) -> Option<T>,
        expected: &'static str,
    ) -> Result<Option<T>, BadLine> {
        let wrong = || format!("{} {}: expected {expected}", self.name, quoted(self.value));
        read(self.value).map(Some).ok_or_else(|| BadLine::new(self.line, wrong()))
    }
}

impl OptionsFile {
    fn take(&mut self, option: &OptionLine<'_>) -> Result<(), BadLine> {
        match option.name {
            "log_file" => self.log_file = Some(option.value.into()),
            "log_level" => self.log_level = option.read(|it| within(it, 0..=2), "0, 1 or 2")?,
            "addr_prot" => _ = option.read(|it| one_of(it, &["acm"]), "acm")?,
            "route_prot" => {
                option.read(|it| one_of(it, &["acm", "sa"]), "acm or sa")?;
                self.note(option, "paths come from this machine's map and routes either way");
            }
            "addr_timeout" => self.address_keep = option.read(minutes, "minutes, or -1 for ever")?,
            "route_timeout" => self.route_keep = option.read(minutes, "minutes, or -1 for ever")?,
            "server_port" => {
                self.server_port = option.read(|it| within(it, 1..=u16::MAX), "a port of TCP")?;
            }
            "server_mode" => self.server_mode = option.read(mode, "unix, loop or open")?,
            "timeout" => {
                let ms = option.read(|it| within(it, 1..=600_000), "1 to 600000 milliseconds")?;
                self.timeout = ms.map(Duration::from_millis);
            }
            "retries" => self.retries = option.read(|it| within(it, 0..=100), "0 to 100")?,
            "resolve_depth" => {
                self.resolve_depth = option.read(|it| within(it, 1..=65_535), "1 to 65535")?;
            }
            "addr_preload" => {
                self.preload_addresses = option.read(|it| either(it, "acm_hosts"), "none or acm_hosts")?;
            }
            "route_preload" => {
                self.preload_routes =
                    option.read(|it| either(it, "opensm_full_v1"), "none or opensm_full_v1")?;
            }
            "addr_data_file" => self.address_file = Some(option.value.into()),
            "route_data_file" => self.route_file = Some(option.value.into()),
            "support_ips_in_addr_cfg" => self.ips_in_address_file = option.read(truth, "0 or 1")?,
            name => {
                let known = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name);
                let why = known.map_or("it is not known, and ibacm ignores it, too", |(_, why)| why);
                self.note(option, why);
            }
        }
        Ok(())
    }

    fn note(&mut self, option: &OptionLine<'_>, why: &'static str) {
        self.notes.push(Note { line: option.line, name: option.name.to_owned(), why });
    }
}

/// A number from this range.
fn within<T: FromStr + PartialOrd>(value: &str, range: RangeInclusive<T>) -> Option<T> {
    value.parse().ok().filter(|number| range.contains(number))
}

/// Nothing, if the value is one of these words.
fn one_of(value: &str, words: &[&str]) -> Option<()> {
    words.contains(&value).then_some(())
}

fn mode(value: &str) -> Option<Mode> {
    match value {
        "unix" => Some(Mode::Unix),
        "loop" => Some(Mode::Loopback),
        "open" => Some(Mode::Open),
        _ => None,
    }
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "1" | "true" | "yes" => Some(true),
        "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// How many minutes, or `None` for -1.
fn minutes(value: &str) -> Option<Option<Duration>> {
    match value.parse().ok()? {
        -1 => Some(None),
        minutes @ 0.. => Some(Some(Duration::from_secs(u64::from(minutes.unsigned_abs()) * 60))),
        i32::MIN..=-2 => None,
    }
}

/// Whether a value is this word; `None` if it is neither that nor `none`.
fn either(value: &str, word: &str) -> Option<bool> {
    match value {
        "none" => Some(false),
        _ => (value == word).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_obeyed_or_have_a_note() {
        let text = "# options\nlog_file /var/log/x\nlog_level 2\nlock_file /run/x\naddr_prot acm\naddr_timeout 10\n\
            route_prot sa\nroute_timeout -1\nserver_port 7000\nserver_mode loop\ntimeout 100\nretries 1\nresolve_depth 3\n\
            addr_preload acm_hosts\naddr_data_file /h\nroute_preload none\nnonsense 7\nprovider ibacmp default\n";
        let options = parse(text).unwrap();
        assert_eq!(options.address_keep, Some(Some(Duration::from_secs(600))));
        assert_eq!((options.route_keep, options.server_port), (Some(None), Some(7000)));
        assert_eq!((options.server_mode, options.retries), (Some(Mode::Loopback), Some(1)));
        assert_eq!(options.resolve_depth, Some(3));
        assert_eq!((options.preload_addresses, options.preload_routes), (Some(true), Some(false)));
        let notes: Vec<_> = options.notes.iter().map(|note| (note.line, note.name.as_str())).collect();
        assert_eq!(notes, [(4, "lock_file"), (7, "route_prot"), (17, "nonsense"), (18, "provider")]);
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (text, said) in [
            ("timeout", "line 1: expected `name value`, found `timeout` alone"),
            ("\ntimeout 0", "line 2: timeout `0`: expected 1 to 600000 milliseconds"),
            ("addr_timeout -2", "line 1: addr_timeout `-2`: expected minutes"),
            ("addr_prot sa", "line 1: addr_prot `sa`: expected acm"),
            ("server_mode tcp 1", "line 1: expected `name value`, found 3 words"),
            ("server_mode both", "line 1: server_mode `both`: expected unix, loop or open"),
            ("server_port 65536", "line 1: server_port `65536`: expected a port"),
        ] {
            assert!(parse(text).unwrap_err().to_string().starts_with(said), "{text}");
        }
    }
}
