//! A fabric in a file, which is read again whenever the file changes.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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

/// A file that is read again whenever it changes.
pub(crate) struct WatchedFile {
    path: PathBuf,
    /// What told it apart from others when it was last read; `None` if it was not there.
    stamp: Option<Stamp>,
}

/// The number of a file, its length, and when it was written, in seconds and nanoseconds.
type Stamp = (u64, u64, i64, i64);

impl WatchedFile {
    /// A file that is read for the first time after this, so that no change is missed that comes between the two.
    pub(crate) fn about_to_be_read(path: PathBuf) -> Self {
        let stamp = stamp(&path);
        Self { path, stamp }
    }

    /// Reads the file again when it has changed, for ever. A file that cannot be read, as it is being written for one, leaves
    /// what is shown, and says so.
    pub(crate) fn follow(mut self, feed: &Feed, title: &str, mut shown: Fabric) {
        loop {
            self.look(feed, title, &mut shown);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Tells what has changed since the file was last read.
    fn look(&mut self, feed: &Feed, title: &str, shown: &mut Fabric) {
        let now = stamp(&self.path);
        if now == self.stamp {
            return;
        }
        self.stamp = now;
        match read_fabric(&self.path) {
            Ok(fabric) if fabric == *shown => {}
            Ok(fabric) => {
                let what = changes(shown, &fabric);
                shown.clone_from(&fabric);
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

fn stamp(path: &Path) -> Option<Stamp> {
    let there = std::fs::metadata(path).ok()?;
    Some((there.ino(), there.len(), there.mtime(), there.mtime_nsec()))
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

    #[test]
    fn a_change_between_the_first_reading_and_following_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.json");
        let ring = generate("ring:n=4").unwrap();
        let write = |fabric: &Fabric| {
            std::fs::write(&path, mapper_formats::write(fabric, mapper_formats::FileFormat::Json)).unwrap();
        };
        write(&ring);
        let mut file = WatchedFile::about_to_be_read(path.clone());
        let mut shown = read_fabric(&path).unwrap();
        let mut cut = ring.clone();
        cut.map.cables.pop();
        write(&cut);
        let feed = Feed::new(1);
        tell(&feed, shown.clone(), "ring", "read".to_owned());
        file.look(&feed, "ring", &mut shown);
        file.look(&feed, "ring", &mut shown);
        let told: Vec<_> = feed.happened(0).into_iter().map(|happened| happened.what).collect();
        assert_eq!(told, ["read", "1 cable gone"]);
        assert_eq!(shown.map.cables, cut.map.cables);
    }
}
