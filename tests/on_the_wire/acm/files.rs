//! The files that the service reads: mapper.toml, those of `ibacm`, and names that only a file tells.

use mapper_acm::fabric::gid_of;
use rustix::process::Signal;

use super::machines::{Machines, READY, field};
use crate::MAPPER;
use crate::daemon::Daemon;
use crate::lab::wait_for;

#[test]
fn the_table_of_mapper_toml_configures_the_service_and_agents_pass_over_it() {
    let Some(machines) = Machines::start(&[]) else { return };
    let config = tempfile::tempdir().unwrap();
    let (file, socket) = (config.path().join("mapper.toml"), config.path().join("s"));
    let run_dir = machines.ring.run_dir(0);
    let text = format!(
        "run-dir = {run_dir:?}\nlevel = 3\n[acm]\nsocket = {socket:?}\nretries = 0\ntimeout-ms = 10\n"
    );
    std::fs::write(&file, &text).unwrap();
    let words = ["acm", "serve", "--config", config.path().to_str().unwrap()];
    {
        let _service = Daemon::start(&machines.ring.machines[0], &words, READY);
        wait_for("the path", || {
            (machines.ask("ib_acme", &format!("-S {} -f n -d n2", socket.display())).1 == 0).then_some(())
        });
    }
    std::fs::write(&file, text.replace("retries", "retires")).unwrap();
    for words in ["acm serve", "node --ports e1,e2"] {
        let line = format!("{MAPPER} {words} --config {}", config.path().display());
        let refused = machines.ring.run(0, &line);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("mapper.toml:5: ") && said.contains("retires"), "{said}");
    }
}

#[test]
fn files_of_ibacm_are_obeyed_and_read_again() {
    let files = tempfile::tempdir().unwrap();
    let [addresses, options, hosts] =
        ["ibacm_addr.cfg", "ibacm_opts.cfg", "hosts.data"].map(|it| files.path().join(it));
    std::fs::write(&addresses, "alias e1+e2 1 default\nother e1+e2 1 0x8001\n").unwrap();
    std::fs::write(&options, "timeout 50\nretries 1\nsa_depth 7\n").unwrap();
    let line = ["--address-file", addresses.to_str().unwrap(), "--options-file", options.to_str().unwrap()];
    let Some(mut machines) = Machines::start(&line) else { return };
    machines.wait_for_path("-f n -s other -d n2");
    assert_eq!(field(&machines.judge("-f n -s other -d n2").0, "pkey"), "0x8001");
    machines.wait_for_path("-f n -s alias -d n2");
    assert!(machines.judge("-f n -d n9").0.contains("failed: Connection timed out"));
    assert!(machines.judge("-f n -s later -d n2").0.contains("Cannot assign requested address"));

    std::fs::write(&addresses, "later e1+e2 1 default\n").unwrap();
    let gid = gid_of(machines.mac(1));
    std::fs::write(&hosts, format!("nickname {gid}\n")).unwrap();
    std::fs::write(&options, format!("addr_preload acm_hosts\naddr_data_file {}\n", hosts.display()))
        .unwrap();
    machines.service.signal(Signal::HUP);
    machines.service.read_log_until("the configuration was read again");
    machines.wait_for_path("-f n -s later -d n2");
    machines.wait_for_path("-f n -d nickname");
    assert_eq!(field(&machines.judge("-f n -d nickname").0, "dgid"), gid.to_string());
    assert_eq!(machines.judge("-f n -s alias -d n2").1, 255);
    // A file with an error changes nothing.
    std::fs::write(&addresses, "later e1+e2\n").unwrap();
    machines.service.signal(Signal::HUP);
    let log = machines.service.read_log_until("the configuration stays as it was");
    assert!(log.contains("ibacm_addr.cfg:1: expected `name device port pkey`"), "{log}");
    machines.wait_for_path("-f n -s later -d n2");
}

