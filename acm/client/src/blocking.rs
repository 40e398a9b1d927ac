//! A client without a runtime: it asks one question after the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mapper_acm::wire::{
    Address, COUNTERS, EndpointInfo, EntryFlags, PathRecord, Question, Reply, Request, Sought, reply_bytes,
};

use crate::{
    ClientError, MOST_PAGES, PATIENCE, Resolved, ServiceAddress, add_page, as_change, as_counters,
    as_endpoint, as_path, is_full_page, question,
};

/// A connection of any kind.
trait Connection: Read + Write + Send + std::fmt::Debug {
    /// Has each read and each write fail that takes longer.
    ///
    /// # Errors
    /// If it is no time at all.
    fn set_time_out(&self, time_out: Duration) -> io::Result<()>;
}

impl Connection for UnixStream {
    fn set_time_out(&self, time_out: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time_out))?;
        self.set_write_timeout(Some(time_out))
    }
}

impl Connection for TcpStream {
    fn set_time_out(&self, time_out: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time_out))?;
        self.set_write_timeout(Some(time_out))
    }
}

/// The time that one question and its answer have together.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    patience: Duration,
    /// `None` if it is later than clocks can tell.
    at: Option<Instant>,
}

impl Deadline {
    fn after(patience: Duration) -> Self {
        Self { patience, at: Instant::now().checked_add(patience) }
    }

    /// Has the next read or write take no longer than what is left.
    ///
    /// # Errors
    /// If nothing is left.
    fn bound(self, stream: &dyn Connection) -> Result<(), ClientError> {
        let left = self.at.map_or(self.patience, |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(ClientError::Silent);
        }
        Ok(stream.set_time_out(left)?)
    }
}

/// A connection to a service.
#[derive(Debug)]
pub struct Client {
    /// `None` once a request went out only in part: the service would take the next one for the rest of it.
    stream: Option<Box<dyn Connection>>,
    received: Vec<u8>,
    next_tid: u64,
    patience: Duration,
}

impl Client {
    /// Connects to a service.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(service: &ServiceAddress) -> Result<Self, ClientError> {
        let connect = || -> io::Result<Box<dyn Connection>> {
            match service {
                ServiceAddress::Unix(path) => Ok(Box::new(UnixStream::connect(path)?)),
                ServiceAddress::Host(host) => {
                    let stream = TcpStream::connect((host.as_str(), crate::tcp_port()))?;
                    stream.set_nodelay(true)?;
                    Ok(Box::new(stream))
                }
            }
        };
        let stream = connect().map_err(|source| service.unreachable(source))?;
        Ok(Self::new(stream))
    }

    fn new(stream: Box<dyn Connection>) -> Self {
        Self { stream: Some(stream), received: Vec::new(), next_tid: 1, patience: PATIENCE }
    }

    /// Changes how long a question may take, from when it is asked until its answer is there. This is [`PATIENCE`] at first.
    /// A reply that comes later is passed over. [`Self::changed`] waits as long as it takes, if this is more than ten seconds.
    ///
    /// # Errors
    /// If it is no time at all.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), ClientError> {
        if patience.is_zero() {
            let why = "a service needs some time to answer, and its patience was set to none";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        self.patience = patience;
        Ok(())
    }

    /// The path to a name or an address, from `source` or from what the service finds best.
    ///
    /// # Errors
    /// If the service does not answer, or says why there is no path.
    pub fn resolve(
        &mut self,
        source: Option<Address>,
        destination: Address,
        flags: EntryFlags,
    ) -> Result<Resolved, ClientError> {
        as_path(self.ask(&Request::Resolve(question(source, destination, flags)))?)
    }

    /// Completes a path of which LIDs or GIDs are known; with [`EntryFlags::VERIFY`] it must be as the map and the routes
    /// in force have it.
    ///
    /// # Errors
    /// If the service does not answer, or says why there is no such path.
    pub fn resolve_path(&mut self, path: PathRecord, flags: EntryFlags) -> Result<PathRecord, ClientError> {
        let question = Question { sought: Sought::Path(path), flags };
        Ok(as_path(self.ask(&Request::Resolve(question))?)?.path)
    }

    /// The counters of an endpoint, from 1, or of all together for 0.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub fn counters(&mut self, endpoint: u8) -> Result<[u64; COUNTERS], ClientError> {
        as_counters(&self.ask(&Request::Counters { endpoint, source: None })?)
    }

    /// The counters of the endpoint that has this name or address.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub fn counters_of(&mut self, source: Address) -> Result<[u64; COUNTERS], ClientError> {
        as_counters(&self.ask(&Request::Counters { endpoint: 0, source: Some(Ok(source)) })?)
    }

    /// An endpoint, from 1, with all its addresses.
    ///
    /// # Errors
    /// If the service does not answer, or there is no such endpoint.
    pub fn endpoint(&mut self, endpoint: u8) -> Result<EndpointInfo, ClientError> {
        let mut info = as_endpoint(self.ask(&Request::Endpoint { endpoint, port: 0, page: 0 })?)?;
        for page in 1..=MOST_PAGES {
            if !is_full_page(&info) {
                break;
            }
            let more = as_endpoint(self.ask(&Request::Endpoint { endpoint, port: 0, page })?);
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
    pub fn changed(&mut self, seen: u32) -> Result<u32, ClientError> {
        loop {
            let number = as_change(&self.ask(&Request::Changed { seen })?)?;
            if number != seen {
                return Ok(number);
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let tid = self.next_tid;
        self.next_tid += 1;
        let deadline = Deadline::after(self.patience);
        self.send(&request.to_bytes(tid)?, deadline)?;
        loop {
            let (header, reply) = self.receive(deadline)?;
            // The reply to a question that was given up may still come.
            if header == tid {
                return Ok(reply);
            }
        }
    }

    /// Sends a request. If only a part of it goes out, the connection is closed.
    fn send(&mut self, request: &[u8], deadline: Deadline) -> Result<(), ClientError> {
        let stream = self.stream.as_mut().ok_or(ClientError::Closed)?;
        let mut left = request;
        let failed = loop {
            match write_some(stream.as_mut(), left, deadline) {
                Ok(written) if written == left.len() => return Ok(()),
                Ok(written) => left = &left[written..],
                Err(error) => break error,
            }
        };
        if left.len() < request.len() {
            self.stream = None;
        }
        Err(failed)
    }

    fn receive(&mut self, deadline: Deadline) -> Result<(u64, Reply), ClientError> {
        loop {
            if let Some(length) = reply_bytes(&self.received)? {
                let (header, reply) = Reply::parse(&self.received)?;
                self.received.drain(..length);
                return Ok((header.tid, reply));
            }
            let stream = self.stream.as_mut().ok_or(ClientError::Closed)?;
            let mut piece = [0; 4096];
            deadline.bound(stream.as_ref())?;
            match stream.read(&mut piece) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                // Linux never restarts a read that has a time-out after a handler of signals has run.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(in_time(error)),
            }
        }
    }
}

/// Writes as much as the connection takes at once.
fn write_some(stream: &mut dyn Connection, bytes: &[u8], deadline: Deadline) -> Result<usize, ClientError> {
    loop {
        deadline.bound(stream)?;
        match stream.write(bytes) {
            Ok(0) => return Err(ClientError::Closed),
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(in_time(error)),
        }
    }
}

/// What an error of the connection means: a time-out, for one, that the service is silent.
fn in_time(error: io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ClientError::Closed,
        _ => ClientError::Io(error),
    }
}

#[cfg(test)]
mod tests;
