//! An interface that may vanish and return, with the socket on it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mapper_proto::Mac;
use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::LinkError;
use super::ethernet::{EthernetSocket, Marking};
use super::interface::{Change, Interface};

/// After an error that should not be, wait this long before the socket is read again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Frames over one port since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Frames that arrived.
    pub received: u64,
    /// Frames that the kernel took.
    pub sent: u64,
    /// Frames that the kernel did not take: no room, too long, interface down or gone.
    pub unsent: u64,
}

/// One interface, by name. While it does not exist there is nothing to receive, and what is sent
/// is lost and counted, as on a cable that is unplugged. Feed it what a
/// [`Monitor`](super::interface::Monitor) reports.
#[derive(Debug)]
pub struct Port {
    name: String,
    marking: Marking,
    /// Number of the interface that the socket is bound to.
    index: Cell<Option<u32>>,
    socket: RefCell<Option<Rc<EthernetSocket>>>,
    socket_changed: Notify,
    carrier: Cell<bool>,
    received: Cell<u64>,
    sent: Cell<u64>,
    unsent: Cell<u64>,
}

impl Port {
    /// A port on the interface of this name, which need not exist yet.
    ///
    /// # Errors
    /// If the kernel does not tell about it, or it exists but cannot be used.
    pub fn open(name: &str, marking: Marking) -> Result<Self, LinkError> {
        let port = Self {
            name: name.to_owned(),
            marking,
            index: Cell::new(None),
            socket: RefCell::new(None),
            socket_changed: Notify::new(),
            carrier: Cell::new(false),
            received: Cell::new(0),
            sent: Cell::new(0),
            unsent: Cell::new(0),
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

    /// What went over it.
    pub fn traffic(&self) -> Traffic {
        Traffic { received: self.received.get(), sent: self.sent.get(), unsent: self.unsent.get() }
    }

    /// Takes in a change of any interface. Returns whether this port's carrier changed.
    pub fn apply(&self, change: &Change) -> bool {
        let before = self.carrier.get();
        match change {
            Change::Now(interface) if interface.name == self.name => self.attach_or_log(interface),
            Change::Now(interface) if self.index.get() == Some(interface.index) => self.detach(),
            Change::Gone { index } if self.index.get() == Some(*index) => self.detach(),
            Change::Now(_) | Change::Gone { .. } => {}
            Change::Missed => match Interface::look_up(&self.name) {
                Ok(Some(interface)) => self.attach_or_log(&interface),
                Ok(None) if self.index.get().is_some() => self.detach(),
                Ok(None) => {}
                Err(error) => error!(interface = self.name, %error, "cannot look the interface up"),
            },
        }
        let after = self.carrier.get();
        if before != after {
            info!(interface = self.name, carrier = after, "carrier changed");
        }
        before != after
    }

    /// Waits for a frame and puts it into `buffer`; returns how long it is.
    pub async fn recv(&self, buffer: &mut [u8]) -> usize {
        loop {
            let socket = self.socket.borrow().clone();
            let Some(socket) = socket else {
                self.socket_changed.notified().await;
                continue;
            };
            let result = tokio::select! {
                result = socket.recv(buffer) => result,
                // A socket on an interface that is gone stays silent for ever.
                () = self.socket_changed.notified() => continue,
            };
            match result {
                Ok(bytes) => {
                    self.received.set(self.received.get() + 1);
                    return bytes;
                }
                Err(error) => self.after_error(&error).await,
            }
        }
    }

    /// Like [`Self::recv`], but `None` if no frame is there.
    pub fn try_recv(&self, buffer: &mut [u8]) -> Option<usize> {
        let bytes = self.socket.borrow().as_ref()?.try_recv(buffer).ok()?;
        self.received.set(self.received.get() + 1);
        Some(bytes)
    }

    /// Sends a payload in two parts. What cannot be sent is lost and counted.
    pub fn send(&self, route: &[u8], frame: &[u8]) {
        self.count(self.socket.borrow().as_ref().is_some_and(|socket| socket.send(route, frame).is_ok()));
    }

    /// Sends a frame on: the header that it came with, and what is left of its payload. What cannot be sent is lost and counted.
    pub fn forward(&self, header: &[u8], payload: &[u8]) {
        self.count(
            self.socket.borrow().as_ref().is_some_and(|socket| socket.forward(header, payload).is_ok()),
        );
    }

    fn count(&self, sent: bool) {
        let counter = if sent { &self.sent } else { &self.unsent };
        counter.set(counter.get() + 1);
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
        if self.index.get() != Some(interface.index) {
            let socket = EthernetSocket::open(interface, self.marking)?;
            *self.socket.borrow_mut() = Some(Rc::new(socket));
            self.index.set(Some(interface.index));
            self.socket_changed.notify_one();
        }
        self.carrier.set(interface.carrier);
        Ok(())
    }

    fn detach(&self) {
        warn!(interface = self.name, "the interface is gone; waiting for it to return");
        self.index.set(None);
        *self.socket.borrow_mut() = None;
        self.socket_changed.notify_one();
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
