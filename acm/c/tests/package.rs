//! A test of the package for programs in C: what is in it is enough to compile and run one.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Command;

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_is_compiled_with_what_the_package_installs_and_looks_for_the_library_by_its_number() {
    if !mapper_needs::programs(&["cargo-deb", "dpkg-deb", "strip", "cc", "pkg-config", "readelf"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The library lies beside this test.
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libmapper_acm_c.so");
    let mut build = Command::new(here.join("../../scripts/package-acm-client"));
    output(build.arg("--library").arg(library).arg("--output").arg(dir.path()));
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let package = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb")).unwrap();
    let root = dir.path().join("root");
    output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let library = root.join("usr/lib/libmapper_acm_c.so");
    assert_eq!(library.read_link().unwrap(), Path::new("libmapper_acm_c.so.0"));

    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "mapper-acm"]).env("PKG_CONFIG_SYSROOT_DIR", &root);
    // It leaves out the folders where compilers look in any case, which these are not here.
    flags.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let flags = output(flags.env("PKG_CONFIG_PATH", root.join("usr/lib/pkgconfig")));
    let program = dir.path().join("resolve");
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Werror", "-D_DEFAULT_SOURCE", "-o"]).arg(&program);
    let example = root.join("usr/share/doc/libmapper-acm-dev/examples/resolve.c");
    output(compile.arg(example).args(flags.split_whitespace()));
    let needed = output(Command::new("readelf").arg("-d").arg(&program));
    assert!(needed.contains("[libmapper_acm_c.so.0]"), "{needed}");
    let mut run = Command::new(&program);
    let nobody = run.env("LD_LIBRARY_PATH", root.join("usr/lib")).arg("/nonexistent").output().unwrap();
    assert_eq!(String::from_utf8(nobody.stderr).unwrap(), "cannot connect: No such file or directory\n");
}
