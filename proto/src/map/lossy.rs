//! Cables that carry frames and lose many.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Cable, Map, PortRef};

/// How many ports are looked at for cables that routes can leave out, so that this takes no time to speak of.
const MOST_TRIED: usize = 64;

/// A port of a tagged xbar, named so that it is the same in every map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaggedPort {
    /// The xbar's tag.
    pub tag: u64,
    /// The port's number.
    pub port: u8,
}

impl Map {
    /// How many of its cables between xbars routes leave out at most as they lose frames: one of eight, and one at least. Where
    /// more lose frames it is likelier that there is too much traffic, and moving that to the others would make it worse.
    pub fn most_lossy(&self) -> usize {
        const SHARE: usize = 8;
        (self.cables.len() / SHARE).max(1)
    }

    /// The cables in these ports that routes can leave out all together, in rising order: no more than [`Self::most_lossy`], the
    /// first of those that this map shows. Those without which xbars would be parted that it joins are not among them.
    pub fn cables_in<'a>(&self, ports: impl IntoIterator<Item = &'a TaggedPort>) -> Vec<Cable> {
        let mut ports = ports.into_iter().peekable();
        let mut found: Vec<Cable> = Vec::new();
        if ports.peek().is_none() {
            return Vec::new();
        }
        let tagged = (0..).zip(&self.xbars).filter_map(|(index, xbar)| Some((xbar.tag?, index)));
        let by_tag: BTreeMap<u64, u32> = tagged.collect();
        let by_end: BTreeMap<PortRef, Cable> =
            self.cables.iter().flat_map(|&cable| [(cable.a, cable), (cable.b, cable)]).collect();
        for TaggedPort { tag, port } in ports.take(MOST_TRIED) {
            if found.len() == self.most_lossy() {
                break;
            }
            let end = by_tag.get(tag).map(|&xbar| PortRef { xbar, port: *port });
            let Some(cable) = end.and_then(|end| by_end.get(&end)).filter(|cable| !found.contains(cable))
            else {
                continue;
            };
            found.push(*cable);
            if self.parts_without(&found) > self.parts_without(&[]) {
                found.pop();
            }
        }
        found.sort_unstable();
        found
    }

    /// Whether xbars are parted that this map joins, if the cable in this port is left out.
    pub fn joins_alone(&self, end: PortRef) -> bool {
        let cable = self.cables.iter().find(|cable| cable.a == end || cable.b == end);
        cable.is_some_and(|cable| self.parts_without(&[*cable]) > self.parts_without(&[]))
    }

    /// In how many parts xbars are if these cables are left out.
    fn parts_without(&self, left_out: &[Cable]) -> usize {
        let mut parts = Parts::new(self.xbars.len());
        let joins = self.cables.iter().filter(|cable| !left_out.contains(cable) && parts.join(cable)).count();
        self.xbars.len() - joins
    }

    /// A port's name in every map, if its xbar has a tag.
    pub fn tagged(&self, PortRef { xbar, port }: PortRef) -> Option<TaggedPort> {
        Some(TaggedPort { tag: self.xbars.get(xbar as usize)?.tag?, port })
    }

    /// The map as routes are computed on it: without its lossy cables, but for those without which xbars would be parted that
    /// it joins. It is the same for all who hold the map.
    pub fn routable(&self) -> Cow<'_, Self> {
        if self.lossy.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut parts = Parts::new(self.xbars.len());
        let is_lossy = |cable: &&Cable| self.lossy.binary_search(cable).is_ok();
        self.cables.iter().filter(|cable| !is_lossy(cable)).for_each(|cable| {
            parts.join(cable);
        });
        let needed: Vec<Cable> = self.lossy.iter().filter(|cable| parts.join(cable)).copied().collect();
        let is_left_out = |cable: &Cable| is_lossy(&cable) && needed.binary_search(cable).is_err();
        let cables = self.cables.iter().filter(|cable| !is_left_out(cable)).copied().collect();
        Cow::Owned(Self { cables, lossy: Vec::new(), ..self.clone() })
    }
}

/// The parts of a fabric, as cables are taken in one after the other.
struct Parts {
    /// For each xbar another one of its part, or the xbar itself: following them leads to one that stands for the part.
    towards: Vec<u32>,
}

impl Parts {
    fn new(xbars: usize) -> Self {
        Self { towards: (0..xbars as u32).collect() }
    }

    fn of(&mut self, mut xbar: u32) -> u32 {
        while let next = self.towards[xbar as usize]
            && next != xbar
        {
            self.towards[xbar as usize] = self.towards[next as usize];
            xbar = next;
        }
        xbar
    }

    /// Takes in a cable. Returns whether it joins two parts.
    fn join(&mut self, cable: &Cable) -> bool {
        let (a, b) = (self.of(cable.a.xbar), self.of(cable.b.xbar));
        self.towards[a as usize] = b;
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Xbar;

    fn cable(a: u32, b: u32) -> Cable {
        Cable::new(PortRef { xbar: a, port: b as u8 + 1 }, PortRef { xbar: b, port: a as u8 + 1 })
    }

    /// A ring of four tagged xbars and a fifth that hangs on the last one.
    fn ring(lossy: Vec<Cable>) -> Map {
        Map {
            xbars: (0..5).map(|n| Xbar { ports: 8, tag: Some(70 + n), ports_known: true }).collect(),
            cables: vec![cable(0, 1), cable(0, 3), cable(1, 2), cable(2, 3), cable(3, 4)],
            lossy,
            ..Map::default()
        }
    }

    #[test]
    fn routes_leave_a_lossy_cable_out_unless_it_alone_joins_xbars() {
        assert_eq!(ring(vec![]).routable().cables, ring(vec![]).cables);
        let without = ring(vec![cable(1, 2)]).routable().into_owned();
        assert_eq!(without.cables, [cable(0, 1), cable(0, 3), cable(2, 3), cable(3, 4)]);
        assert_eq!(ring(vec![cable(3, 4)]).routable().cables, ring(vec![]).cables);
        let one_of_two = ring(vec![cable(0, 1), cable(1, 2), cable(3, 4)]);
        assert_eq!(one_of_two.routable().cables, [cable(0, 1), cable(0, 3), cable(2, 3), cable(3, 4)]);
    }

    #[test]
    fn cables_are_found_by_either_end_and_no_more_than_a_share_of_them() {
        let map = ring(vec![]);
        let at = |tag, port| TaggedPort { tag, port };
        assert_eq!(map.most_lossy(), 1);
        assert_eq!(map.cables_in(&[at(71, 3)]), [cable(1, 2)]);
        assert_eq!(map.cables_in(&[at(72, 2), at(71, 3)]), [cable(1, 2)]);
        assert_eq!(map.cables_in(&[at(71, 8), at(99, 1), at(71, 3), at(70, 2)]), [cable(1, 2)]);
        assert_eq!(map.cables_in(&[at(74, 4), at(71, 3)]), [cable(1, 2)], "one cable alone joins xbar 4");
        let joins_alone = |xbar, port| map.joins_alone(PortRef { xbar, port });
        assert!(joins_alone(4, 4) && joins_alone(3, 5) && !joins_alone(1, 3) && !joins_alone(1, 7));
        let many = Map { cables: (0..16).map(|n| cable(n % 5, n / 5)).collect(), ..map };
        assert_eq!(many.most_lossy(), 2);
    }
}
