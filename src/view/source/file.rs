//! A fabric in a file, which is read again whenever the file changes.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use mapper_fabric::wording::plural;
use mapper_formats::read_fabric;
use mapper_proto::map::{Fabric, PortRef};

use crate::view::feed::{Feed, Moment};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Tells a fabric and how it is: as a file or a spec says.
pub(crate) fn tell(feed: &Feed, fabric: Fabric, title: &str, what: String) {
    feed.tell_fabric(fabric, title.to_owned());
    feed.tell(Moment { what, ..Moment::default() });
}

/// Reads the file again when it has changed, for ever. A file that cannot be read, as it is being written for one, leaves what
/// is shown, and says so.
pub(crate) fn follow(feed: &Feed, path: &Path, title: &str, mut shown: Fabric) {
    let stamp = |path: &Path| {
        let there = std::fs::metadata(path).ok()?;
        Some((there.ino(), there.len(), there.mtime(), there.mtime_nsec()))
    };
    let mut last = stamp(path);
    loop {
        std::thread::sleep(LOOK_EVERY);
        let now = stamp(path);
        if now == last {
            continue;
        }
        last = now;
        match read_fabric(path) {
            Ok(fabric) if fabric == shown => {}
            Ok(fabric) => {
                let what = changes(&shown, &fabric);
                shown = fabric.clone();
                tell(feed, fabric, title, what);
            }
            Err(error) => feed.tell(Moment {
                what: "the file cannot be read".to_owned(),
                says: "the file cannot be read: this is what it said before".to_owned(),
                troubles: vec![error.to_string()],
                ..Moment::default()
            }),
        }
    }
}

/// What is another in a fabric, in a line: nodes and cables are told by their ids and ports.
pub(crate) fn changes(before: &Fabric, after: &Fabric) -> String {
    let lost = |before: &BTreeSet<String>, after: &BTreeSet<String>| before.difference(after).count();
    let kinds = [("host", host_ids as fn(&Fabric) -> BTreeSet<String>), ("cable", cable_ids)];
    let mut words = Vec::new();
    for (thing, ids) in kinds {
        let (before, after) = (ids(before), ids(after));
        for (count, how) in [(lost(&before, &after), "gone"), (lost(&after, &before), "new")] {
            if count > 0 {
                words.push(format!("{} {how}", plural(count, thing)));
            }
        }
    }
    if words.is_empty() { "changed".to_owned() } else { words.join(", ") }
}

fn host_ids(fabric: &Fabric) -> BTreeSet<String> {
    fabric.map.hosts.iter().map(|host| host.mac.to_string()).collect()
}

/// Cables between xbars and those of hosts.
fn cable_ids(fabric: &Fabric) -> BTreeSet<String> {
    let port = |at: PortRef| {
        let name = fabric.xbars.get(at.xbar as usize).map_or("", |label| label.name.as_str());
        format!("{name}:{}", at.port)
    };
    let cables = fabric.map.cables.iter().map(|cable| {
        let mut ends = [port(cable.a), port(cable.b)];
        ends.sort_unstable();
        ends.join(" - ")
    });
    let hosts = fabric.map.hosts.iter().filter_map(|host| Some(format!("{} - {}", host.mac, port(host.at?))));
    cables.chain(hosts).collect()
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn what_changed_is_told_in_a_line() {
        let ring = generate("ring:n=4").unwrap();
        let mut cut = ring.clone();
        cut.map.cables.pop();
        assert_eq!(changes(&ring, &cut), "1 cable gone");
        assert_eq!(changes(&cut, &ring), "1 cable new");
        cut.map.hosts.pop();
        cut.hosts.pop();
        assert_eq!(changes(&ring, &cut), "1 host gone, 2 cables gone");
        assert_eq!(changes(&ring, &ring), "changed");
    }
}
