//! Gives the library the name by which programs that are linked with it look for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The number rises when programs that are linked with the library must be compiled anew.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmapper_acm_c.so.0");
}
