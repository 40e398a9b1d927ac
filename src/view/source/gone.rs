//! What agents have seen and the last map lacks, put back into the picture where it was.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::map::{Cable, Fabric, PortRef, Xbar, XbarLabel};

use mapper_daemon::agent::status::Board;

/// The most ports that a crossbar has of which only a cable is known.
const MOST_PORTS: u8 = 254;

/// A fabric with what boards call gone behind what it has, so that its own hosts, xbars and cables keep their places. `before` is
/// the fabric that was shown last, and says where gone hosts were. What has another place now, or none that is known, is left
/// out: lists say it is gone all the same.
pub(super) fn with_gone(fabric: &Fabric, before: &Fabric, boards: &[Board]) -> Fabric {
    let mut shown = Shown::new(fabric);
    for [a, b] in boards.iter().flat_map(|board| &board.gone_cables) {
        if let (Some(a), Some(b)) = (end(a), end(b)) {
            shown.add_cable(a, b);
        }
    }
    let gone: BTreeSet<&str> =
        boards.iter().flat_map(|board| &board.gone_hosts).map(String::as_str).collect();
    for (host, label) in before.map.hosts.iter().zip(&before.hosts) {
        let mac = host.mac.to_string();
        if gone.contains(mac.as_str()) && fabric.map.hosts.iter().all(|there| there.mac != host.mac) {
            let tag = host.at.and_then(|at| Some((before.map.xbars.get(at.xbar as usize)?.tag?, at.port)));
            let at = tag.and_then(|tagged| shown.free_port(tagged));
            shown.taken.extend(at);
            shown.fabric.map.hosts.push(mapper_proto::map::Host { at, ..*host });
            shown.fabric.hosts.push(label.clone());
        }
    }
    shown.fabric
}

/// An end of a cable, as boards name those of tagged xbars.
fn end(text: &str) -> Option<(u64, u8)> {
    let (tag, port) = text.strip_prefix("0x")?.split_once(':')?;
    Some((u64::from_str_radix(tag, 16).ok()?, port.parse().ok()?))
}

struct Shown {
    fabric: Fabric,
    xbars: BTreeMap<u64, u32>,
    taken: BTreeSet<PortRef>,
}

impl Shown {
    fn new(fabric: &Fabric) -> Self {
        let map = &fabric.map;
        let hosts = map.hosts.iter().filter_map(|host| host.at);
        Self {
            fabric: fabric.clone(),
            xbars: (0..).zip(&map.xbars).filter_map(|(xbar, it)| Some((it.tag?, xbar))).collect(),
            taken: map.cables.iter().flat_map(|cable| [cable.a, cable.b]).chain(hosts).collect(),
        }
    }

    fn add_cable(&mut self, a: (u64, u8), b: (u64, u8)) {
        if let (Some(a), Some(b)) = (self.free_port(a), self.free_port(b))
            && a != b
        {
            self.taken.extend([a, b]);
            self.fabric.map.cables.push(Cable::new(a, b));
        }
    }

    /// The port of an xbar, which is put in if it is gone too, if nothing else is cabled to it.
    fn free_port(&mut self, (tag, port): (u64, u8)) -> Option<PortRef> {
        let xbar = match self.xbars.get(&tag) {
            Some(&xbar) => xbar,
            None => {
                let xbar = self.fabric.map.xbars.len() as u32;
                self.fabric.map.xbars.push(Xbar { ports: MOST_PORTS, tag: Some(tag), ports_known: false });
                self.fabric.xbars.push(XbarLabel { name: format!("{tag:#018x}"), ..XbarLabel::default() });
                self.xbars.insert(tag, xbar);
                xbar
            }
        };
        let at = PortRef { xbar, port };
        (port <= self.fabric.map.xbars[xbar as usize].ports && !self.taken.contains(&at)).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn what_is_gone_stands_where_it_was_behind_what_is_there() {
        let whole = generate("ring:n=4").unwrap();
        let tag = |xbar: u32| whole.map.xbars[xbar as usize].tag.unwrap();
        let named = |at: PortRef| format!("{:#018x}:{}", tag(at.xbar), at.port);
        let mut less = whole.clone();
        let lost = less.map.cables.remove(0);
        let host = less.map.hosts.pop().unwrap();
        less.hosts.pop();
        let board = Board {
            gone_hosts: vec![host.mac.to_string()],
            gone_cables: vec![[named(lost.a), named(lost.b)], ["plain1:2".to_owned(), "0x7:300".to_owned()]],
            ..Board::silent(0, String::new())
        };
        let shown = with_gone(&less, &whole, std::slice::from_ref(&board));
        assert_eq!(shown.map.cables.last(), Some(&lost));
        assert_eq!(shown.map.hosts.last(), Some(&host));
        assert_eq!((shown.map.cables.len(), shown.map.hosts.len(), shown.hosts.len()), (4, 4, 4));
        assert_eq!(with_gone(&less, &whole, &[]), less, "what boards do not call gone is no more");
        assert_eq!(
            with_gone(&whole, &whole, std::slice::from_ref(&board)),
            whole,
            "what is there is not gone"
        );
        // An xbar that is gone as a whole is there again, with its cables.
        let mut without = less.clone();
        without.map.cables.retain(|cable| cable.a.xbar != 3 && cable.b.xbar != 3);
        without.map.xbars.pop();
        without.xbars.pop();
        let cables = whole.map.cables.iter().filter(|cable| cable.a.xbar == 3 || cable.b.xbar == 3);
        let board =
            Board { gone_cables: cables.map(|cable| [named(cable.a), named(cable.b)]).collect(), ..board };
        let shown = with_gone(&without, &whole, &[board]);
        assert_eq!((shown.map.xbars.len(), shown.xbars.len()), (4, 4));
        assert_eq!(shown.map.hosts.last().unwrap().at.unwrap().xbar, 3);
    }
}
