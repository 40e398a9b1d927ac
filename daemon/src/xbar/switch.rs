//! The ports of a crossbar, and how frames go from one to the other.

use mapper_proto::PortSet;
use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;

use mapper_proto::Mac;
use mapper_proto::wire::{Crossbar, CrossbarKind, Decision, DropReason, FrameKind, HelloEnd, PassedChecks};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::bucket::TokenBucket;
use super::counters::{ArrivalCount, ArrivalCounters, XbarDrop};
use super::data_path::XbarDataPath;
use super::hellos::Hellos;
use super::status::{PortStatus, XbarStatus};
use mapper_machine::link::batch::{BATCH_FRAMES, Batch};
use mapper_machine::link::ethernet::HEADER_BYTES;
use mapper_machine::link::interface::InterfaceChange;
use mapper_machine::link::{Link, Unsent};

/// How many batches are taken from one port before the other ports have their turn.
const TURNS: usize = 4;
/// How many notices a second may go back out of one port.
const NOTICES_PER_SECOND: u32 = 10_000;
/// How many notices may go back out of one port at once, which is more than a batch of frames needs, and as many as there are
/// checks to tell of when one port loses carrier.
const NOTICE_BURST: u32 = PassedChecks::MOST_OF_PORT as u32;

/// How many frames a second one port takes in whose route is longer than there and back over 62 crossbars.
/// About ten agents that compare cables at the far end of the deepest fabric send so many. The bound is there
/// because a forged frame with such a route can go round a circle of cables a hundred times.
const LONG_ROUTES_PER_SECOND: u32 = 2_000;
/// How many frames with such a long route one port takes in at once, which is a few windows of probes.
const LONG_ROUTE_BURST: u32 = 512;

/// A running crossbar. It belongs to one thread.
#[derive(Debug)]
pub struct Switch {
    /// The crossbar's name on this machine.
    name: String,
    started_at: Instant,
    /// The crossbar that decides where a frame goes. Its carriers are kept equal to those of the links.
    crossbar: Cell<Crossbar>,
    /// The ports, indexed by their numbers; `None` for a port without link.
    ports: RefCell<Vec<Option<Rc<SwitchPort>>>>,
    /// Notified when a port was added, so that a task is started that listens at it.
    added: Notify,
    /// Publishes the crossbar's carriers.
    carriers: watch::Sender<PortSet>,
    /// What the ports and their neighbours tell each other.
    hellos: Rc<Hellos>,
    /// The checks that were sent on lately, whose senders are told when a port loses carrier.
    passed: RefCell<PassedChecks>,
    /// What users' packets go by, if the process of the crossbar has said so.
    data_path: RefCell<Option<XbarDataPath>>,
}

#[derive(Debug)]
struct SwitchPort {
    link: Link,
    arrivals: Cell<ArrivalCounters>,
    /// Bounds the notices about frames that could not go on.
    notices: TokenBucket,
    /// Bounds the notices about checks that went on, so that these leave room for those about users' frames.
    notices_of_checks: TokenBucket,
    long_routes: TokenBucket,
    /// The task that forwards the frames that arrive at this port, once it is started.
    listener: RefCell<Option<AbortHandle>>,
}

/// How a frame of a batch leaves the crossbar.
#[derive(Debug, Clone, Copy, Default)]
struct Exit {
    /// The port that the frame leaves by.
    port: u8,
    /// The place of the frame in the batch.
    nth: usize,
    /// How many bytes to strip from the front of its payload.
    strip: usize,
}

impl Switch {
    /// A crossbar with these links behind its ports. The carriers in `crossbar` are replaced by
    /// those of the links.
    pub fn new(name: &str, mut crossbar: Crossbar, links: impl IntoIterator<Item = (u8, Link)>) -> Self {
        crossbar.carriers = PortSet::NONE;
        let switch = Self {
            name: name.to_owned(),
            started_at: Instant::now(),
            crossbar: Cell::new(crossbar),
            ports: RefCell::new(vec![None; 256]),
            added: Notify::new(),
            carriers: watch::Sender::new(crossbar.carriers),
            hellos: Hellos::new(),
            passed: RefCell::default(),
            data_path: RefCell::default(),
        };
        links.into_iter().for_each(|(number, link)| switch.add(number, link));
        switch
    }

