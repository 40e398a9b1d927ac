//! Which xbars stand side by side in a drawing.

use std::collections::VecDeque;

use mapper_proto::map::Map;

/// The xbars of a map by distance from the nearest host: first those with hosts, then their
/// neighbours without, and so on; last those that no host reaches.
pub(super) fn layers(map: &Map) -> Vec<Vec<usize>> {
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
