//! A graph that is kept free of circles while edges come and go. Its vertices are channels, and its edges say
//! which channel waits for which.

/// The mark of a vertex that no search has met.
const UNSEEN: u8 = 0;
/// The mark of a vertex that the search ahead, from the head of the new edge, has met.
const AHEAD: u8 = 1;
/// The mark of a vertex that the search behind, from the tail of the new edge, has met.
const BEHIND: u8 = 2;

/// A directed graph without circles, and a topological order of its vertices.
///
/// An edge that agrees with the order costs nothing. For any other, searches from its two ends go on by turns, among
/// the vertices between the two, until they meet, which is a circle, or one of them is complete: what it found
/// moves to the other side of the edge (two-way search, after Haeupler, Kavitha, Mathew, Sen and Tarjan: "Incremental
/// Cycle Detection, Topological Ordering, and Strong Component Maintenance", 2012). Taking edges away needs no
/// mending.
#[derive(Debug, Clone)]
pub(super) struct AcyclicGraph {
    /// What each vertex leads to.
    after: Vec<Vec<u32>>,
    /// What leads to each vertex.
    before: Vec<Vec<u32>>,
    order: VertexOrder,
    seen: Vec<u8>,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    work: u64,
}

impl AcyclicGraph {
    /// A graph of so many vertices, in the order of their numbers, without edges.
    pub(super) fn new(vertices: usize) -> Self {
        Self::in_order(&(0..vertices as u32).collect::<Vec<u32>>())
    }

