//! Compiles the shim against OpenSM's headers, where Debian's libopensm-dev puts them.

fn main() {
    for file in ["shim/shim.c", "shim/mapper.h"] {
        println!("cargo:rerun-if-changed={file}");
    }
    if !std::path::Path::new("/usr/include/infiniband/opensm/osm_opensm.h").exists() {
        println!("cargo:warning=OpenSM's headers are missing: install libopensm-dev and libibumad-dev");
    }
    cc::Build::new()
        .file("shim/shim.c")
        .include("/usr/include/infiniband")
        .flag("-Wno-unused-parameter")
        .compile("mapper_shim");
}
