//! Tests of the program that computes, as the plugin starts it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use mapper_opensm::{Adapter, Link, Request, Switch, Worker, answer};

/// The program under test. Tests with OpenSM take the one that is built for this one.
const ENGINE: &str = env!("CARGO_BIN_EXE_mapper-opensm-engine");

/// One switch with two hosts.
fn star() -> Request {
    let adapter = |number: u16| Adapter {
        node_guid: 0x20 + u64::from(number),
        port_guid: 0x30 + u64::from(number),
        description: format!("host {number}"),
        port: 1,
        lid: 1 + number,
        ..Adapter::default()
    };
    let link = |port: u8| Link { port, peer: 0x20 + u64::from(port), peer_port: 1 };
    let switch = Switch { guid: 0x10, lid: 1, ports: 2, links: vec![link(1), link(2)], ..Switch::default() };
    Request { lanes: 1, switches: vec![switch], adapters: vec![adapter(1), adapter(2)], ..Request::default() }
}

#[test]
fn the_program_answers_what_the_library_answers() {
    let worker = Worker { program: ENGINE.into(), limit: Duration::from_secs(600) };
    let (own, told) = (answer(&star()).unwrap(), worker.run(&star()).unwrap().unwrap());
    assert_eq!((told.tables.len(), &told.tables[0].ports), (1, &own.tables[0].ports));
    assert_eq!(told.tables[0].ports[1..], [0, 1, 2]);
}

#[test]
fn what_is_no_request_is_refused_with_the_reason() {
    let mut engine = Command::new(ENGINE);
    let mut engine =
        engine.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    engine.stdin.take().unwrap().write_all(b"nonsense").unwrap();
    let ended = engine.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.starts_with("the message is of another version of mapper, or cut off"), "{said}");
}
