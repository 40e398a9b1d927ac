//! Tests of the ACM service beside real nodes, with rdma-core's `ib_acme` as the judge: it needs no device, and prints
//! what it understands of each reply.

mod answers;
mod files;
mod machines;
mod moving;
mod probes;
mod tcp;

use std::io::{ErrorKind, Read, Write};

use mapper_acm::wire::{EntryFlags, Reply, Request};

use crate::MAPPER;
use crate::lab::wait_for;
use machines::question;

pub(crate) use machines::Machines;

#[test]
fn an_address_of_two_hosts_is_answered_as_neithers_and_both_are_named() {
    let Some(mut machines) = Machines::start(&[]) else { return };
    let restart = |machines: &mut Machines, address: &str| {
        machines.nodes.pop().unwrap().end();
        machines.nodes.push(machines.ring.start(2, &["--address", address]));
    };
    restart(&mut machines, "10.1.0.2/24");
    let refused = "failed: Cannot assign requested address";
    wait_for("the clash", || machines.judge("-f i -d 10.1.0.2 -c").0.contains(refused).then_some(()));
    let mut macs = [machines.mac(1), machines.mac(2)];
    macs.sort_unstable();
    let [first, second] = macs;
    machines
        .service
        .read_log_until(&format!("10.1.0.2 is not answered, as {first} and {second} say that it is theirs"));
    machines.wait_for_path("-f n -d n2");
    restart(&mut machines, "10.1.0.3/24");
    machines.wait_for_path("-f i -d 10.1.0.2 -c");
}

#[test]
fn a_service_manager_hands_over_the_socket() {
    let programs = mapper_needs::programs(&["systemd-socket-activate"]);
    let Some(machines) = Machines::start(&[]).filter(|_| programs) else { return };
    let socket = machines.dir.path().join("activated.sock");
    let line = format!("systemd-socket-activate -l {} {MAPPER} acm serve", socket.display());
    let mut command = machines.ring.machines[0].command_line(&line);
    let mut child = command.args(["--run-dir", machines.ring.run_dir(0)]).spawn().unwrap();
    wait_for("the socket", || socket.exists().then_some(()));
    let (printed, status) = machines.ask("ib_acme", &format!("-S {} -f n -d n2 -v", socket.display()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(status == 0 && printed.contains("SA verification: success"), "{printed}");
    assert!(socket.exists(), "the socket is the service manager's");
}

#[test]
fn who_sends_what_is_no_request_harms_nobody_else() {
    let Some(machines) = Machines::start(&["--client-timeout-ms", "300", "--max-clients", "4"]) else {
        return;
    };
    let good = question("n2", EntryFlags::NO_DELAY).to_bytes(9).unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let counters = Request::Counters { endpoint: 0, source: None }.to_bytes(0).unwrap();
    let mut long = counters.clone();
    long[7] = 17;
    long.push(0);
    for (what, bytes) in [
        ("another version", changed(0, 2)),
        ("an unknown opcode", changed(1, 7)),
        ("a reply", changed(1, 0x81)),
        ("a length that is no message's", changed(6, 87)),
        ("counters with a byte too many", long),
        ("a part of a header", good[..9].to_vec()),
        ("a part of a request", good[..80].to_vec()),
        ("nothing", Vec::new()),
        ("garbage", vec![0xa5; 5000]),
    ] {
        let mut stream = machines.connect();
        stream.write_all(&bytes).unwrap();
        let mut rest = Vec::new();
        // If the service closes the connection before it has read all, the connection is reset.
        match stream.read_to_end(&mut rest) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{what}: {other:?}, {rest:?}"),
        }
        machines.wait_for_path("-f n -d n2");
    }
    // Bytes that come one by one are a request all the same, and many requests at once are answered each. On a busy machine
    // the bytes may come so late that the service takes the client for a silent one.
    let replies = wait_for("bytes that come one by one in time", || {
        let mut stream = machines.connect();
        for byte in &good {
            stream.write_all(&[*byte]).ok()?;
        }
        stream.write_all(&[counters.clone(), good.clone()].concat()).ok()?;
        let mut replies = vec![0; 160 + 72 + 160];
        stream.read_exact(&mut replies).ok()?;
        Some(replies)
    });
    let lengths =
        [&replies[..160], &replies[160..232], &replies[232..]].map(|bytes| Reply::parse(bytes).is_ok());
    assert_eq!(lengths, [true; 3]);
    // A client that waits behind as many silent ones as there may be is served once those are dropped.
    let silent: Vec<_> = (0..4).map(|_| machines.connect()).collect();
    machines.wait_for_path("-f n -d n2");
    drop(silent);
    // A client that does not read its replies does not keep others waiting.
    let mut greedy = machines.connect();
    greedy.set_nonblocking(true).unwrap();
    while greedy.write(&good.repeat(100)).is_ok() {}
    machines.wait_for_path("-f n -d n2");
}
