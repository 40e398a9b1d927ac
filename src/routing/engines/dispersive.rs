//! The agents' own engine: repeated searches for cheap shortest routes, in random port order.
//!
//! After "How does the Mapper work in GM-2?" (Myricom, 2003): Dijkstra's algorithm with link costs
//! incremented for each route that goes across them, a random order of ports, several routes a
//! destination, and several searches for every set of routes, among which destinations take turns.
//!
//! Hops come first and never change, so what Dijkstra's algorithm would find again in each search is
//! found once: the states in the order of their distance, and for each the channels by which a
//! shortest legal route may enter it. A search then picks one entry a state: first one that makes a
//! route unlike all earlier ones, then the one with the least load on the way, then the first in
//! random order. When it is done, each channel's load grows by the routes that it carries.

use mapper_proto::Mac;
use mapper_proto::map::MapVersion;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::routing::host_routes::Source;
use crate::routing::{Direction, HostRoutes, Options, Orientation, RoutingError, Topology};

/// Searches for each route of a destination, as far as a word has bits for them.
const SEARCHES_PER_PASS: usize = 2;

/// Computes a host's routes. Randomness is seeded by the map's version and the host's address: each
/// host disperses differently, and each finds the same again.
///
/// # Errors
/// As for [`HostRoutes::compute`].
pub fn compute(
    topology: &Topology,
    orientation: &Orientation,
    from: u32,
    options: &Options,
) -> Result<HostRoutes, RoutingError> {
    if !(1..=Options::MAX_PASSES).contains(&options.passes) {
        return Err(RoutingError::Passes(options.passes));
    }
    if !(1..=Options::MAX_HOPS).contains(&options.max_hops) {
        return Err(RoutingError::MaxHops(options.max_hops));
    }
    if from as usize >= topology.host_count() {
        return Err(RoutingError::NoSuchHost { host: from, hosts: topology.host_count() });
    }
    let source = Source::of(topology, from);
    let mut routes = HostRoutes {
        from,
        source,
        options: *options,
        xbars: topology.xbar_count(),
        entries: Vec::new(),
        risen: Vec::new(),
        distinct: Vec::new(),
    };
    if let Source::Xbar(xbar) = source {
        let distances = Distances::from(topology, orientation, xbar);
        distances.check_limit(topology, from, options.max_hops)?;
        let mut rng = seeded(topology.version(), topology.mac(from));
        let choices = Choices::of(topology, orientation, &distances, &mut rng);
        routes.risen = vec![0; topology.xbar_count()];
        routes.distinct = vec![0; topology.xbar_count()];
        // To hosts at its own xbar there is one route, and no search is needed for it.
        routes.distinct[xbar as usize] = 1;
        Searches::new(topology, &choices, &mut routes).run(&mut rng);
    }
    Ok(routes)
}

/// The generator of a host's table.
fn seeded(version: MapVersion, mac: Mac) -> ChaCha8Rng {
    let mut seed = [0; 32];
    seed[..6].copy_from_slice(&version.mac.0);
    seed[6..10].copy_from_slice(&version.counter.to_be_bytes());
    seed[10..16].copy_from_slice(&mac.0);
    ChaCha8Rng::from_seed(seed)
}

/// A number below `count`, near enough to uniform for choosing among ports.
fn below(rng: &mut ChaCha8Rng, count: usize) -> usize {
    ((u64::from(rng.next_u32()) * count as u64) >> 32) as usize
}

const UNREACHED: u16 = u16::MAX;

/// Least steps from the source's xbar to each state: xbar `x` falling is state `x`, and rising is
/// state `xbars + x`. A rising state counts as falling, too: it may go on either way.
struct Distances {
    steps: Vec<u16>,
    /// Falling states other than the source's, by rising distance.
    falling: Vec<u32>,
    /// Rising states other than the source's, by rising distance.
    rising: Vec<u32>,
}