    /// A graph of vertices at these places of the order, each a number below their count, without edges.
    pub(super) fn in_order(places: &[u32]) -> Self {
        let vertices = places.len();
        Self {
            after: vec![Vec::new(); vertices],
            before: vec![Vec::new(); vertices],
            order: VertexOrder::new(places),
            seen: vec![UNSEEN; vertices],
            ahead: Vec::new(),
            behind: Vec::new(),
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

    /// Adds an edge that is not there yet. Returns false if it would close a circle; it is not added then.
    pub(super) fn insert(&mut self, from: u32, to: u32) -> bool {
        if !self.order.is_before(from, to) && !self.mend(from, to) {
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

    /// Orders `from` before `to`. Returns false if `to` leads to `from`.
    fn mend(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return false;
        }
        let Self { after, before, order, seen, ahead, behind, .. } = self;
        ahead.push(to);
        behind.push(from);
        (seen[to as usize], seen[from as usize]) = (AHEAD, BEHIND);
        // How many vertices each search has gone on from, and how many edges it has looked at.
        let (mut done_ahead, mut done_behind) = (0, 0);
        let (mut edges_ahead, mut edges_behind) = (0, 0);
        let acyclic = loop {
            if done_ahead == ahead.len() {
                order.move_behind(from, ahead);
                break true;
            }
            if done_behind == behind.len() {
                order.move_before(to, behind);
                break true;
            }
            let met = if edges_ahead <= edges_behind {
                let next = &after[ahead[done_ahead] as usize];
                done_ahead += 1;
                edges_ahead += next.len();
                // A vertex that stands behind `from` cannot lead to it.
                visit(next, AHEAD, seen, ahead, |vertex| !order.is_before(from, vertex))
            } else {
                let next = &before[behind[done_behind] as usize];
                done_behind += 1;
                edges_behind += next.len();
                visit(next, BEHIND, seen, behind, |vertex| !order.is_before(vertex, to))
            };
            if met {
                break false;
            }
        };
        self.work += (self.ahead.len() + self.behind.len()) as u64;
        for vertex in self.ahead.drain(..).chain(self.behind.drain(..)) {
            self.seen[vertex as usize] = UNSEEN;
        }
        acyclic
    }
}

/// Appends neighbours that were not seen yet and that may matter. True if the other search has seen one of them.
fn visit(
    neighbours: &[u32],
    side: u8,
    seen: &mut [u8],
    found: &mut Vec<u32>,
    matters: impl Fn(u32) -> bool,
) -> bool {
    for &vertex in neighbours {
        let known = &mut seen[vertex as usize];
        if *known == UNSEEN && matters(vertex) {
            *known = side;
            found.push(vertex);
        } else if *known != UNSEEN && *known != side {
            return true;
        }
    }
    false
}

/// Vertices in a row. They are linked in a ring that begins and ends at a place that is no vertex, and their
/// labels rise along it.
#[derive(Debug, Clone)]
struct VertexOrder {
    labels: Vec<u64>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl VertexOrder {
    /// A row of vertices at these places.
    fn new(places: &[u32]) -> Self {
        let vertices = places.len();
        let mut row = vec![0; vertices];
        (0..).zip(places).for_each(|(vertex, &place)| row[place as usize] = vertex);
        let end = vertices as u32;
        let mut order = Self {
            labels: vec![0; vertices + 1],
            next: vec![end; vertices + 1],
            previous: vec![end; vertices + 1],
        };
        row.into_iter().for_each(|vertex| order.link(order.previous[vertices], vertex));
        order.label_all();
        order
    }

    fn is_before(&self, one: u32, other: u32) -> bool {
        self.labels[one as usize] < self.labels[other as usize]
    }

    /// Moves vertices right behind one that is not among them; their own order stays.
    fn move_behind(&mut self, vertex: u32, moved: &mut [u32]) {
        self.take_out(moved);
        self.put_behind(vertex, moved);
    }

    /// Moves vertices right before one that is not among them; their own order stays.
    fn move_before(&mut self, vertex: u32, moved: &mut [u32]) {
        self.take_out(moved);
        self.put_behind(self.previous[vertex as usize], moved);
    }

    /// Takes vertices out of the row, and sorts them by where they stood.
    fn take_out(&mut self, vertices: &mut [u32]) {
        vertices.sort_unstable_by_key(|&vertex| self.labels[vertex as usize]);
        for &vertex in vertices.iter() {
            let (previous, next) = (self.previous[vertex as usize], self.next[vertex as usize]);
            self.next[previous as usize] = next;
            self.previous[next as usize] = previous;
        }
    }

    fn put_behind(&mut self, place: u32, vertices: &[u32]) {
        let end = self.next.len() as u32 - 1;
        let label_at = |at: u32, beyond: u64| if at == end { beyond } else { self.labels[at as usize] };
        let (low, high) = (label_at(place, 0), label_at(self.next[place as usize], u64::MAX));
        let step = (high - low) / (vertices.len() as u64 + 1);
        let (mut at, mut label) = (place, low);
        for &vertex in vertices {
            self.link(at, vertex);
            label += step;
            self.labels[vertex as usize] = label;
            at = vertex;
        }
        if step == 0 {
            self.label_all();
        }
    }

    /// Links a vertex that is not in the row behind one that is.
    fn link(&mut self, place: u32, vertex: u32) {
        let next = self.next[place as usize];
        (self.previous[vertex as usize], self.next[vertex as usize]) = (place, next);
        (self.next[place as usize], self.previous[next as usize]) = (vertex, vertex);
    }

    /// Gives all vertices labels that are as far apart as can be.
    fn label_all(&mut self) {
        let end = self.next.len() as u32 - 1;
        let step = u64::MAX / (u64::from(end) + 1);
        let (mut at, mut label) = (self.next[end as usize], 0);
        while at != end {
            label += step;
            self.labels[at as usize] = label;
            at = self.next[at as usize];
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
                    prop_assert!(graph.order.is_before(from, to));
                }
            }
        }
    }

    #[test]
    fn labels_never_run_out() {
        let vertices: Vec<u32> = (0..200).collect();
        let mut order = VertexOrder::new(&vertices);
        // Each comes between the first two, where there is half as much room each time.
        (2..200).for_each(|vertex| order.move_behind(0, &mut [vertex]));
        let row: Vec<u32> = [0].into_iter().chain((2..200).rev()).chain([1]).collect();
        assert!(row.windows(2).all(|pair| order.is_before(pair[0], pair[1])));
        order.move_before(0, &mut [1, 7, 5]);
        let row = [7, 5, 1, 0, 199];
        assert!(row.windows(2).all(|pair| order.is_before(pair[0], pair[1])));
    }
}
