//! The cables of each xbar in groups, up and down.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Subnet;
use super::ranks::Ranks;
use super::refusal::xbar_name;

/// The cables between an xbar and another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The other xbar.
    pub(super) far: u32,
    channels: Range<u32>,
}

/// The groups of all xbars in one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    base: Vec<u32>,
    groups: Vec<Group>,
    channels: Vec<u32>,
}

impl Side {
    /// The groups of an xbar, as numbers.
    pub(super) fn ids(&self, xbar: u32) -> Range<usize> {
        self.base[xbar as usize] as usize..self.base[xbar as usize + 1] as usize
    }

    /// The groups of an xbar.
    pub(super) fn of(&self, xbar: u32) -> &[Group] {
        &self.groups[self.ids(xbar)]
    }

    /// Some xbars in classes: those of one class have groups to the same xbars.
    pub(super) fn alike(&self, xbars: &[u32]) -> Vec<Vec<u32>> {
        let mut classes: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for &xbar in xbars {
            let fars = self.of(xbar).iter().map(|group| group.far).collect();
            classes.entry(fars).or_default().push(xbar);
        }
        classes.into_values().collect()
    }

    /// A group by its number.
    pub(super) fn group(&self, id: usize) -> &Group {
        &self.groups[id]
    }

    /// How many groups there are in all.
    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The places of the channels of all groups of an xbar among the channels of this side.
    pub(super) fn places(&self, xbar: u32) -> Range<usize> {
        let groups = self.of(xbar);
        let ends = groups.first().zip(groups.last());
        ends.map_or(0..0, |(first, last)| first.channels.start as usize..last.channels.end as usize)
    }

    /// All channels of this side, group by group.
    pub(super) fn all_channels(&self) -> &[u32] {
        &self.channels
    }

    /// The channels out of the xbar in a group, by port.
    pub(super) fn channels(&self, group: &Group) -> &[u32] {
        &self.channels[group.channels.start as usize..group.channels.end as usize]
    }
}

/// A subnet as a tree.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    /// The subnet.
    pub(super) subnet: &'a Subnet,
    /// Each xbar's rank.
    pub(super) ranks: Ranks,
    /// Groups that lead to the rank above.
    pub(super) up: Side,
    /// Groups that lead to the rank below.
    pub(super) down: Side,
    /// Each xbar's place in its rank.
    pub(super) place: Vec<u32>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(subnet: &'a Subnet, ranks: Ranks) -> Self {
        let place = places(subnet, &ranks);
        let up = side(subnet, &ranks, &place, true);
        let down = side(subnet, &ranks, &place, false);
        Self { subnet, ranks, up, down, place }
    }

    /// An xbar's rank.
    pub(super) fn rank(&self, xbar: u32) -> u8 {
        self.ranks.of[xbar as usize]
    }

    /// How many xbars there are.
    pub(super) fn xbar_count(&self) -> usize {
        self.ranks.of.len()
    }

    /// The hosts that are cabled to an xbar.
    pub(super) fn hosts_at(&self, xbar: u32) -> u32 {
        self.subnet.destinations.host_slots_of(xbar).len() as u32
    }

    /// The first rule of full fat trees that does not hold: in one rank all xbars have equally many groups
    /// up, equally many down unless they have hosts, and equally many cables in each group.
    pub(super) fn irregularity(&self) -> Option<String> {
        self.ranks.xbars.iter().find_map(|xbars| {
            let all = || xbars.iter().copied();
            let inner = || all().filter(|&xbar| self.hosts_at(xbar) == 0);
            odd_one(all().map(|xbar| (xbar, self.up.of(xbar).len())))
                .map(|odd| self.say(odd, "groups of cables up"))
                .or_else(|| {
                    odd_one(inner().map(|xbar| (xbar, self.down.of(xbar).len())))
                        .map(|odd| self.say(odd, "groups of cables down"))
                })
                .or_else(|| odd_one(sizes(&self.up, xbars)).map(|odd| self.say(odd, "cables in a group up")))
                .or_else(|| {
                    odd_one(sizes(&self.down, xbars)).map(|odd| self.say(odd, "cables in a group down"))
                })
        })
    }

    fn say(&self, (xbar, has, usual): (u32, usize, usize), what: &str) -> String {
        let name = xbar_name(self.subnet, xbar);
        format!("{name} on rank {} has {has} {what}, most others there have {usual}", self.rank(xbar))
    }
}

/// The sizes of all groups of some xbars.
fn sizes<'a>(side: &'a Side, xbars: &'a [u32]) -> impl Iterator<Item = (u32, usize)> + 'a {
    xbars
        .iter()
        .flat_map(move |&xbar| side.of(xbar).iter().map(move |group| (xbar, side.channels(group).len())))
}

/// The first whose count is not the most frequent one, its count, and the most frequent count.
fn odd_one(counts: impl Iterator<Item = (u32, usize)>) -> Option<(u32, usize, usize)> {
    let counts: Vec<_> = counts.collect();
    let mut frequency: BTreeMap<usize, usize> = BTreeMap::new();
    counts.iter().for_each(|&(_, count)| *frequency.entry(count).or_default() += 1);
    let (&usual, _) = frequency.iter().max_by_key(|&(&count, &times)| (times, count))?;
    let odd = counts.into_iter().find(|&(_, count)| count != usual);
    odd.map(|(xbar, count)| (xbar, count, usual))
}

/// Numbers the xbars of each rank so that those with the same parents stand together.
///
/// So groups that are taken in this order lead to the same plane of the tree from every leaf, whatever
/// the ports or the numbers of the xbars between.
fn places(subnet: &Subnet, ranks: &Ranks) -> Vec<u32> {
    let topology = &subnet.topology;
    let mut place = vec![0; ranks.of.len()];
    for xbars in &ranks.xbars {
        let mut sorted: Vec<(u32, u32)> = xbars
            .iter()
            .map(|&xbar| {
                let parents = topology
                    .channels_of(xbar)
                    .filter(|&channel| !topology.is_dead(channel))
                    .map(|channel| topology.head(channel).xbar)
                    .filter(|&far| ranks.of[far as usize] < ranks.of[xbar as usize]);
                (parents.map(|parent| place[parent as usize]).min().unwrap_or(u32::MAX), xbar)
            })
            .collect();
        sorted.sort_unstable();
        (0..).zip(sorted).for_each(|(number, (_, xbar))| place[xbar as usize] = number);
    }
    place
}

fn side(subnet: &Subnet, ranks: &Ranks, place: &[u32], up: bool) -> Side {
    let topology = &subnet.topology;
    let mut side = Side { base: vec![0], ..Side::default() };
    let mut channels: Vec<(u32, u32)> = Vec::new();
    for xbar in 0..ranks.of.len() as u32 {
        let rank = ranks.of[xbar as usize];
        let leads_there = |far: u32| {
            let far = ranks.of[far as usize];
            if up { far < rank } else { far > rank }
        };
        channels.clear();
        channels.extend(
            topology
                .channels_of(xbar)
                .filter(|&channel| !topology.is_dead(channel))
                .map(|channel| (topology.head(channel).xbar, channel))
                .filter(|&(far, _)| leads_there(far)),
        );
        channels.sort_unstable_by_key(|&(far, channel)| (place[far as usize], channel));
        for group in channels.chunk_by(|a, b| a.0 == b.0) {
            let start = side.channels.len() as u32;
            side.channels.extend(group.iter().map(|&(_, channel)| channel));
            side.groups.push(Group { far: group[0].0, channels: start..side.channels.len() as u32 });
        }
        side.base.push(side.groups.len() as u32);
    }
    side
}