impl Distances {
    /// Breadth-first search along legal routes, level by level.
    fn from(topology: &Topology, orientation: &Orientation, source: u32) -> Self {
        let xbars = topology.xbar_count();
        let mut found = Self { steps: vec![UNREACHED; 2 * xbars], falling: Vec::new(), rising: Vec::new() };
        let mut falling = vec![source];
        let mut rising = vec![source];
        found.steps[source as usize] = 0;
        found.steps[xbars + source as usize] = 0;
        let mut steps = 0;
        while !falling.is_empty() || !rising.is_empty() {
            steps += 1;
            let (first_falling, first_rising) = (found.falling.len(), found.rising.len());
            for &xbar in &rising {
                for channel in topology.channels_of(xbar) {
                    if orientation.direction(channel) == Direction::Up {
                        let head = topology.head(channel).xbar as usize;
                        found.reach(xbars, head, true, steps);
                        found.reach(xbars, head, false, steps);
                    }
                }
            }
            for &xbar in &falling {
                for channel in topology.channels_of(xbar) {
                    if orientation.direction(channel) == Direction::Down {
                        found.reach(xbars, topology.head(channel).xbar as usize, false, steps);
                    }
                }
            }
            falling = found.falling[first_falling..].to_vec();
            rising = found.rising[first_rising..].iter().map(|state| state - xbars as u32).collect();
        }
        found
    }

    fn reach(&mut self, xbars: usize, xbar: usize, rising: bool, steps: u16) {
        let state = if rising { xbars + xbar } else { xbar };
        if self.steps[state] == UNREACHED {
            self.steps[state] = steps;
            if rising { &mut self.rising } else { &mut self.falling }.push(state as u32);
        }
    }

    /// Refuses a fabric that is wider than routes may be long.
    fn check_limit(&self, topology: &Topology, from: u32, max_hops: u8) -> Result<(), RoutingError> {
        for &xbar in self.falling.iter().rev() {
            // The route to an xbar `n` steps away is obeyed by `n + 1` xbars.
            let hops = usize::from(self.steps[xbar as usize]) + 1;
            if hops <= max_hops.into() {
                break;
            }
            if let Some(&to) = topology.hosts_of(xbar).first() {
                let (from, to) = (topology.mac(from), topology.mac(to));
                return Err(RoutingError::TooLong { from, to, hops, max_hops });
            }
        }
        Ok(())
    }
}

/// A way for a shortest legal route to enter a state.
#[derive(Clone, Copy)]
struct Entry {
    /// The state that it comes from.
    from: u32,
    /// The way back of the channel that it takes.
    channel: u32,
}

/// What every search of a table chooses from.
struct Choices {
    /// The states that routes to hosts pass, later ones first.
    states: Vec<u32>,
    /// The entries of `states[i]`: `entries[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    entries: Vec<Entry>,
}

impl Choices {
    fn of(
        topology: &Topology,
        orientation: &Orientation,
        distances: &Distances,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let xbars = topology.xbar_count();
        let mut choices = Self { states: Vec::new(), first: vec![0], entries: Vec::new() };
        let mut needed: Vec<bool> =
            (0..xbars as u32).map(|xbar| !topology.hosts_of(xbar).is_empty()).collect();
        needed.resize(2 * xbars, false);
        // Rising states come last: they lead to falling ones, but not the other way round.
        for &state in distances.falling.iter().rev().chain(distances.rising.iter().rev()) {
            if needed[state as usize] {
                let first = choices.entries.len();
                choices.add(topology, orientation, distances, state);
                let entries = &mut choices.entries[first..];
                for i in (1..entries.len()).rev() {
                    entries.swap(i, below(rng, i + 1));
                }
                entries.iter().for_each(|entry| needed[entry.from as usize] = true);
            }
        }
        choices
    }

    /// Adds a state and the ways to enter it.
    fn add(&mut self, topology: &Topology, orientation: &Orientation, distances: &Distances, state: u32) {
        let xbars = topology.xbar_count() as u32;
        let (xbar, rising) = if state < xbars { (state, false) } else { (state - xbars, true) };
        let before = distances.steps[state as usize] - 1;
        for channel in topology.channels_of(xbar) {
            let tail = topology.head(channel).xbar;
            let from = match orientation.direction(channel) {
                // Its way back leads up, here.
                Direction::Down => xbars + tail,
                Direction::Up if !rising => tail,
                Direction::Up | Direction::Barred => continue,
            };
            if distances.steps[from as usize] == before {
                self.entries.push(Entry { from, channel });
            }
        }
        self.states.push(state);
        self.first.push(self.entries.len() as u32);
    }
}

/// The searches of a table, one after the other.
struct Searches<'a> {
    topology: &'a Topology,
    choices: &'a Choices,
    routes: &'a mut HostRoutes,
    loads: Loads,
    /// For each search and state, the first search that had the same route.
    likeness: Vec<u8>,
    /// For each entry, the routes to the state before it that it was chosen with (a bit each, by
    /// likeness).
    used: Vec<u64>,
}

