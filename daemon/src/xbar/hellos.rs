//! Says hello over the ports of a crossbar, or over an agent's interface, and keeps who answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mapper_machine::clock::Clock;
use mapper_machine::link::Link;
use mapper_machine::timer::Timer;
use mapper_proto::neighbours::{CableChange, KnownCable, Neighbour, Neighbours, Own};
use mapper_proto::wire::{Hello, HelloEnd, HelloFlags};
use mapper_proto::{Instant, Mac};
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use super::cable::CableStatus;

/// What neighbours at the ports of one crossbar, or at an agent's interface, tell each other. It belongs to one
/// thread. Whoever has the links calls [`Self::set_link`] when one changes, [`Self::hear`] when a hello has
/// arrived, and after each of them and when [`Self::due_at`] comes [`Self::poll_hello`] and
/// [`Self::poll_event`] until there is nothing left.
#[derive(Debug)]
pub struct Hellos {
    clock: Clock,
    timer: Timer,
    neighbours: RefCell<Neighbours>,
    ports: RefCell<BTreeMap<u8, Said>>,
    /// Publishes the neighbours that a kernel can forward to.
    joined: watch::Sender<BTreeMap<u8, Neighbour>>,
    /// What this machine's kernel does with packets that arrive at a port.
    flags: Cell<HelloFlags>,
    /// Notified when something may be due earlier than it was.
    changed: Notify,
}

/// What is said at a port.
#[derive(Debug, Clone, Default)]
struct Said {
    interface: String,
    /// What is said of the port; `None` while it has no carrier.
    own: Option<Own>,
}

impl Hellos {
    /// Nobody is known, and there are no ports.
    pub fn new() -> Rc<Self> {
        let clock = Clock::start();
        Rc::new(Self {
            timer: Timer::new(clock),
            clock,
            neighbours: RefCell::default(),
            ports: RefCell::default(),
            flags: Cell::default(),
            joined: watch::Sender::default(),
            changed: Notify::new(),
        })
    }

    /// Who is at the other ends of the cables, by port, now and after each change. The port of an agent
    /// without a crossbar is 0. Cables that have more than two ends, or carry frames in one direction only,
    /// are not among them.
    pub fn neighbours(&self) -> watch::Receiver<BTreeMap<u8, Neighbour>> {
        self.joined.subscribe()
    }

    /// Says what this machine's kernel does with packets that arrive at any port. All neighbours are told at once, and those at
    /// ports that come later with the first hello there.
    pub fn set_flags(&self, flags: HelloFlags) {
        self.flags.set(flags);
        for (&port, said) in self.ports.borrow_mut().iter_mut() {
            said.own = said.own.map(|own| Own { flags, ..own });
            self.neighbours.borrow_mut().set_port(self.clock.now(), port, said.own);
        }
        self.changed.notify_one();
    }

    /// Says which interface is at a port, as it is now, and what is at this end; `None` if the port has been
    /// given up. Links inside the process have no neighbours.
    pub fn set_link(&self, port: u8, link: Option<&Link>, end: HelloEnd) {
        let own = {
            let mut ports = self.ports.borrow_mut();
            let said = ports.entry(port).or_default();
            let usable = link.filter(|link| link.carrier());
            let own = usable.and_then(|link| Some((link.mac()?, link.mtu()?)));
            said.own = own.map(|(mac, mtu)| Own { end, mac, mtu, flags: self.flags.get() });
            link.map(Link::name).unwrap_or_default().clone_into(&mut said.interface);
            said.own
        };
        self.neighbours.borrow_mut().set_port(self.clock.now(), port, own);
        self.changed.notify_one();
    }

    /// Takes a frame that arrived at a port and begins with the kind of a hello. Returns whether it is a hello
    /// that can be used.
    pub fn hear(&self, port: u8, source: Mac, frame: &[u8]) -> bool {
        let now = self.clock.now();
        let used = Hello::decode(frame)
            .is_ok_and(|hello| self.neighbours.borrow_mut().handle_hello(now, port, source, &hello));
        self.changed.notify_one();
        used
    }

    /// The next hello that is to be sent: the port, and the frame from its type on.
    pub fn poll_hello(&self) -> Option<(u8, Vec<u8>)> {
        self.neighbours.borrow_mut().poll_hello(self.clock.now())
    }

    /// The next change of a cable, which is logged.
    pub fn poll_event(&self) -> Option<CableChange> {
        let event = self.neighbours.borrow_mut().poll_event(self.clock.now())?;
        self.log(&event);
        let joined = self.neighbours.borrow().joined();
        self.joined.send_if_modified(|known| {
            let differ = *known != joined;
            *known = joined;
            differ
        });
        Some(event)
    }

    /// When something is due next.
    pub fn due_at(&self) -> Option<Instant> {
        self.neighbours.borrow().poll_timeout()
    }

    /// Waits until something is due.
    pub async fn due(&self) {
        tokio::select! {
            () = self.timer.sleep_until(self.due_at()) => {}
            () = self.changed.notified() => {}
        }
    }

    /// Whether more than two interfaces share the cable of a port.
    pub fn is_shared(&self, port: u8) -> bool {
        matches!(self.neighbours.borrow().cable(port), KnownCable::Shared(_))
    }

    /// What is known of the cable of a port.
    pub fn cable(&self, port: u8) -> CableStatus {
        let mtu = self.ports.borrow().get(&port).and_then(|said| said.own).map(|own| own.mtu);
        CableStatus::new(self.neighbours.borrow().cable(port), mtu)
    }

    fn log(&self, event: &CableChange) {
        let CableChange { port, before, now } = event;
        let ports = self.ports.borrow();
        let Some(Said { interface, own, .. }) = ports.get(port) else { return };
        let status = CableStatus::new(now, own.map(|own| own.mtu));
        match (before, now) {
            (KnownCable::Joined(before), KnownCable::Joined(now))
                if (before.mac, before.end) == (now.mac, now.end) => {}
            (_, KnownCable::Joined(Neighbour { end, mac, mtu, .. })) => {
                info!(port, interface, %mac, mtu, "the neighbour is {end}");
            }
            (KnownCable::Joined(_), KnownCable::Silent) => info!(port, interface, "the neighbour is gone"),
            _ => {}
        }
        if let Some(trouble) = status.trouble(interface) {
            warn!(port, "{trouble}");
        }
    }
}
