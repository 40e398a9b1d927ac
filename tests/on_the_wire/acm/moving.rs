//! A service that is told to listen elsewhere while it runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use mapper_acm::wire::{EntryFlags, Reply};
use rustix::process::Signal;

use super::machines::{Machines, READY, question};
use crate::daemon::Daemon;

/// Waits for the reply to a question on this connection.
fn is_answered(stream: &mut UnixStream) -> bool {
    stream.write_all(&question("n2", EntryFlags::default()).to_bytes(7).unwrap()).unwrap();
    let mut reply = [0; 160];
    stream.read_exact(&mut reply).unwrap();
    matches!(Reply::parse(&reply), Ok((_, Reply::Path { .. })))
}

#[test]
fn the_service_moves_to_another_socket_and_to_tcp_while_it_runs_and_keeps_its_clients() {
    let files = tempfile::tempdir().unwrap();
    let options = files.path().join("mapper.toml");
    let [first, second, port] = ["first", "second", "port"].map(|name| files.path().join(name));
    let Some(machines) = Machines::start(&[]) else { return };
    let run_dir = machines.ring.run_dir(0);
    let configure = |lines: String| {
        std::fs::write(&options, format!("run-dir = {run_dir:?}\n[acm]\n{lines}\n")).unwrap();
    };
    configure(format!("socket = {first:?}"));
    let words = ["acm", "serve", "--config", files.path().to_str().unwrap()];
    let mut service = Daemon::start(&machines.ring.machines[0], &words, READY);
    let mut client = UnixStream::connect(&first).unwrap();
    assert!(is_answered(&mut client));

    configure(format!("socket = {second:?}"));
    service.signal(Signal::HUP);
    service.read_log_until("clients connect here now");
    assert!(!first.exists() && is_answered(&mut client));
    let (printed, status) = machines.ask("ib_acme", &format!("-S {} -f n -d n2", second.display()));
    assert_eq!(status, 0, "{printed}");

    configure(format!("server-mode = \"tcp\"\nport = 6200\nport-file = {port:?}"));
    service.signal(Signal::HUP);
    service.read_log_until("clients connect here now");
    assert!(!second.exists() && is_answered(&mut client));
    assert_eq!(std::fs::read_to_string(&port).unwrap(), "6200\n");
    // The port of 6125 that `ib_acme` asks at is another mode of the same service.
    configure(format!("server-mode = \"open\"\nport-file = {port:?}"));
    service.signal(Signal::HUP);
    service.read_log_until("clients connect here now");
    let (printed, status) = machines.ask("ib_acme", "-S 10.1.0.1 -f n -d n2 -v");
    assert_eq!(status, 0, "{printed}");

    // Where it cannot be, it stays where it is and says why.
    let nowhere = files.path().join("nonexistent/acm.sock");
    configure(format!("socket = {nowhere:?}"));
    service.signal(Signal::HUP);
    let why = format!("the service stays where it is: cannot listen on {}", nowhere.display());
    service.read_log_until(&why);
    assert_eq!(machines.ask("ib_acme", "-S 10.1.0.1 -f n -d n2").1, 0);
    assert!(is_answered(&mut client));
}
