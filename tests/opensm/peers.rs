//! The programs of others that judge tables, and the simulated network that they run on.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mapper::formats::{self, FileFormat};
use mapper_proto::map::Fabric;
use tempfile::TempDir;

/// The directories in which programs are searched, which include those of administrators.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The library that lets InfiniBand tools speak to ibsim.
fn umad2sim() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let folders = folders.chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    folders.map(|folder| folder.join("umad2sim/libumad2sim.so")).find(|path| path.exists())
}

/// Whether all peers are there, so that a test can run.
pub(crate) fn are_there() -> bool {
    mapper_needs::programs(&["opensm", "ibsim", "ibnetdiscover", "ibdmchk", "ibtracert"])
        && mapper_needs::or_skip(umad2sim().is_some(), "libumad2sim")
}

/// A fabric that ibsim simulates, and a folder for files. Both are gone when this is dropped.
pub(crate) struct Simulation {
    ibsim: Child,
    socket: String,
    host: String,
    folder: TempDir,
}

impl Simulation {
    pub(crate) fn start(fabric: &Fabric) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("fabric.net");
        std::fs::write(&net, formats::write(fabric, FileFormat::Ibnetdiscover)).unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let socket = format!("mapper-opensm-{}-{count}", std::process::id());
        let mut ibsim = Command::new("ibsim")
            .args(["-s", "-n"])
            .arg(&net)
            .env("PATH", path())
            .env("IBSIM_SOCKNAME", &socket)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(ibsim.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("simulator ready"));
        assert!(ready, "ibsim did not start");
        // The output of ibsim is read to its end, since a closed pipe would end ibsim.
        std::thread::spawn(move || lines.for_each(drop));
        Self { ibsim, socket, host: fabric.hosts[0].name.clone(), folder }
    }

    /// A file of this folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into this folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of this folder.
    pub(crate) fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.file(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A command that runs in this folder and takes the simulator for the network.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("PATH", path())
            .env("LD_PRELOAD", umad2sim().unwrap())
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", &self.host)
            .env("OSM_TMP_DIR", self.folder.path())
            .env("OSM_CACHE_DIR", self.folder.path())
            .current_dir(&self.folder);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let output = self.command(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        output
    }

    /// Lets OpenSM configure the network once, and returns its log.
    pub(crate) fn opensm(&self, arguments: &[&str]) -> String {
        // The time limit is long, since the simulator answers late under load.
        let patience = ["-t", "5000", "-n", "64"];
        let common = [&["--once", "-e", "-f", "opensm.log", "-D", "0x47"], &patience[..]].concat();
        self.run("opensm", &[&common[..], arguments].concat());
        let log = self.read("opensm.log");
        assert!(log.contains("SUBNET UP"), "{log}");
        log
    }

    /// The network as `ibnetdiscover` finds it, with the LIDs that OpenSM gave.
    pub(crate) fn found(&self) -> Fabric {
        let output = self.run("ibnetdiscover", &["-o", "64"]);
        formats::parse("ibnetdiscover", &String::from_utf8_lossy(&output.stdout)).unwrap()
    }

    /// The same, as a list of ports.
    pub(crate) fn list_of_ports(&self) -> String {
        let output = self.run("ibnetdiscover", &["-o", "64", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Walks the tables from one LID to another; false if they lead nowhere.
    pub(crate) fn trace(&self, from: u32, to: u32) -> bool {
        let arguments = [from.to_string(), to.to_string()];
        let output = self.command("ibtracert").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success() && text.lines().any(|line| line.starts_with("To ca"))
    }

    /// What `ibdmchk` prints of the tables in OpenSM's dumps. It gets `more` as further arguments.
    pub(crate) fn ibdmchk(&self, more: &[&str]) -> String {
        let dumps = ["-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"];
        // The status is not looked at: without multicast groups ibdmchk crashes at its end, after it has
        // printed all.
        let output = Command::new("ibdmchk")
            .env("PATH", path())
            .args(dumps)
            .args(more)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // The simulator may have ended by itself, which is no failure.
        let _ = self.ibsim.kill();
        let _ = self.ibsim.wait();
    }
}

/// The text of a path.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
