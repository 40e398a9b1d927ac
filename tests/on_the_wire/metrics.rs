//! Tests of the metrics that an agent serves and writes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::daemon::{Daemon, cable};
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// The metrics of the agent that serves them in this namespace.
fn scrape(namespace: &Namespace) -> String {
    namespace.enter(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9797").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    })
}

#[test]
fn metrics_are_served_and_written_and_a_host_that_is_gone_reads_0() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    namespace.ip("link set far address 02:00:00:00:00:09");
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let file = dirs[0].path().join("mapper.prom");
    let options = ["--metrics-listen", "127.0.0.1:9797", "--metrics-file", file.to_str().unwrap()];
    let agent = Daemon::agent(&namespace, "eth1", dirs[0].path(), &options);
    let other = Daemon::agent(&namespace, "far", dirs[1].path(), &["--host-name", "far-away"]);
    let has = |line: &str| scrape(&namespace).lines().any(|found| found == line);
    let up = |value: u8| format!(r#"mapper_host_up{{interface="eth1",mac="02:00:00:00:00:09"}} {value}"#);
    wait_for("the other host up", || has(&up(1)).then_some(()));
    wait_for("configured", || {
        has(r#"mapper_agent_state{interface="eth1",mapper_agent_state="configured"} 1"#).then_some(())
    });
    let named = r#"mapper_host_info{interface="eth1",mac="02:00:00:00:00:09",host_name="far-away"} 1"#;
    wait_for("the other host's name", || has(named).then_some(()));
    drop(other);
    wait_for("the other host gone", || has(&up(0)).then_some(()));
    assert!(scrape(&namespace).ends_with("# EOF\n"));
    let written = wait_for("the file", || std::fs::read_to_string(&file).ok());
    assert!(written.contains("# TYPE mapper_agent_state gauge\n"), "{written}");
    drop(agent);
    assert!(!file.exists(), "numbers of a daemon that has gone are no numbers");
}

#[test]
fn metrics_are_not_served_to_the_network() {
    let arguments = ["agent", "--interface", "lo", "--metrics-listen", "0.0.0.0:9797"];
    let output = Command::new(MAPPER).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("loopback"), "{errors}");
}