    /// Puts a link behind a port, in place of any that is there. If the number is above that of the last
    /// port, the crossbar grows up to it.
    pub fn add(&self, number: u8, link: Link) {
        self.remove(number);
        let mut crossbar = self.crossbar.get();
        let ports = number.saturating_sub(crossbar.first_port).saturating_add(1);
        crossbar.ports = crossbar.ports.max(ports);
        self.hellos.set_link(number, Some(&link), self.end(number));
        crossbar.set_carrier(number, link.carrier());
        let now = Instant::now();
        let port = SwitchPort {
            link,
            arrivals: Cell::default(),
            notices: TokenBucket::new(NOTICES_PER_SECOND, NOTICE_BURST, now),
            notices_of_checks: TokenBucket::new(NOTICES_PER_SECOND, NOTICE_BURST, now),
            long_routes: TokenBucket::new(LONG_ROUTES_PER_SECOND, LONG_ROUTE_BURST, now),
            listener: RefCell::default(),
        };
        self.ports.borrow_mut()[usize::from(number)] = Some(Rc::new(port));
        self.added.notify_one();
        self.publish(crossbar);
        self.exchange_hellos();
    }

    /// Takes away the link behind a port, if there is one. The port stays, without carrier.
    pub fn remove(&self, number: u8) {
        let Some(port) = self.ports.borrow_mut()[usize::from(number)].take() else { return };
        if let Some(listener) = port.listener.take() {
            listener.abort();
        }
        let mut crossbar = self.crossbar.get();
        crossbar.set_carrier(number, false);
        self.publish(crossbar);
        self.hellos.set_link(number, None, self.end(number));
        self.exchange_hellos();
    }

    /// The status of the crossbar, as its socket tells it.
    pub fn status(&self) -> XbarStatus {
        let numbered = self.numbered();
        let ports = numbered.iter().map(|(number, port)| {
            let cable = self.hellos.cable(*number);
            PortStatus::new(*number, &port.link, port.arrivals.get(), cable)
        });
        let uptime_ms = self.started_at.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        let status = XbarStatus::new(&self.name, &self.crossbar.get(), ports.collect(), uptime_ms);
        XbarStatus { data_path: self.data_path.borrow().clone(), ..status }
    }

    /// Says what users' packets go by, for the status.
    pub(super) fn set_data_path(&self, data_path: XbarDataPath) {
        self.data_path.replace(Some(data_path));
    }

    /// Which route elements the crossbar understands.
    pub fn kind(&self) -> CrossbarKind {
        self.crossbar.get().kind
    }

    /// What the ports and their neighbours tell each other: who is at the other end of each cable, and what
    /// each is told of this end.
    pub const fn hellos(&self) -> &Rc<Hellos> {
        &self.hellos
    }

    /// Which ports have carrier, now and after each change. A port whose cable has more than two ends counts as
    /// one without, as each frame would arrive several times.
    pub fn carriers(&self) -> watch::Receiver<PortSet> {
        self.carriers.subscribe()
    }

    /// The least MTU of the crossbar's interfaces, in bytes; `None` if it has no interface.
    pub fn least_mtu(&self) -> Option<u32> {
        self.numbered().iter().filter_map(|(_, port)| port.link.mtu()).min()
    }

    /// Forwards the frames that arrive at any port, for ever. It must run in a tokio `LocalSet`, and the
    /// caller must tell it changes of interfaces by [`Self::apply`] meanwhile.
    pub async fn run(self: Rc<Self>) {
        let mut tasks = JoinSet::new();
        tasks.spawn_local(Rc::clone(&self).say_hello());
        loop {
            for (number, port) in self.numbered() {
                let mut listener = port.listener.borrow_mut();
                if listener.is_none() {
                    *listener =
                        Some(tasks.spawn_local(Rc::clone(&self).forward_from(number, Rc::clone(&port))));
                }
            }
            self.added.notified().await;
            // The tasks of ports that were taken away have ended.
            while tasks.try_join_next().is_some() {}
        }
    }

    /// Says hello at all ports when it is time, for ever.
    async fn say_hello(self: Rc<Self>) {
        loop {
            self.exchange_hellos();
            self.hellos.due().await;
        }
    }

    /// Sends the hellos that are due, and acts on what has been heard.
    fn exchange_hellos(&self) {
        while let Some((number, hello)) = self.hellos.poll_hello() {
            if let Some(port) = self.port(number) {
                port.link.send(&[], &hello);
                port.count(|arrivals| arrivals.counts.count(ArrivalCount::HellosSent));
            }
        }
        while let Some(event) = self.hellos.poll_event() {
            if let Some(port) = self.port(event.port) {
                let mut crossbar = self.crossbar.get();
                crossbar.set_carrier(event.port, self.is_usable(event.port, &port));
                self.publish(crossbar);
            }
        }
    }

    /// Whether frames may pass a port: its link has carrier, and its cable no more than two ends.
    fn is_usable(&self, number: u8, port: &SwitchPort) -> bool {
        port.link.carrier() && !self.hellos.is_shared(number)
    }

