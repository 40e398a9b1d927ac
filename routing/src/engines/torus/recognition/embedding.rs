//! Puts the xbars of a fabric at the places of a torus or mesh, so that all links join neighbours.
//!
//! The first xbar is put anywhere. Then the xbar comes next that has the fewest places left, which are those
//! next to all its neighbours that were put down already. Mostly there is only one place, as links close
//! squares everywhere except around missing parts. If an xbar has no place left, the last choice is taken
//! back.

use super::super::grid::Dimension;
use super::links::Links;
use super::space::{Before, GridPlace, Space};

/// How a search ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// All xbars stand.
    Found {
        /// The dimensions. Lines are only as long as they are in use, and so may have size 1.
        dimensions: Vec<Dimension>,
        /// Each xbar's coordinates.
        coordinates: Vec<[u8; 3]>,
    },
    /// There is no way to put all xbars down, or none was found in so many steps.
    Failed {
        /// How many xbars stood.
        deepest: usize,
        /// The link that had no place at that time, if the search failed at a link.
        link: Option<(u32, u32)>,
    },
}

/// Searches for places. `steps` bounds how many xbars are put down, and is lowered by as many.
pub(super) fn embed(links: &Links, order: &[Vec<u32>], space: Space, steps: &mut u64) -> Outcome {
    EmbeddingSearch::new(links, space).run(order, steps)
}

/// The parts of a fabric, each with the xbar first that it is best entered at: where most links meet, and
/// most of them close squares.
pub(super) fn entries(links: &Links) -> Vec<Vec<u32>> {
    let mut parts = links.parts();
    for part in &mut parts {
        let squares = |xbar: u32| {
            let around = links.of_xbar(xbar);
            let pairs =
                around.iter().enumerate().flat_map(|(i, &a)| around[..i].iter().map(move |&b| (a, b)));
            pairs.filter(|&(a, b)| links.in_common(a, b) > 1).count()
        };
        let degree = part.iter().map(|&xbar| links.of_xbar(xbar).len()).max().unwrap_or(0);
        let entry = (0..part.len())
            .filter(|&i| links.of_xbar(part[i]).len() == degree)
            .max_by_key(|&i| (squares(part[i]), std::cmp::Reverse(i)));
        part.swap(0, entry.unwrap_or(0));
    }
    parts
}

/// An xbar that stands.
#[derive(Debug, Clone, Copy)]
struct Put {
    xbar: u32,
    place: GridPlace,
    before: Before,
}

/// A choice among places.
#[derive(Debug)]
struct Choice {
    xbar: u32,
    /// How many xbars stood before.
    depth: usize,
    /// Places not tried yet, the next one last.
    rest: Vec<GridPlace>,
}

/// Most places next to an xbar.
const MOST: usize = 6;

/// The count of places of an xbar that is not next to any xbar that was put down.
const FAR: u8 = u8::MAX;

struct EmbeddingSearch<'a> {
    links: &'a Links,
    space: Space,
    place: Vec<Option<GridPlace>>,
    put: Vec<Put>,
    /// How many places each xbar has left, if it is next to one that stands.
    left: Vec<u8>,
    /// Xbars by how many places they had left when they were entered here.
    waiting: [Vec<u32>; MOST + 1],
    deepest: usize,
    failed_at: Option<(u32, u32)>,
}

impl<'a> EmbeddingSearch<'a> {
    fn new(links: &'a Links, space: Space) -> Self {
        Self {
            place: vec![None; links.xbars()],
            put: Vec::with_capacity(links.xbars()),
            left: vec![FAR; links.xbars()],
            waiting: Default::default(),
            deepest: 0,
            failed_at: None,
            links,
            space,
        }
    }

    fn run(mut self, parts: &[Vec<u32>], steps: &mut u64) -> Outcome {
        let mut choices: Vec<Choice> = Vec::new();
        while self.put.len() < self.links.xbars() {
            let Some((xbar, places)) = self.next(parts) else { break };
            choices.push(Choice { xbar, depth: self.put.len(), rest: places });
            if !self.take_a_choice(&mut choices, steps) {
                return Outcome::Failed { deepest: self.deepest, link: self.failed_at };
            }
        }
        let places = self.place.iter().flatten();
        let coordinates = places.map(|&place| self.space.coordinates(place)).collect();
        Outcome::Found { dimensions: self.space.used_dimensions(), coordinates }
    }

    /// Puts down the xbar of the last choice, or of one before it if there is no place left.
    fn take_a_choice(&mut self, choices: &mut Vec<Choice>, steps: &mut u64) -> bool {
        while let Some(choice) = choices.last_mut() {
            while self.put.len() > choice.depth {
                self.take_back();
            }
            let Some(place) = choice.rest.pop() else {
                choices.pop();
                continue;
            };
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            let xbar = choice.xbar;
            if choice.rest.is_empty() && choice.depth > 0 {
                // This choice has no other places left, so a later failure goes back to the choice before.
                choices.pop();
            }
            if self.put_down(xbar, place) {
                return true;
            }
        }
        false
    }

    /// The xbar to put down next, and its places, the first to try last.
    fn next(&mut self, parts: &[Vec<u32>]) -> Option<(u32, Vec<GridPlace>)> {
        for count in 0..=MOST {
            while let Some(&xbar) = self.waiting[count].last() {
                if !self.waits(xbar, count) {
                    self.waiting[count].pop();
                    continue;
                }
                let xbar = if count > 1 { self.best_of(count) } else { xbar };
                let mut places = self.places_left(xbar);
                self.drop_alike(xbar, &mut places);
                places.reverse();
                return Some((xbar, places));
            }
        }
        let entry = parts.iter().map(|part| part[0]).find(|&xbar| self.place[xbar as usize].is_none())?;
        let mut places = if self.put.is_empty() { vec![self.space.origin()] } else { self.space.free() };
        places.reverse();
        Some((entry, places))
    }

