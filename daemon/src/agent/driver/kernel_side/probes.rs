//! The sockets by which ways through kernels are proved, as far as they are open.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_fib::probe::{self, DatagramEnds, UDP_PORT};
use mapper_host::kernel_path::KernelProbe;
use mapper_machine::kernel::probing::{Arrived, EndedHop, ProbeSockets, ProbeSocketsV4};
use mapper_proto::Instant;
use tracing::warn;

/// How long after an attempt to open the sockets of probes they may be opened again.
const OPEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What it means that the sockets of IPv6 cannot be opened.
const SENDS_NONE: &str = "cannot send probes through the kernel";
/// What it means that those of IPv4 cannot be opened.
const ASKS_NONE: &str = "cannot find out whether IPv4 gets through the kernels";

/// The sockets of this host.
#[derive(Debug)]
pub(super) struct Probes {
    /// The sockets of the probes that prove ways, once this host has an IPv6 address on the fabric.
    v6: Option<ProbeSockets>,
    /// The sockets of the probes that tell whether packets of IPv4 get through, once this host has an IPv4 address there.
    v4: Option<ProbeSocketsV4>,
    /// When those of IPv6 may be opened next. Another program may have their port.
    open_again_at: Instant,
    /// Whether this machine forbade the last probe, and the last answer to one, that was to be sent: of IPv4, and of IPv6.
    forbidden: [ForbiddenProbes; 2],
}

/// Which probes of a version of IP this machine forbids.
#[derive(Debug, Clone, Copy, Default)]
struct ForbiddenProbes {
    sent: bool,
    answered: bool,
}

/// Whether the machine forbids what was to be sent.
fn is_forbidden(sent: &io::Result<()>) -> bool {
    sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

impl Default for Probes {
    fn default() -> Self {
        Self { v6: None, v4: None, open_again_at: Instant::ZERO, forbidden: [ForbiddenProbes::default(); 2] }
    }
}

impl Probes {
    /// Opens the sockets for these addresses of this host, so that it answers probes of others. Returns the address from which
    /// probes of IPv4 can be sent.
    pub(super) fn open(&mut self, v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Option<Ipv4Addr> {
        if let Some(own) = v6.filter(|&own| !self.are_open_for(own)) {
            self.v6 = opened(ProbeSockets::open(own), own.into(), SENDS_NONE);
        }
        if self.v4_own() != v4 {
            // The sockets of the address of before are closed first, as one socket alone can have the port.
            self.v4 = None;
            self.v4 = v4.and_then(|own| opened(ProbeSocketsV4::open(own), own.into(), ASKS_NONE));
        }
        self.v4_own()
    }

    /// Closes all. Those of IPv4 are opened again when this host's addresses change.
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

    /// Sends a probe. The sockets of IPv6 are opened again if they are not open.
    pub(super) fn send(&mut self, now: Instant, probe: &KernelProbe) {
        if let DatagramEnds::V6 { source, .. } = probe.ends
            && !self.are_open_for(source)
        {
            if now < self.open_again_at {
                return;
            }
            self.v6 = opened(ProbeSockets::open(source), source.into(), SENDS_NONE);
            self.open_again_at = now + OPEN_AGAIN_AFTER;
        }
        let Some(sockets) = &self.v6 else { return };
        let KernelProbe { towards, segments, ends, inner_bytes, hop_limit, .. } = probe;
        let packet =
            probe::packet(segments, sockets.own(), *ends, probe.question(), *inner_bytes, *hop_limit);
        let sent = match *towards {
            IpAddr::V4(towards) => self.v4.as_ref().map(|sockets| sockets.send(&packet, towards)),
            IpAddr::V6(towards) => Some(sockets.send(&packet, towards)),
        };
        if let Some(sent) = sent {
            self.forbidden[usize::from(towards.is_ipv6())].sent = is_forbidden(&sent);
        }
    }

    /// Says in words which probes this machine forbids this process to send.
    pub(super) fn forbidden(&self) -> Option<String> {
        let of = match self.forbidden.map(|of| of.sent || of.answered) {
            [false, false] => return None,
            [true, false] => "IPv4",
            [false, true] => "IPv6",
            [true, true] => "IPv4 and IPv6",
        };
        Some(format!(
            "this machine forbids this process to send probes of {of} through the kernels, or answers to them, so packets go by the tap interface: a \
             rule of its firewall for what leaves it (chain OUTPUT; let UDP to port {UDP_PORT} pass), or IPAddressDeny= of the \
             daemon's unit"
        ))
    }

    /// Sends an answer to a probe that came from this address.
    pub(super) fn answer(&mut self, answer: &[u8], to: SocketAddr) {
        let sent = match to {
            SocketAddr::V4(_) => self.v4.as_ref().map(|sockets| sockets.answer(answer, to)),
            SocketAddr::V6(_) => self.v6.as_ref().map(|sockets| sockets.answer(answer, to)),
        };
        if let Some(sent) = sent {
            self.forbidden[usize::from(to.is_ipv6())].answered = is_forbidden(&sent);
        }
    }
}

/// What was opened for an address of this host. If nothing was, it is logged why, and what that means.
fn opened<T>(sockets: io::Result<T>, own: IpAddr, means: &str) -> Option<T> {
    sockets.inspect_err(|error| warn!(%own, "{means}: {}", with_causes(error))).ok()
}
