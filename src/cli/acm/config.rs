//! `mapper acm config`: writes the files that `ibacm` reads, for this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{self, units};
use mapper_machine::options::default_run_dir;
use serde::Serialize;

use super::{CliError, Format};
use crate::cli::{output, places};

/// Where `ibacm` looks for its files.
const FOLDER: &str = "/etc/rdma";
/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the kernel calls an interface of Ethernet in /sys/class/net/IF/type.
const ETHERNET: &str = "1";

/// The head of ibacm_addr.cfg.
const ADDRESSES: &str = "\
# Names of this machine's ports, made by `mapper acm config -A`.
#
# A line is `name device port pkey`:
#   name     what others call the port: a name, or an address of IP
#   device   the interface that an agent of this machine is at, or for a node the name of all its ports
#   port     1, as such an interface has one port
#   pkey     the partition in hexadecimal digits, or `default`
# Addresses of IP are known without being listed here, and so is what each agent says that its host is called.

";

/// ibacm_opts.cfg.
const OPTIONS: &str = "\
# Options of the ACM service, made by `mapper acm config -O`. A line is `name value`. `mapper acm serve --options-file`
# reads this file; options of the command line and of [acm] in mapper.toml win over it. Whatever has no effect there is
# told by name when the service starts.

# Where lines of the log go besides standard error: a file, or stdout or stderr for none.
log_file /var/log/ibacm.log

# How much is logged: 0, 1, or 2.
log_level 0

# How names and addresses are resolved: acm for what agents tell each other.
addr_prot acm

# How many minutes it is remembered whose an address is; -1 for ever.
addr_timeout 1440

# How many minutes a path is remembered; -1 as long as the address. A new map ends what it changes in any case.
route_timeout -1

# Where clients reach the service: unix, loop for TCP on this machine alone, open for TCP.
server_mode unix

# The port of TCP.
server_port 6125

# How many milliseconds a question for an unknown name waits before it counts as tried once, and how many more times it is
# tried.
timeout 2000
retries 2

# How many such questions are under way at once.
resolve_depth 16

# Names whose GIDs a file tells: none, or acm_hosts for lines of `name-or-address GID`.
addr_preload none
# addr_data_file /etc/rdma/ibacm_hosts.data

# Paths that a file tells: none, or opensm_full_v1 for what OpenSM dumps.
route_preload none
# route_data_file /etc/rdma/ibacm_route.data

# Whether addresses of IP in ibacm_addr.cfg count: 0 or 1.
support_ips_in_addr_cfg 0
";

/// Options of `mapper acm config`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("files").args(["addresses", "options"]).required(true).multiple(true))]
pub struct Args {
    /// Write the names of this machine's ports to this file: those that agents are at, or of all network cards if none runs. A
    /// file of that name is overwritten, as `ib_acme` does it.
    #[arg(short = 'A', value_name = "FILE", num_args = 0..=1, default_missing_value = "ibacm_addr.cfg")]
    addresses: Option<PathBuf>,
    /// Write options to this file, all of them with what they do. A file of that name is overwritten.
    #[arg(short = 'O', value_name = "FILE", num_args = 0..=1, default_missing_value = "ibacm_opts.cfg")]
    options: Option<PathBuf>,
    /// The folder of these files.
    #[arg(short = 'D', value_name = "DIR", default_value = FOLDER)]
    folder: PathBuf,
    /// Say what is written.
    #[arg(short = 'V')]
    verbose: bool,
    /// Directory of the agents' status sockets.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct AcmConfigJson {
    schema: &'static str,
    files: Vec<PathBuf>,
}

/// Runs `mapper acm config`.
///
/// # Errors
/// If a file cannot be written, or the machine has no port to name. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let paths = [("-A", &args.addresses), ("-O", &args.options)];
    let paths = paths.map(|(option, file)| Some((option, args.folder.join(file.as_ref()?))));
    let outputs: Vec<_> = paths.iter().flatten().map(|(option, path)| (*option, path.as_path())).collect();
    places::refuse_shared(&outputs, &[])?;
    let mut files = Vec::new();
    if let Some(file) = &args.addresses {
        let lines = addresses(args)?;
        let path = args.folder.join(file);
        write(&path, &format!("{ADDRESSES}{lines}"))?;
        if args.verbose && format == Format::Text {
            output::print(&format!("Generating {}\n{lines}", path.display()))?;
        }
        files.push(path);
    }
    if let Some(file) = &args.options {
        let path = args.folder.join(file);
        write(&path, OPTIONS)?;
        if args.verbose && format == Format::Text {
            output::print(&format!("Generating {}\n", path.display()))?;
        }
        files.push(path);
    }
    if format == Format::Json {
        let answer = AcmConfigJson { schema: "mapper.acm-config/1", files };
        output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if path.exists() {
        output::print_aside(&format!("mapper: {} was there, and is overwritten\n", path.display()))?;
    }
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text)).map_err(|error| {
        format!("cannot write {} ({error}); name another folder with -D", path.display()).into()
    })
}

/// The lines of this machine's ports: its name for the first, and a name with a number for each.
fn addresses(args: &Args) -> Result<String, CliError> {
    let run_dir = args.run_dir.clone().unwrap_or_else(default_run_dir);
    let mut devices = Vec::new();
    for unit in units(&run_dir)? {
        if let Some(question) = status::ask(&run_dir, unit)? {
            devices.extend(question.answer(Instant::now() + PATIENCE)?.interface);
        }
    }
    if devices.is_empty() {
        // No agent runs yet, so each interface is named that one could be at.
        devices = ethernet_interfaces(Path::new("/sys/class/net"));
    }
    if devices.is_empty() {
        return Err(
            "this machine has no agent and no network card of Ethernet to name; start the agents first"
                .into(),
        );
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let first = format!("{name} {} 1 default\n", devices[0]);
    let all = devices.iter().zip(1..).map(|(device, number)| format!("{name}-{number} {device} 1 default\n"));
    Ok([first].into_iter().chain(all).collect())
}

/// The interfaces in a folder like /sys/class/net that are Ethernet's and a device's: bridges, taps and the like lead to no
/// fabric.
fn ethernet_interfaces(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_card = |entry: &std::fs::DirEntry| {
        let kind = std::fs::read_to_string(entry.path().join("type"));
        kind.is_ok_and(|kind| kind.trim() == ETHERNET) && entry.path().join("device").exists()
    };
    let mut all: Vec<String> =
        entries.filter(is_card).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_acm::files::{address_file, options_file};

    #[test]
    fn only_interfaces_of_network_cards_are_named() {
        let dir = tempfile::tempdir().unwrap();
        for (name, kind, is_card) in [("eth0", "1", true), ("ib0", "32", true), ("br0", "1", false)] {
            let interface = dir.path().join(name);
            std::fs::create_dir(&interface).unwrap();
            std::fs::write(interface.join("type"), format!("{kind}\n")).unwrap();
            if is_card {
                std::fs::create_dir(interface.join("device")).unwrap();
            }
        }
        assert_eq!(ethernet_interfaces(dir.path()), ["eth0"]);
    }

    #[test]
    fn what_is_written_is_read_and_has_no_line_without_effect() {
        let options = options_file::parse(OPTIONS).unwrap();
        assert!(options.notes.is_empty(), "{:?}", options.notes);
        assert_eq!(options.server_port, Some(6125));
        let all = address_file::parse(&format!("{ADDRESSES}n1 eth1 1 default\n")).unwrap();
        assert_eq!(all.len(), 1);
    }
}
