//! Whether the routes in force can deadlock: those of all hosts together, of all maps and repairs.
//!
//! Here a channel is a port of the plant, and not one of a map, so routes of different maps meet in one
//! graph. A frame waits for nothing behind a cable that does not carry it, so a route counts up to there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mapper_host::routes::RouteTable;
use mapper_proto::Instant;
use mapper_proto::wire::{Data, Route};

use super::World;

/// Why the routes in force may close a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircleCause {
    /// Hosts of the part with the circle use routes of different maps, or a map that is not that of the fabric as it is.
    Maps,
    /// All hosts of that part use one map of the fabric as it is, and some still use turns that were safe
    /// only while a cable was dead that has come back.
    Revival,
    /// All hosts of that part use one map of the fabric as it is, so nothing explains the circle.
    OneMap,
}

/// A time in which the routes in force closed a circle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circle {
    /// When it closed, whatever the cause was then. If another circle was there when this one closed, it is when that one closed.
    pub closed_at: Instant,
    /// When it closed, or when its cause became this one.
    pub from: Instant,
    /// When it was over, or when its cause became another.
    pub until: Instant,
    /// Why it was there.
    pub cause: CircleCause,
    /// The cables that it led through when it closed, in words.
    pub why: String,
}

/// The routes that a host uses, and their turns: pairs of a channel and the channel that follows it.
#[derive(Debug, Default)]
struct InForce {
    table: Option<Arc<RouteTable>>,
    turns: BTreeSet<(u32, u32)>,
    /// The turns of the ways that its kernel holds.
    kernel_turns: BTreeSet<(u32, u32)>,
    /// The turns that its packets take by kernels' tables by destination.
    turns_by_destination: BTreeSet<(u32, u32)>,
}

/// What is followed of the routes in force, from one change to the next.
#[derive(Debug, Default)]
pub(super) struct United {
    watched: bool,
    /// Hosts at which something happened, or whose table changed, since the last look.
    touched: BTreeSet<u32>,
    /// Hosts whose kernels hold something else than at the last look.
    kernels_touched: BTreeSet<u32>,
    /// The state of the plant that was looked at last.
    generation: u64,
    hosts: Vec<InForce>,
    /// The circle that is there now, if there is one.
    circle: Option<Circle>,
    /// Whether that circle is one of tables by destination.
    is_by_destination: bool,
    /// The channels that it was found to lead through last.
    circling: Vec<u32>,
    over: Vec<Circle>,
    /// The first host that said that it is configured without routes of its map, and when.
    unrouted: Option<String>,
}

impl United {
    /// Notes that something happened at a host.
    pub(super) fn touch(&mut self, host: u32) {
        if self.watched {
            self.touched.insert(host);
        }
    }
}

impl United {
    /// Notes that the kernels of these hosts hold something else.
    pub(super) fn touch_kernels(&mut self, hosts: impl IntoIterator<Item = u32>) {
        if self.watched {
            self.kernels_touched.extend(hosts);
        }
    }
}

impl World {
    /// Has the routes in force searched for circles from now on whenever a table, a repair or the plant
    /// changes, and every user's frame followed along its route.
    pub fn watch_routes(&mut self) {
        self.united.watched = true;
        self.united.touched.extend(0..self.hosts.len() as u32);
    }

    /// Whether routes, and the users' frames that take them, are watched: see [`Self::watch_routes`].
    pub(super) fn routes_are_watched(&self) -> bool {
        self.united.watched
    }

    /// The circles that the routes in force have closed since the last call. One that is not over counts up
    /// to now.
    pub fn take_circles(&mut self) -> Vec<Circle> {
        let now = self.now;
        let mut circles = std::mem::take(&mut self.united.over);
        circles.extend(self.united.circle.as_ref().map(|circle| Circle { until: now, ..circle.clone() }));
        circles
    }

    /// Checks that no agent has ever said that it is configured without proved routes of the map that it holds, since
    /// this is watched.
    ///
    /// # Errors
    /// In words, naming the host and the moment.
    pub fn check_routes_watched(&self) -> Result<(), String> {
        self.united.unrouted.clone().map_or(Ok(()), Err)
    }

