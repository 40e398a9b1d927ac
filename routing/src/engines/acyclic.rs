//! A graph that is kept free of circles while edges come and go: of channels, and what waits for what.

/// A directed graph without circles, and a topological order of its vertices.
///
/// The order is mended at each new edge, by looking only at vertices between its two ends (Pearce and Kelly:
/// "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", 2006). Taking edges away needs no
/// mending. An edge that agrees with the order costs nothing.
#[derive(Debug, Clone)]
pub(super) struct AcyclicGraph {
    /// What each vertex leads to.
    after: Vec<Vec<u32>>,
    /// What leads to each vertex.
    before: Vec<Vec<u32>>,
    /// Each vertex's place in the order.
    places: Vec<u32>,
    seen: Vec<bool>,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    stack: Vec<u32>,
    work: u64,
}

impl AcyclicGraph {
    /// So many vertices, in their own order, and no edge.
    pub(super) fn new(vertices: usize) -> Self {
        Self::in_order((0..vertices as u32).collect())
    }

    /// Vertices at these places of the order, each a number below their count, and no edge.
    pub(super) fn in_order(places: Vec<u32>) -> Self {
        let vertices = places.len();
        Self {
            after: vec![Vec::new(); vertices],
            before: vec![Vec::new(); vertices],
            places,
            seen: vec![false; vertices],
            ahead: Vec::new(),
            behind: Vec::new(),
            stack: Vec::new(),
            work: 0,
        }
    }

    /// Takes all edges away.
    pub(super) fn clear(&mut self) {
        self.after.iter_mut().chain(&mut self.before).for_each(Vec::clear);
    }

    /// How many vertices searches have looked at.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Adds an edge that is not there yet. False if it would close a circle: then it is not added.
    pub(super) fn insert(&mut self, from: u32, to: u32) -> bool {
        let (first, last) = (self.places[to as usize], self.places[from as usize]);
        if first <= last && !self.mend(from, to, first, last) {
            return false;
        }
        self.after[from as usize].push(to);
        self.before[to as usize].push(from);
        true
    }

    /// Takes an edge away.
    pub(super) fn remove(&mut self, from: u32, to: u32) {
        self.after[from as usize].retain(|&other| other != to);
        self.before[to as usize].retain(|&other| other != from);
    }

    /// Orders what `to` leads to behind what leads to `from`. False if `to` leads to `from`.
    fn mend(&mut self, from: u32, to: u32, first: u32, last: u32) -> bool {
        let acyclic = self.look_ahead(to, from, last);
        if acyclic {
            self.look_behind(from, first);
            self.reorder();
        }
        self.work += (self.ahead.len() + self.behind.len()) as u64;
        for vertex in self.ahead.drain(..).chain(self.behind.drain(..)) {
            self.seen[vertex as usize] = false;
        }
        acyclic
    }

    fn look_ahead(&mut self, start: u32, goal: u32, last: u32) -> bool {
        self.stack.clear();
        self.stack.push(start);
        while let Some(vertex) = self.stack.pop() {
            if vertex == goal {
                return false;
            }
            if std::mem::replace(&mut self.seen[vertex as usize], true) {
                continue;
            }
            self.ahead.push(vertex);
            let next = self.after[vertex as usize].iter().copied();
            let (places, seen) = (&self.places, &self.seen);
            self.stack.extend(next.filter(|&next| places[next as usize] <= last && !seen[next as usize]));
        }
        true
    }

    fn look_behind(&mut self, start: u32, first: u32) {
        self.stack.clear();
        self.stack.push(start);
        while let Some(vertex) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[vertex as usize], true) {
                continue;
            }
            self.behind.push(vertex);
            let next = self.before[vertex as usize].iter().copied();
            let (places, seen) = (&self.places, &self.seen);
            self.stack.extend(next.filter(|&next| places[next as usize] > first && !seen[next as usize]));
        }
    }

    /// Gives the places of all that were seen to those behind, then to those ahead, each in their order.
    fn reorder(&mut self) {
        let places = &mut self.places;
        self.ahead.sort_unstable_by_key(|&vertex| places[vertex as usize]);
        self.behind.sort_unstable_by_key(|&vertex| places[vertex as usize]);
        let in_order = || self.behind.iter().chain(&self.ahead).map(|&vertex| vertex as usize);
        let mut free: Vec<u32> = in_order().map(|vertex| places[vertex]).collect();
        free.sort_unstable();
        for (vertex, place) in in_order().zip(free) {
            places[vertex] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Whether edges lead from one vertex to another.
    fn leads(edges: &BTreeSet<(u32, u32)>, from: u32, to: u32) -> bool {
        let mut reached = BTreeSet::from([from]);
        loop {
            let onward = edges.iter().filter(|(one, _)| reached.contains(one)).map(|&(_, other)| other);
            let wider: BTreeSet<u32> = reached.iter().copied().chain(onward).collect();
            if wider.len() == reached.len() {
                return reached.contains(&to);
            }
            reached = wider;
        }
    }

    proptest! {
        #[test]
        fn an_edge_is_refused_if_and_only_if_it_closes_a_circle(
            steps in proptest::collection::vec((0..9_u32, 0..9_u32, 0..5_u8), 0..80),
        ) {
            let mut graph = AcyclicGraph::new(9);
            let mut edges = BTreeSet::new();
            for (from, to, what) in steps {
                if edges.contains(&(from, to)) {
                    if what == 0 {
                        graph.remove(from, to);
                        edges.remove(&(from, to));
                    }
                    continue;
                }
                let fits = !leads(&edges, to, from);
                prop_assert_eq!(graph.insert(from, to), fits);
                if fits {
                    edges.insert((from, to));
                }
                for &(from, to) in &edges {
                    prop_assert!(graph.places[from as usize] < graph.places[to as usize]);
                }
            }
        }
    }
}
