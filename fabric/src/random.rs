//! Random fabrics.

use mapper_proto::map::Fabric;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::{MAX_HOSTS, MAX_PORTS, MAX_XBARS};

/// `random:xbars=X,ports=P,hosts=H,links=L,seed=S`: L cables between random ports of random
/// xbars, none from an xbar to itself, and H hosts on random ports of those left.
///
/// The fabric is connected if it can be: the first X-1 cables make a tree. Parallel cables occur.
pub(super) fn random(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["xbars", "ports", "hosts", "links", "seed"])?;
    let xbars = spec.number("xbars", 1..=MAX_XBARS)?;
    let ports = spec.number("ports", 1..=MAX_PORTS)?;
    let hosts = spec.number("hosts", 0..=MAX_HOSTS)?;
    let links = spec.number("links", 0..=xbars * ports / 2)?;
    let seed = spec.optional("seed", 0..=u64::MAX)?.unwrap_or(1);
    if hosts > xbars * ports - 2 * links {
        let expected = format!("at most the {} ports that the links leave", xbars * ports - 2 * links);
        return Err(spec.bad("hosts", &hosts.to_string(), expected));
    }
    let mut drawing = Drawing::new(xbars as usize, ports, seed);
    drawing.tree(links as usize);
    while drawing.links.len() < links as usize {
        if !drawing.link() {
            return Err(spec.bad("links", &links.to_string(), "fewer, or more xbars"));
        }
    }
    let mut builder = Builder::default();
    for number in 1..=xbars {
        builder.xbar(format!("xbar{number}"), ports as u8);
    }
    for &[a, b] in &drawing.links {
        builder.cable((a.0 as u32, a.1), (b.0 as u32, b.1));
    }
    for (xbar, port) in drawing.host_ports(hosts as usize) {
        builder.host(xbar as u32, port);
    }
    Ok(builder.finish())
}

/// An xbar and one of its ports.
type FreePort = (usize, u64);

/// A fabric half drawn.
struct Drawing {
    rng: ChaCha8Rng,
    /// The free ports of each xbar, in random order.
    free: Vec<Vec<u64>>,
    /// The xbars with free ports, in no order.
    open: Vec<usize>,
    links: Vec<[FreePort; 2]>,
}

impl Drawing {
    fn new(xbars: usize, ports: u64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut shuffled = || {
            let mut free: Vec<_> = (1..=ports).collect();
            free.shuffle(&mut rng);
            free
        };
        let free = (0..xbars).map(|_| shuffled()).collect();
        Self { rng, free, open: (0..xbars).collect(), links: Vec::new() }
    }

    /// Cables the xbars to a tree, with at most `most` cables.
    fn tree(&mut self, most: usize) {
        let mut order = std::mem::take(&mut self.open);
        order.shuffle(&mut self.rng);
        let mut rest = order.into_iter();
        self.open.extend(rest.next());
        for xbar in rest {
            // If xbars have one port each, a tree of two has none free, and the next xbar begins another
            // tree.
            if self.links.len() < most && !self.open.is_empty() {
                let at = self.rng.random_range(0..self.open.len());
                let end = self.take(at);
                self.open.push(xbar);
                let other = self.take(self.open.len() - 1);
                self.links.push([end, other]);
            } else {
                self.open.push(xbar);
            }
        }
    }

    /// Adds a link between two xbars. False if there can be none.
    fn link(&mut self) -> bool {
        if self.open.len() < 2 {
            return self.split_link();
        }
        let one = self.rng.random_range(0..self.open.len());
        let other = self.rng.random_range(0..self.open.len() - 1);
        let other = if other >= one { other + 1 } else { other };
        // The later position comes first: taking an xbar's last port moves the last xbar of `open` to its
        // place, which leaves earlier positions as they are.
        let first = self.take(one.max(other));
        let second = self.take(one.min(other));
        self.links.push([first, second]);
        true
    }

    /// Where only one xbar has free ports, replaces a link between two others by a link from each to it,
    /// which makes one link more. False if no such link exists or that xbar has only one free port.
    fn split_link(&mut self) -> bool {
        let Some(&xbar) = self.open.first() else { return false };
        let elsewhere = |link: &[FreePort; 2]| link.iter().all(|end| end.0 != xbar);
        let candidates: Vec<_> = (0..self.links.len()).filter(|&i| elsewhere(&self.links[i])).collect();
        if candidates.is_empty() || self.free[xbar].len() < 2 {
            return false;
        }
        let [a, b] = self.links.swap_remove(candidates[self.rng.random_range(0..candidates.len())]);
        let (first, second) = (self.take(0), self.take(0));
        self.links.extend([[a, first], [second, b]]);
        true
    }

    /// Takes a free port of the xbar at `position` in `open`.
    fn take(&mut self, position: usize) -> FreePort {
        let xbar = self.open[position];
        let port = self.free[xbar].pop().unwrap_or_default();
        if self.free[xbar].is_empty() {
            self.open.swap_remove(position);
        }
        (xbar, port)
    }

    /// Random free ports for hosts, in order of xbars and ports.
    fn host_ports(&mut self, hosts: usize) -> Vec<FreePort> {
        let free = self.free.iter().enumerate();
        let mut ends: Vec<FreePort> =
            free.flat_map(|(xbar, ports)| ports.iter().map(move |&p| (xbar, p))).collect();
        ends.shuffle(&mut self.rng);
        ends.truncate(hosts);
        ends.sort_unstable();
        ends
    }
}
