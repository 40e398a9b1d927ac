//! What every port of every xbar leads to, in one flat array that a sweep reads at random.

use crate::{Attachment, Far, Topology};

/// What a port leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WiredStep {
    /// The next xbar, or [`Self::HOST`] and a host, or [`Self::NOTHING`].
    to: u32,
    /// The dependency of the channel through this port on the channel out of port `p` of the next xbar has
    /// the number `dependencies + p`.
    pub(super) dependencies: u32,
}

impl WiredStep {
    /// This bit marks a host. It is free, as xbars are fewer ([`Topology::MAX_XBARS`]).
    const HOST: u32 = 1 << 31;
    const NOTHING: u32 = u32::MAX;

    /// The next xbar.
    pub(super) fn xbar(self) -> Option<u32> {
        (self.to < Self::HOST).then_some(self.to)
    }

    /// The host here.
    pub(super) fn host(self) -> Option<u32> {
        (self.to >= Self::HOST && self.to != Self::NOTHING).then(|| self.to - Self::HOST)
    }
}

/// What every port leads to: `steps[xbar * stride + port]`. The last port of each xbar stands for all that
/// are not there.
pub(super) struct Wiring {
    stride: usize,
    steps: Vec<WiredStep>,
    /// For each channel, its first dependency.
    first_dependency: Vec<u32>,
    dependency_count: usize,
}

impl Wiring {
    pub(super) fn new(topology: &Topology) -> Self {
        let xbars = topology.xbar_count() as u32;
        let port_of_host = |host: u32| match topology.attachment(host) {
            Attachment::Port(at) => Some(at.port),
            _ => None,
        };
        let last_port = |xbar: u32| {
            let channels = topology.channels_of(xbar).map(|channel| topology.tail(channel).port);
            let hosts = topology.hosts_of(xbar).iter().filter_map(|&host| port_of_host(host));
            channels.chain(hosts).max().unwrap_or_default()
        };
        let last_ports: Vec<usize> = (0..xbars).map(|xbar| last_port(xbar).into()).collect();
        let stride = last_ports.iter().max().map_or(1, |&last| last + 2);
        let mut wiring = Self {
            stride,
            steps: vec![WiredStep { to: WiredStep::NOTHING, dependencies: 0 }; stride * xbars as usize],
            first_dependency: Vec::with_capacity(topology.channel_count()),
            dependency_count: 0,
        };
        for xbar in 0..xbars {
            for channel in topology.channels_of(xbar) {
                let head = topology.head(channel).xbar;
                let dependencies = wiring.dependency_count as u32;
                wiring.first_dependency.push(dependencies);
                wiring.dependency_count += last_ports[head as usize] + 1;
                let tail = topology.tail(channel);
                if topology.far(tail) == Far::Channel(channel) && !topology.is_dead(channel) {
                    wiring.put(xbar, tail.port, WiredStep { to: head, dependencies });
                }
            }
            for &host in topology.hosts_of(xbar) {
                if let Some(port) = port_of_host(host) {
                    wiring.put(xbar, port, WiredStep { to: WiredStep::HOST + host, dependencies: 0 });
                }
            }
        }
        wiring
    }

    fn put(&mut self, xbar: u32, port: u8, step: WiredStep) {
        self.steps[xbar as usize * self.stride + usize::from(port)] = step;
    }

    /// What a port leads to. Any port may be asked for.
    #[inline]
    pub(super) fn step(&self, xbar: u32, port: u8) -> WiredStep {
        self.steps[xbar as usize * self.stride + usize::from(port).min(self.stride - 1)]
    }

    /// How many dependencies there may be.
    pub(super) fn dependency_count(&self) -> usize {
        self.dependency_count
    }

    /// The number of the dependency of one channel on another that begins where it ends.
    pub(super) fn dependency(&self, topology: &Topology, first: u32, second: u32) -> u32 {
        self.first_dependency[first as usize] + u32::from(topology.tail(second).port)
    }
}
