//! An interface that may vanish and return, with the socket on it.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use enum_map::Enum;
use mapper_proto::{Mac, Tally};
use strum::IntoStaticStr;
use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::batch::{Batch, SendQueue};
use super::ethernet::{EthernetSocket, HEADER_BYTES, Marking};
use super::interface::{Interface, InterfaceChange};
use super::{LinkError, Unsent};

/// How long to wait after an unexpected error before the socket is read again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What is counted of the frames over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LinkCount {
    /// Frames that arrived.
    Received,
    /// Bytes that arrived, with the Ethernet headers.
    ReceivedBytes,
    /// Frames that the kernel lost, as they arrived faster than they were taken.
    Overruns,
    /// Frames that the kernel took.
    Sent,
    /// Bytes that the kernel took, with the Ethernet headers.
    SentBytes,
    /// Frames that the kernel did not take, as there was no room, they were too long, or the interface was
    /// down or gone.
    Unsent,
}

/// Counts frames that arrived, and their bytes.
pub(super) fn count_received(counts: &mut Tally<LinkCount>, frames: usize, bytes: usize) {
    counts.add(LinkCount::Received, frames as u64);
    counts.add(LinkCount::ReceivedBytes, bytes as u64);
}

/// Counts frames that the kernel or the other end took, and their bytes.
pub(super) fn count_sent(counts: &mut Tally<LinkCount>, frames: usize, bytes: usize) {
    counts.add(LinkCount::Sent, frames as u64);
    counts.add(LinkCount::SentBytes, bytes as u64);
}

/// One interface, by name. While it does not exist there is nothing to receive, and what is sent
/// is lost and counted, as on a cable that is unplugged. Feed it what an
/// [`InterfaceMonitor`](super::interface::InterfaceMonitor) reports.
#[derive(Debug)]
pub struct EthernetPort {
    name: String,
    marking: Marking,
    /// The number of the interface that the socket is bound to; `None` while it does not exist.
    index: Cell<Option<u32>>,
    /// The address with which frames are sent.
    mac: Cell<Mac>,
    socket: RefCell<Option<Rc<EthernetSocket>>>,
    socket_changed: Notify,
    up: Cell<bool>,
    carrier: Cell<bool>,
    mtu: Cell<u32>,
    counts: Cell<Tally<LinkCount>>,
    queue: RefCell<SendQueue>,
}

impl EthernetPort {
    /// A port on the interface of this name, which need not exist yet.
    ///
    /// # Errors
    /// If the kernel does not tell about it, or it exists but cannot be used.
    pub fn open(name: &str, marking: Marking) -> Result<Self, LinkError> {
        let port = Self {
            name: name.to_owned(),
            marking,
            index: Cell::new(None),
            mac: Cell::default(),
            socket: RefCell::new(None),
            socket_changed: Notify::new(),
            up: Cell::new(false),
            carrier: Cell::new(false),
            mtu: Cell::new(0),
            counts: Cell::default(),
            queue: RefCell::default(),
        };
        if let Some(interface) = Interface::look_up(name)? {
            port.attach(&interface)?;
        }
        Ok(port)
    }

