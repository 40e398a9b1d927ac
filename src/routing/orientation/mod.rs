//! Which way is up: a direction for every channel that all agents of a map derive alike.

mod clos;
mod reach;
mod updown;

use super::Topology;
use super::proof::Violation;

/// Which way a channel leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards the top tier, or the root.
    Up,
    /// Away from it.
    Down,
    /// Back into its own xbar. No route may use it.
    Barred,
}

/// What an orientation was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A folded Clos, so every shortest route is legal.
    Clos {
        /// How many tiers of xbars it has.
        tiers: u32,
    },
    /// Anything else, by up*/down*.
    UpDown {
        /// The root of each connected part, by rising part.
        roots: Vec<u32>,
    },
}

/// An up and a down end for every cable.
///
/// A route is *legal* if no up channel follows a down channel. The xbars stand in one order, and up
/// is towards its beginning, so legal routes can never wait for each other in a circle:
/// [`Self::number`] rises along every step from one channel to the next. (Schroeder et al.,
/// "Autonet", 1991.)
///
/// It is a function of the topology alone, so agents that hold the same map agree on it without a
/// word.
#[derive(Clone, Debug)]
pub struct Orientation {
    shape: Shape,
    /// Where each xbar stands in the order, the top first.
    position: Vec<u32>,
    directions: Vec<Direction>,
}

impl Orientation {
    /// Orients a topology: by tiers if it is a Clos, unless `non_clos` forces up*/down*.
    ///
    /// A Clos is recognised by tiers, counted from the xbars that have hosts: every cable joins
    /// neighbouring tiers, and between any two xbars with hosts some route up and then down is as
    /// short as any route at all. A Clos that lost cables or xbars is still one as long as this
    /// holds. An xbar without hosts in the lowest place (a leaf whose hosts are all off) counts as
    /// one of the top and does no harm there. A fabric with hosts on its spines is no Clos.
    pub fn new(topology: &Topology, non_clos: bool) -> Self {
        if !non_clos && let Some(orientation) = clos::recognise(topology) {
            return orientation;
        }
        updown::orient(topology)
    }

    /// The orientation with up towards the beginning of an order.
    fn by_position(topology: &Topology, shape: Shape, position: Vec<u32>) -> Self {
        let directions = (0..topology.channel_count() as u32)
            .map(|channel| {
                let tail = position[topology.tail(channel).xbar as usize];
                let head = position[topology.head(channel).xbar as usize];
                match head.cmp(&tail) {
                    std::cmp::Ordering::Less => Direction::Up,
                    std::cmp::Ordering::Greater => Direction::Down,
                    std::cmp::Ordering::Equal => Direction::Barred,
                }
            })
            .collect();
        Self { shape, position, directions }
    }

    /// The same order of xbars on a topology that lost cables: see [`Topology::without`]. Their
    /// channels are barred; all others lead as before.
    pub fn carried_to(&self, cut: &Topology) -> Self {
        let barred = |(channel, &direction)| if cut.is_dead(channel) { Direction::Barred } else { direction };
        Self { directions: (0..).zip(&self.directions).map(barred).collect(), ..self.clone() }
    }

    /// Where an xbar stands in the order, the top first.
    pub fn position(&self, xbar: u32) -> u32 {
        self.position[xbar as usize]
    }

    /// What it was made from.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Which way a channel leads.
    pub fn direction(&self, channel: u32) -> Direction {
        self.directions[channel as usize]
    }

    /// Whether a route may go on from one channel to the next.
    pub fn allows(&self, first: u32, second: u32) -> bool {
        match (self.direction(first), self.direction(second)) {
            (Direction::Barred, _) | (_, Direction::Barred) => false,
            (Direction::Down, Direction::Up) => false,
            (Direction::Up, _) | (Direction::Down, Direction::Down) => true,
        }
    }

    /// A number for each channel that rises along every legal step.
    ///
    /// The up channels come first, the lowest tail first; then the down channels, the highest head
    /// first.
    pub fn number(&self, topology: &Topology, channel: u32) -> u32 {
        let top = self.position.len() as u32;
        match self.direction(channel) {
            Direction::Up => top - self.position[topology.tail(channel).xbar as usize],
            Direction::Down | Direction::Barred => top + self.position[topology.head(channel).xbar as usize],
        }
    }

    /// Proves that legal steps cannot form a circle.
    ///
    /// Checked channel by channel: an up channel leads to an xbar strictly earlier in the order, a
    /// down channel to one strictly later. Then [`Self::number`] rises along up-up (the next tail
    /// is earlier), up-down (up numbers are at most, down numbers more than, the number of xbars)
    /// and down-down (the next head is later), and these are all the legal steps.
    ///
    /// # Errors
    /// Names a channel that leads the wrong way.
    pub fn prove(&self, topology: &Topology) -> Result<(), Violation> {
        if self.directions.len() != topology.channel_count() || self.position.len() != topology.xbar_count() {
            return Err(Violation::OtherTopology);
        }
        for (channel, &direction) in self.directions.iter().enumerate() {
            let (tail, head) = (topology.tail(channel as u32), topology.head(channel as u32));
            let (from, to) = (self.position[tail.xbar as usize], self.position[head.xbar as usize]);
            let sound = match direction {
                Direction::Up => to < from,
                Direction::Down => to > from,
                Direction::Barred => true,
            };
            if !sound {
                return Err(Violation::Misoriented { tail, head });
            }
        }
        Ok(())
    }
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
