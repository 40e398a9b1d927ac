//! What the packets and probes of a way look like: their segments, and how long they are.

use std::net::Ipv6Addr;

use mapper_fib::segments::{self, Element, LeftUnused};

use super::{Course, Trial, Way};

impl Way {
    /// The segments of the probe that is to be sent.
    pub(in super::super) fn segments_of_probe(&self) -> Option<Vec<Ipv6Addr>> {
        match (&self.course, self.preferred.filter(|_| self.trial == Some(Trial::Packing))) {
            (Course::Segments { elements, .. }, Some(preferred)) => {
                let elements: Vec<_> = elements.iter().copied().chain([Element::DeliverV6]).collect();
                segments::segments(&elements, preferred)
            }
            _ if self.probes_v4() => self.segments(Element::DeliverV4),
            _ => self.segments(Element::DeliverV6),
        }
    }

    /// The segments of packets of this kind, none where crossbars go by the destination; `None` if there are too
    /// many.
    pub(in super::super) fn segments(&self, last: Element) -> Option<Vec<Ipv6Addr>> {
        let Course::Segments { elements, packing } = &self.course else { return Some(Vec::new()) };
        let elements: Vec<_> = elements.iter().copied().chain([last]).collect();
        segments::segments(&elements, *packing)
    }

    /// The longest packet that it carries, in bytes.
    pub(in super::super) fn mtu(&self) -> u32 {
        self.within(self.carried_mtu)
    }

    /// The longest frame that passes, in bytes behind the Ethernet header.
    pub(in super::super) const fn carried_mtu(&self) -> u32 {
        self.carried_mtu
    }

    /// The longest packet that fits frames of this length, in bytes.
    fn within(&self, frame_bytes: u32) -> u32 {
        match self.segments(Element::DeliverV6) {
            Some(segments) if segments.is_empty() => frame_bytes,
            Some(segments) => frame_bytes.saturating_sub(segments::overhead_bytes(segments.len())),
            None => 0,
        }
    }

    /// The longest packet that a probe is to show the way for, in bytes. `overhead_bytes` is what its outer header takes.
    pub(in super::super) fn mtu_to_show(&self, overhead_bytes: u32) -> u32 {
        let frame_bytes = if self.trial == Some(Trial::Length) { self.link_mtu } else { self.carried_mtu };
        frame_bytes.saturating_sub(overhead_bytes).min(self.within(frame_bytes))
    }

    /// The longest frame that passes, in bytes, if that is shorter than all cables' ends say.
    pub(in super::super) fn shortened_to(&self) -> Option<u32> {
        Some(self.carried_mtu).filter(|&carried| carried < self.link_mtu)
    }

    /// Like [`Self::shortened_to`], if that is sure: a busy machine may have answered too late when longer frames were tried first.
    pub(in super::super) fn surely_shortened_to(&self) -> Option<u32> {
        self.shortened_to().filter(|_| self.longer_is_lost)
    }

    /// The MTU that a route has to say so that the kernel sends along this way what it carries, in bytes.
    pub(in super::super) fn mtu_of_route(&self, left_unused: &LeftUnused) -> u32 {
        let segments = self.segments(Element::DeliverV6).map_or(0, |segments| segments.len());
        self.mtu() + left_unused.bytes(segments)
    }
}
