//! Pings that go on in the background while something happens.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};

use crate::namespace::Namespace;

/// How many pings may be under way at once: those of 200 ms.
const UNDER_WAY: u64 = 20;

/// Pings that go on until they are ended.
pub(crate) struct Pinging {
    ping: Child,
    said: JoinHandle<String>,
}

impl Pinging {
    pub(crate) fn start(machine: &Namespace, to: &str) -> Self {
        let mut command = machine.command_line(&format!("ping -i 0.01 {to}"));
        let mut ping = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = ping.stdout.take().unwrap();
        let read = move || {
            let mut said = String::new();
            output.read_to_string(&mut said).unwrap();
            said
        };
        Self { ping, said: thread::spawn(read) }
    }

    /// How many were sent and how many answered. Those that were under way at the end do not count: on a busy machine an
    /// answer takes longer than until the next ping, and ping takes what it has not heard when it is ended for lost.
    pub(crate) fn end(mut self) -> (u64, u64) {
        kill_process(Pid::from_child(&self.ping), Signal::INT).unwrap();
        self.ping.wait().unwrap();
        let said = self.said.join().unwrap();
        let answered: BTreeSet<u64> = said.lines().filter_map(answered).collect();
        let words: Vec<_> = said[..said.find(" packets transmitted").unwrap()].split_whitespace().collect();
        let sent: u64 = words.last().unwrap().parse().unwrap();
        let last = answered.last().copied().unwrap_or_default();
        let under_way = (last.max(sent.saturating_sub(UNDER_WAY))..sent).count() as u64;
        (sent - under_way, answered.len() as u64)
    }
}

/// The number of the ping that a line says was answered.
fn answered(line: &str) -> Option<u64> {
    let (_, behind) = line.split_once("bytes from ")?.1.split_once("icmp_seq=")?;
    behind.split_whitespace().next()?.parse().ok()
}
