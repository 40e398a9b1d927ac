//! Names of hosts: those that they announce, and those that they do not, which others ask for.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

use mapper_host::directory::HostName;
use mapper_host::resolution::{Found, Patience, Wanted};
use mapper_proto::Mac;

use super::World;
use crate::fabric::PlantNode;

/// How long a simulated host waits for who has a name.
const PATIENCE: Patience = Patience { timeout: Duration::from_millis(100), retries: 4 };

/// The name of this number.
pub(super) fn alias(number: u16) -> Wanted {
    // The name is an address of the network for documentation (RFC 3849), which no host has otherwise.
    Wanted::Ip(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into())
}

impl World {
    /// Gives a host a name that is not announced, and takes it from the host that has it. A host that starts
    /// again keeps its names.
    pub fn move_name(&mut self, name: &Wanted, to: u32) {
        for host in 0..self.hosts.len() as u32 {
            let names = &mut self.hosts[host as usize].more_names;
            let has_changed = if host == to { names.insert(name.clone()) } else { names.remove(name) };
            if has_changed {
                self.say_names(host);
                self.drain(host);
            }
        }
    }

    /// Gives a host a name that is not announced, even if another host has it, too.
    pub fn give_name(&mut self, name: &Wanted, to: u32) {
        if self.hosts[to as usize].more_names.insert(name.clone()) {
            self.say_names(to);
            self.drain(to);
        }
    }

    /// Has a host announce the name of this number from now on.
    pub(super) fn rename(&mut self, host: u32, number: u16) {
        let now = self.now;
        let slot = &mut self.hosts[host as usize];
        // As at a start, the revision is taken from virtual time.
        let ms = u32::try_from(now.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        slot.name_revision = ms.max(slot.name_revision + 1);
        slot.renamed = Some(number);
        let (name, revision) = (self.announced_name(host), self.hosts[host as usize].name_revision);
        let real = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut());
        if let Some((real, name)) = real.zip(name) {
            real.set_name(now, name, revision);
        }
        self.drain(host);
    }

    /// The name that a host announces: that in the fabric, unless it has been renamed.
    pub(super) fn announced_name(&self, host: u32) -> Option<HostName> {
        match self.hosts[host as usize].renamed {
            Some(number) => format!("renamed-{number}").parse().ok(),
            None => self.plant.name(PlantNode::Host(host)).parse().ok(),
        }
    }

    /// Checks that each live host knows each other to which cables lead by the name that it announces now, and by the addresses that
    /// it has, if hosts have kernels.
    ///
    /// # Errors
    /// In words, naming both.
    pub fn check_announced_names(&mut self) -> Result<(), String> {
        let joined = self.joined_hosts();
        let live: Vec<u32> = (0..self.hosts.len() as u32).filter(|&host| joined(host, host)).collect();
        let pairs = live.iter().flat_map(|&host| live.iter().map(move |&other| (host, other)));
        for (host, other) in pairs.filter(|&(host, other)| host != other && joined(host, other)) {
            let known = self.directory(host).and_then(|directory| directory.name_of(self.mac(other)));
            let announced = self.announced_name(other);
            if known != announced.as_ref() {
                let [host, other] = [host, other].map(|host| self.plant.name(PlantNode::Host(host)));
                return Err(format!("{host} knows {other} by {known:?}, which announces {announced:?}"));
            }
            self.check_addresses(host, other)?;
        }
        Ok(())
    }

    /// Tells the software of a host which names it goes by that are not announced.
    pub(super) fn say_names(&mut self, host: u32) {
        // A twin has the address of another host, under which it says its names.
        let mac = self.mac(host);
        let slot = &mut self.hosts[host as usize];
        let names: BTreeSet<Wanted> = slot.more_names.clone();
        for name in &names {
            self.ever_named.entry(name.clone()).or_default().insert(mac);
        }
        if let Some(real) = slot.node.as_mut().and_then(|node| node.host_mut()) {
            real.set_more_names(self.now, names);
        }
    }

    /// The hosts to which a name was given.
    pub fn hosts_named(&self, name: &Wanted) -> impl Iterator<Item = u32> {
        (0..).zip(&self.hosts).filter(|(_, slot)| slot.more_names.contains(name)).map(|(host, _)| host)
    }

