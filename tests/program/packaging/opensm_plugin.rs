//! A test of the Debian package of OpenSM's plugin, which is installed in a temporary copy of this system, set up as
//! its page says, and loaded there.

use std::fs;
use std::process::Command;

use super::built::Built;
use super::copy::{self, Copy};
use super::{MAPPER, run};

/// The script that installs the package, has OpenSM configure a simulated fabric once, and prints what the plugin
/// logged, how much of the simulator runs on when it was ended, and what is there after the package was removed.
const LIFE: &str = r#"
root=$1/root
mkdir "$root/simulated"
cp "$2"/*.deb "$2/fabric.net" "$2/opensm.conf" "$root/simulated/"
for dir in proc dev; do mount --rbind "/$dir" "$root/$dir"; done
for dir in run tmp; do mount -t tmpfs tmpfs "$root/$dir"; done
# No function: a job would be the shell that runs it, and who ends that shell leaves the program behind.
in_root=(chroot "$root" /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C)
export IBSIM_SOCKNAME=mapper-package-$$ SIM_HOST=h1 OSM_TMP_DIR=/simulated OSM_CACHE_DIR=/simulated

"${in_root[@]}" bash -c 'dpkg --install /simulated/*.deb' >&2
"${in_root[@]}" ibsim -s -n /simulated/fabric.net >"$root/simulated/ibsim" 2>&1 <> <(:) &
simulator=$!
trap 'kill $simulator' EXIT
until grep -q 'simulator ready' "$root/simulated/ibsim"; do kill -0 $simulator; sleep 0.05; done
"${in_root[@]}" env LD_PRELOAD="$3" opensm --config /simulated/opensm.conf --once -e -t 5000 -f /simulated/opensm.log >&2 ||
    cat "$root/simulated/opensm.log" >&2
grep -o 'mapper: .*' "$root/simulated/opensm.log"
"${in_root[@]}" dpkg --purge opensm-plugin-mapper >&2
trap - EXIT
kill $simulator
wait $simulator || [ $? -eq 143 ]
echo "simulators left: $(grep -c "@$IBSIM_SOCKNAME:" /proc/net/unix)"
echo "after purge: $(cd "$1/changes/usr" && find . -name '*mapper*' ! -type c | xargs)"
"#;

/// The lines of the page's first block of this kind.
fn block(page: &str, kind: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_plugin_is_installed_set_up_as_its_page_says_and_loaded_by_opensm() {
    let programs = ["cargo-deb", "strip", "dpkg", "unshare", "opensm", "ibsim"];
    let headers = "/usr/include/infiniband/opensm/osm_event_plugin.h";
    if !(mapper_needs::root() && mapper_needs::programs(&programs) && mapper_needs::file(headers)) {
        return;
    }
    let (Some(simulated), Some(copy)) = (mapper_needs::umad2sim(), Copy::new()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/opensm-plugin.md")).unwrap();
    fs::write(dir.path().join("opensm.conf"), block(&page, "text")).unwrap();
    let mut build = Command::new("scripts/package-opensm-plugin");
    build.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--output").arg(dir.path());
    build.arg("--built").arg(&Built::get().plugin).arg(&Built::get().engine);
    run(&mut build);
    let mut generate = Command::new(MAPPER);
    generate.args(["topology", "generate", "clos:hosts=16,ports=8", "-o"]).arg(dir.path().join("fabric.net"));
    run(&mut generate);

    let said = copy.run(&[copy::MAKE, LIFE].concat(), &[dir.path(), &simulated]);
    assert_eq!(said, format!("{}simulators left: 0\nafter purge: \n", block(&page, "log")));
}
