//! Destinations to which ways lead alike: the leaves of one group of a tree, the tops of one plane.

use std::collections::BTreeMap;

use super::ports::XbarPorts;
use super::search::BLOCK;
use super::ways::Ways;

/// How many xbars the classes of one part have together, or more if it is a single class.
const PART: usize = 128;

/// Classes of xbars that have the same neighbours, above and below.
///
/// If two such xbars change places, all else of the fabric stays as it is. So ways to one of them lead over any third xbar
/// as ways to the other do, but for the last step, and are found for one of each class only.
pub(super) struct Twins {
    classes: Vec<Vec<u32>>,
}

impl Twins {
    /// The classes of all xbars, by their first ones, where all ways are the shortest ones by steps. `leaves` are the xbars
    /// that have hosts, in rising order.
    pub(super) fn of(ports: &XbarPorts, leaves: &[u32]) -> Self {
        let mut alike: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for xbar in 0..ports.xbars as u32 {
            let has_hosts = leaves.binary_search(&xbar).is_ok();
            alike.entry((ports.below(xbar), ports.above(xbar), has_hosts)).or_default().push(xbar);
        }
        let mut classes: Vec<Vec<u32>> = alike.into_values().collect();
        classes.sort_unstable();
        Self { classes }
    }

    /// Each xbar by itself, for ways that are not all shortest ones by steps.
    pub(super) fn apart(ports: &XbarPorts) -> Self {
        Self { classes: (0..ports.xbars as u32).map(|xbar| vec![xbar]).collect() }
    }

    /// Takes out the xbars that have no twin and of which this is true.
    pub(super) fn take_alone(&mut self, is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let alone = self.classes.extract_if(.., |class| matches!(class[..], [xbar] if is_wanted(xbar)));
        alone.flatten().collect()
    }

    /// Adds xbars that have no twin.
    pub(super) fn add_alone(&mut self, xbars: &[u32]) {
        self.classes.extend(xbars.iter().map(|&xbar| vec![xbar]));
        self.classes.sort_unstable();
    }

    /// Parts with about as many xbars each, and with at most [`BLOCK`] classes.
    pub(super) fn parts(&self) -> Vec<&[Vec<u32>]> {
        let mut parts = Vec::new();
        let (mut start, mut xbars) = (0, 0);
        for (at, class) in self.classes.iter().enumerate() {
            if at > start && (xbars + class.len() > PART || at - start == BLOCK) {
                parts.push(&self.classes[start..at]);
                (start, xbars) = (at, 0);
            }
            xbars += class.len();
        }
        parts.push(&self.classes[start..]);
        parts.retain(|part| !part.is_empty());
        parts
    }
}

impl Ways {
    /// Has the ways at a place lead to a twin of the xbar that they lead to. Returns the xbars whose sets of ports are
    /// others now.
    pub(super) fn turn_to_twin(&mut self, ports: &XbarPorts, place: usize, twin: u32) -> Vec<u32> {
        let before = std::mem::replace(&mut self.to[place], twin);
        // From any of them to any other, ways lead over the same neighbours.
        let onward: Vec<u32> = ports
            .numbers_of(twin)
            .filter(|&number| self.leads(place, number))
            .map(|number| ports.heads[number])
            .collect();
        let mut changed = vec![before, twin];
        changed.extend(ports.below(twin).iter().chain(ports.above(twin)));
        for &xbar in &changed {
            (0..ports.words).for_each(|word| self.set_mask(place, xbar, word, 0));
        }
        let from_before = ports.numbers_of(before).filter(|&number| onward.contains(&ports.heads[number]));
        let last_steps = ports.numbers_of(twin).map(|number| ports.backs[number] as usize);
        let numbers: Vec<usize> = from_before.chain(last_steps).collect();
        numbers.into_iter().for_each(|number| self.add_port(place, number));
        changed
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::super::ranks::{Order, Roots, find_roots};
    use super::*;
    use crate::engines::balanced::runs::Runs;
    use crate::engines::{Engine, Settings};
    use crate::tiers::cabled_hosts;
    use crate::{Subnet, Tiers};

    /// The last one has sets of ports of two words.
    const FABRICS: [&str; 6] = [
        "xgft:h=3;m=3,3,4;w=1,3,3",
        "cluster:leaves=9,spines=5,hosts=60,cables=2,missing=3",
        "cluster:leaves=8,spines=4,hosts=40,service=every,missing=2",
        "torus:x=4,y=4",
        "random:xbars=14,ports=12,hosts=40,links=26,seed=3",
        "cluster:leaves=5,spines=4,hosts=350,ports=100",
    ];

    /// The ports of a fabric that has lost these of its cables, with the order of an engine, and the xbars with hosts.
    fn ports(spec: &str, lost: &[usize], engine: Engine) -> (Vec<u32>, Vec<u32>, XbarPorts) {
        let mut fabric = generate(spec).unwrap();
        let cables = fabric.map.cables.len();
        for at in lost {
            fabric.map.cables.remove(at % (cables - lost.len()));
        }
        let subnet = Subnet::new(&fabric, None).unwrap();
        let (topology, settings) = (&subnet.topology, Settings::default());
        let tiers = Tiers::of(topology);
        let roots = find_roots(&subnet, &settings, &tiers).unwrap_or_else(|_| Roots::none());
        let order = Order::of(engine, &subnet, &settings, &tiers, &roots);
        let parts = (0..topology.xbar_count() as u32).map(|xbar| topology.component(xbar)).collect();
        let leaves = (0..topology.xbar_count() as u32).filter(|&xbar| cabled_hosts(topology, xbar) > 0);
        (parts, leaves.collect(), XbarPorts::new(topology, &settings, order.as_ref()))
    }

    #[test]
    fn ways_that_are_turned_to_twins_are_those_that_are_found() {
        let mut turned = 0;
        for spec in FABRICS {
            for lost in [vec![], vec![5], vec![5, 17, 3]] {
                for engine in [Engine::Minhop, Engine::Updn, Engine::Dnup] {
                    let (parts, leaves, ports) = ports(spec, &lost, engine);
                    assert_eq!(ports.words > 1, spec.ends_with("ports=100"));
                    for class in Twins::of(&ports, &leaves).classes {
                        let mut ways = Ways::find(&ports, &class[..1], &parts, &leaves, false);
                        let mut runs = Runs::of(&ports, &ways, 0);
                        for &twin in &class[1..] {
                            let changed = ways.turn_to_twin(&ports, 0, twin);
                            runs.follow(&ports, &ways, 0, &changed);
                            let found = Ways::find(&ports, &[twin], &parts, &leaves, false);
                            assert_eq!(
                                ways.masks_to(0),
                                found.masks_to(0),
                                "{engine} {spec} {lost:?} {twin}"
                            );
                            assert_eq!(runs, Runs::of(&ports, &found, 0), "{engine} {spec} {lost:?} {twin}");
                            turned += 1;
                        }
                    }
                }
            }
        }
        assert!(turned > 100, "{turned}");
    }

    #[test]
    fn parts_have_each_class_once() {
        let (_, leaves, ports) = ports("xgft:h=3;m=12,12,24;w=1,12,12", &[], Engine::Updn);
        let twins = Twins::of(&ports, &leaves);
        let parts = twins.parts();
        assert_eq!(parts.concat(), twins.classes);
        assert!(parts.len() > 2);
        assert!(
            parts.iter().all(|part| part.len() <= BLOCK && (part.len() == 1 || part.concat().len() <= PART))
        );
    }
}
