//! The plan of the fabric's wiring, which is a table in the file of all daemons.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Text;

/// The options of the plan. What is `None` was not set.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PlanKeys {
    /// The plan: a file in any format of fabrics or lists of cables, or a generator's spec.
    pub file: Option<String>,
    /// What is told, as JSON, when what is not as planned changes: a command of the shell, or a URL.
    pub on_change: Option<Text<OnChange>>,
}

/// Who is told of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnChange {
    /// A command of the shell, which gets the JSON on its standard input.
    Command(String),
    /// A URL of `http`, to which the JSON is posted.
    Url {
        /// The host, by name or address, without brackets.
        host: String,
        /// The port of TCP.
        port: u16,
        /// The path, with its slash.
        path: String,
    },
}

/// Why nobody can be told.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseOnChangeError {
    /// There is no text.
    #[error("name a command, or a URL like http://127.0.0.1:8080/plan")]
    Empty,
    /// The daemon has no TLS.
    #[error("https is not spoken here; name a command that does, such as `curl --data-binary @- {0}`")]
    Https(String),
    /// No host, or no port.
    #[error("`{0}` is no URL; expected one like http://127.0.0.1:8080/plan")]
    Url(String),
}

impl FromStr for OnChange {
    type Err = ParseOnChangeError;

    fn from_str(text: &str) -> Result<Self, ParseOnChangeError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseOnChangeError::Empty);
        }
        if text.starts_with("https://") {
            return Err(ParseOnChangeError::Https(text.to_owned()));
        }
        let Some(rest) = text.strip_prefix("http://") else { return Ok(Self::Command(text.to_owned())) };
        let wrong = || ParseOnChangeError::Url(text.to_owned());
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        if host.is_empty() || port == 0 || host.contains('@') || !is_plain(host) || !is_plain(path) {
            return Err(wrong());
        }
        Ok(Self::Url { host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl fmt::Display for OnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Url { host, port, path } if host.contains(':') => write!(f, "http://[{host}]:{port}{path}"),
            Self::Url { host, port, path } => write!(f, "http://{host}:{port}{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_urls_are_told_apart() {
        let url = |host: &str, port, path: &str| OnChange::Url {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        };
        assert_eq!(
            "/usr/bin/notify --now".parse(),
            Ok(OnChange::Command("/usr/bin/notify --now".to_owned()))
        );
        assert_eq!("http://127.0.0.1:8080/plan?a=b".parse(), Ok(url("127.0.0.1", 8080, "/plan?a=b")));
        assert_eq!("http://[::1]:80".parse(), Ok(url("::1", 80, "/")));
        assert_eq!("http://[::1]/x".parse(), Ok(url("::1", 80, "/x")));
        for wrong in
            ["", "https://host/", "http://", "http://host:0/", "http://host:x/", "http://a b/", "http://u@h/"]
        {
            assert!(wrong.parse::<OnChange>().is_err(), "{wrong}");
        }
        for text in ["http://[::1]:80/", "http://host:8080/plan"] {
            assert_eq!(text.parse::<OnChange>().unwrap().to_string(), text);
        }
    }
}
