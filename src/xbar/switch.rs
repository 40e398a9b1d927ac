//! The ports of a crossbar and what goes from one to the other.

use std::cell::Cell;
use std::rc::Rc;

use mapper_proto::wire::{Crossbar, CrossbarKind, Decision, DropReason};
use tracing::info;

use crate::link::ethernet::{Frame, HEADER_BYTES, MAX_FRAME_BYTES};
use crate::link::interface::Change;
use crate::link::port::Port;

/// Frames taken from one port before the others have their turn.
const BURST: usize = 64;

/// A running crossbar.
#[derive(Debug)]
pub(super) struct Switch {
    /// What decides. Its carriers follow the interfaces.
    pub(super) crossbar: Cell<Crossbar>,
    /// By port number; `None` where no interface is.
    pub(super) ports: Vec<Option<Rc<Port>>>,
    /// What was dropped.
    pub(super) dropped: DropCounters,
}

/// Frames dropped since the start, by why.
#[derive(Debug, Default)]
pub(super) struct DropCounters {
    no_route: Cell<u64>,
    no_such_port: Cell<u64>,
    not_understood: Cell<u64>,
    truncated: Cell<u64>,
    no_stamp_area: Cell<u64>,
    /// To a port that the crossbar has, but that no interface is behind.
    no_interface: Cell<u64>,
}

impl DropCounters {
    fn count(&self, reason: DropReason) {
        let counter = match reason {
            DropReason::NoRoute => &self.no_route,
            DropReason::NoSuchPort => &self.no_such_port,
            DropReason::NotUnderstood => &self.not_understood,
            DropReason::Truncated => &self.truncated,
            DropReason::NoStampArea => &self.no_stamp_area,
        };
        counter.set(counter.get() + 1);
    }
}

impl Switch {
    /// What the crossbar understands.
    pub(super) fn kind(&self) -> CrossbarKind {
        self.crossbar.get().kind
    }

    /// Sends on what arrives at one port, for ever.
    pub(super) async fn forward_from(self: Rc<Self>, arrival: u8) {
        let Some(port) = self.ports[usize::from(arrival)].clone() else { return };
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        loop {
            let mut bytes = port.recv(&mut buffer).await;
            for _ in 0..BURST {
                self.forward(arrival, &mut buffer[..bytes]);
                match port.try_recv(&mut buffer) {
                    Some(more) => bytes = more,
                    None => break,
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn forward(&self, arrival: u8, bytes: &mut [u8]) {
        if Frame::parse(bytes).is_none() {
            return self.dropped.count(DropReason::Truncated);
        }
        let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
        let crossbar = self.crossbar.get();
        match crossbar.decide(arrival, payload) {
            Decision::Forward { port, strip } => self.send(port, header, &payload[strip..]),
            Decision::Identify { strip, stamp_at } => {
                crossbar.write_stamp(arrival, stamp_at, payload);
                self.send(arrival, header, &payload[strip..]);
            }
            Decision::Drop(reason) => self.dropped.count(reason),
        }
    }

    fn send(&self, port: u8, header: &[u8], payload: &[u8]) {
        match &self.ports[usize::from(port)] {
            Some(port) => port.forward(header, payload),
            None => self.dropped.no_interface.set(self.dropped.no_interface.get() + 1),
        }
    }

    /// Takes in a change of any interface.
    pub(super) fn apply(&self, change: &Change) {
        for (number, port) in self.numbered() {
            if port.apply(change) {
                self.set_carrier(number, port.carrier());
            }
        }
    }

    pub(super) fn set_carrier(&self, port: u8, up: bool) {
        let mut crossbar = self.crossbar.get();
        crossbar.set_carrier(port, up);
        self.crossbar.set(crossbar);
    }

    /// Logs what went over each port, and what was dropped.
    pub(super) fn log_counters(&self) {
        for (number, port) in self.numbered() {
            let traffic = port.traffic();
            info!(
                port = number,
                interface = port.name(),
                carrier = port.carrier(),
                received = traffic.received,
                sent = traffic.sent,
                unsent = traffic.unsent,
                "traffic"
            );
        }
        let DropCounters { no_route, no_such_port, not_understood, truncated, no_stamp_area, no_interface } =
            &self.dropped;
        info!(
            no_route = no_route.get(),
            no_such_port = no_such_port.get(),
            not_understood = not_understood.get(),
            truncated = truncated.get(),
            no_stamp_area = no_stamp_area.get(),
            no_interface = no_interface.get(),
            "dropped"
        );
    }

    fn numbered(&self) -> impl Iterator<Item = (u8, &Rc<Port>)> {
        (0..=u8::MAX).zip(&self.ports).filter_map(|(number, port)| Some((number, port.as_ref()?)))
    }
}
