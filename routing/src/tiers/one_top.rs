//! An order of xbars for routes up and then down that joins the adapters of spines, too.
//!
//! No way up and then down leads from one spine to another, nor from a leaf to a spine that it has no cable to. So one
//! leaf, the *hub*, is put above everything, and the spines that it reaches by going up stand below it in the order in
//! which it reaches them:
//!
//! ```text
//!      the order of the tree                     the order with one top
//!
//!      spine   spine   spine                        hub
//!        | \   / | \   / |                       /   |   \
//!       hub   leaf   leaf                   spine  spine  spine
//!                                               \ /  \   /  |
//!                                               leaf   leaf
//! ```
//!
//! A route of the tree between two leaves stays one that goes up and then down, as it passes the xbars below the hub in
//! one of two ways. Either it climbs to some of them from elsewhere and descends from there as before; or it comes from
//! below the hub, climbs among them, which now leads down, and goes on down. What would come down to two of them one
//! after the other, after it went down elsewhere, had a shorter way below.
//!
//! Where the hub has no way up to some spine (a cable is missing), the first leaf below that spine which has one to the
//! rest is put above that spine alone. So in the end a way up leads from every xbar to the hub, and with it a legal
//! way from every xbar to every other one. And it is an order, so no routes that keep to it can wait for each other in a
//! circle, whatever the shape is; whether routes stay as short is for whoever uses it to look at.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rayon::prelude::*;

use super::{Tiers, cabled_hosts, neighbours};
use crate::Topology;

/// An order in which, in the parts of these xbars, ways up lead from all xbars of a part to one. Other parts
/// stay as they are in the order that is given. Both orders say for each xbar its place, counted from the
/// top; no two places are alike.
pub(crate) fn with_one_top(topology: &Topology, tiers: &Tiers, place: &[u32], xbars: &[u32]) -> Vec<u32> {
    let mut parts: Vec<u32> = xbars.iter().map(|&xbar| topology.component(xbar)).collect();
    parts.sort_unstable();
    parts.dedup();
    let mut turned = Turned::new(topology, place);
    for part in parts {
        let leaves = tiers.leaves().iter().copied().filter(|&leaf| topology.component(leaf) == part);
        // Leaves of a pod step up to the same xbars, and all ways up from there are alike.
        let mut alike: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        leaves.for_each(|leaf| alike.entry(turned.parents(leaf).to_vec()).or_default().push(leaf));
        let key = |&leaf: &u32| (Reverse(cabled_hosts(topology, leaf)), Reverse(leaf));
        let firsts = alike.into_values().filter_map(|leaves| leaves.into_iter().max_by_key(key));
        let firsts: Vec<u32> = firsts.collect();
        if let Some(&hub) = firsts.par_iter().max_by_key(|&leaf| (turned.cone(*leaf).len(), key(leaf))) {
            turned.join(hub);
        }
    }
    turned.places()
}

/// Stands for an xbar that is below no hub.
const NONE: u32 = u32::MAX;

/// An order in which some steps are turned over.
struct Turned<'a> {
    topology: &'a Topology,
    /// The order as it was given.
    place: &'a [u32],
    /// The xbars that steps up lead to in that order, those of each xbar together, and where those of each begin; one more
    /// for the end.
    parents: Vec<u32>,
    first_parent: Vec<u32>,
    /// The hubs, in the order in which they were chosen.
    hubs: Vec<u32>,
    /// By xbar, the number of the hub that it was put below; or [`NONE`].
    below: Vec<u32>,
    /// By xbar, whether ways up lead to the first hub of its part.
    is_joined: Vec<bool>,
}

impl<'a> Turned<'a> {
    fn new(topology: &'a Topology, place: &'a [u32]) -> Self {
        let count = place.len();
        let (mut parents, mut first_parent) = (Vec::new(), vec![0]);
        for (xbar, &own) in (0..).zip(place) {
            parents.extend(neighbours(topology, xbar).filter(|&head| place[head as usize] < own));
            first_parent.push(parents.len() as u32);
        }
        let (below, is_joined) = (vec![NONE; count], vec![false; count]);
        Self { topology, place, parents, first_parent, hubs: Vec::new(), below, is_joined }
    }

