//! The programs of others that judge tables, and the simulated network that they run on.

use std::io::{BufRead, BufReader, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::Fabric;
use tempfile::TempDir;

/// The directories in which programs are searched, which include those of administrators.
pub(crate) fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Whether all peers are there, so that a test can run.
pub(crate) fn are_there() -> bool {
    mapper_needs::programs(&[
        "opensm",
        "ibsim",
        "ibnetdiscover",
        "ibdmchk",
        "ibtracert",
        "iblinkinfo",
        "ibroute",
        "sminfo",
    ]) && mapper_needs::umad2sim().is_some()
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
        Self::start_with(fabric, &["-s", "-n"])
    }

    /// A simulation that obeys [`Self::console`].
    pub(crate) fn with_console(fabric: &Fabric) -> Self {
        Self::start_with(fabric, &["-s", "-N", "8192", "-S", "1024", "-P", "32768"])
    }

    fn start_with(fabric: &Fabric, arguments: &[&str]) -> Self {
        let net = formats::write(fabric, FileFormat::Ibnetdiscover);
        Self::of_net(&net, &fabric.hosts[0].name, arguments)
    }

    /// A simulation of a net as ibsim reads it. Tools run at this host.
    pub(crate) fn of_net(text: &str, host: &str, arguments: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let net = folder.path().join("fabric.net");
        std::fs::write(&net, text).unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let socket = format!("mapper-opensm-{}-{count}", std::process::id());
        let mut ibsim = Command::new("ibsim")
            .args(arguments)
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
        wait_for_socket(&socket);
        // The output of ibsim is read to its end, since a closed pipe would end ibsim.
        std::thread::spawn(move || lines.for_each(drop));
        Self { ibsim, socket, host: host.to_owned(), folder }
    }

    /// Types a line on the simulator's console.
    pub(crate) fn console(&mut self, line: &str) {
        let stdin = self.ibsim.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    /// The beginning of the names of the simulator's sockets.
    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    /// The host at which tools run.
    pub(crate) fn host(&self) -> &str {
        &self.host
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
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("PATH", path())
            .env("LD_PRELOAD", mapper_needs::umad2sim().unwrap())
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", &self.host)
            .env("OSM_TMP_DIR", self.folder.path())
            .env("OSM_CACHE_DIR", self.folder.path())
            .current_dir(&self.folder);
        command
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
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

    /// The network as `ibnetdiscover -p` lists its ports.
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

/// Waits until ibsim listens, which it does some time after it says that it is ready. Its own clients wait as well.
fn wait_for_socket(base: &str) {
    let address = SocketAddr::from_abstract_name(format!("{base}:ctl\0")).unwrap();
    let probe = UnixDatagram::unbound().unwrap();
    let give_up = Instant::now() + Duration::from_secs(60);
    while probe.connect_addr(&address).is_err() {
        assert!(Instant::now() < give_up, "ibsim never listened");
        std::thread::sleep(Duration::from_millis(1));
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
