//! The sockets by which ways through kernels are proved, as far as they are open.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_fib::probe::{self, DatagramEnds};
use mapper_host::kernel_path::KernelProbe;
use mapper_machine::kernel::probing::{Arrived, EndedHop, ProbeSockets, ProbeSocketsV4};
use mapper_proto::Instant;
use tracing::warn;

/// How long after an attempt to open the sockets of probes they may be opened again.
const OPEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The sockets of this host.
#[derive(Debug)]
pub(super) struct Probes {
    /// Those by which ways are proved, once this host has an IPv6 address on the fabric.
    v6: Option<ProbeSockets>,
    /// Those by which it is found out whether packets of IPv4 get through, once it has an IPv4 address there.
    v4: Option<ProbeSocketsV4>,
    /// When sockets that are not open may be opened next. Another program may have their port.
    open_again_at: Instant,
}

impl Default for Probes {
    fn default() -> Self {
        Self { v6: None, v4: None, open_again_at: Instant::ZERO }
    }
}

impl Probes {
    /// Opens the sockets for these addresses of this host, so that it answers probes of others. Returns the address from which
    /// probes of IPv4 can be sent.
    pub(super) fn open(&mut self, v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<Ipv4Addr> {
        if let Some(own) = v6.filter(|&own| !self.are_open_for(own)) {
            self.v6 = open(own);
        }
        if self.v4_own() != v4 {
            // What another address had goes first: one socket alone can have the port.
            self.v4 = None;
            self.v4 = v4.and_then(open_v4);
        }
        self.v4_own()
    }

    /// Closes all.
    pub(super) fn close(&mut self) {
        (self.v4, self.v6) = (None, None);
    }

    fn are_open_for(&self, own: Ipv6Addr) -> bool {
        self.v6.as_ref().is_some_and(|sockets| sockets.own() == own)
    }

    fn v4_own(&self) -> Option<Ipv4Addr> {
        self.v4.as_ref().map(ProbeSocketsV4::own)
    }

    /// Waits for a datagram, for ever if no socket is open.
    ///
    /// # Errors
    /// If a socket cannot be read.
    pub(super) async fn arrived(&self) -> io::Result<Arrived> {
        match (&self.v6, &self.v4) {
            (Some(v6), None) => v6.arrived().await,
            (None, Some(v4)) => v4.arrived().await,
            (Some(v6), Some(v4)) => tokio::select! {
                arrived = v6.arrived() => arrived,
                arrived = v4.arrived() => arrived,
            },
            (None, None) => pending().await,
        }
    }

    /// Waits until a kernel says that a hop limit ended there, for ever if no socket is open.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub(super) async fn ended_hop(&self) -> io::Result<Option<EndedHop>> {
        match &self.v6 {
            Some(sockets) => sockets.ended_hop().await,
            None => pending().await,
        }
    }

    /// Sends a probe, from sockets that are opened again if they are not open.
    pub(super) fn send(&mut self, now: Instant, probe: &KernelProbe) {
        let (v4, v6) = match probe.ends {
            DatagramEnds::V4 { source, .. } => (Some(source), self.v6.as_ref().map(ProbeSockets::own)),
            DatagramEnds::V6 { source, .. } => (self.v4_own(), Some(source)),
        };
        if self.v4_own() != v4 || v6.is_some_and(|own| !self.are_open_for(own)) {
            if now < self.open_again_at {
                return;
            }
            let _v4_probes_from = self.open(v4, v6);
            self.open_again_at = now + OPEN_AGAIN_AFTER;
        }
        let Some(sockets) = &self.v6 else { return };
        let KernelProbe { towards, segments, ends, inner_bytes, hop_limit, .. } = probe;
        let packet =
            probe::packet(segments, sockets.own(), *ends, probe.question(), *inner_bytes, *hop_limit);
        match *towards {
            IpAddr::V4(towards) => self.v4.iter().for_each(|sockets| sockets.send(&packet, towards)),
            IpAddr::V6(towards) => sockets.send(&packet, towards),
        }
    }

    /// Sends an answer to a probe that came from this address.
    pub(super) fn answer(&self, answer: &[u8], to: SocketAddr) {
        match to {
            SocketAddr::V4(_) => self.v4.iter().for_each(|sockets| sockets.answer(answer, to)),
            SocketAddr::V6(_) => self.v6.iter().for_each(|sockets| sockets.answer(answer, to)),
        }
    }
}

fn open(own: Ipv6Addr) -> Option<ProbeSockets> {
    match ProbeSockets::open(own) {
        Ok(sockets) => Some(sockets),
        Err(error) => {
            warn!(%own, "cannot send probes through the kernel: {}", with_causes(&error));
            None
        }
    }
}

fn open_v4(own: Ipv4Addr) -> Option<ProbeSocketsV4> {
    match ProbeSocketsV4::open(own) {
        Ok(sockets) => Some(sockets),
        Err(error) => {
            warn!(%own, "cannot find out whether IPv4 gets through the kernels: {}", with_causes(&error));
            None
        }
    }
}