    /// The xbars that an xbar's steps up lead to in the order that was given.
    fn parents(&self, xbar: u32) -> &[u32] {
        let begin = self.first_parent[xbar as usize] as usize;
        &self.parents[begin..self.first_parent[xbar as usize + 1] as usize]
    }

    /// The xbars that ways up from an xbar lead to and that are not joined yet.
    fn cone(&self, from: u32) -> Vec<u32> {
        let mut cone: Vec<u32> = Vec::new();
        let mut is_met = vec![false; self.place.len()];
        let mut stack = vec![from];
        while let Some(xbar) = stack.pop() {
            for &parent in self.parents(xbar).iter().filter(|&&parent| !self.is_joined[parent as usize]) {
                if !std::mem::replace(&mut is_met[parent as usize], true) {
                    cone.push(parent);
                    stack.push(parent);
                }
            }
        }
        cone
    }

    /// Joins all of a part with a hub. The xbars that ways up from it lead to are put below it. Where that
    /// leaves xbars out, they are put below the highest joined xbar that steps up to one of them.
    ///
    /// It is the highest because then no step from an xbar put below it comes back to what stands above its
    /// hub.
    fn join(&mut self, top: u32) {
        self.spread(vec![top]);
        let mut hub = Some(top);
        while let Some(xbar) = hub {
            let number = self.hubs.len() as u32;
            self.hubs.push(xbar);
            let cone = self.cone(xbar);
            cone.iter().for_each(|&below| self.below[below as usize] = number);
            self.spread(cone);
            let part = self.topology.component(top);
            hub = (0..self.place.len() as u32)
                .filter(|&xbar| self.topology.component(xbar) == part && self.is_joined[xbar as usize])
                .filter(|&xbar| self.parents(xbar).iter().any(|&parent| !self.is_joined[parent as usize]))
                .min_by_key(|&xbar| self.place[xbar as usize]);
        }
    }

    /// Marks some xbars as joined, and all from which ways up lead to them.
    fn spread(&mut self, mut stack: Vec<u32>) {
        stack.iter().for_each(|&xbar| self.is_joined[xbar as usize] = true);
        while let Some(xbar) = stack.pop() {
            let own = self.place[xbar as usize];
            for child in neighbours(self.topology, xbar) {
                if self.place[child as usize] > own
                    && !std::mem::replace(&mut self.is_joined[child as usize], true)
                {
                    stack.push(child);
                }
            }
        }
    }

    /// Whether a step between neighbours leads up.
    fn climbs(&self, from: u32, to: u32) -> bool {
        let climbed = self.place[to as usize] < self.place[from as usize];
        let (low, high) = if climbed { (from, to) } else { (to, from) };
        let hub = self.below[high as usize];
        let is_turned = hub != NONE && (self.below[low as usize] == hub || self.hubs[hub as usize] == low);
        climbed != is_turned
    }

    /// A place for each xbar such that all steps keep to these places (Kahn, 1962); xbars that this leaves
    /// over keep the order that was given.
    fn places(&self) -> Vec<u32> {
        let count = self.place.len();
        let children =
            |xbar: u32| neighbours(self.topology, xbar).filter(|&head| !self.climbs(xbar, head)).collect();
        let children: Vec<Vec<u32>> = (0..count as u32).into_par_iter().map(children).collect();
        let mut above = vec![0_u32; count];
        children.iter().flatten().for_each(|&child| above[child as usize] += 1);
        let free = (0..count as u32).filter(|&xbar| above[xbar as usize] == 0);
        let mut ready: BinaryHeap<Reverse<(u32, u32)>> =
            free.map(|xbar| Reverse((self.place[xbar as usize], xbar))).collect();
        let mut places = vec![NONE; count];
        let mut next = 0;
        while let Some(Reverse((_, xbar))) = ready.pop() {
            places[xbar as usize] = next;
            next += 1;
            for &head in &children[xbar as usize] {
                above[head as usize] -= 1;
                if above[head as usize] == 0 {
                    ready.push(Reverse((self.place[head as usize], head)));
                }
            }
        }
        // No circle of steps is left, as join says; if there were one, any order would still be safe.
        let mut left: Vec<u32> = (0..count as u32).filter(|&xbar| places[xbar as usize] == NONE).collect();
        left.sort_unstable_by_key(|&xbar| self.place[xbar as usize]);
        for xbar in left {
            places[xbar as usize] = next;
            next += 1;
        }
        places
    }
}
