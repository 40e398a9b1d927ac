//! Which nodes can reach each other.

use super::{Plant, PlantNode};

/// The connected parts of a plant: nodes that run, joined by cables that carry frames.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The part of each host, then of each xbar: the index of one node in it.
    part: Vec<u32>,
    hosts: usize,
}

impl Parts {
    /// The parts of the plant as it is.
    pub fn of(plant: &Plant) -> Self {
        let hosts = plant.hosts();
        let index = |node: PlantNode| match node {
            PlantNode::Host(i) => i as usize,
            PlantNode::Xbar(i) => hosts + i as usize,
        };
        let mut part: Vec<u32> = (0..(hosts + plant.xbars()) as u32).collect();
        for (i, socket) in plant.sockets.iter().enumerate() {
            let Some(peer) = socket.peer else { continue };
            if !plant.joins(i as u32) {
                continue;
            }
            let x = root(&mut part, index(socket.end.node));
            let y = root(&mut part, index(plant.sockets[peer as usize].end.node));
            part[x.max(y)] = x.min(y) as u32;
        }
        for i in 0..part.len() {
            part[i] = root(&mut part, i) as u32;
        }
        Self { part, hosts }
    }

    /// The part that a node is in: the same number for nodes that reach each other.
    pub fn part(&self, node: PlantNode) -> u32 {
        match node {
            PlantNode::Host(i) => self.part[i as usize],
            PlantNode::Xbar(i) => self.part[self.hosts + i as usize],
        }
    }
}

/// The representative of a node's part in the union-find forest, with path halving.
fn root(part: &mut [u32], mut i: usize) -> usize {
    while part[i] as usize != i {
        part[i] = part[part[i] as usize];
        i = part[i] as usize;
    }
    i
}
