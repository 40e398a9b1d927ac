//! What agents report.

use mapper_fabric::wording::plural;
use mapper_host::HostEvent;
use mapper_proto::agent::Event;

use super::World;
use super::trace::TraceEvent;

impl World {
    /// Follows what happened at a host, and writes it down.
    pub(super) fn take_event(&mut self, host: u32, event: HostEvent) {
        if matches!(event, HostEvent::Agent(Event::AddressContested { .. })) {
            self.note_contested(host);
        }
        let told = match event {
            HostEvent::Agent(event) => self.take_agent_event(host, event),
            HostEvent::RoutesInstalled { version } => Some(("routes", version.to_string())),
            HostEvent::RoutingFailed { version, why } => {
                self.stats.routing_failures += 1;
                Some(("no routes", format!("{version}: {why}")))
            }
            HostEvent::Found(found) => Some(self.take_found(host, found)),
            // No simulated host is told to pick addresses.
            HostEvent::DirectoryChanged | HostEvent::AddressPicked(_) | HostEvent::Sounded { .. } => None,
            HostEvent::Repaired { dead } => {
                self.note_no_safe_routes(host);
                Some(("repaired", plural(dead.len() as u64, "dead cable")))
            }
            HostEvent::CableLosesFrames { at, lost_percent } => {
                Some(("cable loses", format!("{lost_percent} % at port {} of xbar {}", at.port, at.xbar)))
            }
            HostEvent::MappedOnce => Some(("mapped once", String::new())),
            HostEvent::LengthsChanged => Some(("lengths", String::new())),
            HostEvent::RepairRefused { why } => Some(("not repaired", why)),
        };
        let Some((what, detail)) = told else { return };
        self.worth_checking = true;
        self.united.touch(host);
        let name = self.plant.name(crate::fabric::PlantNode::Host(host));
        self.trace.event(&TraceEvent { at: self.now, place: name, what, detail: &detail });
    }

    /// Takes in that a host believes that another has its address. Without keys a hostile host can make it believe so.
    fn note_contested(&mut self, host: u32) {
        let may_be_deceived = self.was_hostile && !self.options.signed;
        if may_be_deceived
            && self.has_its_address_alone(host)
            && let Some(traffic) = &mut self.traffic
        {
            traffic.note_false_twin();
        }
    }

    fn take_agent_event(&mut self, host: u32, event: Event) -> Option<(&'static str, String)> {
        let slot = &mut self.hosts[host as usize];
        Some(match event {
            Event::MappingStarted { cause } => {
                slot.configured = None;
                ("mapping", cause.to_string())
            }
            Event::Mapped { version } => {
                slot.mapped = Some((version, self.now));
                ("mapped", version.to_string())
            }
            Event::TagContested { conflict } => ("tag", conflict.to_string()),
            Event::PartLeftOut { part } => ("left out", part.to_string()),
            Event::BecamePassive { to } => {
                slot.configured = None;
                ("passive", format!("to {} level {}", to.mac, to.level))
            }
            Event::MapInstalled { map, .. } => {
                slot.configured = None;
                self.share_map(host);
                ("map", map.version.to_string())
            }
            Event::MapInvalid { version, cause } => {
                slot.configured = None;
                ("invalid", format!("{version}: {cause}"))
            }
            Event::Configured { version } => {
                slot.configured = Some(version);
                self.newly_configured = true;
                ("configured", version.to_string())
            }
            Event::NetworkComplete { version } => ("complete", version.to_string()),
            Event::PathDown { path, reached, .. } => {
                ("path down", format!("{} beyond xbar {reached} of its route", path.0))
            }
            Event::PathLosesFrames { path, frame_bytes } => {
                ("path loses", format!("{} frames of {frame_bytes} bytes", path.0))
            }
            Event::PathUp { path } => ("path up", path.0.to_string()),
            Event::CableUp { at, .. } => ("cable up", format!("port {} of xbar {}", at.port, at.xbar)),
            Event::CableCleared { at, .. } => {
                ("cable cleared", format!("port {} of xbar {}", at.port, at.xbar))
            }
            Event::CableAsked { at, answered, .. } => {
                let what = if answered { "cable answers" } else { "cable silent" };
                (what, format!("port {} of xbar {}", at.port, at.xbar))
            }
            Event::AddressContested { why } => {
                slot.configured = None;
                ("contested", why)
            }
            Event::Printed { from, text } => ("printed", format!("{from}: {text}")),
            // There can be as many of these as there are frames. They are in the counters of the status.
            Event::Dropped { .. }
            | Event::ServiceAsked { .. }
            | Event::ServiceAnswered { .. }
            | Event::Echoed { .. } => {
                return None;
            }
        })
    }
}
