//! Which channel may follow which: one order of all channels that all agents of a map derive alike.

mod clos;
mod direction_order;
mod numbers;
mod passage;
mod reach;
mod shape;
mod tree;
mod updown;

use std::sync::Arc;

use super::Topology;
use super::proof::Violation;
use super::repair::onward;
pub(super) use passage::Passage;
pub use shape::Shape;

/// Which way a channel leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards the top tier, or the root.
    Up,
    /// Away from the top tier, or the root.
    Down,
    /// Neither up nor down: the channel leads back into its own xbar, or is dead, or the order is one of channels,
    /// which has no up.
    Barred,
}

/// The order that shows that no circle of legal steps closes.
#[derive(Clone, Debug)]
enum LegalOrder {
    /// Where each xbar stands, the top first: up is towards the beginning.
    Xbars(Vec<u32>),
    /// A number for each channel that rises along every legal step.
    Channels(Vec<u32>),
}

/// The phases of a route in which it may take each channel.
///
/// A route is *legal* if it never needs to return to an earlier phase. With two phases, up and then down,
/// this is up*/down*: the xbars stand in one order, and up is towards its beginning. Direction order on a
/// torus has four. Legal routes can never wait for each other in a circle: [`Self::number`] rises along
/// every step from one channel to the next. (Schroeder et al., "Autonet", 1991, for up*/down*.)
///
/// It is a function of the topology alone, so agents that hold the same map agree on it without messages.
#[derive(Clone, Debug)]
pub struct Orientation {
    shape: Shape,
    /// How many phases there are.
    phases: u8,
    /// When routes may take each channel.
    passages: Vec<Passage>,
    /// When routes may take the way back of each channel, for searches that go backwards.
    ways_back: Vec<Passage>,
    /// For each channel, the last phase in which routes may take its way back.
    backwards: Arc<[u8]>,
    order: LegalOrder,
}

impl Orientation {
    /// Orients a topology: by tiers if it is a Clos, by direction order if it is a torus or mesh on which
    /// that joins every two hosts that cables join, by tiers again if it is another tree; unless `non_clos` forces
    /// up*/down*.
    ///
    /// A Clos is recognised by [`Tiers`](crate::Tiers): every cable joins neighbouring tiers, and between
    /// any two leaves some route up and then down is as short as any route at all. A Clos that lost cables
    /// or xbars is still one as long as this holds. An xbar without hosts in the lowest place (a leaf whose
    /// hosts are all off) counts as one of the top and does no harm there. Where spines have service
    /// adapters, one leaf is put above them, by which these are reached; a fabric with many hosts on its
    /// spines is no Clos.
    pub fn new(topology: &Topology, non_clos: bool) -> Self {
        let found = || {
            clos::recognise(topology)
                .or_else(|| direction_order::orient(topology))
                .or_else(|| tree::orient(topology))
        };
        if !non_clos && let Some(orientation) = found() {
            return orientation;
        }
        updown::orient(topology)
    }

    /// An orientation in which xbars stand in one order: by tiers if it is a Clos or another tree, by up*/down* elsewhere.
    pub(crate) fn by_xbars(topology: &Topology) -> Self {
        clos::recognise(topology)
            .or_else(|| tree::orient(topology))
            .unwrap_or_else(|| updown::orient(topology))
    }

    /// How many tiers a topology has, if it is a Clos as [`Self::new`] recognises it.
    pub(crate) fn clos_tiers(topology: &Topology) -> Option<u32> {
        match clos::recognise(topology)?.shape {
            Shape::Clos { tiers } => Some(tiers),
            _ => None,
        }
    }

    /// The orientation with up towards the beginning of an order.
    fn by_position(topology: &Topology, shape: Shape, position: Vec<u32>) -> Self {
        let passages = (0..topology.channel_count() as u32)
            .map(|channel| {
                let tail = position[topology.tail(channel).xbar as usize];
                let head = position[topology.head(channel).xbar as usize];
                match head.cmp(&tail) {
                    std::cmp::Ordering::Less => Passage::UP,
                    std::cmp::Ordering::Greater => Passage::DOWN,
                    std::cmp::Ordering::Equal => Passage::BARRED,
                }
            })
            .collect();
        Self::from_passages(topology, shape, 2, passages, LegalOrder::Xbars(position))
    }

    fn from_passages(
        topology: &Topology,
        shape: Shape,
        phases: u8,
        passages: Vec<Passage>,
        order: LegalOrder,
    ) -> Self {
        let ways_back = turned(topology, &passages);
        let backwards = ways_back.iter().map(|passage| passage.until).collect();
        Self { shape, phases, passages, ways_back, backwards, order }
    }

    /// This order on a topology that lost cables: see [`Topology::without`]. Their
    /// channels are barred; all others lead as before.
    pub fn carried_to(&self, cut: &Topology) -> Self {
        let barred = |(channel, &passage)| if cut.is_dead(channel) { Passage::BARRED } else { passage };
        let passages: Vec<Passage> = (0..).zip(&self.passages).map(barred).collect();
        Self { ways_back: turned(cut, &passages), passages, ..self.clone() }
    }

    /// Whether an xbar stands before another in the order of xbars, towards the top. It is always false if
    /// directions are ordered and not xbars.
    pub fn is_above(&self, xbar: u32, than: u32) -> bool {
        match &self.order {
            LegalOrder::Xbars(position) => position[xbar as usize] < position[than as usize],
            LegalOrder::Channels(_) => false,
        }
    }

