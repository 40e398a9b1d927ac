//! A test that compiles the example in C, and runs it against a service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use mapper_acm::fabric::{Host, Path as FabricPath, Unit, gid_of};
use mapper_acm::service::{Service, Settings};
use mapper_acm::wire::request_bytes;
use mapper_proto::{Instant, Mac};

/// Answers all questions of a client.
fn serve(mut stream: UnixStream, service: &mut Service) {
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        received.extend_from_slice(&piece[..length]);
        let mut replies = Vec::new();
        while let Some(length) = request_bytes(&received).unwrap().filter(|_| !received.is_empty()) {
            service.handle_request(Instant::ZERO, 1, &received[..length], &mut replies).unwrap();
            received.drain(..length);
        }
        stream.write_all(&replies).unwrap();
    }
}

fn host(n: u32) -> Host {
    let path = FabricPath { hops: 2, layer: 0, mtu_bytes: 1500, rate_mbps: 10_000, is_reversible: true };
    let addresses = vec![[10, 0, 0, n as u8].into(), format!("fd00::{n}").parse().unwrap()];
    Host { mac: Mac::from_position(n), name: Some(format!("n{n}")), addresses, path: Some(path) }
}

#[test]
fn the_example_in_c_is_answered() {
    if !mapper_needs::programs(&["cc", "pkg-config"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.path().join("resolve");
    // The library lies beside this test.
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libmapper_acm_c.so");
    let mut install = Command::new(here.join("../../scripts/install-acm-client"));
    assert!(install.arg("--library").arg(library).arg(dir.path()).status().unwrap().success());
    let libraries: PathBuf = dir.path().join("lib");
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "mapper-acm"]).env("PKG_CONFIG_PATH", libraries.join("pkgconfig"));
    let flags = String::from_utf8(flags.output().unwrap().stdout).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_DEFAULT_SOURCE", "-o"]).arg(&program);
    compile.arg(here.join("examples/resolve.c")).args(flags.split_whitespace());
    assert!(compile.status().unwrap().success());

    let socket = dir.path().join("acm.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let mut service = Service::new(Settings::default());
        service.set_unit(
            Instant::ZERO,
            0,
            Unit::new("eth0".to_owned(), Mac::from_position(1), (1..4).map(host)),
        );
        serve(listener.accept().unwrap().0, &mut service);
    });
    let mut run = Command::new(&program);
    run.env("LD_LIBRARY_PATH", &libraries).arg(&socket).args(["n2", "10.0.0.3", "fd00::2", "n9"]);
    let output = run.output().unwrap();
    let [two, three] = [2, 3].map(|n| gid_of(Mac::from_position(n)));
    let expected = format!(
        "n2: {two}\n10.0.0.3: {three}\nfd00::2: {two}\nn9: No data available\nresolved: 7\nendpoint: n1 10.0.0.1 fd00::1\nchange: 2\n"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let nobody =
        Command::new(&program).env("LD_LIBRARY_PATH", &libraries).arg("/nonexistent").output().unwrap();
    assert_eq!(String::from_utf8(nobody.stderr).unwrap(), "cannot connect: No such file or directory\n");
}
