//! A test of the Debian package, which is installed in a temporary copy of this system.

use std::fs;
use std::process::Command;

use super::copy::{self, Copy};
use super::{MAPPER, run};

/// The script that installs and removes the package as an operator would, and prints what is there after each
/// step.
const LIFE: &str = r#"
root=$1/root
cp "$2" "$1/root/mapper.deb"
for dir in proc dev; do mount --rbind "/$dir" "$root/$dir"; done
for dir in run tmp; do mount -t tmpfs tmpfs "$root/$dir"; done
in_root() { chroot "$root" /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }

in_root dpkg --install mapper.deb >&2
echo "version: $(in_root /usr/bin/mapper --version)"
for page in mapper mapper-agent mapper.toml; do
    echo "page: $(in_root man -w "$page")"
done
echo "dissector: $(in_root grep -c '^function mapper.dissector' /usr/share/mapper/mapper.lua)"
echo "user: $(in_root id -nu mapper) $(in_root id -ng mapper)"
echo "conffiles: $(in_root dpkg-query --show --showformat '${Conffiles}' mapper | awk '{ print $1 }' | sort | xargs)"
echo "running: $(in_root pgrep -c -f '^/usr/bin/mapper' || true)"
# A configuration file that was changed survives a removal.
echo '# changed' >>"$root/etc/mapper/mapper.toml"
in_root dpkg --remove mapper >&2
test ! -e "$root/usr/bin/mapper"
echo "after removal: $(tail -n 1 "$root/etc/mapper/mapper.toml")"
in_root dpkg --purge mapper >&2
echo "after purge: $(cd "$1/changes" && find . -name '*mapper*' ! -name mapper.deb ! -type c | xargs)"
echo "user after purge: $(in_root getent passwd mapper || true)"
"#;

#[test]
fn the_package_is_installed_removed_and_purged_and_nothing_is_left() {
    if !(mapper_needs::root() && mapper_needs::programs(&["cargo-deb", "strip", "dpkg", "unshare", "man"])) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(copy) = Copy::new() else { return };
    let mut build = Command::new("scripts/package");
    build.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--binary", MAPPER, "--output"]).arg(dir.path());
    run(&mut build);
    let packages = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let package = packages.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb")).unwrap();

    let said = copy.run(&[copy::MAKE, LIFE].concat(), &[&package]);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "version: mapper {version}\n\
         page: /usr/share/man/man1/mapper.1.gz\n\
         page: /usr/share/man/man8/mapper-agent.8.gz\n\
         page: /usr/share/man/man5/mapper.toml.5.gz\n\
         dissector: 1\n\
         user: mapper mapper\n\
         conffiles: /etc/default/mapper /etc/init.d/mapper /etc/mapper/mapper.toml\n\
         running: 0\n\
         after removal: # changed\n\
         after purge: \n\
         user after purge: \n"
    );
    assert_eq!(said, expected);
}
