//! Cables that carry frames and lose many.

use std::sync::Arc;

use mapper_proto::Instant;
use mapper_proto::map::{PortRef, TaggedPort};

use super::cables::{CableEnd, Cables};
use super::known::{Known, Lossy};
use super::{Healing, HealingCount, LIMIT};
use crate::examination::Losing;
use crate::routes::Basis;

/// A cable that carries frames and loses many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossyCable {
    /// The port that holds it at the xbar that the map lists first.
    pub at: PortRef,
    /// When that was found first.
    pub since: Instant,
    /// How many of a hundred frames it lost that were to cross it there and back, when it was examined last.
    pub lost_percent: u8,
    /// Whether routes of this host go around it, as far as others lead there.
    pub is_avoided: bool,
    /// Whether no route of any host leads over it, by the map.
    pub is_left_out: bool,
}

impl Healing {
    /// Takes in that a path by these ports of this map loses frames at one place, found by echoes that turned there. It may be an
    /// earlier map, whose cable between tagged xbars is still where it was. Returns the cable that loses them, if that is news.
    pub(crate) fn loses_frames(
        &mut self,
        now: Instant,
        (basis, hops): (&Arc<Basis>, &[PortRef]),
        Losing { reached, lost_percent, frame_bytes }: Losing,
    ) -> Option<PortRef> {
        let cables = self.cables.as_ref()?;
        let examined = Cables::new(Arc::clone(basis), cables.own());
        let at = match reached.checked_sub(1) {
            Some(last) => *hops.get(last)?,
            None => examined.home()?,
        };
        let CableEnd { at, is_host } = cables.counterpart(&examined, at)?;
        let most_avoided = cables.most_lossy();
        let are_avoided = |known: &&Known| known.lossy.is_some_and(|lossy| lossy.is_avoided);
        let has_room = self.known.values().filter(are_avoided).count() < most_avoided;
        let is_avoided = !is_host && has_room && !cables.joins_alone(at);
        if self.known.len() >= LIMIT && !self.known.contains_key(&at) {
            self.counts.count(HealingCount::Overload);
            return None;
        }
        let known = self.known.entry(at).or_insert_with(|| Known::new(now, is_host));
        known.frame_bytes = known.frame_bytes.max(frame_bytes);
        match &mut known.lossy {
            Some(lossy) => {
                lossy.lost_percent = lost_percent;
                // Another one that was avoided in its stead may be well again.
                lossy.is_avoided |= is_avoided;
                None
            }
            lossy @ None => {
                *lossy = Some(Lossy { lost_percent, is_avoided });
                self.counts.count(HealingCount::LossyCables);
                self.test_now(now);
                Some(at)
            }
        }
    }

    /// The cables that no host's route leads over, by the map, as they lose frames, each by the lower of its ports.
    pub fn left_out(&self) -> impl Iterator<Item = PortRef> + '_ {
        self.cables.iter().flat_map(Cables::left_out)
    }

    /// The cables that are left out and that this host has not found itself.
    pub fn left_out_by_others(&self) -> impl Iterator<Item = PortRef> + '_ {
        let own = |at: &PortRef| self.known.get(at).is_some_and(|known| known.lossy.is_some());
        self.left_out().filter(move |at| !own(at))
    }

    /// Whether routes go around no cable that is held for dead, but around some that lose frames.
    pub fn goes_around_lossy_only(&self) -> bool {
        let mut avoided = self.known.values().filter(|known| known.is_avoided()).peekable();
        avoided.peek().is_some() && avoided.all(|known| known.cause().is_none())
    }

    /// The cables between xbars that carry frames and lose many, each by a port of an xbar that has a tag, those first that were
    /// found first.
    pub(crate) fn lossy_ports(&self) -> Vec<TaggedPort> {
        let lossy = self.known.iter().filter(|(_, known)| known.lossy.is_some() && !known.is_host);
        let named = lossy.filter_map(|(&at, known)| {
            let (tag, port) = self.cables.as_ref()?.tags_of(at).next()?;
            Some((known.since, TaggedPort { tag, port }))
        });
        let absent = self.absent.iter().map(|(&port, absent)| (absent.known.since, port));
        let mut named: Vec<_> = named.chain(absent).collect();
        named.sort_unstable();
        named.into_iter().map(|(_, port)| port).collect()
    }

    /// The cables that carry frames and lose many.
    pub fn lossy_cables(&self) -> impl Iterator<Item = LossyCable> + '_ {
        self.known.iter().filter(|(_, known)| known.cause().is_none()).filter_map(|(&at, known)| {
            let Lossy { lost_percent, .. } = known.lossy?;
            let is_left_out = self.cables.as_ref().is_some_and(|cables| cables.is_left_out(at));
            let is_avoided = known.is_avoided();
            Some(LossyCable { at, since: known.since, lost_percent, is_avoided, is_left_out })
        })
    }
}
