//! For programs that want paths: a connection to the ACM service of this machine, or of another.
//!
//! [`Client`] asks many questions at once over one connection, in any number of tasks. [`blocking::Client`] asks one after
//! the other, without a runtime. Both speak as `ibacm` does, so they understand any service that does.

mod asynchronous;
pub mod blocking;

pub use asynchronous::Client;

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_acm::wire::{COUNTERS, EndpointInfo, MOST_ADDRESSES, Malformed, PathRecord, Reply, Status};
use thiserror::Error;

pub use mapper_acm::wire::{Address, EntryFlags, Question, Sought};

/// How long a service may take to answer unless it is said otherwise: longer than it tries to find out by itself with the
/// time-outs that it has by default.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The file in which a service of TCP on this machine tells its port.
const PORT_FILE: &str = "/run/ibacm.port";
/// The unix socket of this machine's service.
const SOCKET: &str = "/run/ibacm.sock";
/// The port if there is no such file.
const PORT: u16 = 6125;
/// The most pages of addresses that are asked for of one endpoint.
const MOST_PAGES: u8 = 255;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("cannot reach the service at {place}; is it running (`systemctl start mapper-acm.socket`)?")]
    Unreachable {
        /// The socket or address.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// The service has closed the connection, or it was closed as a request could not be sent as a whole.
    #[error("the connection to the service is closed; connect again")]
    Closed,
    /// The service does not answer.
    #[error("the service does not answer")]
    Silent,
    /// The connection failed.
    #[error("the connection to the service failed")]
    Io(#[from] io::Error),
    /// What came is no reply.
    #[error("what came is no reply: {0}")]
    Malformed(#[from] Malformed),
    /// The service says that it cannot answer.
    #[error("{0}")]
    Refused(Status),
}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceAddress {
    /// At a unix socket.
    Unix(PathBuf),
    /// At a host, by its name or address; the port is the one that this machine's service tells, or 6125.
    Host(String),
}

impl ServiceAddress {
    /// As users write it: what begins with a slash is a unix socket.
    pub fn parse(text: &str) -> Self {
        if text.starts_with('/') { Self::Unix(text.into()) } else { Self::Host(text.to_owned()) }
    }

    /// The service of this machine, where librdmacm looks: on TCP if a file tells its port, else at the unix socket.
    pub fn local() -> Self {
        Self::local_with(Path::new(PORT_FILE))
    }

    fn local_with(port_file: &Path) -> Self {
        match port_told(port_file) {
            Some(_) => Self::Host(Ipv4Addr::LOCALHOST.to_string()),
            None => Self::Unix(SOCKET.into()),
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        let place = match self {
            Self::Unix(path) => path.display().to_string(),
            Self::Host(host) => host.clone(),
        };
        ClientError::Unreachable { place, source }
    }
}

/// The port that a file tells; `None` if there is none.
fn port_told(file: &Path) -> Option<u16> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok().filter(|&port| port > 0)
}

/// The port of TCP that services listen on.
fn tcp_port() -> u16 {
    port_told(Path::new(PORT_FILE)).unwrap_or(PORT)
}

/// A path, and the source that the service chose if none was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The path.
    pub path: PathRecord,
    /// The source that was chosen.
    pub source: Option<Address>,
}

fn as_path(reply: Reply) -> Result<Resolved, ClientError> {
    match reply {
        Reply::Path { path, source, .. } => Ok(Resolved { path, source }),
        Reply::Failed(status) => Err(ClientError::Refused(status)),
        Reply::Counters(_) | Reply::Endpoint(_) | Reply::Changed(_) => {
            Err(ClientError::Malformed(Malformed::CutOff))
        }
    }
}

fn as_counters(reply: &Reply) -> Result<[u64; COUNTERS], ClientError> {
    match reply {
        Reply::Counters(counters) => Ok(*counters),
        Reply::Failed(status) => Err(ClientError::Refused(*status)),
        Reply::Path { .. } | Reply::Endpoint(_) | Reply::Changed(_) => {
            Err(ClientError::Malformed(Malformed::CutOff))
        }
    }
}

fn as_endpoint(reply: Reply) -> Result<EndpointInfo, ClientError> {
    match reply {
        Reply::Endpoint(endpoint) => Ok(endpoint),
        Reply::Failed(status) => Err(ClientError::Refused(status)),
        Reply::Path { .. } | Reply::Counters(_) | Reply::Changed(_) => {
            Err(ClientError::Malformed(Malformed::CutOff))
        }
    }
}

fn as_change(reply: &Reply) -> Result<u32, ClientError> {
    match reply {
        Reply::Changed(number) => Ok(*number),
        Reply::Failed(status) => Err(ClientError::Refused(*status)),
        Reply::Path { .. } | Reply::Counters(_) | Reply::Endpoint(_) => {
            Err(ClientError::Malformed(Malformed::CutOff))
        }
    }
}

/// Whether an endpoint has as many addresses as there can be in so many pages, so that another page may follow.
fn is_full_page(info: &EndpointInfo) -> bool {
    !info.addresses.is_empty() && info.addresses.len().is_multiple_of(MOST_ADDRESSES)
}

/// Adds a page of addresses, and says whether there was one. A service that does not know of pages tells the first one
/// again.
fn add_page(info: &mut EndpointInfo, more: Result<EndpointInfo, ClientError>) -> Result<bool, ClientError> {
    match more {
        Ok(more) if !info.addresses.starts_with(&more.addresses) => {
            info.addresses.extend(more.addresses);
            Ok(true)
        }
        Ok(_) | Err(ClientError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A question for the path from `source`, or from what the service finds best, to `destination`.
fn question(source: Option<Address>, destination: Address, flags: EntryFlags) -> Question {
    Question { sought: Sought::Destination { source, destination }, flags }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_of_this_machine_is_on_tcp_if_a_file_tells_its_port() {
        let file = std::env::temp_dir().join(format!("acm-port-{}", std::process::id()));
        let unix = ServiceAddress::Unix("/run/ibacm.sock".into());
        assert_eq!(ServiceAddress::local_with(&file), unix);
        for (told, expected) in
            [("6125\n", ServiceAddress::Host("127.0.0.1".to_owned())), ("none", unix.clone()), ("0", unix)]
        {
            std::fs::write(&file, told).unwrap();
            assert_eq!(ServiceAddress::local_with(&file), expected, "{told}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
