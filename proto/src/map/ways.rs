//! Shortest ways from one host to every xbar of a map, for the agents' own small messages.
//!
//! These are breadth-first and know no orientation: they carry probes and scouts, which are few
//! and bounded, never users' traffic. Users' traffic takes the proved routes.

use std::collections::VecDeque;

use super::{Map, PortRef};
use crate::wire::{Element, RoundTrip, Route};

/// The turn from one port of an xbar to another: relative where it fits, absolute otherwise.
pub fn turn(arrival: u8, leave: u8) -> Element {
    let delta = i16::from(leave) - i16::from(arrival);
    match i8::try_from(delta) {
        Ok(delta @ -32..=31) => Element::Relative(delta),
        _ => Element::Absolute(leave),
    }
}

/// An xbar that a way passes: in by one port, out by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// Index of the xbar.
    pub xbar: u32,
    /// The port by which a frame comes in.
    pub arrival: u8,
    /// The port by which it leaves.
    pub leave: u8,
}

/// A way from a host up to the port by which it enters an xbar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The xbars passed, first to last, without the one at its end.
    pub crossings: Vec<Crossing>,
    /// The xbar at its end, and the port by which it enters it.
    pub entry: PortRef,
}

impl Way {
    /// The elements that lead to the xbar at the end.
    pub fn forward(&self) -> Route {
        self.crossings.iter().map(|c| turn(c.arrival, c.leave)).collect()
    }

    /// The elements that lead from the xbar at the end back to the host, that xbar's own turn
    /// not included.
    pub fn back(&self) -> Route {
        self.crossings.iter().rev().map(|c| turn(c.leave, c.arrival)).collect()
    }

    /// The way to what is cabled to this port of the xbar at the end, and back.
    pub fn to_port(&self, port: u8) -> RoundTrip {
        let mut there = self.forward();
        there.push(turn(self.entry.port, port));
        let mut back = Route::from_iter([turn(port, self.entry.port)]);
        back.extend(self.back().elements());
        RoundTrip { there, back }
    }
}

/// Breadth-first tree of ways from one host.
#[derive(Clone, Debug)]
pub struct Ways {
    /// For each xbar the port by which the tree enters it, and the port it comes from (`None`
    /// for the host's own xbar); `None` if it cannot be reached.
    reached: Vec<Option<(u8, Option<PortRef>)>>,
}

impl Ways {
    /// The ways from the host at `from` (the xbar port that it is cabled to).
    pub fn new(map: &Map, from: PortRef) -> Self {
        Self::over(&CablesByXbar::new(map), from)
    }

    /// The ways from the host at `from` over the cables of a map.
    pub(crate) fn over(neighbours: &CablesByXbar, from: PortRef) -> Self {
        let mut reached = vec![None; neighbours.xbars()];
        let mut queue = VecDeque::new();
        if let Some(first) = reached.get_mut(from.xbar as usize) {
            *first = Some((from.port, None));
            queue.push_back(from.xbar);
        }
        while let Some(xbar) = queue.pop_front() {
            for (near, far) in neighbours.of(xbar) {
                if let Some(slot @ None) = reached.get_mut(far.xbar as usize) {
                    *slot = Some((far.port, Some(near)));
                    queue.push_back(far.xbar);
                }
            }
        }
        Self { reached }
    }

    /// The way to an xbar, if there is one.
    pub fn to(&self, xbar: u32) -> Option<Way> {
        let (port, mut from) = (*self.reached.get(xbar as usize)?)?;
        let mut crossings = Vec::new();
        while let Some(near) = from {
            let (arrival, before) = self.reached[near.xbar as usize]?;
            crossings.push(Crossing { xbar: near.xbar, arrival, leave: near.port });
            from = before;
        }
        crossings.reverse();
        Some(Way { crossings, entry: PortRef { xbar, port } })
    }
}

/// The cables of each xbar to other xbars, in the map's order: one flat array.
#[derive(Clone, Debug)]
pub(crate) struct CablesByXbar {
    starts: Vec<u32>,
    ends: Vec<CableEnd>,
}

