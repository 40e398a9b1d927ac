//! Serves metrics to clients over HTTP, and writes them to a file every 15 seconds.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{error, info};

use super::server::{Scrape, Server};
use super::text::Dialect;
use crate::options::{MetricsAddress, ServiceConfig};
use crate::whole_file;

/// How often the file is written.
const FILE_INTERVAL: Duration = Duration::from_secs(15);

/// Why metrics cannot be served or written.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The address cannot be listened on.
    #[error("cannot serve metrics on {address}; is another program there? choose another --metrics-listen")]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write metrics to {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The server and the file that a daemon's metrics go to.
#[derive(Debug)]
pub struct Exporter {
    server: Option<Server>,
    file: Option<MetricsFile>,
}

#[derive(Debug)]
struct MetricsFile {
    path: Arc<Path>,
    due: Interval,
    /// Whether the last write failed, which has been logged.
    failing: Arc<AtomicBool>,
    /// Whether a write is under way. While it is, no other begins, as writes would pile up if the disk hangs.
    writing: Arc<AtomicBool>,
}

/// A request for the metrics as they are now, of a client or for the file.
#[derive(Debug)]
pub struct MetricsRequest {
    dialect: Dialect,
    recipient: Recipient,
}

#[derive(Debug)]
enum Recipient {
    Client(Scrape),
    File { path: Arc<Path>, failing: Arc<AtomicBool>, writing: Arc<AtomicBool> },
}

impl Exporter {
    /// Begins to listen, and checks that the file can be written. Without address and file there are never
    /// any requests. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the address is taken, or the file cannot be written.
    pub fn new(config: &ServiceConfig) -> Result<Self, MetricsError> {
        Self::open(config.metrics_listen.as_ref(), config.metrics_file.as_deref())
    }

    fn open(listen: Option<&MetricsAddress>, file: Option<&Path>) -> Result<Self, MetricsError> {
        let server = listen
            .map(|listen| {
                Server::bind(listen)
                    .map_err(|source| MetricsError::Listen { address: listen.to_string(), source })
            })
            .transpose()?;
        let file = file.map(MetricsFile::new).transpose()?;
        Ok(Self { server, file })
    }

    /// The address where clients are served, if that is over TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().and_then(Server::address)
    }

    /// Waits for the next request. Nothing is lost if the future is dropped.
    pub async fn requested(&mut self) -> MetricsRequest {
        let Self { server, file } = self;
        tokio::select! {
            scrape = next_scrape(server.as_mut()) => {
                MetricsRequest { dialect: Dialect::OpenMetrics, recipient: Recipient::Client(scrape) }
            }
            recipient = next_writing(file.as_mut()) => MetricsRequest { dialect: Dialect::Prometheus, recipient },
        }
    }
}

async fn next_scrape(server: Option<&mut Server>) -> Scrape {
    match server {
        Some(server) => match server.scrape().await {
            Some(scrape) => scrape,
            // This does not happen, as the task that serves lives as long as the server.
            None => pending().await,
        },
        None => pending().await,
    }
}

async fn next_writing(file: Option<&mut MetricsFile>) -> Recipient {
    let Some(file) = file else { return pending().await };
    loop {
        file.due.tick().await;
        if !file.writing.load(Ordering::Relaxed) {
            let MetricsFile { path, failing, writing, .. } = file;
            return Recipient::File {
                path: Arc::clone(path),
                failing: Arc::clone(failing),
                writing: Arc::clone(writing),
            };
        }
    }
}

impl MetricsFile {
    fn new(path: &Path) -> Result<Self, MetricsError> {
        whole_file::check(path).map_err(|source| MetricsError::File { path: path.to_owned(), source })?;
        let mut due = interval(FILE_INTERVAL);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self { path: path.into(), due, failing: Arc::default(), writing: Arc::default() })
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        // A file that is left behind would look like the metrics of a daemon that still runs.
        let _already_gone = std::fs::remove_file(&self.path);
    }
}

impl MetricsRequest {
    /// The format that is wanted.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Answers with the text. A file is written on another thread.
    pub fn answer(self, text: String) {
        match self.recipient {
            // Sending fails if the client went away meanwhile, and then nothing is to be done.
            Recipient::Client(scrape) => drop(scrape.send(text)),
            Recipient::File { path, failing, writing } => {
                writing.store(true, Ordering::Relaxed);
                drop(tokio::task::spawn_blocking(move || {
                    write(&path, &text, &failing);
                    writing.store(false, Ordering::Relaxed);
                }));
            }
        }
    }
}

/// Writes the file, and logs when that begins to fail and when it works again.
fn write(path: &Path, text: &str, failing: &AtomicBool) {
    match whole_file::replace(path, text) {
        Ok(()) => {
            if failing.swap(false, Ordering::Relaxed) {
                info!(?path, "metrics are written again");
            }
        }
        Err(error) => {
            if !failing.swap(true, Ordering::Relaxed) {
                error!(?path, %error, "cannot write the metrics; the file keeps the old ones");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_written_at_once_and_goes_with_the_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mapper.prom");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut exporter = Exporter::open(None, Some(&path)).unwrap();
            let request = exporter.requested().await;
            assert_eq!(request.dialect(), Dialect::Prometheus);
            request.answer("x 1\n".to_owned());
            while std::fs::read_to_string(&path).is_err() {
                tokio::task::yield_now().await;
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "x 1\n");
        });
        assert!(!path.exists());
    }

    #[test]
    fn a_file_or_address_that_cannot_be_used_is_an_error_that_names_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nonexistent/x.prom");
        let error = Exporter::open(None, Some(&path)).unwrap_err().to_string();
        assert!(error.contains("nonexistent/x.prom"), "{error}");
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = MetricsAddress::Loopback(taken.local_addr().unwrap());
        let error = Exporter::open(Some(&address), None).unwrap_err().to_string();
        assert!(error.contains(&taken.local_addr().unwrap().to_string()), "{error}");
    }
}
