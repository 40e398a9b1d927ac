//! A temporary copy of this system, to install packages in.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The script that makes the copy, in a mount namespace of its own. The copy is an overlay over the whole
/// system, whose changes are kept in memory.
pub(crate) const MAKE: &str = r#"
set -euo pipefail
mount -t tmpfs tmpfs "$1"
mkdir "$1"/{changes,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
"#;

/// Where the copy is made.
pub(crate) struct Copy(TempDir);

impl Copy {
    /// A place for a copy, if the kernel can make one.
    pub(crate) fn new() -> Option<Self> {
        let copy = Self(tempfile::tempdir().unwrap());
        let can = copy.shell(MAKE).output().unwrap().status.success();
        mapper_needs::or_skip(can, "a kernel with overlayfs").then_some(copy)
    }

    /// Runs a script, whose first argument is the folder of the copy, and then come `arguments`. Gives what it prints.
    pub(crate) fn run(&self, script: &str, arguments: &[&Path]) -> String {
        let output = self.shell(script).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "--propagation", "private", "bash", "-c", script, "bash"]).arg(self.0.path());
        shell
    }
}
