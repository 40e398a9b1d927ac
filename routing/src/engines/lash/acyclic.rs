//! One layer: the dependencies of the routes in it, kept free of cycles while routes come and go.

use crate::Topology;
use crate::proof::dependency_base;

/// Numbers each dependency of a channel on one that begins where it ends.
pub(super) struct Numbers<'a> {
    pub(super) topology: &'a Topology,
    /// The dependencies of channel c begin at `base[c]`, one a channel out of its head.
    base: Vec<u32>,
}

/// A dependency: its number, the channel that is held, the one that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Dependency {
    number: u32,
    held: u32,
    wanted: u32,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self { topology, base: dependency_base(topology) }
    }

    #[inline]
    pub(super) fn dependency(&self, held: u32, wanted: u32) -> Dependency {
        let out = self.topology.channels_of(self.topology.head(held).xbar);
        Dependency { number: self.base[held as usize] + wanted - out.start, held, wanted }
    }

    fn count(&self) -> usize {
        self.base.last().map_or(0, |&count| count as usize)
    }
}

/// A layer's dependencies, each with how many routes make it, and a topological order of the channels.
///
/// The order is mended at each new dependency, by looking only at channels between its two (Pearce and
/// Kelly, 2006). Taking dependencies away needs no mending.
#[derive(Clone)]
pub(super) struct Acyclic {
    /// How many routes make each dependency.
    uses: Vec<u32>,
    /// Dependencies that would close a cycle with those that are there. Only what is taken away can
    /// change that.
    barred: Vec<u64>,
    /// Something was taken away since `barred` was right.
    stale: bool,
    wanted: Vec<Vec<u32>>,
    held: Vec<Vec<u32>>,
    place: Vec<u32>,
    seen: Vec<bool>,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    stack: Vec<u32>,
    fresh: Vec<Dependency>,
    /// Channels looked at in searches so far.
    pub(super) work: u64,
}

impl Acyclic {
    /// An empty layer.
    pub(super) fn new(numbers: &Numbers<'_>) -> Self {
        let channels = numbers.topology.channel_count();
        Self {
            uses: vec![0; numbers.count()],
            barred: vec![0; numbers.count().div_ceil(64)],
            stale: false,
            wanted: vec![Vec::new(); channels],
            held: vec![Vec::new(); channels],
            place: (0..channels as u32).collect(),
            seen: vec![false; channels],
            ahead: Vec::new(),
            behind: Vec::new(),
            stack: Vec::new(),
            fresh: Vec::new(),
            work: 0,
        }
    }

    /// Empties the layer.
    pub(super) fn clear(&mut self) {
        self.uses.fill(0);
        self.barred.fill(0);
        self.stale = false;
        self.wanted.iter_mut().chain(&mut self.held).for_each(Vec::clear);
    }

    /// Adds all of these dependencies, or none if they would close a cycle.
    pub(super) fn add(&mut self, dependencies: &[Dependency]) -> bool {
        if std::mem::take(&mut self.stale) {
            self.barred.fill(0);
        }
        if dependencies.iter().any(|dependency| self.is_barred(*dependency)) {
            return false;
        }
        self.fresh.clear();
        for &dependency in dependencies {
            if self.uses[dependency.number as usize] > 0 || self.is_fresh(dependency) {
                continue;
            }
            if !self.insert(dependency) {
                self.give_back();
                // If it closes a cycle without the others, too, it need not be tried again.
                if self.insert(dependency) {
                    self.remove_edge(dependency);
                } else {
                    self.bar(dependency);
                }
                return false;
            }
            self.fresh.push(dependency);
        }
        for dependency in dependencies {
            self.uses[dependency.number as usize] += 1;
        }
        true
    }

    /// Takes away dependencies that were added.
    pub(super) fn remove(&mut self, dependencies: &[Dependency]) {
        for &dependency in dependencies {
            let uses = &mut self.uses[dependency.number as usize];
            *uses -= 1;
            if *uses == 0 {
                self.remove_edge(dependency);
                self.stale = true;
            }
        }
    }

    fn is_fresh(&self, dependency: Dependency) -> bool {
        self.fresh.iter().any(|fresh| fresh.number == dependency.number)
    }

    fn is_barred(&self, dependency: Dependency) -> bool {
        self.barred[dependency.number as usize / 64] >> (dependency.number % 64) & 1 == 1
    }

    fn bar(&mut self, dependency: Dependency) {
        self.barred[dependency.number as usize / 64] |= 1 << (dependency.number % 64);
    }

    fn give_back(&mut self) {
        while let Some(dependency) = self.fresh.pop() {
            self.remove_edge(dependency);
        }
    }

    fn remove_edge(&mut self, Dependency { held, wanted, .. }: Dependency) {
        self.wanted[held as usize].retain(|&other| other != wanted);
        self.held[wanted as usize].retain(|&other| other != held);
    }

    /// Adds an edge and mends the order, unless it closes a cycle.
    fn insert(&mut self, Dependency { held, wanted, .. }: Dependency) -> bool {
        let (first, last) = (self.place[wanted as usize], self.place[held as usize]);
        if first <= last && !self.mend(held, wanted, first, last) {
            return false;
        }
        self.wanted[held as usize].push(wanted);
        self.held[wanted as usize].push(held);
        true
    }

    /// Orders what `wanted` leads to behind what leads to `held`.
    fn mend(&mut self, held: u32, wanted: u32, first: u32, last: u32) -> bool {
        let acyclic = self.look_ahead(wanted, held, last);
        if acyclic {
            self.look_behind(held, first);
            self.reorder();
        }
        self.work += (self.ahead.len() + self.behind.len()) as u64;
        for channel in self.ahead.drain(..).chain(self.behind.drain(..)) {
            self.seen[channel as usize] = false;
        }
        acyclic
    }

    fn look_ahead(&mut self, from: u32, held: u32, last: u32) -> bool {
        self.stack.clear();
        self.stack.push(from);
        while let Some(channel) = self.stack.pop() {
            if channel == held {
                return false;
            }
            if std::mem::replace(&mut self.seen[channel as usize], true) {
                continue;
            }
            self.ahead.push(channel);
            let next = self.wanted[channel as usize].iter().copied();
            let (place, seen) = (&self.place, &self.seen);
            self.stack.extend(next.filter(|&next| place[next as usize] <= last && !seen[next as usize]));
        }
        true
    }

    fn look_behind(&mut self, from: u32, first: u32) {
        self.stack.clear();
        self.stack.push(from);
        while let Some(channel) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[channel as usize], true) {
                continue;
            }
            self.behind.push(channel);
            let next = self.held[channel as usize].iter().copied();
            let (place, seen) = (&self.place, &self.seen);
            self.stack.extend(next.filter(|&next| place[next as usize] > first && !seen[next as usize]));
        }
    }

    /// Gives the places of all that were seen to those behind, then to those ahead, each in their order.
    fn reorder(&mut self) {
        let place = &mut self.place;
        self.ahead.sort_unstable_by_key(|&channel| place[channel as usize]);
        self.behind.sort_unstable_by_key(|&channel| place[channel as usize]);
        let in_order = || self.behind.iter().chain(&self.ahead).map(|&channel| channel as usize);
        let mut places: Vec<u32> = in_order().map(|channel| place[channel]).collect();
        places.sort_unstable();
        for (channel, free) in in_order().zip(places) {
            place[channel] = free;
        }
    }
}