#[test]
fn names_for_this_machine_are_written_without_a_device() {
    let Some(machines) = Machines::start(&[]) else { return };
    let dir = machines.dir.path().to_str().unwrap();
    let run_dir = machines.ring.run_dir(0);
    let (printed, status) =
        machines.ask(MAPPER, &format!("acm config -A -O -D {dir} -V --run-dir {run_dir}"));
    let name = rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap().to_owned();
    let device = machines.ring.board(0, &[])["interface"].as_str().unwrap().to_owned();
    assert!(status == 0 && printed.contains(&format!("{name}-1 {device} 1 default\n")), "{printed}");
    let [addresses, options] = ["ibacm_addr.cfg", "ibacm_opts.cfg"].map(|file| format!("{dir}/{file}"));
    let [socket, log] = ["other.sock", "log"].map(|file| format!("{dir}/{file}"));
    let words = ["acm", "serve", "--run-dir", run_dir, "--socket", &socket, "--address-file", &addresses];
    let words = [&words[..], &["--options-file", &options, "--verbose-file", &log]].concat();
    let _service = Daemon::start(&machines.ring.machines[0], &words, READY);
    let line = format!("-S {socket} -f n -s {name}-1 -d n2");
    wait_for("the name of a file", || (machines.ask("ib_acme", &line).1 == 0).then_some(()));
    // Nobody else can have the socket.
    let taken = machines.ring.run(0, &format!("{MAPPER} acm serve --socket {socket}"));
    let said = String::from_utf8(taken.stderr).unwrap();
    assert!(!taken.status.success() && said.contains("another service answers on"), "{said}");
}

#[test]
fn names_that_only_a_file_of_another_machine_tells_are_asked_for() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let options = file("opts", "timeout 300\nretries 2\nresolve_depth 4\n");
    let Some(mut machines) = Machines::start(&["--options-file", &options]) else { return };
    // No host has the name yet, so the question takes the time that the options say, and not more.
    let (printed, status) = machines.judge("-f n -d storage");
    assert!(status == 255 && printed.contains("failed: Connection timed out"), "{printed}");
    let serve = |machines: &Machines, at: usize, addresses: &str| {
        let socket = machines.dir.path().join(format!("acm{at}.sock"));
        let words = ["acm", "serve", "--run-dir", machines.ring.run_dir(at), "--socket"];
        let words = [&words[..], &[socket.to_str().unwrap(), "--address-file", addresses]].concat();
        Daemon::start(&machines.ring.machines[at], &words, READY)
    };
    let third = file("third", "storage e1+e2 1 default\n192.0.2.77 e1+e2 1 default\n");
    let mut other = serve(&machines, 2, &third);
    wait_for("the name of the third machine's file", || {
        // A name that nobody had is remembered for ten seconds; another spelling is the same name.
        (machines.judge("-f n -d Storage").1 == 0).then_some(())
    });
    let gid = gid_of(machines.mac(2)).to_string();
    for line in ["-f n -d storage -v", "-f i -d 192.0.2.77 -v", "-f n -d storage -c"] {
        let printed = machines.both(line);
        assert_eq!(field(&printed, "dgid"), gid, "{line}: {printed}");
    }
    let resolved = machines.ask(MAPPER, &format!("resolve storage --run-dir {}", machines.ring.run_dir(0))).0;
    assert!(resolved.contains("n3"), "{resolved}");
    // Another machine says that it has it, too: neither is answered, and both are named.
    let _second = serve(&machines, 1, &third);
    let refused = "failed: Cannot assign requested address";
    let mut macs = [machines.mac(1), machines.mac(2)];
    macs.sort_unstable();
    let [first, last] = macs;
    wait_for("the clash", || machines.judge("-f n -d storage -c").0.contains(refused).then_some(()));
    machines
        .service
        .read_log_until(&format!("storage is not answered, as {first} and {last} say that it is theirs"));
    // The file of the third machine names it no more, so it is the other's.
    std::fs::write(&third, "elsewhere e1+e2 1 default\n").unwrap();
    other.signal(Signal::HUP);
    other.read_log_until("the configuration was read again");
    let gid = gid_of(machines.mac(1)).to_string();
    wait_for("the other owner", || {
        let (printed, status) = machines.judge("-f n -d storage");
        (status == 0 && field(&printed, "dgid") == gid).then_some(())
    });
}
