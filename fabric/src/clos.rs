//! Folded Clos networks of as few xbars as can be.
//!
//! With d half of an xbar's ports, each leaf has d hosts and d cables up. An xbar of a level between has d
//! cables each way, one at the top 2d down. Leaves below one part of a level are a *pod*. A pod needs as
//! many xbars at each of its levels as it has leaves, and the top half as many as there are leaves: then no
//! level is narrower than the leaves are. All that is asked beyond is that each xbar above a pod reaches
//! it, so that it reaches every host below: that takes a pod of few leaves more xbars than its width does.
//! Where a level above is narrow, several cables join the same two xbars.

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
    // Leaves below an xbar of the highest level but the top, and levels without the top.
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

/// The xbars above some leaves, at one level and below it; or the whole, with the top.
struct Pod {
    /// Xbars of its highest level.
    width: u64,
    /// Cables up from these, as many as are needed.
    up: u64,
    children: Vec<Pod>,
}

impl Pod {
    /// The whole, of pods of at most so many leaves.
    fn top(half: u64, leaves: u64, pod_leaves: u64) -> Self {
        Self::new(half, 2 * half, leaves, pod_leaves, leaves.div_ceil(2))
    }

    /// A pod whose highest xbars have `down` cables down each, with at least `width` of them. Its children
    /// hold at most `most` leaves each; without any it is a leaf.
    fn new(half: u64, down: u64, leaves: u64, most: u64, width: u64) -> Self {
        if most == 0 {
            return Self { width: 1, up: 0, children: Vec::new() };
        }
        let count = leaves.div_ceil(most);
        let of_child = |child: u64| leaves / count + u64::from(child < leaves % count);
        // A cable for each host below, and one to each xbar above.
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

    /// Adds its xbars to those of each level.
    fn count(&self, level: usize, widths: &mut [u64]) {
        widths[level] += self.width;
        self.children.iter().for_each(|child| child.count(level - 1, widths));
    }

    /// Cables its xbars, which come next at each level, and gives the number of the first of its highest
    /// ones. Ports down come first, then those up.
    fn cable(&self, builder: &mut Builder, half: u64, level: usize, next: &mut [u64]) -> u64 {
        let first = next[level];
        next[level] += self.width;
        // The cables of all children go round the xbars above, so that each gets as many.
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
