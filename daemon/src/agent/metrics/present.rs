//! What the last map has, and what has changed from one map to another.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::Mac;

use super::called::{NamedEnd, XbarName, naming_hosts};

/// The most changes that are named one by one.
const MOST_NAMED: usize = 40;

/// Hosts with the port that each is cabled to, and cables between crossbars, by names that stay the same from map to map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Present {
    pub(super) hosts: BTreeMap<Mac, Option<NamedEnd>>,
    pub(super) cables: BTreeSet<[NamedEnd; 2]>,
}

impl Present {
    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.cables.is_empty()
    }

    /// What changed from this map to `after`, a line for each thing. `called` names hosts. If there are too
    /// many changes, the last line says how many more there are.
    pub fn changes_to(&self, after: &Self, called: impl Fn(Mac) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        let places = |at: &Self| naming_hosts(at.hosts.iter().filter_map(|(&mac, &end)| Some((mac, end?))));
        let (before, now) = (places(self), places(after));
        // A cable is called by the hosts that its ends are called by, before it went or since it came.
        let end = |end: NamedEnd, naming: &BTreeMap<XbarName, Mac>| match naming.get(&end.xbar) {
            Some(&mac) => format!("{end} of {}", called(mac)),
            _ => end.to_string(),
        };
        let cable =
            |&[a, b]: &[NamedEnd; 2], naming| format!("the cable {} - {}", end(a, naming), end(b, naming));
        let gone = self.hosts.keys().filter(|mac| !after.hosts.contains_key(mac));
        lines.extend(gone.map(|&mac| format!("{} is gone", called(mac))));
        lines.extend(
            self.cables.difference(&after.cables).map(|ends| format!("{} is gone", cable(ends, &before))),
        );
        let new = after.hosts.keys().filter(|mac| !self.hosts.contains_key(mac));
        lines.extend(new.map(|&mac| format!("{} is new", called(mac))));
        lines.extend(
            after.cables.difference(&self.cables).map(|ends| format!("{} is new", cable(ends, &now))),
        );
        for (&mac, now) in &after.hosts {
            if let (Some(Some(was)), Some(now)) = (self.hosts.get(&mac), now)
                && was != now
            {
                lines.push(format!("{} moved from {was} to {now}", called(mac)));
            }
        }
        if lines.is_empty() {
            lines.push("nothing else is cabled".to_owned());
        }
        if lines.len() > MOST_NAMED {
            let more = lines.len() - MOST_NAMED;
            lines.truncate(MOST_NAMED);
            lines.push(format!("and {more} more changes"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::crossbar_tag;
    use crate::agent::metrics::KnownFabric;

    fn present(map: &mapper_proto::map::Map) -> Present {
        let mut known = KnownFabric::new();
        known.see(map);
        known.present()
    }

    #[test]
    fn what_changed_is_named_by_what_stays_the_same() {
        let mut whole = mapper_fabric::generate("ring:n=4").unwrap().map;
        crossbar_tag::make_nodes(&mut whole);
        let mut less = whole.clone();
        let lost = less.cables.pop().unwrap();
        less.hosts.pop();
        let end = |at: mapper_proto::map::PortRef| {
            format!("{:#018x}:{}", whole.xbars[at.xbar as usize].tag.unwrap(), at.port)
        };
        let mut ends = [end(lost.a), end(lost.b)];
        ends.sort();
        let [a, b] = ends;
        let last = whole.hosts[3].mac;
        let called = |mac| if mac == last { "node4".to_owned() } else { "another".to_owned() };
        let gone = present(&whole).changes_to(&present(&less), called);
        assert_eq!(
            gone,
            ["node4 is gone".to_owned(), format!("the cable {a} of another - {b} of node4 is gone")]
        );
        let new = present(&less).changes_to(&present(&whole), called);
        assert_eq!(
            new,
            ["node4 is new".to_owned(), format!("the cable {a} of another - {b} of node4 is new")]
        );
        assert_eq!(present(&less).changes_to(&present(&less), |_| String::new()), ["nothing else is cabled"]);
        let mut moved = whole.clone();
        let at = moved.hosts[0].at.as_mut().unwrap();
        at.port += 5;
        let told = present(&whole).changes_to(&present(&moved), |_| "node1".to_owned());
        assert!(told.len() == 1 && told[0].starts_with("node1 moved from 0x"), "{told:?}");
    }

    #[test]
    fn much_is_named_in_part() {
        let (none, all) =
            (Present::default(), present(&mapper_fabric::generate("clos:hosts=128,ports=16").unwrap().map));
        assert!(none.is_empty() && !all.is_empty());
        let told = none.changes_to(&all, |mac| mac.to_string());
        assert_eq!(told.len(), MOST_NAMED + 1);
        assert_eq!(told.last().unwrap(), &format!("and {} more changes", 128 + 128 - MOST_NAMED));
    }
}
