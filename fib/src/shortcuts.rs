//! The shortcut through a crossbar of the kernel's: which packets leave by which port, told so that they can be sent on
//! where they come in, before any route is looked up.
//!
//! It says nothing that the routes of segments do not say. What it lacks goes by these.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::Mac;

use crate::object::{Objects, Route, RouteKey, Rule, Strips, Table};
use crate::segments::{Element, NEIGHBOUR, towards_port};
use crate::{IpPrefix, segments};

/// What a crossbar's ports do with packets by compressed segments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shortcuts {
    /// The names of the interfaces that segments are obeyed from.
    pub from: BTreeSet<String>,
    /// Where packets leave by each element: the number of the interface, and who is at the other end of the cable.
    pub to: BTreeMap<u16, (u32, Mac)>,
}

impl Shortcuts {
    /// The shortcuts by what a kernel holds; none where it knows no compressed segments, or forwards nothing.
    pub fn of(objects: &Objects) -> Self {
        let to: BTreeMap<_, _> = (0..=u8::MAX).filter_map(|port| leaving_by(objects, port)).collect();
        let from = objects.rules.iter().filter_map(|rule| match rule {
            Rule::Segments { interface, to } if *to == segments::all() => Some(interface.clone()),
            Rule::Segments { .. } | Rule::Unknown { .. } | Rule::TooLong | Rule::Passing { .. } => None,
        });
        let from = if to.is_empty() { BTreeSet::new() } else { from.collect() };
        Self { from, to }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.from.is_empty() || self.to.is_empty()
    }
}

/// The element of a port and where packets leave by it, if all that this takes is there.
fn leaving_by(objects: &Objects, port: u8) -> Option<(u16, (u32, Mac))> {
    let element = Element::Port(port);
    let route = |to: IpPrefix| objects.routes.get(&RouteKey { table: Table::Segments, to });
    let Some(&Route::StripAndLeave { towards, strips: Strips::Element, .. }) = route(element.prefix()) else {
        return None;
    };
    let to = IpPrefix::v6(towards, segments::BLOCK_BITS + segments::ELEMENT_BITS);
    match route(to) {
        Some(&Route::Gateway { interface, gateway: NEIGHBOUR }) if towards == towards_port(port) => {
            let neighbour = objects.neighbours.get(&(interface, NEIGHBOUR.into()))?;
            Some((element.bits(), (interface, *neighbour)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossbar::{CabledPort, Delivery, Role, by_segments};
    use crate::segments::Packing;

    fn ports() -> Vec<CabledPort> {
        let port = |port: u8| CabledPort {
            port,
            interface: 10 + u32::from(port),
            name: format!("e{port}"),
            neighbour: Mac([2, 0, 0, 0, 0, port]),
            neighbour_port: 1,
            sends_segments: true,
        };
        vec![port(0), port(3)]
    }

    #[test]
    fn a_crossbar_sends_on_by_the_elements_of_its_cabled_ports_and_an_agent_alone_by_none() {
        let shortcuts =
            Shortcuts::of(&by_segments(&ports(), Role::Crossbar, Delivery::default(), Packing::Compressed));
        assert_eq!(shortcuts.from, ["e0", "e3"].map(str::to_owned).into());
        let to = [(0x100, (10, Mac([2, 0, 0, 0, 0, 0]))), (3, (13, Mac([2, 0, 0, 0, 0, 3])))];
        assert_eq!(shortcuts.to, to.into());
        assert!(
            Shortcuts::of(&by_segments(&ports(), Role::AgentAlone, Delivery::default(), Packing::Compressed))
                .is_empty()
        );
    }

    #[test]
    fn full_segments_and_ports_whose_neighbour_is_not_known_have_no_shortcut() {
        assert!(
            Shortcuts::of(&by_segments(&ports(), Role::Crossbar, Delivery::default(), Packing::Full))
                .is_empty()
        );
        let mut objects = by_segments(&ports(), Role::Crossbar, Delivery::default(), Packing::Compressed);
        objects.neighbours.remove(&(13, NEIGHBOUR.into()));
        assert_eq!(Shortcuts::of(&objects).to.keys().collect::<Vec<_>>(), [&0x100]);
    }
}