    fn waits(&self, xbar: u32, count: usize) -> bool {
        self.place[xbar as usize].is_none() && usize::from(self.left[xbar as usize]) == count
    }

    /// Of the xbars with `count` places left, the one with the most neighbours that were put down, and among
    /// equals the one with the most links.
    fn best_of(&mut self, count: usize) -> u32 {
        let mut all = std::mem::take(&mut self.waiting[count]);
        all.sort_unstable();
        all.dedup();
        all.retain(|&xbar| self.waits(xbar, count));
        let standing = |xbar: u32| {
            let around = self.links.of_xbar(xbar).iter();
            around.filter(|&&near| self.place[near as usize].is_some()).count()
        };
        let rank = |&xbar: &u32| (standing(xbar), self.links.of_xbar(xbar).len(), std::cmp::Reverse(xbar));
        let best = all.iter().copied().max_by_key(rank);
        self.waiting[count] = all;
        best.unwrap_or(0)
    }

    /// Drops places that are like others by symmetry. Only an xbar with a single neighbour that was put down
    /// can have such places.
    fn drop_alike(&self, xbar: u32, places: &mut Vec<GridPlace>) {
        if self.links.are_restricted() {
            return;
        }
        let mut standing = self.links.of_xbar(xbar).iter().filter_map(|&near| self.place[near as usize]);
        let Some(from) = standing.next() else { return };
        places.retain(|&place| {
            let mut directions = 0..2 * self.space.dimensions().len();
            let direction = directions.find(|&direction| self.space.step(from, direction) == Some(place));
            direction.is_none_or(|direction| !self.space.is_like_an_earlier(direction))
        });
    }

    /// The places next to all neighbours that stand.
    fn places_left(&self, xbar: u32) -> Vec<GridPlace> {
        let mut places = Vec::new();
        self.for_each_place(xbar, |place| places.push(place));
        places
    }

    fn count_places(&self, xbar: u32) -> u8 {
        let mut count = 0;
        if self.for_each_place(xbar, |_| count += 1) { count } else { FAR }
    }

    /// Calls `each` with the places that an xbar can be put at. Returns false if none of its neighbours was
    /// put down.
    fn for_each_place(&self, xbar: u32, mut each: impl FnMut(GridPlace)) -> bool {
        let around = self.links.of_xbar(xbar);
        let Some((first, from)) =
            around.iter().enumerate().find_map(|(i, &near)| Some((i, self.place[near as usize]?)))
        else {
            return false;
        };
        for direction in 0..2 * self.space.dimensions().len() {
            let Some(place) = self.space.step(from, direction) else { continue };
            let fits = |(i, &near): (usize, &u32)| {
                let there = self.place[near as usize];
                there.is_none_or(|there| {
                    self.space.direction(place, there) & self.links.directions(xbar, i) != 0
                })
            };
            if self.space.is_free(place) && around.iter().enumerate().skip(first).all(fits) {
                each(place);
            }
        }
        true
    }

    /// Puts an xbar down. False if another then has no place left.
    fn put_down(&mut self, xbar: u32, place: GridPlace) -> bool {
        let before = self.space.put(xbar, place);
        self.place[xbar as usize] = Some(place);
        self.put.push(Put { xbar, place, before });
        let stuck = self.count_again(xbar, place);
        if self.put.len() > self.deepest {
            self.deepest = self.put.len();
            self.failed_at = stuck.map(|stuck| self.misfit(xbar, stuck));
        }
        stuck.is_none()
    }

    /// The link to name when an xbar has no place: to the one put down last, or else to any that stands.
    fn misfit(&self, last: u32, stuck: u32) -> (u32, u32) {
        let around = self.links.of_xbar(stuck);
        let standing = |&&near: &&u32| self.place[near as usize].is_some();
        let near = if around.contains(&last) { last } else { *around.iter().find(standing).unwrap_or(&last) };
        (stuck, near)
    }

    fn take_back(&mut self) {
        if let Some(Put { xbar, place, before }) = self.put.pop() {
            self.place[xbar as usize] = None;
            self.space.take(place, before);
            self.count_again(xbar, place);
            self.enter(xbar);
        }
    }

    /// Counts again the places of the xbars that an xbar at a place concerns. Returns one that has none left,
    /// if there is one.
    fn count_again(&mut self, xbar: u32, place: GridPlace) -> Option<u32> {
        let mut stuck = None;
        let links = self.links;
        for &near in links.of_xbar(xbar) {
            stuck = stuck.or(self.enter(near));
        }
        for direction in 0..2 * self.space.dimensions().len() {
            let occupant = self.space.step(place, direction).and_then(|next| self.space.occupant(next));
            for &near in occupant.map_or(&[][..], |occupant| links.of_xbar(occupant)) {
                stuck = stuck.or(self.enter(near));
            }
        }
        stuck
    }

    /// Enters an xbar among those that wait. Returns the xbar if it has no place left.
    fn enter(&mut self, xbar: u32) -> Option<u32> {
        if self.place[xbar as usize].is_some() {
            return None;
        }
        let left = self.count_places(xbar);
        self.left[xbar as usize] = left;
        if left != FAR {
            self.waiting[usize::from(left)].push(xbar);
        }
        (left == 0).then_some(xbar)
    }
}
