//! librdmacm's own lookup against the service: what a program gets that connects by `rdma_getaddrinfo`.

use std::path::{Path, PathBuf};
use std::process::Command;

use mapper_acm::fabric::gid_of;
use mapper_acm::wire::PathRecord;

use crate::acm::Machines;
use crate::lab::wait_for;

/// Where librdmacm looks for the service.
const SOCKET: &str = "/run/ibacm.sock";

/// Compiles a file of this folder.
fn compile(source: &str, to: PathBuf, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/on_the_wire/rdmacm").join(source);
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&to).arg(source).args(options);
    assert!(compiler.status().unwrap().success());
    to
}

#[test]
fn librdmacm_finds_the_path_to_an_address_through_the_service() {
    let has_all = mapper_needs::programs(&["cc", "unshare", "mount"])
        && mapper_needs::file("/usr/include/rdma/rdma_cma.h")
        && mapper_needs::file("/usr/include/infiniband/verbs.h");
    let Some(machines) = Machines::start(&[]).filter(|_| has_all) else { return };
    let dir = tempfile::tempdir().unwrap();
    let lookup = compile("lookup.c", dir.path().join("lookup"), &["-lrdmacm"]);
    let device = compile("no_device.c", dir.path().join("no_device.so"), &["-shared", "-fPIC"]);
    // The library looks for the socket at a fixed place, so the program gets a /run of its own.
    let script = dir.path().join("look");
    let text = format!(
        "mount -t tmpfs none /run && ln -s {} {SOCKET} && LD_PRELOAD={} exec {} \"$@\"\n",
        machines.socket().display(),
        device.display(),
        lookup.display()
    );
    std::fs::write(&script, text).unwrap();
    let route = |line: &str| {
        let output = machines.ring.run(0, &format!("unshare --mount sh {} {line}", script.display()));
        assert!(output.status.success(), "{line}: {output:?}");
        let hex = String::from_utf8(output.stdout).unwrap();
        let digits: Vec<char> = hex.trim().chars().collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        digits.chunks(2).map(byte).collect::<Vec<u8>>()
    };
    let (own, other) = (gid_of(machines.mac(0)), gid_of(machines.mac(1)));
    let v6 = machines.v6(1);
    for line in ["10.1.0.2".to_owned(), v6, "10.1.0.2 10.1.0.1".to_owned()] {
        // A busy machine looks like a dead cable for a moment, and the path leads around it then.
        let record = wait_for("the short path", || {
            // The library prints what it means by the path before the record.
            let found = route(&line);
            let record: &[u8; 64] = found.last_chunk()?;
            Some(PathRecord::parse(record)).filter(|record| record.hop_limit == 2)
        });
        assert_eq!((record.dgid, record.sgid), (other, own), "{line}");
        assert!(record.reversible && record.dlid != 0 && record.pkey == 0xffff);
    }
    // Of what the service does not know the kernel is asked, as without the service.
    assert!(route("192.0.2.1").is_empty());
}