    /// How many xbars the longest of the shortest legal routes between hosts passes. On a grid, whose directions are ordered, it is no
    /// more than what is told: there each dimension may be crossed from end to end.
    pub fn longest_route(&self, topology: &Topology) -> usize {
        if let Shape::Grid { sizes } = &self.shape {
            return 1 + sizes.iter().map(|&size| usize::from(size).saturating_sub(1)).sum::<usize>();
        }
        let xbars: Vec<u32> =
            (0..topology.xbar_count() as u32).filter(|&xbar| !topology.hosts_of(xbar).is_empty()).collect();
        let steps = |sources: &[u32]| reach::legal_steps(topology, self, sources, &xbars);
        xbars.chunks(reach::BLOCK).map(steps).max().map_or(0, |steps| steps + 1)
    }

    /// The shape that the orientation was made for.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many phases a route has, at least 1.
    pub fn phases(&self) -> u8 {
        self.phases
    }

    /// When routes may take a channel.
    pub(super) fn passage(&self, channel: u32) -> Passage {
        self.passages[channel as usize]
    }

    /// When routes may take a channel's way back.
    pub(super) fn passage_back(&self, channel: u32) -> Passage {
        self.ways_back[channel as usize]
    }

    /// For each channel, the last phase in which routes may take its way back.
    pub(super) fn backwards(&self) -> &Arc<[u8]> {
        &self.backwards
    }

    /// Which way a channel leads in the order of xbars; [`Direction::Barred`] also if there is no such order.
    pub fn direction(&self, channel: u32) -> Direction {
        match (self.passages[channel as usize], &self.order) {
            (Passage::UP, LegalOrder::Xbars(_)) => Direction::Up,
            (Passage::DOWN, LegalOrder::Xbars(_)) => Direction::Down,
            _ => Direction::Barred,
        }
    }

    /// Whether some route may go on from one channel to the next. A route whose steps are all allowed one by
    /// one is safe beside legal ones, though it may return to an earlier phase in the end.
    pub fn allows(&self, first: u32, second: u32) -> bool {
        self.passages[first as usize].leads_on_to(self.passages[second as usize])
    }

    /// A number for each channel that rises along every legal step.
    ///
    /// In an order of xbars the up channels come first, the lowest tail first; then the down channels, the
    /// highest head first.
    pub fn number(&self, topology: &Topology, channel: u32) -> u32 {
        match &self.order {
            LegalOrder::Channels(numbers) => numbers[channel as usize],
            LegalOrder::Xbars(position) => {
                let top = position.len() as u32;
                match self.direction(channel) {
                    Direction::Up => top - position[topology.tail(channel).xbar as usize],
                    Direction::Down | Direction::Barred => {
                        top + position[topology.head(channel).xbar as usize]
                    }
                }
            }
        }
    }

    /// Proves that legal steps cannot form a circle.
    ///
    /// In an order of xbars, it is checked channel by channel that an up channel leads to an xbar strictly
    /// earlier, a down channel to one strictly later. Then [`Self::number`] rises along up-up (the next tail
    /// is earlier), up-down (up numbers are at most, down numbers more than, the number of xbars)
    /// and down-down (the next head is later), and these are all the legal steps. Otherwise it is checked
    /// step by step that the number rises.
    ///
    /// # Errors
    /// If a channel leads the wrong way or a step is wrong, which the error names.
    pub fn prove(&self, topology: &Topology) -> Result<(), Violation> {
        let known = match &self.order {
            LegalOrder::Xbars(position) => position.len() == topology.xbar_count(),
            LegalOrder::Channels(numbers) => numbers.len() == topology.channel_count(),
        };
        if self.passages.len() != topology.channel_count() || !known {
            return Err(Violation::OtherTopology);
        }
        match &self.order {
            LegalOrder::Xbars(position) => self.prove_directions(topology, position),
            LegalOrder::Channels(numbers) => self.prove_steps(topology, numbers),
        }
    }

    fn prove_directions(&self, topology: &Topology, position: &[u32]) -> Result<(), Violation> {
        for channel in 0..topology.channel_count() as u32 {
            let (tail, head) = (topology.tail(channel), topology.head(channel));
            let (from, to) = (position[tail.xbar as usize], position[head.xbar as usize]);
            let sound = match self.passages[channel as usize] {
                Passage::UP => to < from,
                Passage::DOWN => to > from,
                passage => passage.is_barred(),
            };
            if !sound {
                return Err(Violation::Misoriented { tail, head });
            }
        }
        Ok(())
    }

    fn prove_steps(&self, topology: &Topology, numbers: &[u32]) -> Result<(), Violation> {
        for first in 0..topology.channel_count() as u32 {
            let rises = |&next: &u32| numbers[first as usize] < numbers[next as usize];
            let legal = |&next: &u32| self.allows(first, next);
            if let Some(next) = onward(topology, first).filter(legal).find(|next| !rises(next)) {
                return Err(Violation::StepBack {
                    arrival: topology.head(first),
                    out: topology.tail(next).port,
                });
            }
        }
        Ok(())
    }
}

/// For each channel, the passage of its way back.
fn turned(topology: &Topology, passages: &[Passage]) -> Vec<Passage> {
    let channels = 0..topology.channel_count() as u32;
    channels.map(|channel| passages[topology.reverse(channel) as usize]).collect()
}

/// Each xbar's place when they are sorted by a key, ties by number.
fn positions<K: Ord>(count: usize, key: impl Fn(u32) -> K) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|&xbar| key(xbar));
    let mut position = vec![0; count];
    for (place, &xbar) in order.iter().enumerate() {
        position[xbar as usize] = place as u32;
    }
    position
}
