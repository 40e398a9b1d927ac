//! Cables that carry frames and lose many.

use mapper_proto::Instant;
use mapper_proto::map::{MapVersion, PortRef};

use super::cables::CableEnd;
use super::known::{Known, Lossy};
use super::{Healing, HealingCount, LIMIT};
use crate::examination::Losing;

/// Of so many cables routes go around one that loses frames, and around one at least.
const AVOIDED_SHARE: usize = 8;

/// A cable that carries frames and loses many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossyCable {
    /// The port that holds it at the xbar that the map lists first.
    pub at: PortRef,
    /// When that was found first.
    pub since: Instant,
    /// How many of a hundred frames it lost that were to cross it there and back, when it was examined last.
    pub lost_percent: u8,
    /// Whether routes go around it, as far as others lead there.
    pub is_avoided: bool,
}

impl Healing {
    /// Takes in that a path by these ports of this map loses frames at one place, found by echoes that turned there. Returns the cable
    /// that loses them, if that is news.
    pub(crate) fn loses_frames(
        &mut self,
        now: Instant,
        (version, hops): (MapVersion, &[PortRef]),
        Losing { reached, lost_percent, frame_bytes }: Losing,
    ) -> Option<PortRef> {
        let cables = self.cables.as_ref().filter(|cables| cables.version() == version)?;
        let at = match reached.checked_sub(1) {
            Some(last) => *hops.get(last)?,
            None => cables.home()?,
        };
        let CableEnd { at, is_host } = cables.at(at)?;
        let most_avoided = (cables.count() / AVOIDED_SHARE).max(1);
        let are_avoided = |known: &&Known| known.lossy.is_some_and(|lossy| lossy.is_avoided);
        let is_avoided = !is_host && self.known.values().filter(are_avoided).count() < most_avoided;
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

    /// Whether routes go around no cable that is held for dead, but around some that lose frames.
    pub fn goes_around_lossy_only(&self) -> bool {
        let mut avoided = self.known.values().filter(|known| known.is_avoided()).peekable();
        avoided.peek().is_some() && avoided.all(|known| known.cause().is_none())
    }

    /// The cables that carry frames and lose many.
    pub fn lossy_cables(&self) -> impl Iterator<Item = LossyCable> + '_ {
        self.known.iter().filter(|(_, known)| known.cause().is_none()).filter_map(|(&at, known)| {
            let Lossy { lost_percent, .. } = known.lossy?;
            Some(LossyCable { at, since: known.since, lost_percent, is_avoided: known.is_avoided() })
        })
    }
}
