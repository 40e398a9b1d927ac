//! What goes wrong in a simulated subnet.

use std::fmt;

use crate::sweep::PortOf;

/// Something that goes wrong, or is put right. Nodes are counted from 0, hosts before switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A cable is cut, named by one of its ends.
    Cut(PortOf),
    /// A cable is put between these ends, if both are free.
    Mend([PortOf; 2]),
    /// A switch starts again without its tables.
    Reset(usize),
    /// A switch stops answering if this is true, and answers again if it is false. It forwards all the while.
    Silent(usize, bool),
    /// A switch refuses writes if this is true, and takes them again if it is false.
    Refuse(usize, bool),
    /// Managers hear nothing of each other if this is true, though all else answers them, and do again if it is false.
    Apart(bool),
    /// A manager hears nothing at all if this is true, and does again if it is false.
    Deaf(usize, bool),
    /// A manager ends without a word to the others.
    Kill(usize),
    /// A manager starts again, with the LIDs that it kept in its file.
    Start(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cut((node, port)) => write!(f, "cut node {node} port {port}"),
            Self::Mend([(a, from), (b, to)]) => write!(f, "mend node {a} port {from} to node {b} port {to}"),
            Self::Reset(switch) => write!(f, "reset node {switch}"),
            Self::Silent(switch, true) => write!(f, "silence node {switch}"),
            Self::Silent(switch, false) => write!(f, "node {switch} answers again"),
            Self::Refuse(switch, true) => write!(f, "node {switch} takes no writes"),
            Self::Refuse(switch, false) => write!(f, "node {switch} takes writes again"),
            Self::Apart(true) => write!(f, "managers hear nothing of each other"),
            Self::Apart(false) => write!(f, "managers hear each other again"),
            Self::Deaf(manager, true) => write!(f, "manager {manager} hears nothing"),
            Self::Deaf(manager, false) => write!(f, "manager {manager} hears again"),
            Self::Kill(manager) => write!(f, "kill manager {manager}"),
            Self::Start(manager) => write!(f, "start manager {manager}"),
        }
    }
}
