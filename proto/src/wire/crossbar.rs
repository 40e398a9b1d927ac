//! What a crossbar does with a frame: the one place that decides, for every crossbar that we make.

use thiserror::Error;

use super::data::token_and_way_home;
use super::frame::{FLAG_STAMP, FrameKind, HEADER_BYTES, field};
use super::{Element, Route, RouteError, STAMP_BYTES, Stamp, Undeliverable};
use crate::port_set::PortSet;

/// What an xbar understands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CrossbarKind {
    /// Anonymous: knows relative elements only.
    Plain,
    /// Knows all elements and has an identity.
    Tagged {
        /// Its 64-bit identity.
        tag: u64,
    },
}

/// An xbar as far as forwarding needs it. It holds no frame and no state but the carriers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Crossbar {
    /// What it understands.
    pub kind: CrossbarKind,
    /// The number of its first port.
    pub first_port: u8,
    /// How many ports it has.
    pub ports: u8,
    /// Which ports have carrier: bit `p % 8` of byte `p / 8` for port p.
    pub carriers: PortSet,
}

/// What is to be done with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// Send it out of `port`, less the first `strip` bytes.
    Forward {
        /// The port to leave by. It may be without cable.
        port: u8,
        /// How many bytes to strip from the front.
        strip: usize,
    },
    /// Stamp it ([`Crossbar::write_stamp`]) and send it back out of the port it came in by, less
    /// the first `strip` bytes.
    Identify {
        /// How many bytes to strip from the front.
        strip: usize,
        /// Where the stamp area begins, counted before stripping.
        stamp_at: usize,
    },
    /// Drop and count it.
    Drop(DropReason),
}

/// Why an xbar drops a frame: each reason has its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub enum DropReason {
    /// The first byte is the type, not a route element: the route ends here, at an xbar.
    #[error("the route ends at a crossbar")]
    NoRoute,
    /// The element leads to a port that the xbar does not have.
    #[error("the route leads to a port that the crossbar does not have")]
    NoSuchPort,
    /// An element of a kind that this xbar does not know.
    #[error("the crossbar does not know this kind of route element")]
    NotUnderstood,
    /// Empty or cut off inside the element.
    #[error("the frame ends inside its route")]
    Truncated,
    /// It asks for a stamp, but its further route or its header cannot be followed to a stamp area.
    #[error("the frame asks for a stamp and has no room for one")]
    NoStampArea,
    /// It is a hello, which is for the other end of one cable and has no route.
    #[error("a hello has a route")]
    HelloOnRoute,
    /// It is to be sent back out of the port it came in by, and again later, or by a port's number.
    #[error("the route turns back more than once")]
    TurnsAgain,
}

impl Crossbar {
    /// Most route elements that are no reason to bound how many such frames pass. A probe there and back over
    /// 62 xbars, which is as far as exploration goes, has 125, and users' routes are shorter. Only a stamped
    /// comparison of two cables can take more, where such ways are long.
    pub const MOST_ELEMENTS: usize = Route::MAX_BYTES / 2;

    /// What to do with the frame that came in by port `arrival`. `payload` is all behind the
    /// link's header.
    ///
    /// Looks at the first route element alone, but for a frame that turns back or wants a stamp: then
    /// it walks over the rest of the route.
    ///
    /// A frame turns back at most once, by delta 0 or to identify. A frame that turned back again and
    /// again would cross one cable as often as its route has elements, and who has no key could so have
    /// each frame sent 250 times. No frame of an agent does: a probe turns once, where it asks (what comes
    /// home by another way, not at all); scouts, answers, data and notices never do. Nor does an agent
    /// name the arrival port by its number, as delta 0 is shorter; on a fabric that has changed such a
    /// frame has lost its way.
    pub fn decide(&self, arrival: u8, payload: &[u8]) -> Decision {
        match self.try_decide(arrival, payload) {
            Ok(decision) => decision,
            Err(reason) => Decision::Drop(reason),
        }
    }

    fn try_decide(&self, arrival: u8, payload: &[u8]) -> Result<Decision, DropReason> {
        let decision = self.obey_first(arrival, payload)?;
        // A hello with a route would come from beyond the cable, and nobody there may speak in the name of one of its ends.
        match decision {
            Decision::Forward { strip, .. } | Decision::Identify { strip, .. }
                if is_hello(payload, strip) =>
            {
                Err(DropReason::HelloOnRoute)
            }
            decision => Ok(decision),
        }
    }

    fn obey_first(&self, arrival: u8, payload: &[u8]) -> Result<Decision, DropReason> {
        let tagged = matches!(self.kind, CrossbarKind::Tagged { .. });
        match first_element(payload)? {
            element @ Element::Relative(delta) => {
                let port = i16::from(arrival) + i16::from(delta);
                let port = u8::try_from(port).map_err(|_| DropReason::NoSuchPort)?;
                self.forward(arrival, port, element, payload)
            }
            element @ Element::Absolute(port) if tagged => self.forward(arrival, port, element, payload),
            Element::Identify if tagged => {
                let strip = Element::Identify.len_bytes();
                let stamp_at = find_stamp_area(payload, strip).ok_or(DropReason::NoStampArea)?;
                if turns_later(payload, strip) {
                    return Err(DropReason::TurnsAgain);
                }
                Ok(Decision::Identify { strip, stamp_at })
            }
            Element::Absolute(_) | Element::Identify => Err(DropReason::NotUnderstood),
        }
    }

