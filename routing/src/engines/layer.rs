//! One layer: the dependencies of the routes in it, kept free of circles while routes come and go.

use super::Refusal;
use super::acyclic::AcyclicGraph;
use crate::proof::dependency_base;
use crate::{Subnet, Topology};

/// Most xbars of a fabric whose pairs are put into layers one by one, as a layer is stored for each pair.
const MAX_XBARS: usize = 8192;

/// Checks that a fabric is not too large for layers of pairs.
///
/// # Errors
/// If it has too many xbars.
pub(super) fn check_size(subnet: &Subnet) -> Result<(), Refusal> {
    match subnet.topology.xbar_count() {
        xbars if xbars > MAX_XBARS => Err(Refusal::TooManyXbars { xbars, most: MAX_XBARS }),
        _ => Ok(()),
    }
}

/// Numbers each dependency of a channel on one that begins where it ends.
pub(super) struct DependencyNumbers<'a> {
    pub(super) topology: &'a Topology,
    /// The numbers of the dependencies of channel c begin at `base[c]`. There is one for each channel out of
    /// its head.
    base: Vec<u32>,
}

/// A dependency: its number, the channel that is held, and the one that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Dependency {
    pub(super) number: u32,
    pub(super) held: u32,
    pub(super) wanted: u32,
}

impl<'a> DependencyNumbers<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self { topology, base: dependency_base(topology) }
    }

    #[inline]
    pub(super) fn dependency(&self, held: u32, wanted: u32) -> Dependency {
        let out = self.topology.channels_of(self.topology.head(held).xbar);
        Dependency { number: self.base[held as usize] + wanted - out.start, held, wanted }
    }

    pub(super) fn count(&self) -> usize {
        self.base.last().map_or(0, |&count| count as usize)
    }
}

/// A layer's dependencies, each with how many routes make it.
#[derive(Clone)]
pub(super) struct Layer {
    /// How many routes make each dependency.
    uses: Vec<u32>,
    /// Dependencies that would close a circle with those that are there. That changes only when others are
    /// taken away.
    barred: Vec<u64>,
    /// Whether something was taken away since `barred` was right.
    stale: bool,
    graph: AcyclicGraph,
    fresh: Vec<Dependency>,
}

impl Layer {
    /// An empty layer.
    pub(super) fn new(numbers: &DependencyNumbers<'_>) -> Self {
        Self {
            uses: vec![0; numbers.count()],
            barred: vec![0; numbers.count().div_ceil(64)],
            stale: false,
            graph: AcyclicGraph::new(numbers.topology.channel_count()),
            fresh: Vec::new(),
        }
    }

    /// Empties the layer.
    pub(super) fn clear(&mut self) {
        self.uses.fill(0);
        self.barred.fill(0);
        self.stale = false;
        self.graph.clear();
    }

    /// Channels looked at in searches so far.
    pub(super) fn work(&self) -> u64 {
        self.graph.work()
    }

    /// Adds all of these dependencies, or none if they would close a circle.
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
                // If it closes a circle even without the others, it need not be tried again.
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

    fn insert(&mut self, Dependency { held, wanted, .. }: Dependency) -> bool {
        self.graph.insert(held, wanted)
    }

    fn remove_edge(&mut self, Dependency { held, wanted, .. }: Dependency) {
        self.graph.remove(held, wanted);
    }
}
