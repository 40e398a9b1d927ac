//! Probes of this agent that come home, and probes of others that arrive here.

use super::machine::Agent;
use super::status::FrameDrop;
use crate::Instant;
use crate::wire::{Answer, Element, Probe, RoundTrip, Route, Stamp};

impl Agent {
    /// Handles a probe of this agent that has come home, or that ran into this host half-way.
    pub(super) fn own_probe(&mut self, now: Instant, probe: &Probe, left: &Route, stamp: Option<&Stamp>) {
        if probe.info.session != self.session {
            self.probe_of_own_address(now, probe, left);
        } else if left.is_empty() {
            self.probe_returned(now, probe.id, stamp);
        } else if turns_here(probe, left) {
            // The port leads to this very host.
            self.probe_hit_self(now, probe.id);
        } else {
            self.dropped.count(FrameDrop::UnstrippedRoute);
        }
    }

    fn probe_returned(&mut self, now: Instant, id: u32, stamp: Option<&Stamp>) {
        if self.cycle.as_ref().is_some_and(|cycle| cycle.waits_for(id)) {
            let step = self.cycle.as_mut().and_then(|cycle| cycle.handle_returned(id, stamp));
            self.take_step(now, step);
        } else {
            let expected = self.path_probe_returned(id)
                || self.echo_returned(id)
                || self.cable_test_answered(id)
                || self.doubt_returned(now, id, stamp)
                || self.mapping_returned(now, id, stamp);
            self.dropped.add(FrameDrop::Unexpected, u64::from(!expected));
        }
    }

    fn probe_hit_self(&mut self, now: Instant, id: u32) {
        if self.cycle.as_ref().is_some_and(|cycle| cycle.waits_for(id)) {
            let step = self.cycle.as_mut().and_then(|cycle| cycle.handle_host(id));
            self.take_step(now, step);
        } else if !self.doubt_hit_host(now, id) && !self.mapping_hit_self(now, id) {
            self.dropped.count(FrameDrop::Unexpected);
        }
    }

    /// Answers the probe of another agent, which looks for an xbar and has found this host.
    pub(super) fn foreign_probe(&mut self, now: Instant, probe: &Probe, left: &Route) {
        let way_back: Route = left.elements().skip(1).collect();
        self.contact(now, &probe.info, &RoundTrip { there: way_back.clone(), back: probe.way_there.clone() });
        self.answer(&probe.info, probe.id, way_back, Answer::Probe);
    }
}

/// Whether what is left of a probe's route begins with its turn, as it does at a host that stands
/// where the probe looks for an xbar.
pub(super) fn turns_here(probe: &Probe, left: &Route) -> bool {
    let turn = left.elements().next();
    matches!(turn, Some(Element::Relative(0) | Element::Identify)) && left.hops() == usize::from(probe.left)
}