/// A cable, as seen from one of its xbars. Large maps have many, and every agent lists them: so it is small.
#[derive(Clone, Copy, Debug, Default)]
struct CableEnd {
    far_xbar: u32,
    far_port: u8,
    near_port: u8,
}

impl CablesByXbar {
    pub(crate) fn new(map: &Map) -> Self {
        let between_two = || map.cables.iter().filter(|cable| cable.a.xbar != cable.b.xbar);
        let mut starts = vec![0_u32; map.xbars.len() + 1];
        for cable in between_two() {
            starts[cable.a.xbar as usize + 1] += 1;
            starts[cable.b.xbar as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut ends = vec![CableEnd::default(); starts.last().copied().unwrap_or_default() as usize];
        let mut next = starts.clone();
        let mut put = |near: PortRef, far: PortRef| {
            let place = &mut next[near.xbar as usize];
            ends[*place as usize] = CableEnd { far_xbar: far.xbar, far_port: far.port, near_port: near.port };
            *place += 1;
        };
        for cable in between_two() {
            put(cable.a, cable.b);
            put(cable.b, cable.a);
        }
        Self { starts, ends }
    }

    /// How many xbars there are.
    pub(crate) fn xbars(&self) -> usize {
        self.starts.len() - 1
    }

    /// The near and far ends of an xbar's cables to other xbars.
    pub(super) fn of(&self, xbar: u32) -> impl Iterator<Item = (PortRef, PortRef)> + Clone + '_ {
        let ends = &self.ends[self.starts[xbar as usize] as usize..self.starts[xbar as usize + 1] as usize];
        ends.iter().map(move |end| {
            let near = PortRef { xbar, port: end.near_port };
            (near, PortRef { xbar: end.far_xbar, port: end.far_port })
        })
    }
}

/// Follows a route through a map from the xbar port at which a frame goes in, and says by which
/// port the last element leaves. `None` if the route leads nowhere in this map.
pub fn follow(map: &Map, from: PortRef, route: &Route) -> Option<PortRef> {
    let mut at = from;
    let mut left: Option<PortRef> = None;
    for element in route.elements() {
        if let Some(exit) = left {
            let cable = map.cables.iter().find(|c| c.a == exit || c.b == exit)?;
            at = if cable.a == exit { cable.b } else { cable.a };
        }
        let port = match element {
            Element::Relative(delta) => u8::try_from(i16::from(at.port) + i16::from(delta)).ok()?,
            Element::Absolute(port) => port,
            Element::Identify => return None,
        };
        left = Some(PortRef { xbar: at.xbar, port });
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Cable, Xbar};

    fn line() -> Map {
        let xbar = Xbar { ports: 40, tag: Some(1), ports_known: true };
        let at = |xbar, port| PortRef { xbar, port };
        Map {
            xbars: vec![xbar; 3],
            cables: vec![Cable::new(at(0, 2), at(1, 40)), Cable::new(at(1, 3), at(2, 7))],
            ..Map::default()
        }
    }

    #[test]
    fn ways_lead_there_and_back() {
        let map = line();
        let ways = Ways::new(&map, PortRef { xbar: 0, port: 1 });
        let way = ways.to(2).unwrap();
        assert_eq!(way.entry, PortRef { xbar: 2, port: 7 });
        assert_eq!(way.forward().to_string(), "1,@3");
        assert_eq!(way.back().to_string(), "@40,-1");
        assert!(ways.to(0).unwrap().crossings.is_empty());
    }

    #[test]
    fn follow_names_the_last_port() {
        let map = line();
        let from = PortRef { xbar: 0, port: 1 };
        let route = [Element::Relative(1), Element::Absolute(3), Element::Relative(-2)].into_iter().collect();
        assert_eq!(follow(&map, from, &route), Some(PortRef { xbar: 2, port: 5 }));
        assert_eq!(
            follow(&map, from, &[Element::Relative(5), Element::Relative(1)].into_iter().collect()),
            None
        );
    }

    #[test]
    fn no_way_to_a_part_that_is_cut_off() {
        let mut map = line();
        map.cables.pop();
        assert_eq!(Ways::new(&map, PortRef { xbar: 0, port: 1 }).to(2), None);
    }
}
