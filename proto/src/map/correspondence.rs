//! Which xbar of one map is which of another, when something may have changed.

use super::{Attached, HostIndex, Map, PortRef, PortsInUse};

/// Which xbar of a newer map is which of an older one, and how their ports are numbered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Correspondence {
    /// For each xbar of the older map.
    twins: Vec<Option<Counterpart>>,
}

/// An xbar of the newer map, and its port numbers less those of the older one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Counterpart {
    xbar: u32,
    offset: i16,
}

impl Correspondence {
    /// The correspondence that the caller knows, by name for instance: for each xbar of the older
    /// map the one of the newer, with the same port numbers.
    pub fn given(xbars: impl IntoIterator<Item = Option<u32>>) -> Self {
        let twins = xbars.into_iter().map(|xbar| xbar.map(|xbar| Counterpart { xbar, offset: 0 }));
        Self { twins: twins.collect() }
    }

    /// The correspondence as well as it can be told: tagged xbars by their tags, plain ones by
    /// the hosts at them and then by the cables to xbars that are already told. Where these
    /// disagree, because something moved, the most of them decide.
    pub fn guess(older: &Map, newer: &Map) -> Self {
        let mut guess = PartialCorrespondence::new(older, newer);
        guess.by_tags();
        let votes = guess.votes_of_hosts();
        guess.elect(votes);
        while {
            let votes = guess.votes_of_cables();
            guess.elect(votes)
        } {}
        Self { twins: guess.twins }
    }

    /// Which xbar of the newer map this one of the older is.
    pub fn xbar(&self, older: u32) -> Option<u32> {
        self.twin(older).map(|twin| twin.xbar)
    }

    /// Which port of the newer map this one of the older is.
    pub fn port(&self, older: PortRef) -> Option<PortRef> {
        let Counterpart { xbar, offset } = self.twin(older.xbar)?;
        let port = u8::try_from(i16::from(older.port) + offset).ok()?;
        Some(PortRef { xbar, port })
    }

    fn twin(&self, older: u32) -> Option<Counterpart> {
        self.twins.get(older as usize).copied().flatten()
    }
}

/// A correspondence in the making.
struct PartialCorrespondence<'a> {
    older: &'a Map,
    newer: &'a Map,
    older_ports: PortsInUse,
    newer_ports: PortsInUse,
    twins: Vec<Option<Counterpart>>,
    taken: Vec<bool>,
}

/// A vote for an xbar of the older map being this one of the newer.
type Vote = (u32, Counterpart);

impl<'a> PartialCorrespondence<'a> {
    fn new(older: &'a Map, newer: &'a Map) -> Self {
        Self {
            older,
            newer,
            older_ports: PortsInUse::new(older),
            newer_ports: PortsInUse::new(newer),
            twins: vec![None; older.xbars.len()],
            taken: vec![false; newer.xbars.len()],
        }
    }

    fn by_tags(&mut self) {
        let tags = |map: &Map| {
            let mut tags: Vec<(u64, u32)> =
                (0..).zip(&map.xbars).filter_map(|(index, xbar)| xbar.tag.map(|tag| (tag, index))).collect();
            tags.sort_unstable();
            tags
        };
        let newer = tags(self.newer);
        for (tag, older) in tags(self.older) {
            // If several xbars show one tag, the first that is still free is taken.
            let first = newer.partition_point(|&(other, _)| other < tag);
            let same = newer[first..].iter().take_while(|&&(other, _)| other == tag);
            if let Some(&(_, xbar)) = same.into_iter().find(|&&(_, xbar)| !self.taken[xbar as usize]) {
                self.take(older, Counterpart { xbar, offset: 0 });
            }
        }
    }

    fn take(&mut self, older: u32, twin: Counterpart) {
        self.twins[older as usize] = Some(twin);
        self.taken[twin.xbar as usize] = true;
    }

    fn votes_of_hosts(&self) -> Vec<Vote> {
        let index = HostIndex::new(self.newer);
        let places = self.older.hosts.iter().filter_map(|host| {
            let twin = self.newer.hosts.get(index.find(host.mac)? as usize)?;
            Some((host.at?, twin.at?))
        });
        places.filter_map(|(older, newer)| self.vote(older, newer)).collect()
    }

    /// The cables of xbars that are told, port by port, vote for the xbars at their far ends.
    fn votes_of_cables(&self) -> Vec<Vote> {
        let mut votes = Vec::new();
        for (older, twin) in (0..).zip(&self.twins) {
            let Some(Counterpart { xbar, offset }) = *twin else { continue };
            for &(port, attached) in self.older_ports.of_xbar(older) {
                let Ok(port) = u8::try_from(i16::from(port) + offset) else { continue };
                let there = self.newer_ports.at(PortRef { xbar, port });
                if let (Attached::Xbar(far), Some(Attached::Xbar(newer_far))) = (attached, there) {
                    votes.extend(self.vote(far, newer_far));
                }
            }
        }
        votes
    }

    /// The vote that follows from two ports that are one, if it is for plain xbars not yet told.
    fn vote(&self, older: PortRef, newer: PortRef) -> Option<Vote> {
        let (x, y) = (self.older.xbars.get(older.xbar as usize)?, self.newer.xbars.get(newer.xbar as usize)?);
        let open = self.twins[older.xbar as usize].is_none() && !self.taken[newer.xbar as usize];
        let offset = i16::from(newer.port) - i16::from(older.port);
        (open && x.tag.is_none() && y.tag.is_none())
            .then_some((older.xbar, Counterpart { xbar: newer.xbar, offset }))
    }

    /// Takes the candidates with the most votes first. Says whether any was taken.
    fn elect(&mut self, mut votes: Vec<Vote>) -> bool {
        votes.sort_unstable();
        let mut counted: Vec<(usize, Vote)> =
            votes.chunk_by(|x, y| x == y).map(|same| (same.len(), same[0])).collect();
        // The sort is stable, so candidates with equally many votes stay in the order of their indices.
        counted.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        let mut any = false;
        for (_, (older, twin)) in counted {
            if self.twins[older as usize].is_none() && !self.taken[twin.xbar as usize] {
                self.take(older, twin);
                any = true;
            }
        }
        any
    }
}
