//! Dragonflies.

use mapper_proto::map::Fabric;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::{MAX_PORTS, MAX_XBARS};

/// `dragonfly:a=A,p=P,h=H[,groups=G]`: groups of A xbars, all cabled to all, each with P hosts
/// and H cables to other groups, after Kim, Dally, Scott and Abts, "Technology-Driven,
/// Highly-Scalable Dragonfly Topology" (ISCA 2008).
///
/// Ports 1..=P lead to hosts, the next A-1 to other xbars of the group, the last H to other groups.
/// Cables between groups are laid out as a palm tree: the k-th of a group leads k groups on. There are
/// A·H+1 groups unless `groups` asks for fewer; then all pairs of groups have equally many cables, as
/// many as there are ports for.
pub(super) fn dragonfly(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["a", "p", "h", "groups", "ports"])?;
    let a = spec.number("a", 1..=MAX_PORTS)?;
    let p = spec.number("p", 0..=MAX_PORTS)?;
    let h = spec.number("h", 0..=MAX_PORTS)?;
    let groups = spec.optional("groups", 1..=a * h + 1)?.unwrap_or(a * h + 1);
    let ports = spec.ports((p + a - 1 + h).max(1))?;
    spec.check_size((groups * a).min(MAX_XBARS + 1), groups * a * p)?;
    let mut builder = Builder::default();
    for group in 0..groups {
        for router in 0..a {
            let xbar = builder.xbar(format!("g{}r{}", group + 1, router + 1), ports);
            builder.hosts(xbar, 1, p);
        }
    }
    for group in 0..groups {
        for low in 0..a {
            for high in low + 1..a {
                // An xbar's ports to its group count the other xbars, so those above it move down by one.
                let xbar = |router| (group * a + router) as u32;
                builder.cable((xbar(low), p + high), (xbar(high), p + low + 1));
            }
        }
        let others = groups - 1;
        let rounds = (a * h).checked_div(others).unwrap_or(0);
        for round in 0..rounds {
            for step in 0..others {
                let far = (group + step + 1) % groups;
                if group < far {
                    let end = |group, link| ((group * a + link / h) as u32, p + a + link % h);
                    let back = others - 1 - step;
                    builder.cable(end(group, round * others + step), end(far, round * others + back));
                }
            }
        }
    }
    Ok(builder.finish())
}
