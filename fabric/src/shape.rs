//! What shape a fabric has: its layers by distance from hosts, and into how many parts it falls.

use std::collections::VecDeque;

use mapper_proto::map::{Fabric, Map};

/// The xbars of a map by distance from the nearest host: first those with hosts, then their
/// neighbours without, and so on; last those that no host reaches.
pub fn layers(map: &Map) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); map.xbars.len()];
    for cable in &map.cables {
        neighbours[cable.a.xbar as usize].push(cable.b.xbar as usize);
        neighbours[cable.b.xbar as usize].push(cable.a.xbar as usize);
    }
    let mut distance = vec![None; map.xbars.len()];
    let mut queue = VecDeque::new();
    for at in map.hosts.iter().filter_map(|host| host.at) {
        if distance[at.xbar as usize].replace(0).is_none() {
            queue.push_back(at.xbar as usize);
        }
    }
    let mut farthest = 0;
    while let Some(xbar) = queue.pop_front() {
        let next = distance[xbar].map_or(0, |hops: usize| hops + 1);
        for &neighbour in &neighbours[xbar] {
            if distance[neighbour].is_none() {
                distance[neighbour] = Some(next);
                farthest = farthest.max(next);
                queue.push_back(neighbour);
            }
        }
    }
    let mut layers = vec![Vec::new(); farthest + 2];
    for (xbar, distance) in distance.into_iter().enumerate() {
        layers[distance.unwrap_or(farthest + 1)].push(xbar);
    }
    layers.retain(|layer| !layer.is_empty());
    layers
}

/// How many parts a fabric has that no cable joins. Each host without a cable is a part.
pub fn parts(fabric: &Fabric) -> usize {
    // Finds the representative of an xbar's part, and halves the path to it on the way.
    fn root(parent: &mut [usize], mut xbar: usize) -> usize {
        while parent[xbar] != xbar {
            parent[xbar] = parent[parent[xbar]];
            xbar = parent[xbar];
        }
        xbar
    }
    let map = &fabric.map;
    let mut parent: Vec<usize> = (0..map.xbars.len()).collect();
    let mut parts = map.xbars.len();
    for cable in &map.cables {
        let (a, b) = (root(&mut parent, cable.a.xbar as usize), root(&mut parent, cable.b.xbar as usize));
        if a != b {
            parent[a] = b;
            parts -= 1;
        }
    }
    parts + fabric.isolated().len() + usize::from(fabric.face_to_face().is_some())
}

#[cfg(test)]
mod tests {
    use crate::generate;

    use super::*;

    #[test]
    fn a_tree_has_layers_and_one_part() {
        let clos = generate("clos:hosts=1024,ports=16").unwrap();
        assert_eq!(layers(&clos.map).iter().map(Vec::len).collect::<Vec<_>>(), [128, 128, 64]);
        assert_eq!(parts(&clos), 1);
    }

    #[test]
    fn cut_fabrics_have_parts() {
        let mut ring = generate("ring:n=4").unwrap();
        ring.map.cables.truncate(2);
        ring.map.hosts[3].at = None;
        assert_eq!(parts(&ring), 3, "three xbars in a row, one alone, one host alone");
        assert_eq!(
            layers(&ring.map).iter().map(Vec::len).collect::<Vec<_>>(),
            [3, 1],
            "the last is reached by none"
        );
        ring.map.xbars.clear();
        ring.map.cables.clear();
        ring.map.hosts.truncate(2);
        ring.map.hosts.iter_mut().for_each(|host| host.at = None);
        assert_eq!(parts(&ring), 1, "a cable between two hosts");
        ring.hosts[1].uncabled = true;
        assert_eq!((parts(&ring), ring.isolated()), (2, vec![0, 1]), "two hosts and no cable");
    }
}
