//! What a map has that another has not.

use std::fmt;

use super::{Cable, Correspondence, Host, HostIndex, Map, PortRef, host_type};
use crate::Mac;

/// A host at another place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MovedHost {
    /// Which host.
    pub mac: Mac,
    /// Where it was, in the older map.
    pub from: Option<PortRef>,
    /// Where it is, in the newer map.
    pub to: Option<PortRef>,
}

/// A cable of which one end is where it was and the other is elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MovedCable {
    /// As it was, in the older map.
    pub from: Cable,
    /// As it is, in the newer map.
    pub to: Cable,
}

/// What a newer map has that an older has not, and the other way round. All lists are in the
/// order of the maps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    /// Hosts of the older map only.
    pub hosts_missing: Vec<Mac>,
    /// Hosts of the newer map only.
    pub hosts_added: Vec<Mac>,
    /// Hosts at another place.
    pub hosts_moved: Vec<MovedHost>,
    /// Xbars of the older map only: indices there.
    pub xbars_missing: Vec<u32>,
    /// Xbars of the newer map only: indices there.
    pub xbars_added: Vec<u32>,
    /// Cables of the older map only, as there.
    pub cables_missing: Vec<Cable>,
    /// Cables of the newer map only, as there.
    pub cables_added: Vec<Cable>,
    /// Cables with one end elsewhere.
    pub cables_moved: Vec<MovedCable>,
}

impl Difference {
    /// What differs between two maps whose xbars correspond like this. Phantoms are left out.
    pub fn between(older: &Map, newer: &Map, xbars: &Correspondence) -> Self {
        let mut difference = Self::default();
        difference.compare_hosts(older, newer, xbars);
        difference.compare_xbars(older, newer, xbars);
        difference.compare_cables(older, newer, xbars);
        difference
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn compare_hosts(&mut self, older: &Map, newer: &Map, xbars: &Correspondence) {
        let exists = |host: &&Host| host.host_type != host_type::PHANTOM;
        let (in_older, in_newer) = (HostIndex::new(older), HostIndex::new(newer));
        let find = |index: &HostIndex, map: &Map, mac| {
            index.find(mac).map(|at| map.hosts[at as usize]).filter(|host| exists(&host))
        };
        for host in older.hosts.iter().filter(exists) {
            match find(&in_newer, newer, host.mac) {
                None => self.hosts_missing.push(host.mac),
                Some(twin) if host.at.map(|at| xbars.port(at)) != twin.at.map(Some) => {
                    self.hosts_moved.push(MovedHost { mac: host.mac, from: host.at, to: twin.at });
                }
                Some(_) => {}
            }
        }
        let new = newer.hosts.iter().filter(exists);
        self.hosts_added =
            new.map(|host| host.mac).filter(|&mac| find(&in_older, older, mac).is_none()).collect();
    }

    fn compare_xbars(&mut self, older: &Map, newer: &Map, xbars: &Correspondence) {
        let mut added = vec![true; newer.xbars.len()];
        for index in 0..older.xbars.len() as u32 {
            match xbars.xbar(index).and_then(|twin| added.get_mut(twin as usize)) {
                Some(added) => *added = false,
                None => self.xbars_missing.push(index),
            }
        }
        self.xbars_added = (0..).zip(added).filter(|&(_, added)| added).map(|(index, _)| index).collect();
    }

    fn compare_cables(&mut self, older: &Map, newer: &Map, xbars: &Correspondence) {
        let translated = |cable: &Cable| Some(Cable::new(xbars.port(cable.a)?, xbars.port(cable.b)?));
        let mut kept: Vec<Cable> = older.cables.iter().filter_map(translated).collect();
        kept.sort_unstable();
        let mut added: Vec<Option<Cable>> = newer
            .cables
            .iter()
            .filter(|cable| kept.binary_search(cable).is_err())
            .copied()
            .map(Some)
            .collect();
        let mut standing: Vec<Cable> = newer.cables.clone();
        standing.sort_unstable();
        let mut by_end: Vec<(PortRef, usize)> = Vec::with_capacity(2 * added.len());
        for (nth, cable) in added.iter().enumerate() {
            by_end.extend(cable.iter().flat_map(|cable| [(cable.a, nth), (cable.b, nth)]));
        }
        by_end.sort_unstable();
        for &from in &older.cables {
            if translated(&from).is_some_and(|cable| standing.binary_search(&cable).is_ok()) {
                continue;
            }
            // A cable that is new and has an end in the port of this one is this one, moved.
            let ends = [from.a, from.b].into_iter().filter_map(|end| xbars.port(end));
            let moved = ends
                .filter_map(|end| by_end.binary_search_by_key(&end, |&(port, _)| port).ok())
                .find_map(|at| added[by_end[at].1].take());
            match moved {
                Some(to) => self.cables_moved.push(MovedCable { from, to }),
                None => self.cables_missing.push(from),
            }
        }
        self.cables_added = added.into_iter().flatten().collect();
    }
}

impl fmt::Display for Difference {
    /// How much differs, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.hosts_missing.len(), "host", "missing"),
            (self.hosts_added.len(), "host", "added"),
            (self.hosts_moved.len(), "host", "moved"),
            (self.xbars_missing.len(), "xbar", "missing"),
            (self.xbars_added.len(), "xbar", "added"),
            (self.cables_missing.len(), "cable", "missing"),
            (self.cables_added.len(), "cable", "added"),
            (self.cables_moved.len(), "cable", "moved"),
        ];
        let mut comma = "";
        for (count, what, how) in counts.into_iter().filter(|&(count, ..)| count > 0) {
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{comma}{count} {what}{plural} {how}")?;
            comma = ", ";
        }
        if comma.is_empty() { f.write_str("no difference") } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "../../tests/component/mod.rs"]
