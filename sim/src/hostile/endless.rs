//! A stranger that answers probes as a tree of crossbars without end.

use mapper_proto::PortSet;
use mapper_proto::agent::Transmit;
use mapper_proto::wire::{Crossbar, CrossbarKind, Decision, Element, Route, split_route};

/// A tree of crossbars that do not exist, in which each port of each crossbar leads to another. A frame that
/// turns around in the tree leaves it as it would if the crossbars existed. So the stranger needs no key and
/// remembers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndlessTree {
    /// The crossbars have tags, and each is entered by port 0.
    Tagged {
        /// The highest port of each crossbar; the lowest is 0.
        ports: u8,
    },
    /// The crossbars are anonymous, and each is entered by another port.
    Plain {
        /// The highest port of each crossbar; the lowest is 0.
        ports: u8,
    },
}

/// One crossbar of the tree.
#[derive(Clone, Copy)]
struct PhantomXbar {
    /// The crossbar's identity, which no other has. Anonymous crossbars do not show it.
    tag: u64,
    /// The port by which a frame enters it.
    entry: u8,
}

impl EndlessTree {
    /// The frame that comes back for a frame that turns around in the tree. `payload` is the route of the
    /// frame that came and all behind it.
    pub fn answer(self, payload: &[u8]) -> Option<Transmit> {
        let (route, _) = split_route(payload).ok()?;
        let elements: Vec<Element> = route.elements().collect();
        let turn = elements.iter().position(|element| turns(*element))?;
        let (mut skip, mut place) = (0, self.place(0xe4d1_e550));
        for element in &elements[..turn] {
            skip += element.len_bytes();
            place = self.beyond(place, *element)?;
        }
        let mut payload = payload.get(skip..)?.to_vec();
        if elements[turn] == Element::Identify {
            self.stamp(place, &mut payload)?;
        }
        let (route, frame) = split_route(&payload).ok()?;
        let route: Route = route.elements().skip(1 + turn).collect();
        Some(Transmit { route, frame: frame.to_vec() })
    }

    const fn ports(self) -> u8 {
        match self {
            Self::Tagged { ports } | Self::Plain { ports } => ports,
        }
    }

    fn place(self, tag: u64) -> PhantomXbar {
        let entry = match self {
            Self::Tagged { .. } => 0,
            Self::Plain { ports } => (tag >> 32) as u8 % (ports + 1),
        };
        PhantomXbar { tag, entry }
    }

    /// The crossbar that a frame reaches when it leaves `from` by this route element.
    fn beyond(self, from: PhantomXbar, element: Element) -> Option<PhantomXbar> {
        let port = match (element, self) {
            (Element::Relative(delta), _) => from.entry.checked_add_signed(delta)?,
            (Element::Absolute(port), Self::Tagged { .. }) => port,
            (Element::Absolute(_) | Element::Identify, _) => return None,
        };
        let is_there = port != from.entry && port <= self.ports();
        let tag = (from.tag ^ u64::from(port)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        is_there.then(|| self.place(tag))
    }

    /// Stamps a frame as the crossbar in which it turns would; `None` if that crossbar is anonymous.
    fn stamp(self, place: PhantomXbar, payload: &mut [u8]) -> Option<()> {
        let Self::Tagged { ports } = self else { return None };
        let kind = CrossbarKind::Tagged { tag: place.tag };
        let mut crossbar =
            Crossbar { kind, first_port: 0, ports: ports.saturating_add(1), carriers: PortSet::NONE };
        (0..=ports).for_each(|port| crossbar.set_carrier(port, true));
        let Decision::Identify { stamp_at, .. } = crossbar.decide(place.entry, payload) else { return None };
        crossbar.write_stamp(place.entry, stamp_at, payload);
        Some(())
    }
}

const fn turns(element: Element) -> bool {
    matches!(element, Element::Relative(0) | Element::Identify)
}
