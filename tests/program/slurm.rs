//! What Slurm itself makes of a `topology.conf`: its controller reads the file, and tells the tree. Debian's Slurm is older than
//! `topology.yaml`, so that one is judged by what topology.yaml(5) of Slurm 25.05 and its plugins demand; libyaml reads it, as in Slurm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde::Deserialize;

const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Where administrators have programs, too.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Slurm's controller with a configuration of its own, which ends with this.
struct Controller {
    process: Child,
    folder: tempfile::TempDir,
}

impl Controller {
    /// Starts a controller that plans for these nodes by the `topology.conf` of a folder.
    fn start(folder: tempfile::TempDir, nodes: &[String]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.path().display();
        let user = rustix::process::geteuid().as_raw();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={free}\nSlurmUser={user}\nAuthType=auth/none\n\
             CredType=cred/none\nMpiDefault=none\nTopologyPlugin=topology/tree\nSelectType=select/cons_tres\n\
             ProctrackType=proctrack/linuxproc\nStateSaveLocation={at}/state\nSlurmctldPidFile={at}/pid\n"
        );
        for (number, node) in nodes.iter().enumerate() {
            writeln!(
                text,
                "NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={} CPUs=1",
                20_000 + number
            )
            .unwrap();
        }
        writeln!(text, "PartitionName=all Nodes=ALL Default=YES").unwrap();
        std::fs::write(folder.path().join("slurm.conf"), text).unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let process = Command::new("slurmctld")
            .env("PATH", PATH)
            .args(["-D", "-c", "-f"])
            .arg(folder.path().join("slurm.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, folder }
    }

    /// What it says of the topology, once it answers.
    fn topology(&mut self) -> String {
        for _ in 0..600 {
            let ended = self.process.try_wait().unwrap();
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap();
            assert!(ended.is_none(), "the controller ended: {}", log());
            let asked = Command::new("scontrol")
                .env("PATH", PATH)
                .env("SLURM_CONF", self.folder.path().join("slurm.conf"))
                .args(["show", "topology"])
                .output()
                .unwrap();
            if asked.status.success() {
                return String::from_utf8(asked.stdout).unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the controller never answered");
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // This fails only if the controller has ended by itself.
        let _already_gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn convert(spec: &str, to: &Path, more: &[&str]) -> Output {
    Command::new(MAPPER).args(["topology", "convert", spec, "-o"]).arg(to).args(more).output().unwrap()
}

#[test]
fn slurms_controller_reads_the_tree_as_it_is_written() {
    if !mapper_needs::programs(&["slurmctld", "scontrol"]) {
        return;
    }
    for (spec, hosts) in
        [("clos:hosts=32,ports=8", 32), ("cluster:leaves=4,spines=2,hosts=20,service=every", 20)]
    {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("topology.conf");
        let output = convert(spec, &file, &[]);
        assert!(output.status.success(), "{output:?}");
        let written = std::fs::read_to_string(&file).unwrap();
        let machines: Vec<String> = mapper_formats::resolve(spec)
            .unwrap()
            .hosts
            .iter()
            .filter(|label| !mapper_fabric::machine::is_service_adapter(label))
            .map(|label| mapper_fabric::machine::interface(label).machine)
            .collect();
        assert_eq!(machines.len(), hosts);
        let told = Controller::start(folder, &machines).topology();
        let mut switches = 0;
        for line in written.lines().filter(|line| !line.starts_with('#')) {
            let (name, below) = line.split_once(' ').unwrap();
            let same =
                |told: &&str| told.starts_with(&format!("{name} ")) && told.contains(&format!(" {below}"));
            assert!(told.lines().find(same).is_some(), "{line} is not in what Slurm says:\n{told}");
            switches += 1;
        }
        assert_eq!(told.lines().count(), switches, "{told}");
        let root = told.lines().last().unwrap();
        assert!(!root.contains("Level=0"), "{told}");
    }
}

#[test]
fn only_the_hosts_that_are_wanted_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("topology.conf");
    let text = |more: &[&str]| {
        let output = convert("clos:hosts=8,ports=4", &file, more);
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(&file).unwrap()
    };
    let some = text(&["--hosts", "h[1-4],h?", "--without", "h2,h8"]);
    assert!(some.contains("SwitchName=leaf1 Nodes=h1\n") && some.contains("Nodes=h7\n"), "{some}");
    assert!(!some.contains("h2") && !some.contains("h8"), "{some}");
    let none = convert("clos:hosts=8,ports=4", &file, &["--hosts", "node*"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8(none.stderr).unwrap().contains("no host is left of 8"));
}

/// A topology as topology.yaml(5) has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topology {
    topology: String,
    cluster_default: bool,
    tree: Option<Tree>,
    block: Option<Blocks>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    switches: Vec<Switch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    switch: String,
    children: Option<String>,
    nodes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blocks {
    block_sizes: Vec<usize>,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    block: String,
    nodes: String,
}

/// The names that a list stands for, by Slurm's own tool.
fn expand(list: &str) -> Vec<String> {
    // The tool wants a configuration, whatever it is asked.
    let mut configuration = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut configuration, b"ClusterName=test\nSlurmctldHost=localhost\n").unwrap();
    let told = Command::new("scontrol")
        .env("PATH", PATH)
        .env("SLURM_CONF", configuration.path())
        .args(["show", "hostnames", list])
        .output()
        .unwrap();
    assert!(told.status.success(), "{list}: {told:?}");
    String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect()
}

impl Tree {
    /// What the tree plugin demands: names that differ and are not too long, each switch with either nodes or children that are
    /// there, below one switch at most, and at most 20 deep. Returns the nodes.
    fn judged(&self) -> BTreeSet<String> {
        let mut parents: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for switch in &self.switches {
            assert!(switch.switch.len() <= 64, "{}", switch.switch);
            assert!(parents.insert(&switch.switch, None).is_none(), "{} is there twice", switch.switch);
        }
        let mut nodes = BTreeSet::new();
        for Switch { switch, children, nodes: own } in &self.switches {
            match (children, own) {
                (Some(children), None) => {
                    for child in expand(children) {
                        let parent = parents.get_mut(child.as_str()).expect("a child that is there");
                        assert_eq!(parent.replace(switch.clone()), None, "{child} has one parent");
                    }
                }
                (None, Some(own)) => {
                    for node in expand(own) {
                        assert!(nodes.insert(node.clone()), "{node} stands once");
                    }
                }
                _ => panic!("{switch} has either nodes or children"),
            }
        }
        for switch in parents.keys() {
            let above = std::iter::successors(Some((*switch).to_owned()), |at| parents[at.as_str()].clone());
            assert!(above.take(21).count() <= 20, "{switch}");
        }
        nodes
    }
}

impl Blocks {
    /// What the block plugin demands: sizes of which each is a power of two times the first, and names that differ, of blocks with
    /// no fewer nodes than the first size. Returns the nodes.
    fn judged(&self) -> BTreeSet<String> {
        let base = self.block_sizes[0];
        let is_right =
            |size: &usize| base > 0 && size.is_multiple_of(base) && (size / base).is_power_of_two();
        assert!(self.block_sizes.iter().all(is_right), "{:?}", self.block_sizes);
        let names: BTreeSet<&str> = self.blocks.iter().map(|block| block.block.as_str()).collect();
        assert_eq!(names.len(), self.blocks.len());
        let nodes = self.blocks.iter().flat_map(|block| {
            let nodes = expand(&block.nodes);
            assert!(nodes.len() >= base, "{} has fewer than {base}", block.block);
            nodes
        });
        nodes.collect()
    }
}

#[test]
fn a_topology_yaml_is_as_slurm_documents_it() {
    if !mapper_needs::programs(&["scontrol"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("topology.yaml");
    // Names that YAML or Slurm would take for something else, or find too long.
    let mut odd = mapper_formats::resolve("clos:hosts=32,ports=8").unwrap();
    let names = ["yes", "007", "1e3", "null", "~", "leaf: 5", "# leaf"];
    for (label, name) in odd.xbars.iter_mut().zip(names) {
        label.description = name.to_owned();
    }
    odd.xbars[7].description = "a very long name of a switch that a person wrote down ".repeat(3);
    let odd_file = folder.path().join("odd.json");
    std::fs::write(&odd_file, mapper_formats::write(&odd, mapper_formats::FileFormat::Json)).unwrap();
    for (topology, rails, hosts) in [
        ("clos:hosts=128,ports=8", 1, 128),
        ("cluster:leaves=6,spines=4,hosts=40,service=every", 1, 40),
        ("torus:x=4,y=4,hosts=2", 1, 32),
        (odd_file.to_str().unwrap(), 1, 32),
    ] {
        let output = convert(topology, &file, &[]);
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read_to_string(&file).unwrap();
        let topologies: Vec<Topology> = serde_yaml_ng::from_str(&text).unwrap();
        assert_eq!(text.matches("\n- topology: ").count(), topologies.len(), "it is the first attribute");
        assert_eq!(topologies.len(), 2 * rails, "{text}");
        let names: BTreeSet<&str> = topologies.iter().map(|it| it.topology.as_str()).collect();
        assert_eq!(names.len(), topologies.len());
        assert_eq!(topologies.iter().filter(|it| it.cluster_default).count(), 1);
        for topology in &topologies {
            let nodes = match (&topology.tree, &topology.block) {
                (Some(tree), None) => tree.judged(),
                (None, Some(blocks)) => blocks.judged(),
                _ => panic!("{} has one type", topology.topology),
            };
            assert_eq!(nodes.len(), hosts, "{}: {text}", topology.topology);
        }
        // Nothing differs when nothing changed.
        assert!(convert(topology, &file, &[]).status.success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