    /// Whether one of these hosts is live and has routes that are safe only as long as cables are dead.
    fn depend_on_the_dead(&self, hosts: &BTreeSet<u32>) -> bool {
        let depends = |known: &InForce| known.table.as_ref().is_some_and(|table| table.depends_on_the_dead());
        hosts.iter().any(|&host| self.united.hosts.get(host as usize).is_some_and(depends))
    }

    /// Notes the table of a host at which something happened, as that may have changed it.
    pub(super) fn note_table(&mut self, host: u32) {
        if !self.united.watched {
            return;
        }
        let known = self.united.hosts.get(host as usize).and_then(|known| known.table.as_ref());
        let same = match (self.table(host), known) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same {
            self.united.touched.insert(host);
        }
    }

    /// Looks at the routes in force, if anything that concerns them has changed. To be called between
    /// moments.
    pub(super) fn follow_routes(&mut self) {
        let moved = self.united.generation != self.plant.generation();
        let United { watched, touched, kernels_touched, .. } = &self.united;
        if !watched || (touched.is_empty() && kernels_touched.is_empty() && !moved) {
            return;
        }
        let touched = std::mem::take(&mut self.united.touched);
        if self.united.unrouted.is_none()
            && let Some(why) = touched.iter().find_map(|&host| self.check_routes_of(host).err())
        {
            self.united.unrouted = Some(format!("at {:?}: {why}", self.now));
        }
        let changed = self.unite(&touched, moved) | self.unite_kernels(moved);
        let found = match &self.united.circle {
            Some(circle) if !changed => Some(circle.why.clone()),
            None if !changed => None,
            _ => self.find_circle(),
        };
        let now = self.now;
        let before = self.united.circle.as_ref();
        let closed_at = before.map_or(now, |before| before.closed_at);
        let found = found.map(|why| {
            let cause = self.cause_of_circle();
            Circle { closed_at, from: now, until: now, cause, why }
        });
        match (&mut self.united.circle, found) {
            (Some(before), Some(found)) if before.cause == found.cause => {}
            (slot, found) => {
                let over = std::mem::replace(slot, found);
                self.united.over.extend(over.map(|circle| Circle { until: now, ..circle }));
            }
        }
    }

    /// Takes in the tables of these hosts, or of all hosts if the plant has changed (`moved`). Returns
    /// whether anything is new.
    fn unite(&mut self, touched: &BTreeSet<u32>, moved: bool) -> bool {
        self.united.generation = self.plant.generation();
        self.united.hosts.resize_with(self.hosts.len(), InForce::default);
        let mut changed = false;
        let all = 0..self.hosts.len() as u32;
        for host in all.filter(|host| moved || touched.contains(host)) {
            let table = self.table(host).filter(|_| self.is_live(host)).cloned();
            let known = &self.united.hosts[host as usize];
            let same = match (&known.table, &table) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
            if !same || (moved && table.is_some()) {
                let turns = table.as_ref().map(|table| self.turns_of(host, table)).unwrap_or_default();
                changed |= known.turns != turns;
                let known = &mut self.united.hosts[host as usize];
                (known.table, known.turns) = (table, turns);
            }
        }
        changed
    }

    /// Takes in what the kernels hold that have changed, or all kernels if the plant has changed (`moved`).
    /// Returns whether anything is new.
    fn unite_kernels(&mut self, moved: bool) -> bool {
        let touched = std::mem::take(&mut self.united.kernels_touched);
        let mut changed = false;
        for host in (0..self.hosts.len() as u32).filter(|host| moved || touched.contains(host)) {
            let (turns, by_destination) = (self.kernel_turns_of(host), self.turns_by_destination_of(host));
            let known = &mut self.united.hosts[host as usize];
            changed |= known.kernel_turns != turns || known.turns_by_destination != by_destination;
            (known.kernel_turns, known.turns_by_destination) = (turns, by_destination);
        }
        changed
    }

    /// The turns of the routes of a host's table on the plant as it is.
    fn turns_of(&self, host: u32, table: &RouteTable) -> BTreeSet<(u32, u32)> {
        let frame =
            Data { token: 0, way_back: Route::new(), ethernet: &[0; 64] }.encode().unwrap_or_default();
        let mut turns = BTreeSet::new();
        for path in table.hosts().flat_map(|(_, to)| table.paths_to(to)) {
            let payload = [path.way.there.as_bytes(), &frame].concat();
            turns.extend(self.plant.channels(host, &payload).windows(2).map(|pair| (pair[0], pair[1])));
        }
        turns
    }