    /// All names that were given to hosts.
    pub fn names_given(&self) -> BTreeSet<Wanted> {
        self.hosts.iter().flat_map(|slot| slot.more_names.iter().cloned()).collect()
    }

    /// Has a host ask who has a name. [`Self::found`] tells what came of it. A host without an honest agent asks nobody.
    pub fn ask_who_has(&mut self, host: u32, name: &Wanted) {
        self.found.remove(&(host, name.clone()));
        if let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) {
            // There is room for each question, as few are under way.
            let _asked = real.ask_who_has(self.now, name.clone(), PATIENCE);
        }
        self.drain(host);
    }

    /// Who has a name, as a host found out when it asked last; `None` if it still waits.
    pub fn found(&self, host: u32, name: &Wanted) -> Option<&[Mac]> {
        self.found.get(&(host, name.clone())).map(Vec::as_slice)
    }

    /// Who has a name, as a host remembers.
    pub fn remembered(&self, host: u32, name: &Wanted) -> Vec<Mac> {
        let real = self.hosts[host as usize].node.as_ref().and_then(|node| node.host());
        let owners = real.map(|host| host.learned_owners(self.now, name)).unwrap_or_default();
        owners.iter().map(|owner| owner.mac).collect()
    }

    /// The most questions and answers about names that have waited at a host at once, its own and those that it passed on.
    pub fn most_questions_queued(&self, host: u32) -> usize {
        let real = self.hosts[host as usize].node.as_ref().and_then(|node| node.host());
        real.map_or(0, mapper_host::Host::most_questions_queued)
    }

    /// Has every live host ask for every name. [`Self::check_names`] checks the answers.
    pub fn ask_for_all_names(&mut self) {
        let names = self.names_given();
        for host in (0..self.hosts.len() as u32).filter(|&host| self.is_live(host)).collect::<Vec<_>>() {
            names.iter().for_each(|name| self.ask_who_has(host, name));
        }
    }

    /// Checks that no host believes that another has a name which that one never had. This holds if agents
    /// sign.
    ///
    /// # Errors
    /// In words, naming both.
    pub fn check_no_forged_name(&self) -> Result<(), String> {
        for host in (0..self.hosts.len() as u32).filter(|_| self.options.signed) {
            for (name, had) in &self.ever_named {
                if let Some(liar) = self.remembered(host, name).into_iter().find(|mac| !had.contains(mac)) {
                    let host = self.plant.name(PlantNode::Host(host));
                    return Err(format!("{host} believes that {liar} has {name}, which it never had"));
                }
            }
        }
        Ok(())
    }

    /// Checks that each live host has found who has each name, if the owner is live and cables lead there,
    /// and that it believes nothing else: owners of before are forgotten.
    ///
    /// # Errors
    /// In words, naming the host.
    pub fn check_names(&mut self) -> Result<(), String> {
        let names = self.names_given();
        if names.is_empty() {
            return Ok(());
        }
        let joined = self.joined_hosts();
        for host in (0..self.hosts.len() as u32).filter(|&host| joined(host, host)) {
            for name in &names {
                let owners = self.hosts_named(name).filter(|&owner| owner != host && joined(owner, host));
                let owners: Vec<Mac> = owners.map(|owner| self.mac(owner)).collect();
                let believed = self.remembered(host, name);
                let found = self.found(host, name);
                if found != Some(&owners) || believed != owners {
                    let host = self.plant.name(PlantNode::Host(host));
                    return Err(format!(
                        "{host} asked who has {name}, which is {owners:?}, was told {found:?} and believes \
                         {believed:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Takes in what came of a question. Returns it in words for the trace.
    pub(super) fn take_found(
        &mut self,
        host: u32,
        Found { wanted, owners }: Found,
    ) -> (&'static str, String) {
        let macs: Vec<Mac> = owners.iter().map(|owner| owner.mac).collect();
        let shown: Vec<String> = macs.iter().map(ToString::to_string).collect();
        let detail = format!("{wanted}: {}", shown.join(" "));
        self.found.insert((host, wanted), macs);
        ("found", detail)
    }
}