mod component;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::component::component_of;
    use super::*;
    use crate::map::Xbar;
    use crate::map::random::draws;

    fn port(xbar: u32, port: u8) -> PortRef {
        PortRef { xbar, port }
    }

    fn cable(a: (u32, u8), b: (u32, u8)) -> Cable {
        Cable::new(port(a.0, a.1), port(b.0, b.1))
    }

    fn mac(position: u32) -> Mac {
        Mac::from_position(position)
    }

    /// Two leaves with three hosts each, two spines, all plain.
    fn clos() -> Map {
        let host = |position: u32| Host {
            mac: mac(position),
            level: 1,
            host_type: host_type::ETHERNET,
            at: Some(port(position / 3, 1 + (position % 3) as u8)),
        };
        Map {
            hosts: (0..6).map(host).collect(),
            xbars: vec![Xbar { ports: 8, tag: None, ports_known: true }; 4],
            cables: [0, 1]
                .iter()
                .flat_map(|&leaf| {
                    [cable((leaf, 4), (2, 1 + leaf as u8)), cable((leaf, 5), (3, 1 + leaf as u8))]
                })
                .collect(),
            ..Map::default()
        }
    }

    fn same() -> Correspondence {
        Correspondence::given((0..4).map(Some))
    }

    fn changed(change: impl FnOnce(&mut Map)) -> Difference {
        let mut newer = clos();
        change(&mut newer);
        let guessed = Correspondence::guess(&clos(), &newer);
        let difference = Difference::between(&clos(), &newer, &same());
        assert_eq!(Difference::between(&clos(), &newer, &guessed), difference, "the guess is right");
        difference
    }

    #[test]
    fn hosts_that_went_came_and_moved_are_named() {
        assert!(changed(|_| {}).is_empty());
        let difference = changed(|map| {
            map.hosts[0].mac = mac(90);
            map.hosts[4].at = Some(port(0, 6));
        });
        let expected = Difference {
            hosts_missing: vec![mac(0)],
            hosts_added: vec![mac(90)],
            hosts_moved: vec![MovedHost { mac: mac(4), from: Some(port(1, 2)), to: Some(port(0, 6)) }],
            ..Difference::default()
        };
        assert_eq!(difference, expected);
        assert_eq!(difference.to_string(), "1 host missing, 1 host added, 1 host moved");
    }

    #[test]
    fn phantoms_do_not_differ() {
        let phantom = Host { mac: mac(90), level: 0, host_type: host_type::PHANTOM, at: None };
        assert_eq!(changed(|map| map.hosts.push(phantom)).to_string(), "no difference");
    }

    #[test]
    fn cables_that_went_came_and_moved_are_named() {
        let lost = changed(|map| map.cables.retain(|kept| *kept != cable((0, 5), (3, 1))));
        assert_eq!(lost.cables_missing, [cable((0, 5), (3, 1))]);
        let new = cable((0, 7), (1, 8));
        let difference = changed(|map| map.cables.push(new));
        assert_eq!(difference, Difference { cables_added: vec![new], ..Difference::default() });
        let to = cable((1, 8), (3, 2));
        let difference = changed(|map| map.cables[3] = to);
        let from = cable((1, 5), (3, 2));
        assert_eq!(
            difference,
            Difference { cables_moved: vec![MovedCable { from, to }], ..Difference::default() }
        );
    }

    #[test]
    fn two_swapped_cables_are_two_moved_ones() {
        let difference = changed(|map| {
            map.cables = vec![
                cable((0, 4), (2, 1)),
                cable((0, 5), (2, 2)),
                cable((1, 4), (3, 1)),
                cable((1, 5), (3, 2)),
            ];
        });
        assert_eq!(difference.cables_moved.len(), 2);
        assert!(difference.cables_missing.is_empty() && difference.cables_added.is_empty());
    }

    #[test]
    fn xbars_that_went_and_came_are_named() {
        let difference = changed(|map| map.xbars.push(map.xbars[0]));
        assert_eq!(difference, Difference { xbars_added: vec![4], ..Difference::default() });
        let mut newer = clos();
        newer.xbars.pop();
        newer.cables.retain(|cable| cable.b.xbar != 3);
        let without = Difference::between(&clos(), &newer, &Correspondence::guess(&clos(), &newer));
        assert_eq!(without.to_string(), "1 xbar missing, 2 cables missing");
        assert_eq!(without.xbars_missing, [3]);
    }

    #[test]
    fn tags_tell_xbars_and_a_swapped_one_is_another() {
        let mut older = clos();
        for (xbar, tag) in older.xbars.iter_mut().zip(1..) {
            xbar.tag = Some(tag);
        }
        let mut newer = older.clone();
        newer.xbars[3].tag = Some(9);
        let guess = Correspondence::guess(&older, &newer);
        let difference = Difference::between(&older, &newer, &guess);
        assert_eq!((difference.xbars_missing, difference.xbars_added), (vec![3], vec![3]));
        // The ends at the leaves stayed.
        assert_eq!(difference.cables_moved.len(), 2);
    }

    proptest! {
        /// Xbars in another order and plain ones numbered from elsewhere: what hangs together
        /// with a host is told all the same.
        #[test]
        fn a_renumbered_map_does_not_differ(draw in draws(), rotation in 0..10u32, shift in 0..9u8) {
            let whole = draw.map();
            let older = if whole.hosts.is_empty() { whole } else { component_of(&whole, 0) };
            prop_assume!(!older.hosts.is_empty());
            let count = older.xbars.len() as u32;
            let place = |xbar| (xbar + rotation) % count.max(1);
            let moved = |p: PortRef| {
                let plain = older.xbars[p.xbar as usize].tag.is_none();
                port(place(p.xbar), p.port + if plain { shift } else { 0 })
            };
            let mut newer = older.clone();
            for host in &mut newer.hosts {
                host.at = host.at.map(moved);
            }
            for (old, xbar) in (0..).zip(&older.xbars) {
                newer.xbars[place(old) as usize] = *xbar;
            }
            newer.cables = older.cables.iter().map(|c| Cable::new(moved(c.a), moved(c.b))).collect();
            newer.sort_canonical();
            let guess = Correspondence::guess(&older, &newer);
            let difference = Difference::between(&older, &newer, &guess);
            prop_assert!(difference.is_empty(), "{}", difference);
        }

        #[test]
        fn each_cable_is_in_one_list(draw in draws(), other in draws()) {
            let (older, newer) = (draw.map(), other.map());
            let guess = Correspondence::guess(&older, &newer);
            let difference = Difference::between(&older, &newer, &guess);
            let moved = difference.cables_moved.len();
            let kept = older.cables.len() - difference.cables_missing.len() - moved;
            prop_assert_eq!(newer.cables.len() - difference.cables_added.len() - moved, kept);
            prop_assert!(older.hosts.len() >= difference.hosts_missing.len() + difference.hosts_moved.len());
        }
    }
}
