//! Folded Clos networks of as few xbars as can be.
//!
//! Let d be half of an xbar's ports. A leaf has d hosts and d cables up, an xbar of a middle level has d
//! cables each way, and an xbar of the top level has 2d cables down. A *pod* is a set of leaves with all the
//! xbars above them, below the top, that reach no other leaf. Two conditions decide how many xbars there are.
//! First, no level may be narrower than the leaves: a pod has at least as many xbars at each of its levels as
//! it has leaves, and the top at least half as many as there are leaves. Second, each xbar above a pod has a
//! cable to it, so that it reaches every host below: in a pod of few leaves that takes more xbars than the
//! first condition. Where a level above is narrow, several cables join the same two xbars.

use mapper_proto::map::Fabric;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::tree::name;
use super::{MAX_HOSTS, MAX_PORTS};

/// `clos:hosts=H,ports=P`: the smallest folded Clos of P-port xbars with as few levels as hold H hosts.
///
/// With d = P/2, L levels hold 2·d^L hosts. One level is a single xbar, two are leaves and spines. Hosts fill
/// the leaves in order; leaves are shared among as few pods as hold them, as equally as can be.
pub(super) fn clos(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["hosts", "ports"])?;
    let hosts = spec.number("hosts", 1..=MAX_HOSTS)?;
    let ports = spec.number("ports", 2..=MAX_PORTS)?;
    let mut builder = Builder::default();
    if hosts <= ports {
        builder.xbar(name(0, 1, 1), ports as u8);
        (0..hosts).for_each(|host| builder.host(0, host + 1));
        return Ok(builder.finish());
    }
    let half = ports / 2;
    let leaves = hosts.div_ceil(half);
    // A pod right below the top has at most `pod_leaves` leaves; `levels` does not count the top.
    let (mut pod_leaves, mut levels) = (1, 1);
    while 2 * half * pod_leaves < leaves {
        if half < 2 {
            return Err(spec.bad("ports", &ports.to_string(), format!("at least 4 for {hosts} hosts")));
        }
        pod_leaves *= half;
        levels += 1;
    }
    let top = Pod::top(half, leaves, pod_leaves);
    let mut widths = vec![0; levels + 1];
    top.count(levels, &mut widths);
    spec.check_size(widths.iter().sum(), hosts)?;
    for (height, &width) in widths.iter().enumerate() {
        for number in 1..=width {
            builder.xbar(name(height, levels + 1, number), ports as u8);
        }
    }
    (0..hosts).for_each(|host| builder.host((host / half) as u32, host % half + 1));
    let mut next = first_of_levels(&widths);
    top.cable(&mut builder, half, levels, &mut next);
    Ok(builder.finish())
}

/// The number of each level's first xbar.
fn first_of_levels(widths: &[u64]) -> Vec<u64> {
    let first = |sum: &mut u64, width: &u64| {
        let first = *sum;
        *sum += width;
        Some(first)
    };
    widths.iter().scan(0, first).collect()
}

/// A pod as the module describes it, or the whole network with the top as its highest level.
struct Pod {
    /// Xbars of its highest level.
    width: u64,
    /// Cables up from all xbars of the highest level together; none in the whole network.
    up: u64,
    /// The pods one level lower; a leaf has none.
    children: Vec<Pod>,
}

impl Pod {
    /// The whole network over `leaves` leaves, of pods of at most `pod_leaves` leaves each.
    fn top(half: u64, leaves: u64, pod_leaves: u64) -> Self {
        Self::new(half, 2 * half, leaves, pod_leaves, leaves.div_ceil(2))
    }

    /// A pod of `leaves` leaves with at least `width` xbars at its highest level, each with at most `down`
    /// cables down. Its children hold at most `most` leaves each; with `most` 0 the pod is a single leaf.
    fn new(half: u64, down: u64, leaves: u64, most: u64, width: u64) -> Self {
        if most == 0 {
            return Self { width: 1, up: 0, children: Vec::new() };
        }
        let count = leaves.div_ceil(most);
        let of_child = |child: u64| leaves / count + u64::from(child < leaves % count);
        // A child has a cable up for each host below it, and at least one to each xbar above it.
        let up = |child: u64, width: u64| (half * of_child(child)).max(width);
        let cables = |width: u64| (0..count).map(|child| up(child, width)).sum::<u64>();
        let mut width = width;
        while cables(width) > down * width {
            width += 1;
        }
        let child = |child: u64| {
            let needed = up(child, width).div_ceil(half).max(of_child(child));
            let mut pod = Self::new(half, half, of_child(child), most / half, needed);
            pod.up = up(child, width);
            pod
        };
        Self { width, up: 0, children: (0..count).map(child).collect() }
    }

    /// Adds the number of this pod's xbars at each level to `widths`; its highest level is `level`.
    fn count(&self, level: usize, widths: &mut [u64]) {
        widths[level] += self.width;
        self.children.iter().for_each(|child| child.count(level - 1, widths));
    }

    /// Adds the cables inside this pod, whose xbars at each level begin at the number in `next`. Returns the
    /// number of the first xbar of its highest level. An xbar's first ports lead down, its last ports up.
    fn cable(&self, builder: &mut Builder, half: u64, level: usize, next: &mut [u64]) -> u64 {
        let first = next[level];
        next[level] += self.width;
        // The cables of all children are dealt out to the xbars above in turn, so that each gets as many.
        let mut cables = 0;
        let down = |cable: u64| (first + cable % self.width, cable / self.width + 1);
        for child in &self.children {
            let lowest = child.cable(builder, half, level - 1, next);
            for up in 0..child.up {
                let (upper, port) = down(cables + up);
                let lower = (lowest + up % child.width) as u32;
                builder.cable((lower, half + up / child.width + 1), (upper as u32, port));
            }
            cables += child.up;
        }
        first
    }
}
