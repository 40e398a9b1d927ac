//! What Slurm itself makes of a `topology.conf`: its controller reads the file, and tells the tree.

use std::fmt::Write;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Where administrators have programs, too.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Slurm's controller with a configuration of its own, which ends with this.
struct Controller {
    process: Child,
    folder: tempfile::TempDir,
}

impl Controller {
    /// One that plans for nodes by the `topology.conf` of a folder.
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
        // It may have ended by itself.
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
        let machines: Vec<String> = mapper::formats::resolve(spec)
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
