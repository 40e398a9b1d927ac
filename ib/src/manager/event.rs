//! What people should be told.

use std::time::Duration;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Tables are in force, and what could be written is written and was read back.
    Up {
        /// How many writes to ports failed. They are tried again.
        failed: usize,
        /// How many switches there are.
        switches: usize,
        /// How many ports of adapters and routers.
        adapters: usize,
        /// The engine whose tables are in force; empty if there are none.
        engine: String,
        /// How many blocks of tables were written, those of multicast tables among them.
        blocks: u64,
        /// How many datagrams were sent since the sweep began.
        sent: u64,
        /// How long it took since the sweep began.
        took: Duration,
        /// Whether anything was written to tables, or the numbers differ from the last time.
        is_news: bool,
    },
    /// Multicast groups changed, and their trees are in force.
    Groups {
        /// How many groups there are.
        groups: usize,
        /// How many parts of multicast tables were written.
        parts: u64,
    },
    /// LIDs were given that are to be kept for the next start.
    Lids,
    /// This manager is master now.
    Master,
    /// Another manager is master or is to be, and this one waits for it to go.
    StandsBy {
        /// The GUID of the other's port.
        other: u64,
        /// Its priority.
        priority: u8,
    },
    /// The master that was waited for does not answer any more, or is master no more.
    MasterGone {
        /// The GUID of its port.
        other: u64,
    },
    /// The subnet was handed over to another manager.
    HandedOver {
        /// The GUID of its port.
        to: u64,
    },
    /// An agent that stands by did not report on its share of the switches in time, so this one looks at them
    /// itself.
    ShareReturned {
        /// The GUID of the agent's port.
        agent: u64,
        /// How many switches it had been given.
        switches: usize,
    },
    /// Another manager is master as well, and is to give way, as it does not outrank this one.
    SecondMaster {
        /// The GUID of its port.
        other: u64,
        /// Its priority.
        priority: u8,
    },
    /// Something is not as it should be, in words.
    Problem(String),
    /// A port told that it was sent a wrong key. The words say by whom. This is told once for each sender and
    /// receiver.
    WrongKey(String),
    /// No tables could be proved, so those in force stay. The words say why.
    NoRoutes(String),
    /// A node told by a trap that something happened.
    Trap {
        /// The number of the trap.
        number: u16,
        /// The LID of the node that told.
        issuer: u16,
    },
}
