//! Directed routes.

use std::fmt;

/// Most switches and cables on a directed route: a path has 64 places, and the first is not used.
pub const MAX_HOPS: usize = 63;

/// A directed route: the port to leave by at each node, the node that sends first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Route(Vec<u8>);

impl Route {
    /// The route to the node that sends.
    pub const LOCAL: Self = Self(Vec::new());

    /// The route that leaves by these ports; `None` if it is longer than [`MAX_HOPS`].
    pub fn new(ports: &[u8]) -> Option<Self> {
        (ports.len() <= MAX_HOPS).then(|| Self(ports.to_vec()))
    }

    /// The route to what is cabled to a port of the node at this route's end; `None` if that is too far.
    pub fn through(&self, port: u8) -> Option<Self> {
        (self.0.len() < MAX_HOPS).then(|| {
            let mut ports = self.0.clone();
            ports.push(port);
            Self(ports)
        })
    }

    /// The ports to leave by.
    pub fn ports(&self) -> &[u8] {
        &self.0
    }
}

/// Routes are written as by the tools of InfiniBand: `0,1,19`, where the 0 stands for the node that sends.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.0.iter().try_for_each(|port| write!(f, ",{port}"))
    }
}
