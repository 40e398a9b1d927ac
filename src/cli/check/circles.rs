//! Proves that packets close no circle in which they wait for each other, whatever they go by.
//!
//! Agents' frames, packets by segments and packets by the destination queue at the same ports. So each kind must close no
//! circle by itself, and all of them together none.

use mapper_routing::UnionProof;

use crate::cli::judgement::Describer;

/// What packets of each kind wait for; `None` for a kind of which there are none.
pub(super) struct Queued<'u, 'a> {
    /// The agents' own frames, if these close no circle by themselves.
    pub(super) of_agents: Option<&'u UnionProof<'a>>,
    /// Packets by segments.
    pub(super) of_segments: Option<&'u UnionProof<'a>>,
    /// Packets by the destination.
    pub(super) of_destinations: Option<&'u UnionProof<'a>>,
}

/// What packets of a kind are called, and what they wait for.
type Kind<'u, 'a> = (&'static str, &'u UnionProof<'a>);

impl<'u, 'a> Queued<'u, 'a> {
    /// Describes a circle of each kind of the kernels' packets that closes one by itself. Of the others, one that several
    /// close together, and as few as can be.
    pub(super) fn circles(&self, names: &Describer<'_>) -> Vec<String> {
        let of_kernels = [
            ("what kernels forward by the destination", self.of_destinations),
            ("what kernels send by segments", self.of_segments),
        ];
        let mut told = Vec::new();
        let mut free: Vec<Kind<'u, 'a>> = Vec::new();
        for (what, union) in of_kernels {
            let Some(union) = union else { continue };
            match union.prove_acyclic() {
                Ok(()) => free.push((what, union)),
                Err(cycle) => told.push(format!("{what}: {}", names.deadlock(0, &cycle))),
            }
        }
        free.extend(self.of_agents.map(|union| ("the agents' own routes", union)));
        let pairs = (0..free.len()).flat_map(|one| (one + 1..free.len()).map(move |other| vec![one, other]));
        let together = pairs.chain([(0..free.len()).collect()]).filter(|kinds| kinds.len() > 1);
        told.extend(
            together
                .map(|kinds| kinds.into_iter().map(|kind| free[kind]).collect())
                .find_map(|kinds: Vec<Kind<'_, '_>>| circle_of(&kinds, names)),
        );
        told
    }
}

/// Describes a circle that several kinds of packets close together.
fn circle_of(kinds: &[Kind<'_, '_>], names: &Describer<'_>) -> Option<String> {
    let ((first, union), others) = kinds.split_first()?;
    let mut union: UnionProof<'_> = (*union).clone();
    others.iter().for_each(|(_, other)| union.merge(other));
    let cycle = union.prove_acyclic().err()?;
    let others: Vec<&str> = others.iter().map(|(what, _)| *what).collect();
    Some(format!("{first}, together with {}: {}", others.join(" and "), names.deadlock(0, &cycle)))
}

#[cfg(test)]
mod tests {
    use mapper_fabric::{generate, names};
    use mapper_proto::map::PortRef;
    use mapper_routing::Topology;

    use super::*;

    /// The circles of a ring of four hosts, of routes that agents, segments and tables by destination take. Each is given by the
    /// crossbar where it begins, and leads to the host after the next.
    fn told(of_agents: &[u32], of_segments: &[u32], of_destinations: &[u32]) -> Vec<String> {
        let fabric = generate("ring:n=4,hosts=1").unwrap();
        let topology = Topology::from_map(&fabric.map).unwrap();
        let [of_agents, of_segments, of_destinations] =
            [of_agents, of_segments, of_destinations].map(|starts| {
                let mut union = UnionProof::new(&topology);
                for &from in starts {
                    // Port 1 of each crossbar leads to port 2 of the next, and the host is at port 3.
                    let at = |steps, port| PortRef { xbar: (from + steps) % 4, port };
                    union.add_route(from, (from + 2) % 4, &[at(0, 1), at(1, 1), at(2, 3)]).unwrap();
                }
                (!starts.is_empty()).then_some(union)
            });
        let shown = names::Names::of(&fabric);
        let names = Describer { fabric: &fabric, topology: &topology, shown: &shown };
        let queued = Queued {
            of_agents: of_agents.as_ref(),
            of_segments: of_segments.as_ref(),
            of_destinations: of_destinations.as_ref(),
        };
        queued.circles(&names)
    }

    #[test]
    fn kinds_that_close_no_circle_together_are_proved() {
        assert_eq!(told(&[0, 1], &[1, 2], &[0, 2]), Vec::<String>::new());
        assert_eq!(told(&[], &[], &[]), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_told_of_as_few_kinds_as_close_it() {
        for (agents, segments, destinations, start) in [
            (&[0][..], &[0, 1, 2, 3][..], &[][..], "what kernels send by segments: "),
            (&[], &[1], &[0, 1, 2, 3], "what kernels forward by the destination: "),
            (&[3], &[0, 1, 2], &[0], "what kernels send by segments, together with the agents' own routes: "),
            (
                &[],
                &[0, 1],
                &[2, 3],
                "what kernels forward by the destination, together with what kernels send by segments: ",
            ),
            (
                &[0, 1],
                &[2],
                &[3],
                "what kernels forward by the destination, together with what kernels send by segments and the agents' own \
                 routes: ",
            ),
        ] {
            let told = told(agents, segments, destinations);
            assert!(told.len() == 1 && told[0].starts_with(start), "{told:?}");
            assert!(told[0][start.len()..].starts_with("layer 0 can deadlock"), "{told:?}");
        }
    }
}