    fn forward(
        &self,
        arrival: u8,
        port: u8,
        element: Element,
        payload: &[u8],
    ) -> Result<Decision, DropReason> {
        if !self.has_port(port) {
            return Err(DropReason::NoSuchPort);
        }
        let strip = element.len_bytes();
        if port == arrival && (element != Element::Relative(0) || turns_later(payload, strip)) {
            return Err(DropReason::TurnsAgain);
        }
        Ok(Decision::Forward { port, strip })
    }

    /// Whether a frame has more route elements left than [`Self::MOST_ELEMENTS`]: it can go round a
    /// circle of cables that often, so whoever forwards such frames bounds how many.
    pub fn has_long_route(payload: &[u8]) -> bool {
        payload.len() > Self::MOST_ELEMENTS && elements(payload, 0).nth(Self::MOST_ELEMENTS).is_some()
    }

    /// Whether it has a port of this number.
    pub const fn has_port(&self, port: u8) -> bool {
        match port.checked_sub(self.first_port) {
            Some(nth) => nth < self.ports,
            None => false,
        }
    }

    /// Whether this port has carrier.
    pub const fn has_carrier(&self, port: u8) -> bool {
        self.carriers.contains(port)
    }

    /// Says that this port has carrier, or that it has none.
    pub const fn set_carrier(&mut self, port: u8, up: bool) {
        if up { self.carriers.insert(port) } else { self.carriers.remove(port) }
    }

    /// What it stamps into a frame that came in by port `arrival`; `None` for a plain one.
    pub const fn stamp(&self, arrival: u8) -> Option<Stamp> {
        match self.kind {
            CrossbarKind::Plain => None,
            CrossbarKind::Tagged { tag } => {
                Some(Stamp { tag, ports: self.ports, arrival, carriers: self.carriers })
            }
        }
    }

    /// What a tagged xbar sends back out of port `arrival` when it can't send a data frame out of
    /// `port`, as that has no carrier: route and notice. `payload` is the frame as it arrived, with
    /// its whole route. `None` for all other frames, whose senders learn of it by silence, and
    /// for plain xbars.
    pub fn undeliverable(&self, port: u8, payload: &[u8]) -> Option<Vec<u8>> {
        let CrossbarKind::Tagged { tag } = self.kind else { return None };
        let (token, way_home) = token_and_way_home(payload)?;
        Some(Undeliverable { token, tag, port }.encode_with_route(&way_home))
    }

    /// Writes its stamp into a frame that came in by port `arrival`, where
    /// [`Decision::Identify`] said. Nothing is written where there is no room.
    pub fn write_stamp(&self, arrival: u8, stamp_at: usize, payload: &mut [u8]) {
        if let (Some(stamp), Some(area)) = (self.stamp(arrival), payload.get_mut(stamp_at..)) {
            stamp.write(area);
        }
    }
}

fn first_element(payload: &[u8]) -> Result<Element, DropReason> {
    match Element::first(payload) {
        Ok(Some(element)) => Ok(element),
        Ok(None) if payload.is_empty() => Err(DropReason::Truncated),
        Ok(None) => Err(DropReason::NoRoute),
        Err(RouteError::UnknownElement(_)) => Err(DropReason::NotUnderstood),
        Err(RouteError::Truncated | RouteError::TooLong) => Err(DropReason::Truncated),
    }
}

/// Whether a hello begins at `at`.
fn is_hello(payload: &[u8], at: usize) -> bool {
    payload.get(at..).is_some_and(|rest| FrameKind::of(rest) == Ok(FrameKind::Hello))
}

/// The route elements from `at` on, up to the first that cannot be read.
pub(super) fn elements(payload: &[u8], mut at: usize) -> impl Iterator<Item = Element> + '_ {
    std::iter::from_fn(move || {
        let element = Element::first(payload.get(at..)?).ok().flatten()?;
        at += element.len_bytes();
        Some(element)
    })
}

/// Whether the route from `at` on sends the frame back once more.
fn turns_later(payload: &[u8], at: usize) -> bool {
    elements(payload, at).any(|element| matches!(element, Element::Relative(0) | Element::Identify))
}

/// Where the stamp area of the frame behind the route lies, the route's rest beginning at `at`.
/// Only mapper frames have one. Header and stamp area are the same in every version of the
/// protocol, so the version is not looked at.
fn find_stamp_area(payload: &[u8], mut at: usize) -> Option<usize> {
    while let Some(element) = Element::first(payload.get(at..)?).ok()? {
        at += element.len_bytes();
        if at > Route::MAX_BYTES {
            return None;
        }
    }
    let header = payload.get(at..)?.first_chunk::<HEADER_BYTES>()?;
    let mapper = header[field::KIND] == FrameKind::Mapper.number().to_be_bytes();
    let flagged = header[field::FLAGS] & FLAG_STAMP != 0;
    let stamp_at = at + HEADER_BYTES;
    (mapper && flagged && payload.len() >= stamp_at + STAMP_BYTES).then_some(stamp_at)
}

#[cfg(test)]
mod tests;
