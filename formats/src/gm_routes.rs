//! Routes as GM's mapper wrote them: `.routes`.
//!
//! The first line says how many hosts there are and how many routes the most of them have to one
//! destination. Then follows a block a host: its name, how many routes and how many bytes they take,
//! and a line a route with the destination's name and the deltas between ports. The format knows
//! deltas only, however far, so xbars that are asked by absolute ports are written like plain ones.

use std::io::{self, Write};

use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::{RoutingError, Topology, turns};

/// What a host sends by: each route's destination, and the ports that it leaves by.
pub type RoutesOfHost = Vec<(u32, Vec<PortRef>)>;

/// A block of the file: the routes of one host.
#[derive(Debug)]
pub struct HostBlock {
    text: String,
    most: usize,
}

impl HostBlock {
    /// The routes of the host `from`, which stand by rising destination.
    ///
    /// # Errors
    /// If routes do not follow the fabric's cables.
    pub fn new(
        fabric: &Fabric,
        topology: &Topology,
        from: u32,
        routes: &RoutesOfHost,
    ) -> Result<Self, RoutingError> {
        let (mut lines, mut bytes) = (String::new(), 0);
        for (to, hops) in routes {
            bytes += hops.len();
            let deltas: Vec<String> = turns(topology, from, hops)?
                .iter()
                .map(|&(arrival, out)| (i16::from(out) - i16::from(arrival.port)).to_string())
                .collect();
            lines += &format!("\"{}\" {}\n", fabric.hosts[*to as usize].name, deltas.join(","));
        }
        let name = &fabric.hosts[from as usize].name;
        let most = routes.chunk_by(|(one, _), (other, _)| one == other).map(<[_]>::len).max();
        let text = format!("\"{name}\" ({} {bytes})\n{lines}\n", routes.len());
        Ok(Self { text, most: most.unwrap_or_default() })
    }
}

/// Writes the blocks of all hosts.
///
/// # Errors
/// As writing does.
pub fn write(out: &mut dyn Write, blocks: &[HostBlock]) -> io::Result<()> {
    let most = blocks.iter().map(|block| block.most).max().unwrap_or_default();
    write!(out, "{} {most}\n\n", blocks.len())?;
    blocks.iter().try_for_each(|block| out.write_all(block.text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;
    use mapper_routing::{HostRoutes, Orientation, RouteOptions};

    #[test]
    fn routes_are_deltas_under_the_names_of_hosts() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let topology = Topology::from_map(&fabric.map).unwrap();
        let orientation = Orientation::new(&topology, false);
        let options = RouteOptions { passes: 2, ..RouteOptions::default() };
        let block = |from| {
            let table = HostRoutes::compute(&topology, &orientation, from, &options).unwrap();
            let to = |to| table.routes_to(&topology, to).map(|hops| (to, hops)).collect::<Vec<_>>();
            HostBlock::new(&fabric, &topology, from, &(0..8).flat_map(to).collect()).unwrap()
        };
        let mut text = Vec::new();
        write(&mut text, &(0..8).map(block).collect::<Vec<_>>()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().next(), Some("8 2"));
        let blocks: Vec<_> = text.split("\n\n").skip(1).filter(|block| !block.is_empty()).collect();
        assert_eq!(blocks.len(), 8);
        // One neighbour by one route; six hosts by two routes of three hops.
        assert!(blocks[0].starts_with("\"h1\" (13 37)\n\"h2\" 1\n\"h3\" "), "{}", blocks[0]);
        assert_eq!(blocks[0].lines().count(), 14);
        let [first, second] = [3, 4].map(|line| blocks[0].lines().nth(line).unwrap());
        assert_ne!(first, second);
    }
}
