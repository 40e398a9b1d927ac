//! Whether packets of IPv4 get through along a way that probes of IPv6 have proved. A firewall may be set up for one version of IP
//! alone: tools that set up networks for containers forbid forwarding of IPv4 only.

use super::{MISSES, MISSES_OF_USED};

/// Of so many tries of a way along which IPv4 gets through, one is followed by a probe of IPv4.
pub(in crate::kernel_path) const TRY_EVERY: u8 = 4;
/// Of so many tries of a way along which IPv4 does not get through, one is followed by a probe of IPv4.
const TRY_AGAIN_EVERY: u8 = 4;

/// What is known of packets of IPv4 along a way. Each probe of IPv4 follows the answer to one of IPv6, so that its own loss says
/// something of IPv4: neither the way nor the host's agent is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfV4 {
    /// Nothing yet. So many probes in a row were not answered.
    Sought { misses: u8 },
    /// They get through. So many probes in a row were not answered since.
    Found { misses: u8 },
    /// They do not get through.
    Lost,
}

impl OfV4 {
    pub(super) const UNKNOWN: Self = Self::Sought { misses: 0 };

    /// Whether packets of IPv4 may take the way.
    pub(super) const fn gets_through(self) -> bool {
        matches!(self, Self::Found { .. })
    }

    /// Whether it is not known yet whether they may.
    pub(super) const fn is_unknown(self) -> bool {
        matches!(self, Self::Sought { .. })
    }

    /// Whether a probe of IPv4 is to follow the answer to the try with this number.
    pub(super) const fn is_due(self, nth_try: u8) -> bool {
        match self {
            Self::Sought { .. } | Self::Found { misses: 1.. } => true,
            Self::Found { misses: 0 } => nth_try.is_multiple_of(TRY_EVERY),
            Self::Lost => nth_try % TRY_AGAIN_EVERY == TRY_AGAIN_EVERY / 2,
        }
    }

    /// Takes in that a probe of IPv4 was answered. Returns whether packets may take the way now that could not before.
    pub(super) const fn answered(&mut self) -> bool {
        let is_news = !self.gets_through();
        *self = Self::Found { misses: 0 };
        is_news
    }

    /// Takes in that a probe of IPv4 was not answered.
    pub(super) const fn missed(&mut self) {
        *self = match *self {
            Self::Sought { misses } if misses + 1 < MISSES => Self::Sought { misses: misses + 1 },
            Self::Found { misses } if misses + 1 < MISSES_OF_USED => Self::Found { misses: misses + 1 },
            Self::Sought { .. } | Self::Found { .. } | Self::Lost => Self::Lost,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_held_for_lost_after_a_few_probes_in_a_row_and_back_after_one() {
        let mut it = OfV4::UNKNOWN;
        for _ in 1..MISSES {
            it.missed();
            assert!(it.is_unknown() && it.is_due(1));
        }
        it.missed();
        assert_eq!(it, OfV4::Lost);
        assert_eq!((0..8).filter(|&nth| it.is_due(nth)).collect::<Vec<_>>(), [2, 6]);
        assert!(it.answered() && it.gets_through());
        assert!(!it.answered(), "that it still does is no news");
        for _ in 1..MISSES_OF_USED {
            it.missed();
            assert!(it.gets_through() && it.is_due(1));
        }
        assert!(!it.answered());
        assert_eq!((1..9).filter(|&nth| it.is_due(nth)).collect::<Vec<_>>(), [4, 8]);
        (0..MISSES_OF_USED).for_each(|_| it.missed());
        assert_eq!(it, OfV4::Lost);
    }
}
