//! Layers route by route, where the fabric is small enough: fewer than by datelines.

use super::lattice::Lattice;
use super::layer::TorusLayer;
use super::serve::Fabric;
use super::trees::TorusTrees;

/// Most steps of all routes that are put into layers one by one.
pub(super) const MOST_STEPS: usize = 2_000_000;

/// Puts each route between routers with hosts into the first layer that stays free of circles with it.
/// None if that takes more than `most` layers, or the fabric is too large for it.
///
/// This is how LASH does it (Skeie, Lysne, Theiss: "Layered Shortest Path Routing in Irregular System Area
/// Networks", 2002). The routes come class by class, and by falling length in each class: routes that cross
/// no dateline fill the first layer, and later classes use what earlier ones leave free. Layers stand by
/// destination and then by source.
pub(super) fn by_route(fabric: &Fabric<'_>, trees: &TorusTrees, most: u8) -> Option<(u8, Vec<u8>)> {
    let lattice = fabric.lattice;
    let routes = Routes::new(fabric, trees)?;
    let mut best: Option<(u8, Vec<u8>)> = None;
    for order in routes.orders(trees) {
        let most = best.as_ref().map_or(most, |best| best.0 - 1);
        if let Some(found) = routes.pack(lattice, &order, most) {
            best = Some(found);
        }
    }
    best
}

/// Routes as the channels that they pass.
struct Routes {
    pairs: Vec<(u32, u32)>,
    /// Route i: `channels[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    channels: Vec<u32>,
}

impl Routes {
    /// The routes of all pairs; `None` if they are too many.
    fn new(fabric: &Fabric<'_>, trees: &TorusTrees) -> Option<Self> {
        let routers = fabric.lattice.router_count() as u32;
        if routers as usize * routers as usize > MOST_STEPS {
            return None;
        }
        let mut routes = Self { pairs: Vec::new(), first: vec![0], channels: Vec::new() };
        for (source, destination) in (0..routers).flat_map(|one| (0..routers).map(move |other| (one, other)))
        {
            if !fabric.wants(source, destination) {
                continue;
            }
            let mut at = source;
            while let Some(heading) = trees.heading(at, destination) {
                routes.channels.push(6 * at + heading.index() as u32);
                at = fabric.lattice.next(at, heading)?;
            }
            if routes.channels.len() > MOST_STEPS {
                return None;
            }
            routes.pairs.push((source, destination));
            routes.first.push(routes.channels.len() as u32);
        }
        Some(routes)
    }

    fn of(&self, route: u32) -> &[u32] {
        &self.channels[self.first[route as usize] as usize..self.first[route as usize + 1] as usize]
    }

    /// The orders that are worth trying.
    fn orders(&self, trees: &TorusTrees) -> Vec<Vec<u32>> {
        let all = || (0..self.pairs.len() as u32).collect::<Vec<_>>();
        let class = |route: u32| {
            let (source, destination) = self.pairs[route as usize];
            trees.class(source, destination)
        };
        let length = |route: u32| std::cmp::Reverse(self.of(route).len());
        let mut by_class = all();
        by_class.sort_by_key(|&route| (class(route), length(route)));
        let mut by_length = all();
        by_length.sort_by_key(|&route| (length(route), class(route)));
        let mut by_datelines = all();
        by_datelines.sort_by_key(|&route| (class(route).count_ones(), class(route), length(route)));
        vec![by_class, by_length, all(), by_datelines]
    }

    fn pack(&self, lattice: &Lattice, order: &[u32], most: u8) -> Option<(u8, Vec<u8>)> {
        let routers = lattice.router_count();
        let mut layers: Vec<TorusLayer> = Vec::new();
        let mut of = vec![0; routers * routers];
        for &route in order {
            let channels = self.of(route);
            let mut found = layers.iter_mut().position(|layer| layer.add(channels));
            if found.is_none() && layers.len() < usize::from(most) {
                let mut layer = TorusLayer::new(lattice);
                if layer.add(channels) {
                    found = Some(layers.len());
                    layers.push(layer);
                }
            }
            let (source, destination) = self.pairs[route as usize];
            of[destination as usize * routers + source as usize] = found? as u8;
        }
        Some((layers.len().max(1) as u8, of))
    }
}