    /// What is at this end of the cable of a port.
    fn end(&self, port: u8) -> HelloEnd {
        let tag = match self.kind() {
            CrossbarKind::Plain => None,
            CrossbarKind::Tagged { tag } => Some(tag),
        };
        HelloEnd::Xbar { tag, port }
    }

    async fn forward_from(self: Rc<Self>, arrival: u8, port: Rc<SwitchPort>) {
        let mut batch = Batch::new();
        loop {
            // The task yields here, which lets other ports have their turn.
            port.link.recv_batch(&mut batch).await;
            self.forward(arrival, &port, &mut batch);
            let mut turns = 1;
            while turns < TURNS && port.link.try_recv_batch(&mut batch) {
                self.forward(arrival, &port, &mut batch);
                turns += 1;
            }
            if turns == TURNS {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Forwards a batch. Frames that leave by the same port are sent together, and keep their order.
    fn forward(&self, arrival: u8, from: &SwitchPort, batch: &mut Batch) {
        let crossbar = self.crossbar.get();
        let mut exits = [Exit::default(); BATCH_FRAMES];
        let mut count = 0;
        for nth in 0..batch.len() {
            if let Some((port, strip)) = self.decide(&crossbar, arrival, from, batch, nth) {
                exits[count] = Exit { port, nth, strip };
                count += 1;
            }
        }
        let exits = &mut exits[..count];
        exits.sort_by_key(|exit| exit.port);
        for exits in exits.chunk_by(|a, b| a.port == b.port) {
            self.send(&crossbar, from, batch, exits);
        }
        from.link.flush();
    }

    /// The port that a frame leaves by and how much is stripped from it; `None` if it is dropped.
    fn decide(
        &self,
        crossbar: &Crossbar,
        arrival: u8,
        from: &SwitchPort,
        batch: &mut Batch,
        nth: usize,
    ) -> Option<(u8, usize)> {
        let cut_off = batch.is_cut_off(nth);
        let Some((header, payload)) = batch.frame_mut(nth).split_at_mut_checked(HEADER_BYTES) else {
            from.count(|arrivals| arrivals.dropped.count(XbarDrop::Truncated));
            return None;
        };
        // Other programs may send frames under this EtherType that look like a route.
        if !from.link.is_addressed(header) {
            from.count(|arrivals| arrivals.dropped.count(XbarDrop::Foreign));
            return None;
        }
        let (port, strip) = match crossbar.decide(arrival, payload) {
            Decision::Drop(DropReason::NoRoute) => {
                self.take_without_route(arrival, from, header, payload);
                return None;
            }
            Decision::Drop(reason) => {
                from.count(|arrivals| arrivals.dropped.count(reason.into()));
                return None;
            }
            Decision::Forward { port, strip } => (port, strip),
            Decision::Identify { strip, stamp_at } => {
                crossbar.write_stamp(arrival, stamp_at, payload);
                (arrival, strip)
            }
        };
        // The neighbours at a cable with more than two ends agree on that, so none of them sends frames but
        // one that does not say hello.
        if !crossbar.has_carrier(arrival) && self.hellos.is_shared(arrival) {
            from.count(|arrivals| arrivals.dropped.count(XbarDrop::SharedWire));
            return None;
        }
        if Crossbar::has_long_route(payload) && !from.long_routes.take(Instant::now()) {
            from.count(|arrivals| arrivals.dropped.count(XbarDrop::LongRoutes));
            return None;
        }
        if cut_off {
            from.count(|arrivals| arrivals.dropped.count(XbarDrop::TooLong));
            return None;
        }
        if !crossbar.has_carrier(port) {
            self.lose(crossbar, from, port, payload);
            return None;
        }
        self.passed.borrow_mut().note(crossbar, (arrival, port), payload);
        Some((port, strip))
    }

    /// Takes a frame whose route ends here: a hello, a frame that has lost its way, or another program's.
    fn take_without_route(&self, arrival: u8, from: &SwitchPort, header: &[u8], payload: &[u8]) {
        let why = match FrameKind::of(payload) {
            Ok(FrameKind::Hello) => {
                let source = header.get(6..12).and_then(|source| source.try_into().ok()).map(Mac);
                if self.hellos.hear(arrival, source.unwrap_or_default(), payload) {
                    from.count(|arrivals| arrivals.counts.count(ArrivalCount::Hellos));
                    return self.exchange_hellos();
                }
                XbarDrop::BadHello
            }
            Ok(FrameKind::Mapper | FrameKind::Data | FrameKind::Undeliverable) => XbarDrop::NoRoute,
            Ok(FrameKind::Unknown(_)) | Err(_) => XbarDrop::Foreign,
        };
        from.count(|arrivals| arrivals.dropped.count(why));
    }

    /// Sends the frames of `exits` out of the port that they all leave by.
    fn send(&self, crossbar: &Crossbar, from: &SwitchPort, batch: &Batch, exits: &[Exit]) {
        let Some((to, port)) = exits.first().and_then(|exit| Some((self.port(exit.port)?, exit.port))) else {
            return;
        };
        let mut frames = [[IoSlice::new(&[]); 2]; BATCH_FRAMES];
        for (parts, exit) in frames.iter_mut().zip(exits) {
            let (header, payload) = batch.frame(exit.nth).split_at(HEADER_BYTES);
            *parts = [IoSlice::new(header), IoSlice::new(&payload[exit.strip..])];
        }
        let mut unsent = Vec::new();
        to.link.forward_batch(&frames[..exits.len()], |nth, why| unsent.push((nth, why)));
        from.count(|arrivals| {
            arrivals.counts.add(ArrivalCount::Forwarded, (exits.len() - unsent.len()) as u64);
        });
        for (nth, why) in unsent {
            match why {
                Unsent::Down => {
                    self.lose(crossbar, from, port, &batch.frame(exits[nth].nth)[HEADER_BYTES..]);
                }
                why => from.count(|arrivals| arrivals.dropped.count(why.into())),
            }
        }
    }

    /// Drops a frame because nothing can leave by `port`, and sends a notice to its sender if the frame
    /// allows it. `payload` is the whole payload as it arrived.
    fn lose(&self, crossbar: &Crossbar, from: &SwitchPort, port: u8, payload: &[u8]) {
        let exists = self.port(port).is_some_and(|port| port.link.exists());
        let why = match exists {
            false => XbarDrop::NoInterface,
            true if self.hellos.is_shared(port) => XbarDrop::SharedWire,
            true => XbarDrop::NoCarrier,
        };
        from.count(|arrivals| arrivals.dropped.count(why));
        if let Some(notice) = crossbar.undeliverable(port, payload) {
            from.send_notice(&from.notices, &notice);
        }
    }

    /// Tells those whose checks of paths left lately by ports that have carrier no more.
    fn tell_of_lost(&self, crossbar: &Crossbar, before: PortSet) {
        for port in before.iter().filter(|&port| !crossbar.has_carrier(port)) {
            let lost = self.passed.borrow_mut().take_lost(crossbar, port);
            let mut told = PortSet::NONE;
            for (towards, notice) in lost {
                if let Some(port) = self.port(towards).filter(|_| crossbar.has_carrier(towards)) {
                    port.send_notice(&port.notices_of_checks, &notice);
                    told.insert(towards);
                }
            }
            told.iter().filter_map(|towards| self.port(towards)).for_each(|port| port.link.flush());
        }
    }

    /// Takes in a change of any interface of the machine; it need not be a port.
    pub fn apply(&self, change: &InterfaceChange) {
        let mut crossbar = self.crossbar.get();
        for (number, port) in self.numbered() {
            if port.link.apply(change) {
                crossbar.set_carrier(number, self.is_usable(number, &port));
            }
            self.hellos.set_link(number, Some(&port.link), self.end(number));
        }
        self.publish(crossbar);
        self.exchange_hellos();
    }

    /// Makes `crossbar` decide from now on, and publishes its carriers if they changed.
    fn publish(&self, crossbar: Crossbar) {
        let before = self.crossbar.replace(crossbar);
        self.tell_of_lost(&crossbar, before.carriers);
        self.carriers.send_if_modified(|carriers| {
            let changed = *carriers != crossbar.carriers;
            *carriers = crossbar.carriers;
            changed
        });
    }

    fn port(&self, number: u8) -> Option<Rc<SwitchPort>> {
        self.ports.borrow()[usize::from(number)].clone()
    }

    /// The ports that have a link, in the order of their numbers.
    fn numbered(&self) -> Vec<(u8, Rc<SwitchPort>)> {
        let ports = self.ports.borrow();
        (0..=u8::MAX).zip(&*ports).filter_map(|(number, port)| Some((number, port.clone()?))).collect()
    }
}

impl SwitchPort {
    /// Queues a notice to whoever sent a frame that came in here, unless `bound` says that too many were sent lately.
    fn send_notice(&self, bound: &TokenBucket, notice: &[u8]) {
        if bound.take(Instant::now()) {
            self.link.queue(notice, &[]);
            self.count(|arrivals| arrivals.counts.count(ArrivalCount::Notices));
        } else {
            self.count(|arrivals| arrivals.counts.count(ArrivalCount::NoticesSuppressed));
        }
    }

    fn count(&self, change: impl FnOnce(&mut ArrivalCounters)) {
        let mut arrivals = self.arrivals.get();
        change(&mut arrivals);
        self.arrivals.set(arrivals);
    }
}

#[cfg(test)]
mod tests;
