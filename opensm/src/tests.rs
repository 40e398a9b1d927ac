//! Subnets as the plugin hands them over, and what it gets.

use crate::{Adapter, Link, Outcome, Request, Switch, answer, receive, send};

/// Two switches with a host each.
fn pair() -> Request {
    let switch = |index: u16| Switch {
        guid: 0x10 + u64::from(index),
        description: format!("switch {index}"),
        lid: 1 + index,
        ports: 2,
        links: vec![
            Link { port: 1, peer: 0x20 + u64::from(index), peer_port: 1 },
            Link { port: 2, peer: 0x10 + u64::from(1 - index), peer_port: 2 },
        ],
        ..Switch::default()
    };
    let adapter = |index: u16| Adapter {
        node_guid: 0x20 + u64::from(index),
        port_guid: 0x30 + u64::from(index),
        description: format!("host {index}"),
        port: 1,
        lid: 3 + index,
        ..Adapter::default()
    };
    Request {
        lanes: 1,
        switches: vec![switch(0), switch(1)],
        adapters: vec![adapter(0), adapter(1)],
        ..Request::default()
    }
}

/// What the program that computes does with a request, as both travel.
fn run(request: &Request) -> Outcome {
    let (mut question, mut outcome) = (Vec::new(), Vec::new());
    send(&mut question, request).unwrap();
    send(&mut outcome, &answer(&receive(&mut question.as_slice()).unwrap())).unwrap();
    receive(&mut outcome.as_slice()).unwrap()
}

#[test]
fn a_subnet_gets_tables() {
    let answer = run(&pair()).unwrap();
    let ports: Vec<&[u8]> = answer.tables.iter().map(|table| &table.ports[1..]).collect();
    assert_eq!(ports, [&[0, 2, 1, 2], &[2, 0, 2, 1]]);
}

#[test]
fn a_subnet_that_cannot_be_read_is_declined_and_what_is_wrong_is_named() {
    let check = |change: fn(&mut Request), why: &str| {
        let mut request = pair();
        change(&mut request);
        let left = "no tables are proved: left to OpenSM's next engine".to_owned();
        assert_eq!(run(&request).unwrap_err().said, [format!("the subnet cannot be routed: {why}"), left]);
    };
    check(|it| it.switches[1].ports = 0, "switch \"switch 1\" (0x0000000000000011) has no ports");
    check(
        |it| it.switches[0].links[1].peer = 0x99,
        "switch \"switch 0\" (0x0000000000000010) port 2 leads to port 2 of the node with GUID \
         0x0000000000000099, which is not there",
    );
    check(
        |it| it.adapters[1].lid = 0,
        "adapter \"host 1\" (0x0000000000000021) port 1 has LID 0; expected 1 to 49151",
    );
    check(|it| it.switches.clear(), "the subnet has no switch");
}
