//! Tests of whom the server of the page answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::json;

use super::{Browser, MAPPER, Server};

#[test]
fn other_hosts_and_other_sites_are_refused() {
    let server = Server::start(&["ring:n=3"]);
    let status = |request: &str| server.ask(request).split(' ').nth(1).unwrap().to_owned();
    assert_eq!(status("GET / HTTP/1.1\nHost: localhost\n\n"), "200");
    assert_eq!(status("GET / HTTP/1.1\nHost: evil.example\n\n"), "421");
    assert_eq!(status("GET /api/engines HTTP/1.1\nHost: 127.0.0.1.evil.example\n\n"), "421");
    assert_eq!(status("GET /api/engines HTTP/1.1\n\n"), "421");
    let foreign = "GET /api/engines HTTP/1.1\nHost: localhost\nOrigin: https://evil.example\n\n";
    assert_eq!(status(foreign), "403");
    assert_eq!(status("POST /api/routing HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}"), "415");
    let post = |body: &str| {
        let length = body.len();
        status(&format!(
            "POST /api/routing HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: {length}\n\n{body}"
        ))
    };
    let scene = server.scene();
    let routing = |scene: u64, engine: &str, cuts: &[u32]| {
        post(&json!({ "scene": scene, "engine": engine, "cuts": cuts }).to_string())
    };
    assert_eq!(routing(scene, "minhop", &[]), "200");
    assert_eq!(routing(scene, "minhop", &[3]), "400", "there are cables 0 to 2");
    assert_eq!(routing(scene, "no-such", &[]), "400");
    assert_eq!(routing(scene + 1, "minhop", &[]), "410");
    assert_eq!(post(&format!("{{\"scene\":{}", "1".repeat(70_000))), "413");
    assert_eq!(status("DELETE /api/engines HTTP/1.1\nHost: localhost\n\n"), "405");
    assert_eq!(status("GET /etc/passwd HTTP/1.1\nHost: localhost\n\n"), "404");
    let head = server.ask("GET / HTTP/1.1\nHost: localhost\n\n");
    for wanted in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "nosniff",
    ] {
        assert!(head.contains(wanted), "{wanted}");
    }
}

#[test]
fn elsewhere_than_on_the_loopback_address_a_token_is_needed() {
    let open = Command::new(MAPPER).args(["view", "ring:n=3", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(open.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&open.stderr).contains("--token is needed"));
    let server = Server::start(&["ring:n=3", "--token", "new"]);
    let token = server.url.split("#token=").nth(1).unwrap().to_owned();
    let engines =
        |header: &str| server.ask(&format!("GET /api/engines HTTP/1.1\nHost: localhost\n{header}\n"));
    assert!(engines("").starts_with("HTTP/1.1 401 "));
    assert!(engines("Authorization: Bearer 0123456789abcdef\n").starts_with("HTTP/1.1 401 "));
    assert!(engines(&format!("Authorization: Bearer {token}\n")).starts_with("HTTP/1.1 200 "));
    let page = server.ask("GET / HTTP/1.1\nHost: localhost\n\n");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && !page.contains("xbar1"),
        "the page holds nothing of the fabric"
    );
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    assert_eq!(browser.value("location.hash"), json!(""), "it is not left in the address");
    let mut stranger = Browser::open(server.url.split('#').next().unwrap()).unwrap();
    stranger.wait_for("document.getElementById('ask-token') && document.getElementById('ask-token').open");
    stranger.value("document.getElementById('token').value = 'wrong'; document.querySelector('#ask-token button').click()");
    stranger.wait_for("document.getElementById('ask-token').open");
    stranger.value(&format!(
        "document.getElementById('token').value = '{token}'; document.querySelector('#ask-token button').click()"
    ));
    stranger.wait_until_drawn();
}

#[test]
fn who_does_not_ask_keeps_nobody_out() {
    let server = Server::start(&["ring:n=3"]);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let answer = server.ask("GET /api/engines HTTP/1.1\nHost: localhost\n\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(silent);
    // A request that goes on and on is refused too.
    let mut endless = TcpStream::connect(server.address()).unwrap();
    let mut sent = endless.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    for _ in 0..1000 {
        sent = sent.and_then(|()| endless.write_all(&[b'a'; 1024]));
    }
    let mut answer = Vec::new();
    // The server may have hung up while this was still sending.
    let _hung_up = endless.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}
