//! Runs the program as a user does, for the tests of `mapper route` and `mapper check`.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mapper_formats::{self as formats, lfts};
use mapper_proto::map::PortRef;
use mapper_routing::{Far, Subnet, Tables};
use serde_json::Value;

/// Runs the program with these arguments.
pub(crate) fn mapper(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).args(arguments).output().unwrap()
}

/// Runs a command that must end with this status, and reads its JSON.
pub(crate) fn json(status: i32, arguments: &[&str]) -> Value {
    let output = mapper(&[arguments, &["--format", "json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The error of a command that must fail.
pub(crate) fn error(arguments: &[&str]) -> String {
    let error = json(1, arguments);
    assert_eq!(error["schema"], "mapper.error/1");
    error["error"].as_str().unwrap().to_owned()
}

/// Runs a command that must end with this status, and gives what it prints.
pub(crate) fn text(status: i32, arguments: &[&str]) -> String {
    let output = mapper(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A temporary folder, whose files are named by strings.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.path().join(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }
}

/// The dump of tables with shortest routes, which are found by a search from each destination. Of routes of
/// equal length it has the one through the first port.
pub(crate) fn shortest(spec: &str) -> String {
    let fabric = formats::resolve(spec).unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let topology = &subnet.topology;
    let mut tables = Tables::empty(topology.xbar_count(), subnet.destinations.slot_count());
    for to in 0..topology.xbar_count() as u32 {
        let mut towards = vec![Tables::NONE; topology.xbar_count()];
        let mut queue = VecDeque::from([to]);
        while let Some(xbar) = queue.pop_front() {
            for channel in topology.channels_of(xbar) {
                let head = topology.head(channel);
                if head.xbar != to && towards[head.xbar as usize] == Tables::NONE {
                    towards[head.xbar as usize] = head.port;
                    queue.push_back(head.xbar);
                }
            }
        }
        for slot in subnet.destinations.slots_of(to) {
            (0..).zip(&towards).for_each(|(xbar, &port)| tables.set_port(xbar, slot, port));
        }
        for port in 0..=254 {
            if let Far::Host(host) = topology.far(PortRef { xbar: to, port }) {
                subnet.destinations.slots_of_host(host).for_each(|slot| tables.set_port(to, slot, port));
            }
        }
    }
    let mut text = Vec::new();
    lfts::Dump::new(&fabric, &subnet).unwrap().write(&mut text, &tables).unwrap();
    String::from_utf8(text).unwrap()
}

pub(crate) const CLOS: &str = "clos:hosts=8,ports=4";
pub(crate) const RING: &str = "ring:n=5,hosts=2";
