//! A client that asks many questions at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mapper_acm::wire::{
    Address, COUNTERS, EndpointInfo, EntryFlags, PathRecord, Question, Reply, Request, Sought, reply_bytes,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{
    ClientError, MOST_PAGES, PATIENCE, Resolved, ServiceAddress, add_page, as_change, as_counters,
    as_endpoint, as_path, is_full_page, question,
};

/// Who waits for which reply. `None` once the connection has ended.
type Waiting = Arc<Mutex<Option<BTreeMap<u64, oneshot::Sender<Reply>>>>>;

/// A connection to a service, which any number of tasks may use at once. Replies come in any order, and each goes to whom
/// it belongs.
pub struct Client {
    /// Requests on their way to the task that writes them, each whole. Whoever asks may give up at any moment, and a part
    /// of a request must not be followed by another.
    requests: mpsc::Sender<Vec<u8>>,
    next_tid: AtomicU64,
    patience: Duration,
    waiting: Waiting,
    tasks: [JoinHandle<()>; 2],
}

/// How many requests may wait to be written.
const MOST_UNWRITTEN: usize = 64;

/// Somebody who waits for a reply, until it has come or this is dropped.
struct Waits<'a> {
    waiting: &'a Waiting,
    tid: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut().map(|waiting| waiting.remove(&self.tid));
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to a service. To be called in a tokio runtime.
    ///
    /// # Errors
    /// If nobody listens there.
    pub async fn connect(service: &ServiceAddress) -> Result<Self, ClientError> {
        let failed = |source| service.unreachable(source);
        match service {
            ServiceAddress::Unix(path) => {
                let (reader, writer) = UnixStream::connect(path).await.map_err(failed)?.into_split();
                Ok(Self::new(reader, Box::new(writer)))
            }
            ServiceAddress::Host(host) => {
                let stream = TcpStream::connect((host.as_str(), crate::tcp_port())).await.map_err(failed)?;
                stream.set_nodelay(true)?;
                let (reader, writer) = stream.into_split();
                Ok(Self::new(reader, Box::new(writer)))
            }
        }
    }

    fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Self {
        let waiting: Waiting = Arc::new(Mutex::new(Some(BTreeMap::new())));
        let (requests, to_write) = mpsc::channel(MOST_UNWRITTEN);
        let reads = tokio::spawn(hand_out(reader, Arc::clone(&waiting)));
        let writes = tokio::spawn(write_all(writer, to_write, Arc::clone(&waiting)));
        let (next_tid, tasks) = (AtomicU64::new(1), [reads, writes]);
        Self { requests, next_tid, patience: PATIENCE, waiting, tasks }
    }

    /// The client with another time in which the service may answer, which is [`PATIENCE`] at first.
    /// [`Self::changed`] waits as long as it takes, if this is more than ten seconds.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The path to a name or an address, from `source` or from what the service finds best.
    ///
    /// # Errors
    /// If the service does not answer, or says why there is no path.
    pub async fn resolve(
        &self,
        source: Option<Address>,
        destination: Address,
        flags: EntryFlags,
    ) -> Result<Resolved, ClientError> {
        as_path(self.ask(&Request::Resolve(question(source, destination, flags))).await?)
    }

    /// Completes a path of which LIDs or GIDs are known; with [`EntryFlags::VERIFY`] it must be as the map and the routes
    /// in force have it.
    ///
    /// # Errors
    /// If the service does not answer, or says why there is no such path.
    pub async fn resolve_path(&self, path: PathRecord, flags: EntryFlags) -> Result<PathRecord, ClientError> {
        let question = Question { sought: Sought::Path(path), flags };
        Ok(as_path(self.ask(&Request::Resolve(question)).await?)?.path)
    }

    /// The counters of an endpoint, from 1, or of all together for 0.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub async fn counters(&self, endpoint: u8) -> Result<[u64; COUNTERS], ClientError> {
        as_counters(&self.ask(&Request::Counters { endpoint, source: None }).await?)
    }

    /// The counters of the endpoint that has this name or address.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub async fn counters_of(&self, source: Address) -> Result<[u64; COUNTERS], ClientError> {
        as_counters(&self.ask(&Request::Counters { endpoint: 0, source: Some(Ok(source)) }).await?)
    }

    /// An endpoint, from 1, with all its addresses.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub async fn endpoint(&self, endpoint: u8) -> Result<EndpointInfo, ClientError> {
        let mut info = as_endpoint(self.ask(&Request::Endpoint { endpoint, port: 0, page: 0 }).await?)?;
        for page in 1..=MOST_PAGES {
            if !is_full_page(&info) {
                break;
            }
            let more = as_endpoint(self.ask(&Request::Endpoint { endpoint, port: 0, page }).await?);
            if !add_page(&mut info, more)? {
                break;
            }
        }
        Ok(info)
    }

    /// Waits until the service may answer something otherwise than at the change `seen`, as after a new map, and returns
    /// the number of the last change. What was resolved before is to be resolved anew then. 0 for `seen` returns at once
    /// with the number of now. Numbers count for one connection: after a new one begin with 0. `ibacm` itself knows nothing
    /// of this, and closes the connection.
    ///
    /// # Errors
    /// If the service does not answer, which it does every ten seconds while nothing changes, or has too much to do.
    pub async fn changed(&self, seen: u32) -> Result<u32, ClientError> {
        loop {
            let number = as_change(&self.ask(&Request::Changed { seen }).await?)?;
            if number != seen {
                return Ok(number);
            }
        }
    }

    async fn ask(&self, request: &Request) -> Result<Reply, ClientError> {
        let (sender, receiver) = oneshot::channel();
        let tid = self.next_tid.fetch_add(1, Ordering::Relaxed);
        let bytes = request.to_bytes(tid)?;
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.as_mut().ok_or(ClientError::Closed)?.insert(tid, sender);
        }
        let _waits = Waits { waiting: &self.waiting, tid };
        let asked = async {
            self.requests.send(bytes).await.map_err(|_| ClientError::Closed)?;
            receiver.await.map_err(|_| ClientError::Closed)
        };
        timeout(self.patience, asked).await.map_err(|_| ClientError::Silent)?
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Writes requests, each whole, until the connection ends.
async fn write_all(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut requests: mpsc::Receiver<Vec<u8>>,
    waiting: Waiting,
) {
    while let Some(request) = requests.recv().await {
        if writer.write_all(&request).await.is_err() {
            break;
        }
    }
    // All who wait learn that there will be no answer.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Reads replies, and hands each to whom it belongs, until the connection ends or what comes is no reply.
async fn hand_out(mut reader: impl AsyncRead + Unpin, waiting: Waiting) {
    let mut received = Vec::new();
    while reader.read_buf(&mut received).await.is_ok_and(|length| length > 0) {
        let mut taken = 0;
        let ended = loop {
            match reply_bytes(&received[taken..]) {
                Ok(Some(length)) => {
                    let Ok((header, reply)) = Reply::parse(&received[taken..taken + length]) else {
                        break true;
                    };
                    taken += length;
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&header.tid)) {
                        // Whoever asked may have given up.
                        let _given_up = sender.send(reply);
                    }
                }
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        if ended {
            break;
        }
        received.drain(..taken);
    }
    // All who wait learn that there will be no answer.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}
