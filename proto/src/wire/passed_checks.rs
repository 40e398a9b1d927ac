//! The checks that a crossbar sent on lately.
//!
//! A host checks each path that it uses every few milliseconds. A tagged crossbar that remembers who checked what
//! tells all of them at once when a port loses carrier, and not each when its next check comes:
//!
//! ```text
//!   check, token 7, in by port 1 ---> [ xbar ] ---> out by port 3        remembered: port 3, 7, way home by port 1
//!                                        |
//!                port 3 loses carrier    |
//!   notice: 7, no carrier at port 3 <----+                               forgotten
//! ```
//!
//! Of each path the newest check is kept, and for each port those of the paths that were checked last. A check that nobody
//! repeats stays where there is room. Its sender does not know the token any more, and ignores the notice.

use std::collections::BTreeMap;

use super::crossbar::{Crossbar, elements};
use super::data::{Data, token_and_way_home};
use super::{CrossbarKind, Element, Route, Undeliverable};

/// The checks that a crossbar sent on last, each with its way home.
#[derive(Clone, Debug, Default)]
pub struct PassedChecks {
    /// By the port that they left by.
    by_port: BTreeMap<u8, OfPort>,
    /// How many checks were remembered so far.
    count: u64,
}

/// The checks that left by one port.
#[derive(Clone, Debug, Default)]
struct OfPort {
    /// By a digest of their path.
    kept: BTreeMap<u32, PassedCheck>,
    /// The digests, in the order in which the checks were sent on.
    in_order: BTreeMap<u64, u32>,
}

/// A check that was sent on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PassedCheck {
    /// Its number among all that were remembered.
    number: u64,
    /// The port that it came in by.
    arrival: u8,
    token: u64,
    /// The way from that port back to its sender.
    way_home: Route,
}

impl PassedChecks {
    /// How many paths are remembered for each port at most: those that were checked last. Who sends along others learns of a
    /// dead cable by the next check.
    pub const MOST_OF_PORT: usize = 256;

    /// Remembers a frame that came in by port `arrival` and is sent on out of `port`, if it is a check and the crossbar
    /// is a tagged one: no other sends notices. `payload` is the frame as it arrived, with its whole route.
    pub fn note(&mut self, crossbar: &Crossbar, (arrival, port): (u8, u8), payload: &[u8]) {
        if crossbar.kind == CrossbarKind::Plain {
            return;
        }
        let length = elements(payload, 0).map(Element::len_bytes).sum();
        if !payload.get(length..).is_some_and(Data::is_check) {
            return;
        }
        let Some((token, way_home)) = token_and_way_home(payload) else { return };
        let mut digest = crc32fast::Hasher::new();
        [&[arrival], &payload[..length], way_home.as_bytes()].iter().for_each(|part| digest.update(part));
        self.count += 1;
        let check = PassedCheck { number: self.count, arrival, token, way_home };
        self.by_port.entry(port).or_default().keep(digest.finalize(), check);
    }

    /// Forgets the checks that left by a port, which has no carrier any more. Returns a notice about each, the newest
    /// first, route before notice, with the port that it is to be sent out of.
    pub fn take_lost(&mut self, crossbar: &Crossbar, port: u8) -> Vec<(u8, Vec<u8>)> {
        let CrossbarKind::Tagged { tag } = crossbar.kind else { return Vec::new() };
        let OfPort { mut kept, in_order } = self.by_port.remove(&port).unwrap_or_default();
        let newest_first = in_order.into_values().rev().filter_map(|digest| kept.remove(&digest));
        newest_first
            .map(|PassedCheck { arrival, token, way_home, .. }| {
                (arrival, Undeliverable { token, tag, port }.encode_with_route(&way_home))
            })
            .collect()
    }
}

