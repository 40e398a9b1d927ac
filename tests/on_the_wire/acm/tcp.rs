//! Clients that reach the service by TCP.

use mapper_acm::fabric::{gid_of, lids};
use mapper_proto::Mac;

use super::machines::{Machines, READY, field};
use crate::MAPPER;
use crate::daemon::Daemon;
use crate::lab::wait_for;

#[test]
fn clients_of_tcp_are_served_as_others_are_and_told_the_port() {
    let Some(machines) = Machines::start(&[]) else { return };
    let macs: Vec<Mac> = (0..3).map(|at| machines.mac(at)).collect();
    let mut sorted = macs.clone();
    sorted.sort_unstable();
    let (lid, gid, v6) = (lids(sorted)[&macs[1]], gid_of(macs[1]), machines.v6(1));
    for (mode, host) in [("tcp", "127.0.0.1"), ("open", "10.1.0.1")] {
        let files = tempfile::tempdir().unwrap();
        let [port, link] = ["tcp.port", "port"].map(|name| files.path().join(name));
        let words = ["acm", "serve", "--server-mode", mode, "--run-dir", machines.ring.run_dir(0)];
        let told = ["--port-file", port.to_str().unwrap(), "--port-link", link.to_str().unwrap()];
        let service = Daemon::start(&machines.ring.machines[0], &[&words[..], &told].concat(), READY);
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "6125\n");
        for line in [
            "-f i -s 10.1.0.1 -d 10.1.0.2 -v".to_owned(),
            format!("-f i -d {v6} -v"),
            "-f n -d n2 -v".to_owned(),
            "-f n -d n2 -c -v".to_owned(),
            format!("-f l -d {lid} -v"),
            format!("-f g -d {gid} -v"),
        ] {
            let line = format!("-S {host} {line}");
            let printed = wait_for(&line, || {
                let judged = machines.ask("ib_acme", &line);
                (judged.1 == 0 && judged == machines.ask(MAPPER, &format!("acm query {line}")))
                    .then_some(judged.0)
            });
            assert_eq!(field(&printed, "dgid"), gid.to_string());
            assert!(printed.contains("SA verification: success"), "{printed}");
        }
        for (line, shown) in [("-P", "svc,Error Count"), ("-P 1", "svc,Error Count"), ("-e 1", "n1,10.1.0.1")]
        {
            let line = format!("-S {host} {line}");
            let (printed, status) = machines.ask("ib_acme", &line);
            assert!(status == 0 && printed.contains(shown), "{line}: {printed}");
            assert_eq!(machines.ask(MAPPER, &format!("acm query {line}")), (printed, status), "{line}");
        }
        let (printed, status) = machines.ask("ib_acme", &format!("-S {host} -f n -d n9 -c"));
        assert!(status == 255 && printed.contains("No data available"), "{printed}");
        let elsewhere = machines.ring.run(1, &format!("{MAPPER} acm query -S 10.1.0.1 -P"));
        assert_eq!(elsewhere.status.success(), mode == "open");
        service.end();
        assert!(!port.exists() && !link.is_symlink());
    }
}

#[test]
fn a_port_that_the_service_manager_opens_is_told_and_a_mode_that_it_does_not_serve_is_reported() {
    let programs = mapper_needs::programs(&["systemd-socket-activate"]);
    let Some(machines) = Machines::start(&[]).filter(|_| programs) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [port, log] = ["port", "log"].map(|name| dir.path().join(name));
    let line = format!("systemd-socket-activate -l 127.0.0.1:6200 {MAPPER} acm serve --server-mode tcp");
    let mut command = machines.ring.machines[0].command_line(&line);
    command.args(["--run-dir", machines.ring.run_dir(0), "--port-file"]).arg(&port);
    let mut child = command.arg("--verbose-file").arg(&log).spawn().unwrap();
    // The first connection starts the service.
    let told = wait_for("the port", || {
        drop(machines.ring.run(0, "bash -c exec</dev/tcp/127.0.0.1/6200"));
        std::fs::read_to_string(&port).ok().filter(|text| text.ends_with('\n'))
    });
    let said = wait_for("the log", || {
        let said = std::fs::read_to_string(&log).ok()?;
        said.contains("which counts").then_some(said)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told, "6200\n");
    assert!(said.contains("the service manager hands over port 6200, which counts, and not 6125"), "{said}");
}
