//! Tables that were in force. All entries of their trees that lead on along a shortest way stay.

use mapper_proto::map::PortRef;

use super::{Choice, Grower, Growing, ROUNDS};
use crate::engines::shared::Shared;
use crate::engines::trees::Trees;
use crate::engines::{Routing, Settings, in_force};
use crate::tables::Layers;
use crate::{Far, Subnet, Tables};

/// The note if the kept trees cannot serve.
const ALL_ANEW: &str = "previous tables: with what is right in them, routes need more layers than may be used; all is routed anew";

/// Trees that keep entries of tables that were in force.
pub(in crate::engines) struct KeptTrees {
    /// Shortest routes, one tree to each address of a host, or one to each xbar whose addresses have the same.
    trees: Trees,
    /// Whether all frames can go along them in one layer.
    are_in_one_layer: bool,
}

/// The tables that keep all entries of those in force that lead on along a shortest way, if there were tables
/// in force. They are in one layer if that is free of circles, or else in those that `layers_of` finds for
/// their trees; if it finds none, `notes` says why all is routed anew.
pub(in crate::engines) fn serve(
    subnet: &Subnet,
    settings: &Settings,
    shared: &Shared<'_>,
    notes: &mut Vec<String>,
    layers_of: impl FnOnce(&Trees) -> Option<Layers>,
) -> Option<Routing> {
    let in_force = in_force::tables(settings)?;
    let kept = shared.kept(in_force);
    let layers = if kept.are_in_one_layer {
        Some(Layers::starting_at(settings.first_layer))
    } else {
        layers_of(&kept.trees)
    };
    notes.extend(layers.is_none().then(|| ALL_ANEW.to_owned()));
    layers.map(|layers| Routing {
        tables: kept.tables(subnet, settings, in_force),
        layers,
        notes: Vec::new(),
    })
}

impl KeptTrees {
    /// Grows the trees. Entries that do not lead on are chosen by the least loads once all trees that stay
    /// whole are counted, and again once all trees are.
    pub(in crate::engines) fn grow(subnet: &Subnet, in_force: &Tables, xbar_destinations: bool) -> Self {
        let mut trees = Trees::begin(subnet.topology.xbar_count());
        let mut grower = Grower::new(subnet, Choice::LeastLoadedByHost);
        let (hosts, adapters) = grower.plant(&mut trees);
        let row = |tree: &Growing| in_force.of_slot(tree.slot);
        let mut broken = Vec::new();
        for tree in hosts.iter().chain(&adapters) {
            if grower.leads_on_everywhere(tree, row(tree)) {
                grower.grow(tree, &mut trees, row(tree));
            } else {
                broken.push(tree);
            }
        }
        broken.iter().for_each(|tree| grower.grow(tree, &mut trees, row(tree)));
        for _ in 0..ROUNDS {
            for tree in &broken {
                grower.take_away(tree, &trees);
                grower.grow(tree, &mut trees, row(tree));
            }
        }
        let trees = trees.without_doubles();
        let are_in_one_layer = trees.fit_one_layer(subnet, xbar_destinations);
        Self { trees, are_in_one_layer }
    }

    /// The trees as tables. Entries for xbars' own addresses stay as they are. But if frames for these are
    /// proved, too, they go along the trees, for which layers were found.
    fn tables(&self, subnet: &Subnet, settings: &Settings, in_force: &Tables) -> Tables {
        let mut tables = self.trees.tables(subnet);
        if settings.xbar_destinations {
            return tables;
        }
        let mut grower = Grower::new(subnet, Choice::LeastLoadedByHost);
        for end in 0..subnet.topology.xbar_count() as u32 {
            let own = subnet.destinations.slots_of(end).start;
            let before = in_force.of_slot(own);
            grower.search(end);
            let mut row = tables.of_slot(own).to_vec();
            for &xbar in &grower.reached[1..] {
                if grower.next(xbar, before[xbar as usize]).is_some() {
                    row[xbar as usize] = before[xbar as usize];
                }
            }
            tables.set_row(own, &row);
        }
        tables
    }
}

impl Grower<'_> {
    /// Whether all entries of a row lead on along a shortest way to a tree's destination.
    fn leads_on_everywhere(&mut self, tree: &Growing, row: &[u8]) -> bool {
        self.search(tree.end);
        self.reached[1..].iter().all(|&xbar| self.next(xbar, row[xbar as usize]).is_some())
    }

    /// The channel out of a port of an xbar, if a shortest way leads on there to the destination that was searched for last.
    pub(super) fn next(&self, xbar: u32, port: u8) -> Option<u32> {
        let topology = &self.subnet.topology;
        let Far::Channel(channel) = topology.far(PortRef { xbar, port }) else { return None };
        let next = topology.head(channel).xbar;
        (!topology.is_dead(channel) && self.hops[next as usize] < self.hops[xbar as usize]).then_some(channel)
    }
}
