//! Extended generalised fat trees.

use mapper_proto::map::Fabric;

use super::builder::Builder;
use super::service::Service;
use super::spec::{Spec, SpecError};
use super::{MAX_PORTS, MAX_XBARS};

/// The most levels of xbars that a tree may have.
const MAX_LEVELS: u64 = 16;

/// `xgft:h=H;m=..;w=..`: the extended generalised fat tree XGFT(H; m1..mH; w1..wH) of Öhring,
/// Ibel, Das and Kumar, "On Generalized Fat Trees" (IPPS 1995).
///
/// A node at level i (hosts are level 0) has m(i) children and w(i+1) parents. A host has one
/// interface, so w1 must be 1. With `service=every`, a service adapter sits at the last port of every xbar; with
/// `service=spines`, of every one above the leaves.
pub(super) fn xgft(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["h", "m", "w", "ports", "service"])?;
    let height = spec.number("h", 1..=MAX_LEVELS)? as usize;
    let m = spec.list_of("m", height, 1..=MAX_PORTS)?;
    let w = spec.list_of("w", height, 1..=MAX_PORTS)?;
    if w[0] != 1 {
        return Err(spec.bad("w", &w[0].to_string(), "1 first, for a host has one interface"));
    }
    let needed = (0..height).map(|level| m[level] + w.get(level + 1).unwrap_or(&0)).max();
    let service = Service::of(spec)?;
    let ports = spec.ports(needed.unwrap_or(0) + u64::from(service != Service::None))?;
    let hosts = m.iter().try_fold(1_u64, |product, &m| product.checked_mul(m)).unwrap_or(u64::MAX);
    Tree { m, w, ports, hosts, service }.build(spec)
}

/// An XGFT whose first `hosts` hosts exist, less the xbars that have none below.
struct Tree {
    /// Children of a node at each level, from the leaves up.
    m: Vec<u64>,
    /// Parents of a node one level below, from the hosts up.
    w: Vec<u64>,
    ports: u8,
    hosts: u64,
    service: Service,
}

/// One level of xbars.
///
/// Its subtrees (sets of xbars with the same hosts below) count from the left, and so do the
/// `width` xbars within each.
struct Level {
    /// Index of its first xbar.
    first: u64,
    /// Subtrees with a host.
    subtrees: u64,
    /// Xbars in a subtree.
    width: u64,
}

impl Tree {
    fn levels(&self) -> Vec<Level> {
        let (mut first, mut below, mut width) = (0_u64, 1_u64, 1_u64);
        let mut levels = Vec::new();
        for (&m, &w) in self.m.iter().zip(&self.w) {
            below = below.saturating_mul(m);
            width = width.saturating_mul(w);
            let subtrees = self.hosts.div_ceil(below);
            levels.push(Level { first, subtrees, width });
            first = first.saturating_add(subtrees.saturating_mul(width));
        }
        levels
    }

    fn build(&self, spec: &Spec<'_>) -> Result<Fabric, SpecError> {
        let levels = self.levels();
        let xbars = levels
            .iter()
            .fold(0_u64, |sum, level| sum.saturating_add(level.subtrees.saturating_mul(level.width)));
        let unserved = match self.service {
            Service::Every => 0,
            Service::Spines => {
                levels.first().map_or(0, |leaves| leaves.subtrees.saturating_mul(leaves.width))
            }
            Service::None => xbars,
        };
        let hosts = self.hosts.saturating_add(xbars.saturating_sub(unserved));
        spec.check_size(xbars.min(MAX_XBARS + 1), hosts)?;
        let mut builder = Builder::default();
        for (height, level) in levels.iter().enumerate() {
            for number in 1..=level.subtrees * level.width {
                builder.xbar(name(height, self.m.len(), number), self.ports);
            }
        }
        for host in 0..self.hosts {
            builder.host((host / self.m[0]) as u32, host % self.m[0] + 1);
        }
        for (height, pair) in levels.windows(2).enumerate() {
            self.cable_levels(&mut builder, height, &pair[0], &pair[1]);
        }
        (unserved as u32..xbars as u32).for_each(|xbar| builder.service_adapter(xbar, self.ports.into()));
        Ok(builder.finish())
    }

    /// Cables each xbar of a level to its parents. Ports down come first, then those up.
    fn cable_levels(&self, builder: &mut Builder, height: usize, lower: &Level, upper: &Level) {
        let children = self.m[height + 1];
        for subtree in 0..lower.subtrees {
            for position in 0..lower.width {
                let child = (lower.first + subtree * lower.width + position) as u32;
                for up in 0..self.w[height + 1] {
                    let in_parents = up * lower.width + position;
                    let parent = (upper.first + subtree / children * upper.width + in_parents) as u32;
                    builder.cable((child, self.m[height] + up + 1), (parent, subtree % children + 1));
                }
            }
        }
    }
}

/// What the `number`-th xbar of a level is called, in a tree of so many levels.
pub(super) fn name(height: usize, levels: usize, number: u64) -> String {
    match (height, levels) {
        (0, 1) => format!("xbar{number}"),
        (0, _) => format!("leaf{number}"),
        (height, levels) if height + 1 == levels => format!("spine{number}"),
        (_, 3) => format!("mid{number}"),
        (height, _) => format!("mid{height}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::generate;

    #[test]
    fn a_tree_may_have_service_adapters_on_its_switches() {
        for (service, adapters) in [("every", 108), ("spines", 72), ("none", 0)] {
            let fabric = generate(&format!("xgft:h=3;m=6,6,6;w=1,6,6;service={service}")).unwrap();
            assert_eq!((fabric.map.xbars.len(), fabric.map.hosts.len()), (108, 216 + adapters), "{service}");
            let served = fabric.hosts.iter().filter(|label| label.description == "Aggregation Node");
            assert_eq!(served.count(), adapters, "{service}");
        }
    }
}