    /// A port on an interface that exists, is up and carries payloads of `needed_mtu` bytes; and
    /// the interface's address.
    ///
    /// # Errors
    /// If any of this is not so.
    pub fn open_usable(name: &str, marking: Marking, needed_mtu: u32) -> Result<(Self, Mac), LinkError> {
        let interface =
            Interface::look_up(name)?.ok_or_else(|| LinkError::NoSuchInterface(name.to_owned()))?;
        if !interface.ethernet {
            return Err(LinkError::NotEthernet(interface.name));
        }
        if !interface.up {
            return Err(LinkError::Down(interface.name));
        }
        if interface.mtu < needed_mtu {
            let (interface, mtu) = (interface.name, interface.mtu);
            return Err(LinkError::MtuTooSmall { interface, mtu, needed: needed_mtu });
        }
        Ok((Self::open(name, marking)?, interface.mac))
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the interface exists, is up and its cable carries a signal.
    pub fn carrier(&self) -> bool {
        self.carrier.get()
    }

    /// Whether the interface exists and is administratively up.
    pub fn up(&self) -> bool {
        self.up.get()
    }

    /// Whether the interface exists.
    pub fn exists(&self) -> bool {
        self.index.get().is_some()
    }

    /// The interface's address, which may change; `None` if the interface does not exist.
    pub fn mac(&self) -> Option<Mac> {
        self.exists().then(|| self.mac.get())
    }

    /// The most bytes behind the Ethernet header; `None` if the interface does not exist.
    pub fn mtu(&self) -> Option<u32> {
        self.exists().then(|| self.mtu.get())
    }

    /// The counts of frames and bytes over this port.
    pub fn counts(&self) -> Tally<LinkCount> {
        let lost = self.socket.borrow().as_ref().map_or(0, |socket| socket.take_overruns());
        self.count(|counts| counts.add(LinkCount::Overruns, lost));
        self.counts.get()
    }

    /// Takes in a change of any interface. Returns whether this port's carrier changed.
    pub fn apply(&self, change: &InterfaceChange) -> bool {
        let before = self.carrier.get();
        match change {
            InterfaceChange::Now(interface) if interface.name == self.name => self.attach_or_log(interface),
            InterfaceChange::Now(interface) if self.index.get() == Some(interface.index) => self.detach(),
            InterfaceChange::Gone { index } if self.index.get() == Some(*index) => self.detach(),
            InterfaceChange::Now(_) | InterfaceChange::Gone { .. } => {}
            InterfaceChange::Missed => match Interface::look_up(&self.name) {
                Ok(Some(interface)) => self.attach_or_log(&interface),
                Ok(None) if self.index.get().is_some() => self.detach(),
                Ok(None) => {}
                Err(error) => error!(interface = self.name, %error, "cannot look the interface up"),
            },
        }
        let after = self.carrier.get();
        // If the interface is gone, that was logged when it went.
        if before != after && self.exists() {
            info!(interface = self.name, carrier = after, "carrier changed");
        }
        before != after
    }

    /// Waits for a frame and puts it into `buffer`; returns how long it is.
    pub async fn recv(&self, buffer: &mut [u8]) -> usize {
        let bytes = self.receive(async |socket| socket.recv(buffer).await).await;
        self.count(|counts| count_received(counts, 1, bytes));
        bytes
    }

    /// Like [`Self::recv`], but `None` if no frame is there.
    pub fn try_recv(&self, buffer: &mut [u8]) -> Option<usize> {
        let bytes = self.socket.borrow().as_ref()?.try_recv(buffer).ok()?;
        self.count(|counts| count_received(counts, 1, bytes));
        Some(bytes)
    }

    /// Whether a frame with this Ethernet header is addressed as those of the fabric are. Other programs may use its EtherType.
    pub fn is_addressed(&self, header: &[u8]) -> bool {
        header.starts_with(&self.marking.destination.0)
    }

    /// Waits for frames and puts those that are there into `batch`, as many as it holds. It is emptied
    /// before.
    pub async fn recv_batch(&self, batch: &mut Batch) {
        self.receive(async |socket| socket.recv_batch(batch).await).await;
        self.count(|counts| count_received(counts, batch.len(), batch.total_bytes()));
    }

    /// Like [`Self::recv_batch`], but does not wait; returns whether a frame is there.
    pub fn try_recv_batch(&self, batch: &mut Batch) -> bool {
        batch.clear();
        if let Some(socket) = self.socket.borrow().as_ref() {
            // An unexpected error comes again at the next wait, and is logged there.
            let _nothing_or_error = socket.try_recv_batch(batch);
        }
        self.count(|counts| count_received(counts, batch.len(), batch.total_bytes()));
        !batch.is_empty()
    }

    /// Waits until there is a socket and it has something, and receives that.
    async fn receive<R>(&self, mut receive: impl AsyncFnMut(&EthernetSocket) -> io::Result<R>) -> R {
        loop {
            let socket = self.socket.borrow().clone();
            let Some(socket) = socket else {
                self.socket_changed.notified().await;
                continue;
            };
            let result = tokio::select! {
                result = receive(&socket) => result,
                // The wait must end when the socket changes, as one on an interface that is gone stays
                // silent.
                () = self.socket_changed.notified() => continue,
            };
            match result {
                Ok(received) => return received,
                Err(error) => self.after_error(&error).await,
            }
        }
    }

    /// Sends a payload in two parts. What cannot be sent is lost and counted.
    pub fn send(&self, route: &[u8], frame: &[u8]) {
        let sent = self.socket.borrow().as_ref().is_some_and(|socket| socket.send(route, frame).is_ok());
        self.count(|counts| match sent {
            true => count_sent(counts, 1, HEADER_BYTES + route.len() + frame.len()),
            false => counts.count(LinkCount::Unsent),
        });
    }

    /// Sends a payload as [`Self::send`] does, but the frame may wait for [`Self::flush`] and leave together
    /// with others. Frames of [`Self::send`] overtake it.
    pub fn queue(&self, route: &[u8], frame: &[u8]) {
        let full = match self.socket.borrow().as_ref() {
            None => return self.count(|counts| counts.count(LinkCount::Unsent)),
            Some(socket) => {
                let mut queue = self.queue.borrow_mut();
                queue.push([socket.header(), route, frame]);
                queue.is_full()
            }
        };
        if full {
            self.flush();
        }
    }

    /// Sends what was queued.
    pub fn flush(&self) {
        let mut queue = self.queue.borrow_mut();
        if !queue.is_empty() {
            self.forward_batch(&queue.frames(), |_, _| {});
            queue.clear();
        }
    }

    /// Sends frames on, each as Ethernet header and payload, in order; calls `unsent` for each
    /// that is lost.
    pub fn forward_batch(&self, frames: &[[IoSlice<'_>; 2]], mut unsent: impl FnMut(usize, Unsent)) {
        let bytes = |parts: &[IoSlice<'_>; 2]| parts[0].len() + parts[1].len();
        let (mut lost, mut lost_bytes) = (0, 0);
        let mut lose = |nth: usize, why| {
            lost += 1;
            lost_bytes += frames.get(nth).map_or(0, bytes);
            unsent(nth, why);
        };
        match self.socket.borrow().as_ref() {
            Some(socket) => socket.send_batch(frames, lose),
            None => (0..frames.len()).for_each(|nth| lose(nth, Unsent::Down)),
        }
        let total_bytes: usize = frames.iter().map(bytes).sum();
        self.count(|counts| {
            count_sent(counts, frames.len() - lost, total_bytes - lost_bytes);
            counts.add(LinkCount::Unsent, lost as u64);
        });
    }

    fn count(&self, change: impl FnOnce(&mut Tally<LinkCount>)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn attach_or_log(&self, interface: &Interface) {
        if let Err(error) = self.attach(interface) {
            error!(
                interface = self.name,
                error = &error as &dyn std::error::Error,
                "cannot use the interface"
            );
        }
    }

    fn attach(&self, interface: &Interface) -> Result<(), LinkError> {
        if self.index.get() != Some(interface.index) || self.mac.get() != interface.mac {
            let socket = EthernetSocket::open(interface, self.marking)?;
            *self.socket.borrow_mut() = Some(Rc::new(socket));
            self.index.set(Some(interface.index));
            self.mac.set(interface.mac);
            self.socket_changed.notify_one();
        }
        self.up.set(interface.up);
        self.carrier.set(interface.carrier);
        self.mtu.set(interface.mtu);
        Ok(())
    }

    fn detach(&self) {
        warn!(
            interface = self.name,
            "the interface is gone: it does not exist any more; waiting for it to return"
        );
        self.index.set(None);
        *self.socket.borrow_mut() = None;
        self.socket_changed.notify_one();
        self.up.set(false);
        self.carrier.set(false);
    }

    async fn after_error(&self, error: &io::Error) {
        // The kernel reports once that the interface went down; the monitor says when it is back.
        if error.raw_os_error() != Some(libc::ENETDOWN) {
            warn!(interface = self.name, %error, "cannot receive");
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
