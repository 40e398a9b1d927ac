//! Tests of agents whose disk has no room for the map file, or for the log of maps.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::can_make_namespaces;
use crate::lab::{Lab, wait_for};

/// A small file system, which is unmounted however the test ends.
struct SmallDisk {
    dir: tempfile::TempDir,
    /// Unmounts it when its standard input closes.
    guard: Child,
}

impl SmallDisk {
    fn new(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clean_up = "trap '' INT TERM HUP; cat >/dev/null; exec umount -l \"$0\"";
        let guard = Command::new("bash")
            .args(["-c", clean_up])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let disk = Self { dir, guard };
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "mapper-test"])
            .arg(disk.path())
            .status();
        assert!(mounted.unwrap().success());
        disk
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Fills the file system with one file, and returns its path.
    fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let _fails_at_the_end = std::fs::write(&ballast, vec![0; 1 << 20]);
        assert!(std::fs::write(self.path().join("more"), "x").is_err(), "it is full");
        std::fs::remove_file(self.path().join("more")).unwrap();
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _unmounted = self.guard.wait();
    }
}

#[test]
fn the_old_map_stays_whole_on_a_full_disk_and_the_next_is_stored_when_there_is_room() {
    if !can_make_namespaces() {
        return;
    }
    let disk = SmallDisk::new("64k");
    let file = disk.path().join("map.json");
    let lab = Lab::up("ring:n=3,hosts=1", &["--", "--map-file", file.to_str().unwrap()]);
    let stored = |boards: &[Value]| {
        let map: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        map["version"] == boards[0]["map_version"]
    };
    let boards = lab.wait_for_network("the whole ring", 3, 3);
    wait_for("the first map is stored", || stored(&boards).then_some(()));
    let old = std::fs::read(&file).unwrap();

    let ballast = disk.fill();
    lab.run(&["cut", "xbar1:1"]);
    // An agent tries to store a map before it routes by it, so every agent that is configured has tried.
    let boards = lab.wait_for_network("a cable less, with the disk full", 3, 2);
    assert!(!stored(&boards));
    assert_eq!(std::fs::read(&file).unwrap(), old, "the old file is whole");
    // An agent that tries once more has half a map there for a moment.
    wait_for("no half a map is left", || {
        let mut names: Vec<_> =
            std::fs::read_dir(disk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        (names == ["ballast", "map.json"]).then_some(())
    });
    for host in ["h1", "h2", "h3"] {
        let log = lab.log(host);
        assert!(log.contains("cannot store the map") && log.contains("No space left"), "{log}");
    }

    std::fs::remove_file(ballast).unwrap();
    lab.run(&["mend", "xbar1:1"]);
    let boards = lab.wait_for_network("the whole ring again", 3, 3);
    wait_for("the next map is stored", || stored(&boards).then_some(()));
}

/// The maps in a log of which every whole line is one.
fn logged(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn the_log_of_maps_stays_whole_on_a_full_disk_and_goes_on_when_there_is_room() {
    if !can_make_namespaces() {
        return;
    }
    // The agents of this lab share a state directory, and so a log.
    let disk = SmallDisk::new("256k");
    let lab = Lab::up_with("ring:n=3,hosts=1", &[], &[("STATE_DIRECTORY", disk.path())]);
    lab.wait_for_network("the whole ring", 3, 3);
    let file = disk.path().join("fab0.history");
    let before = wait_for("the log has the whole ring", || {
        let maps = logged(&file);
        (maps.iter().filter(|map| map["cables"] == 3).count() >= 3).then_some(maps)
    });

    let ballast = disk.fill();
    // No room is left in the last page of the log either.
    let length = std::fs::metadata(&file).unwrap().len();
    let rest = (4096 - length % 4096) as usize;
    let padding = " ".repeat(rest - 1) + "\n";
    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(padding.as_bytes()).unwrap();
    lab.run(&["cut", "xbar1:1"]);
    lab.wait_for_network("a cable less, with the disk full", 3, 2);
    let says =
        |board: &Value| board["warnings"].to_string().contains("the history of maps cannot be written");
    lab.wait_until("every board says that the log cannot be written", |boards| boards.iter().all(says));
    assert_eq!(logged(&file), before, "what was there is whole, and nothing is added");

    std::fs::remove_file(ballast).unwrap();
    lab.run(&["mend", "xbar1:1"]);
    lab.wait_for_network("the whole ring again", 3, 3);
    lab.wait_until("no board says so any more", |boards| !boards.iter().any(says));
    let after = logged(&file);
    let is_of_then = |map: &&Value| map["cables"] == 2;
    assert!(
        after.iter().filter(is_of_then).count() >= 3,
        "what waited is written, by each of them: {after:?}"
    );
    let left: Vec<_> = std::fs::read_dir(disk.path().join("fab0.maps")).unwrap().collect();
    let is_whole = |file: &std::fs::DirEntry| {
        serde_json::from_slice::<Value>(&std::fs::read(file.path()).unwrap())
            .is_ok_and(|map| map["schema"] == "mapper.map/1")
    };
    assert!(!left.is_empty() && left.iter().all(|file| is_whole(file.as_ref().unwrap())), "{left:?}");
}
