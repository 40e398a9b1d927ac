//! A network namespace of a test's own, which is deleted however the test ends.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace.
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// Deletes the namespace, and ends what runs in it, when its standard input closes.
    guard: Child,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mtest-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let clean_up = "trap '' INT TERM HUP; cat >/dev/null; \
                        ip netns pids $0 | xargs -r kill -KILL; \
                        rm -rf /etc/netns/$0; exec ip netns delete $0";
        let guard = Command::new("bash").args(["-c", clean_up, &name]).stdin(Stdio::piped()).spawn().unwrap();
        let namespace = Self { name, guard };
        run(Command::new("ip").args(["netns", "add", &namespace.name]));
        namespace
    }

    /// Runs `ip` in the namespace, with these words as arguments.
    pub(crate) fn ip(&self, words: &str) {
        run(Command::new("ip").args(["-n", &self.name]).args(words.split(' ')));
    }

    /// A command that will run in the namespace.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// A command that will run in the namespace, given as a line whose words are parted by single spaces.
    pub(crate) fn command_line(&self, line: &str) -> Command {
        let mut words = line.split(' ');
        let mut command = self.command(words.next().unwrap());
        command.args(words);
        command
    }

    /// Runs `inside` on a thread in the namespace.
    pub(crate) fn enter<R: Send>(&self, inside: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let inside = || {
                enter(&self.name);
                inside()
            };
            scope.spawn(inside).join().unwrap()
        })
    }
}

/// Moves this thread into the network namespace of that name, where it stays.
pub(crate) fn enter(name: &str) {
    let file = File::open(format!("/run/netns/{name}")).unwrap();
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ended = self.guard.wait();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