impl<'a> Searches<'a> {
    fn new(topology: &'a Topology, choices: &'a Choices, routes: &'a mut HostRoutes) -> Self {
        let states = 2 * topology.xbar_count();
        Self {
            topology,
            choices,
            routes,
            loads: Loads { way: vec![None; states], routes: vec![0; topology.channel_count()] },
            likeness: Vec::new(),
            used: vec![0; choices.entries.len()],
        }
    }

    /// Searches until there are enough routes, or a search finds no new one.
    fn run(mut self, rng: &mut ChaCha8Rng) {
        let states = self.loads.way.len();
        let most = SEARCHES_PER_PASS * usize::from(self.routes.options.passes);
        self.routes.entries.reserve_exact(states);
        for search in 0..most.min(u64::BITS as usize) {
            self.routes.entries.resize((search + 1) * states, 0);
            self.likeness.resize((search + 1) * states, 0);
            if !self.search(search, rng) {
                self.routes.entries.truncate(search * states);
                self.routes.risen.iter_mut().for_each(|searches| *searches &= !(1 << search));
                break;
            }
        }
        self.routes.entries.shrink_to_fit();
    }

    /// Chooses an entry for every state, earlier states first. Tells whether some host has a new
    /// route.
    fn search(&mut self, search: usize, rng: &mut ChaCha8Rng) -> bool {
        let states = self.loads.way.len();
        let xbars = states / 2;
        let (earlier, likeness) = self.likeness.split_at_mut(search * states);
        let mut any_new = false;
        for (i, &state) in self.choices.states.iter().enumerate().rev() {
            let (first, end) = (self.choices.first[i] as usize, self.choices.first[i + 1] as usize);
            let entries = &self.choices.entries[first..end];
            let used = &mut self.used[first..end];
            let choice = choose(entries, rng, |i| {
                let again = used[i] >> likeness[entries[i].from as usize] & 1;
                again << 63 | self.loads.by(entries[i])
            });
            let Entry { from, channel } = entries[choice];
            let (state, from) = (state as usize, from as usize);
            let xbar = state % xbars;
            let place = (channel - self.topology.channels_of(xbar as u32).start) as u8;
            self.loads.way[state] = Some(entries[choice]);
            self.routes.entries[search * states + state] = place;
            let before = likeness[from];
            let new = used[choice] >> before & 1 == 0;
            used[choice] |= 1 << before;
            // Otherwise some search came by the same entry, with the same route up to it.
            let same = |earlier_search: &usize| {
                let at = earlier_search * states;
                self.routes.entries[at + state] == place && earlier[at + from] == before
            };
            likeness[state] = if new { search } else { (0..search).find(same).unwrap_or(search) } as u8;
            if state < xbars {
                self.routes.risen[xbar] |= u64::from(from >= xbars) << search;
                if new && !self.topology.hosts_of(xbar as u32).is_empty() {
                    self.routes.distinct[xbar] |= 1 << search;
                    any_new = true;
                    self.loads.raise(state, self.topology.hosts_of(xbar as u32).len() as u32);
                }
            }
        }
        any_new
    }
}

/// The tree that the current search grows, and the routes over each channel.
struct Loads {
    /// The entry chosen for each state; none for the source.
    way: Vec<Option<Entry>>,
    /// Routes over each channel so far, in all searches, counted at its way back.
    routes: Vec<u32>,
}

impl Loads {
    /// Routes over the channels on the way to a state, by an entry.
    fn by(&self, entry: Entry) -> u64 {
        let (mut load, mut next) = (0, Some(entry));
        while let Some(Entry { from, channel }) = next {
            load += u64::from(self.routes[channel as usize]);
            next = self.way[from as usize];
        }
        load
    }

    /// Adds routes to the channels on the way to a state.
    fn raise(&mut self, state: usize, routes: u32) {
        let mut next = self.way[state];
        while let Some(Entry { from, channel }) = next {
            let load = &mut self.routes[channel as usize];
            *load = load.saturating_add(routes);
            next = self.way[from as usize];
        }
    }
}

/// The entry with the least key; among equals, the first in a circle from a random place.
fn choose(entries: &[Entry], rng: &mut ChaCha8Rng, key: impl Fn(usize) -> u64) -> usize {
    if entries.len() == 1 {
        return 0;
    }
    let start = below(rng, entries.len());
    let (mut best, mut least) = (start, u64::MAX);
    for i in (start..entries.len()).chain(0..start) {
        let key = key(i);
        if key < least {
            (best, least) = (i, key);
        }
    }
    best
}
