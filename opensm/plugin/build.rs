//! Compiles the shim against OpenSM's headers, where Debian's libopensm-dev and libibumad-dev put them. Where there are none the
//! library is empty, so that a plain clone does without them.

use std::path::Path;

const HEADERS: &str = "/usr/include/infiniband";
/// The headers that the shim takes, each of another package.
const NEEDED: [&str; 2] = ["opensm/osm_opensm.h", "umad.h"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(opensm)");
    for file in ["shim/shim.c", "shim/mapper.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    // The times of folders tell when headers come or go.
    let folders = Path::new(HEADERS).ancestors().find(|folder| folder.exists());
    folders.into_iter().for_each(|folder| println!("cargo::rerun-if-changed={}", folder.display()));
    if NEEDED.iter().any(|header| !Path::new(HEADERS).join(header).exists()) {
        return;
    }
    println!("cargo::rustc-cfg=opensm");
    cc::Build::new()
        .file("shim/shim.c")
        .include(HEADERS)
        .flag("-Wno-unused-parameter")
        .compile("mapper_shim");
}
