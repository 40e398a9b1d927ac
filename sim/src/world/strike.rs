//! What a fault does to the fabric when it strikes, and what mends it.

use std::time::Duration;

use mapper_proto::Mac;

use super::counts::FabricCount;
use super::kernels::Firewall;
use super::names::alias;
use super::options::derive_seed;
use super::trace::TraceEvent;
use super::traffic::Circumstances;
use super::{World, WorldError};
use crate::fabric::{CableState, ChangeError, Noise};
use crate::faults::{Fault, Timed};
use crate::hostile::Hostile;
use crate::node::Mute;

/// Names the stream of seeds for hostile agents.
const HOSTILE: u64 = 4;

impl World {
    /// Has the fault at `index` of the plan strike.
    pub(super) fn strike(&mut self, index: usize) -> Result<(), WorldError> {
        let Timed { fault, line, .. } = self.faults[index];
        self.faults_left -= 1;
        let all_well = self.all_is_well();
        let outcome = self.apply(fault);
        let detail = match (&outcome, line) {
            (Ok(()), _) => String::new(),
            (Err(why), None) => format!("without effect: {why}"),
            (Err(why), Some(line)) => {
                let file = self.options.fault_file.clone();
                return Err(WorldError::Fault { file, line, source: why.clone() });
            }
        };
        let what = fault.describe(&self.plant);
        if fault.is_about_names() {
            self.trace.event(&TraceEvent { at: self.now, place: "name", what: &what, detail: &detail });
            return Ok(());
        }
        self.tell_of_carriers();
        self.part_users();
        self.note_disturbances();
        let (orderly, ends_xbar) = (self.is_orderly(), self.ends_xbar(fault));
        self.note_kernels_away();
        let left_within = self.kernels_are_left_within();
        let paths_left_within = self.paths_are_left_within();
        if detail.is_empty()
            && let Some(traffic) = &mut self.traffic
        {
            let circumstances =
                Circumstances { all_well, orderly, ends_xbar, left_within, paths_left_within };
            traffic.strike(self.now, fault, &what, circumstances);
        }
        self.capture.strike(&what);
        self.trace.event(&TraceEvent { at: self.now, place: "fault", what: &what, detail: &detail });
        self.worth_checking = true;
        // The fabric may now be the one that all hosts have a map of.
        self.newly_configured = true;
        Ok(())
    }

    /// Whether a whole xbar ends with a fault.
    fn ends_xbar(&self, fault: Fault) -> bool {
        match fault {
            Fault::Off(_) => true,
            Fault::Kill(host) | Fault::Mute(host) | Fault::Remove(host) => {
                self.hosts[host as usize].own_crossbar.is_some()
            }
            _ => false,
        }
    }

    fn apply(&mut self, fault: Fault) -> Result<(), ChangeError> {
        match fault {
            Fault::Cut(end) => self.plant.set_cable(end, CableState::Cut)?,
            Fault::Mend(end) => self.plant.set_cable(end, CableState::Up)?,
            Fault::Silence(end) => self.plant.set_cable(end, CableState::Silent)?,
            Fault::Lossy { at, rate } => self.plant.set_cable(at, CableState::Lossy(rate))?,
            Fault::Move { from, to } => self.plant.move_end(from, to)?,
            Fault::Kill(host) => self.occupy(host, None),
            Fault::Restart(host) => self.restart(host),
            Fault::Mute(host) => self.occupy(host, Some(Box::new(Mute))),
            Fault::Hostile(host) => self.turn_hostile(host),
            Fault::Remove(host) => {
                self.plant.set_present(host, false);
                self.occupy(host, None);
            }
            Fault::Insert(host) => {
                self.plant.set_present(host, true);
                self.restart(host);
            }
            Fault::Twin { host, of } => self.take_address(host, self.hosts[of as usize].own_mac),
            Fault::Untwin(host) => self.take_address(host, self.hosts[host as usize].own_mac),
            Fault::Off(xbar) => self.plant.set_power(xbar, false),
            Fault::On(xbar) => self.plant.set_power(xbar, true),
            Fault::Swap(xbar) => self.plant.swap_xbar(xbar),
            Fault::Firewall(host) => self.set_firewall(host, Firewall::DropsAll),
            Fault::FirewallV4(host) => self.set_firewall(host, Firewall::DropsV4),
            Fault::Open(host) => self.set_firewall(host, Firewall::Open),
            Fault::Flush(host) => self.flush_kernel(host),
            Fault::Heal => self.heal(),
            Fault::Rekey(host) => self.rekey(host),
            Fault::Mtu { host, bytes } => self.set_mtu(host, bytes),
            Fault::Level { host, level } => self.set_level(host, level),
            Fault::Passes { host, passes } => self.set_passes(host, passes),
            Fault::Set { host, setting } => self.set_otherwise(host, setting),
            Fault::Lose(number) => {
                self.to_lose.insert(self.stats.frames[FabricCount::Sent].saturating_add(number), false);
            }
            Fault::LoseTries(number) => {
                self.to_lose.insert(self.stats.frames[FabricCount::Sent].saturating_add(number), true);
            }
            Fault::Rename { host, number } => self.rename(host, number),
            Fault::Readdress { host, number } => self.readdress(host, number),
            Fault::Alias { number, to } => self.move_name(&alias(number), to),
            Fault::Ask { host, number } => self.ask_who_has(host, &alias(number)),
            Fault::Loss(rate) => self.noise.loss = rate,
            Fault::Corrupt(rate) => self.noise.corrupt = rate,
            Fault::Duplicate(rate) => self.noise.duplicate = rate,
            Fault::Jitter(most) => self.options.timing.jitter = most,
        }
        Ok(())
    }

    /// Starts a new agent with this address.
    fn take_address(&mut self, host: u32, mac: Mac) {
        self.hosts[host as usize].settings.mac = mac;
        self.restart(host);
    }

    /// Starts a new agent, unless the host's interface is out.
    fn restart(&mut self, host: u32) {
        if self.plant.is_present(host) {
            self.start(host);
        }
    }

    fn turn_hostile(&mut self, host: u32) {
        if !self.plant.is_present(host) {
            return;
        }
        let slot = &mut self.hosts[host as usize];
        slot.starts += 1;
        let seed = derive_seed(derive_seed(self.options.seed, HOSTILE, u64::from(host)), slot.starts, 0);
        let mac = slot.settings.mac;
        self.was_hostile = true;
        let hostile = Hostile::new(mac, seed, self.now, self.options.hostile_interval);
        self.occupy(host, Some(Box::new(hostile)));
    }

    fn heal(&mut self) {
        self.noise = Noise::default();
        self.to_lose.clear();
        self.deaf_ways.clear();
        self.options.timing.jitter = Duration::ZERO;
        self.plant.heal();
        self.open_firewalls();
        for host in 0..self.hosts.len() as u32 {
            let slot = &self.hosts[host as usize];
            let own_mac = slot.own_mac;
            if slot.settings.mac != own_mac {
                self.take_address(host, own_mac);
            } else if !self.is_live(host) {
                self.start(host);
            }
        }
    }
}