    /// Searches for a circle, and returns it in words. Tables by destination keep to an order of their own,
    /// and no packet goes by both kinds of routes, so each kind is searched by itself. A circle of turns of both kinds is no
    /// deadlock either: packets by destination pass through kernels alone, which drop what finds no room and wait for nobody.
    fn find_circle(&mut self) -> Option<String> {
        let hosts = &self.united.hosts;
        let by_source = circle(followers(hosts.iter().flat_map(|host| host.turns.union(&host.kernel_turns))));
        self.united.is_by_destination = by_source.is_none();
        let circle = by_source.or_else(|| {
            circle(followers(self.united.hosts.iter().flat_map(|host| &host.turns_by_destination)))
        })?;
        let name = |&socket: &u32| self.plant.end_name(self.plant.end_of(socket));
        let names: Vec<_> = circle.iter().map(name).collect();
        self.united.circling = circle;
        Some(format!("the routes in force, of all maps and repairs, can deadlock by {}", names.join(", ")))
    }

    fn cause_of_circle(&mut self) -> CircleCause {
        // A kernel goes on sending for a while to hosts that the map no longer lists.
        let is_older = |host: &InForce| !host.kernel_turns.is_subset(&host.turns);
        let by_destination = self.united.is_by_destination;
        let Some(&first) = self.united.circling.first() else { return CircleCause::OneMap };
        let at = self.plant.end_of(first).node;
        let senders = self.senders_to(at);
        // So does that of a node that was taken out. Its crossbar has ended with it, so to agents no cable joins it with anything.
        let circling = &self.united.circling;
        let takes_part = |host: &InForce| {
            let is_in = |channel: &u32| circling.contains(channel);
            host.kernel_turns.iter().any(|(one, other)| is_in(one) && is_in(other))
        };
        let any_is_older = (0..)
            .zip(&self.united.hosts)
            .any(|(number, host)| is_older(host) && (senders.contains(&number) || takes_part(host)));
        let is_of_one_map =
            self.is_of_one_true_map(at) && (!by_destination || self.agree_on_addresses(&senders));
        if !is_of_one_map || (!by_destination && any_is_older) {
            CircleCause::Maps
        } else if !by_destination && self.depend_on_the_dead(&senders) {
            CircleCause::Revival
        } else {
            CircleCause::OneMap
        }
    }
}

/// The channels that each channel leads to by some of these turns.
fn followers<'a>(turns: impl Iterator<Item = &'a (u32, u32)>) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for &(one, other) in turns {
        after.entry(one).or_default().insert(other);
    }
    after
}

/// A circle, if there is one. Channels that wait for none are taken out until there are no more such
/// channels. What is left are channels of circles and channels that lead to them.
fn circle(mut after: BTreeMap<u32, BTreeSet<u32>>) -> Option<Vec<u32>> {
    loop {
        let waiting: BTreeSet<u32> = after.keys().copied().collect();
        after.retain(|_, next| {
            next.retain(|channel| waiting.contains(channel));
            !next.is_empty()
        });
        if after.len() == waiting.len() {
            break;
        }
    }
    // Every channel that is left leads to another, so following them leads round a circle.
    let mut way = vec![*after.keys().next()?];
    loop {
        let next = *after.get(way.last()?)?.first()?;
        if let Some(at) = way.iter().position(|&channel| channel == next) {
            return Some(way.split_off(at));
        }
        way.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(u32, u32)]) -> Option<Vec<u32>> {
        let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        pairs.iter().for_each(|&(one, other)| {
            after.entry(one).or_default().insert(other);
        });
        circle(after)
    }

    #[test]
    fn a_circle_is_found_wherever_it_is() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(1, 2), (2, 3), (1, 3)]), None);
        assert_eq!(found(&[(0, 1), (1, 2), (2, 3), (3, 1), (3, 9)]), Some(vec![1, 2, 3]));
    }
}