impl OfPort {
    /// Keeps a check in place of an older one of its path, or else, if there is no more room, of the oldest of all.
    fn keep(&mut self, digest: u32, check: PassedCheck) {
        let number = check.number;
        if let Some(older) = self.kept.insert(digest, check) {
            self.in_order.remove(&older.number);
        }
        self.in_order.insert(number, digest);
        if self.in_order.len() > PassedChecks::MOST_OF_PORT
            && let Some((_, oldest)) = self.in_order.pop_first()
        {
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port_set::PortSet;

    const TAG: u64 = 99;

    fn xbar(kind: CrossbarKind) -> Crossbar {
        Crossbar { kind, first_port: 0, ports: 8, carriers: PortSet::NONE }
    }

    fn route(deltas: &[i8]) -> Route {
        deltas.iter().map(|&delta| Element::Relative(delta)).collect()
    }

    /// The token with the bit of checks.
    const fn check(token: u64) -> u64 {
        token | 1 << 63
    }

    /// A frame whose route goes on by these deltas, from a host that is one xbar away by -1.
    fn frame(token: u64, left: &[i8]) -> Vec<u8> {
        let back: Vec<i8> = left.iter().rev().map(|delta| -delta).chain([-1]).collect();
        let data = Data { token, way_back: route(&back), ethernet: &[0; 60] };
        [route(left).as_bytes(), &data.encode().unwrap()].concat()
    }

    #[test]
    fn who_checked_a_path_over_a_port_is_told_once_when_it_loses_carrier() {
        let xbar = xbar(CrossbarKind::Tagged { tag: TAG });
        let mut checks = PassedChecks::default();
        checks.note(&xbar, (1, 3), &frame(check(7), &[2, 1]));
        // A newer check of the same path takes the place of the older one; another path has its own.
        checks.note(&xbar, (1, 3), &frame(check(8), &[2, 1]));
        checks.note(&xbar, (1, 3), &frame(check(9), &[2, 2]));
        checks.note(&xbar, (1, 4), &frame(check(10), &[3, 1]));
        // A user's frame is no check.
        checks.note(&xbar, (1, 3), &frame(11, &[2, 3]));
        // The answer to a check is no check either.
        let answer = Data::carry(Data::QUIET, &route(&[-2, -1]), Default::default(), b"answer", 0).unwrap();
        checks.note(&xbar, (1, 3), &[route(&[2]).as_bytes(), &answer].concat());
        let lost = checks.take_lost(&xbar, 3);
        let notice = |token: u64| {
            (1, Undeliverable { token: check(token), tag: TAG, port: 3 }.encode_with_route(&route(&[-1])))
        };
        assert_eq!(lost, [notice(9), notice(8)]);
        assert!(checks.take_lost(&xbar, 3).is_empty());
        assert_eq!(checks.take_lost(&xbar, 4).len(), 1);
    }

    #[test]
    fn a_plain_crossbar_remembers_nothing_and_no_crossbar_more_than_it_may() {
        let plain = xbar(CrossbarKind::Plain);
        let mut checks = PassedChecks::default();
        checks.note(&plain, (1, 3), &frame(check(7), &[2, 1]));
        let tagged = xbar(CrossbarKind::Tagged { tag: TAG });
        assert!(checks.take_lost(&tagged, 3).is_empty());
        for token in 1..=5000_u64 {
            let left = [2, 1 + (token % 30) as i8, 1 + (token / 30 % 30) as i8, 1 + (token / 900) as i8];
            checks.note(&tagged, (1, 3), &frame(check(token), &left));
        }
        let lost = checks.take_lost(&tagged, 3);
        assert_eq!(lost.len(), PassedChecks::MOST_OF_PORT);
        let tokens: Vec<u64> = lost
            .iter()
            .map(|(_, notice)| {
                let (_, frame) = crate::wire::split_route(notice).unwrap();
                Data::user_token(Undeliverable::decode(frame).unwrap().token)
            })
            .collect();
        assert!(tokens.iter().copied().eq((5000 - 255..=5000).rev()), "the newest are kept: {tokens:?}");
    }
}
