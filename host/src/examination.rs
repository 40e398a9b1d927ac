//! Finds out which cable of a path loses frames, once checks along the path got lost.
//!
//! An examination is a sounding: echoes turn at each crossbar of the path, and some go on to the host, all of them many
//! times. They are waited for much longer than checks are, so that a machine that is busy does not look like a bad cable.
//! Where more echoes get lost than at all places before it, and no fewer at all places behind it, is the cable that loses them.

use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::PortRef;
use mapper_proto::{Instant, Mac};

use crate::routes::{Basis, RoutePath};
use crate::sounding::{Back, EchoWay, Plan, Sounded};

/// How often each place of a path is asked.
const ROUNDS: u16 = 50;
/// How long after one round the next one begins.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long an echo is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The least time from one examination to the next.
const PAUSE: Duration = Duration::from_secs(10);
/// How many more of a place's echoes than of those before it have to get lost, at least: a tenth.
const LEAST_LOST: usize = ROUNDS as usize / 10;
/// In how many places of the row of echoes some have to get lost, with others between that come back. A cable that dies meanwhile,
/// or an agent that ends, loses them all from one moment on, and one that is back all up to then.
const LEAST_RUNS: usize = 3;

/// Where on a path frames get lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Losing {
    /// How many crossbars of the path, from the first, are reached without such losses: the cable behind the last of these
    /// loses frames.
    pub(crate) reached: usize,
    /// How many of a hundred frames it loses, there and back together.
    pub(crate) lost_percent: u8,
    /// How long the frames were, route and all, in bytes; 0 for as short as can be.
    pub(crate) frame_bytes: usize,
}

/// A path that is being examined.
#[derive(Debug)]
pub(crate) struct Examined {
    /// The map that the ports are of.
    pub(crate) basis: Arc<Basis>,
    /// The ports by which the path leaves its crossbars.
    pub(crate) hops: Vec<PortRef>,
    frame_bytes: usize,
}

/// Examines one path at a time.
#[derive(Debug, Default)]
pub(crate) struct Examiner {
    under_way: Option<Examined>,
    /// When the next examination may begin.
    not_before: Instant,
}

impl Examiner {
    /// What is to be sounded to examine a path to this host, with echoes of this length; `None` if another path is under way, or
    /// one was a moment ago.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        (to, path): (Mac, RoutePath),
        frame_bytes: usize,
        basis: &Arc<Basis>,
    ) -> Option<Plan> {
        if self.under_way.is_some() || now < self.not_before {
            return None;
        }
        let RoutePath { hops, way } = path;
        let places = (1..=way.there.hops()).map(Some).chain([None]);
        let echo = |turn| (EchoWay::Agents { way: way.clone(), to, turn }, frame_bytes);
        let echoes = places.map(echo).collect();
        self.under_way = Some(Examined { basis: Arc::clone(basis), hops, frame_bytes });
        self.not_before = now + PAUSE;
        Some(Plan { echoes, train: 1, rounds: ROUNDS, interval: INTERVAL, patience: PATIENCE })
    }

    /// Forgets the examination that was just begun, as no other sounding may begin now.
    pub(crate) fn give_up(&mut self) {
        self.under_way = None;
    }

    /// Takes in what came of the sounding. Returns the path, and where on it frames get lost if they do at one place.
    pub(crate) fn end(&mut self, sounded: &Sounded) -> Option<(Examined, Losing)> {
        let examined = self.under_way.take()?;
        let places: Vec<_> = sounded.iter().map(|echoes| Turned::of(echoes)).collect();
        let (reached, lost_percent) = where_lost(&places)?;
        let losing = Losing { reached, lost_percent, frame_bytes: examined.frame_bytes };
        Some((examined, losing))
    }
}

/// What came of the echoes that turned at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turned {
    /// How many of [`ROUNDS`] got lost.
    lost: usize,
    /// How many rows of one or more that got lost there are, with others before and behind.
    runs: usize,
}

impl Turned {
    fn of(echoes: &[Option<Back>]) -> Self {
        let lost = echoes.iter().filter(|back| back.is_none()).count();
        let runs = echoes.chunk_by(|one, next| one.is_none() == next.is_none());
        Self { lost, runs: runs.filter(|run| run[0].is_none()).count() }
    }
}

/// How many places are reached without loss, and how many of a hundred frames get lost behind them, by what came of echoes that turned
/// at each place.
fn where_lost(places: &[Turned]) -> Option<(usize, u8)> {
    let mut before = 0;
    for (reached, &Turned { lost: here, runs }) in places.iter().enumerate() {
        // Whoever answers no echoes, and sends on all frames, loses none.
        let behind = places[reached..].iter().map(|place| place.lost).min().unwrap_or(here);
        let more = behind.saturating_sub(before);
        // What gets lost before this place is lost of these echoes, too, by chance sometimes more often: three standard
        // deviations of a rare event are thrice the root of how often it is expected.
        if more >= LEAST_LOST && more * more >= 9 * before {
            if runs < LEAST_RUNS {
                return None;
            }
            let lost_percent = u8::try_from(100 * more / usize::from(ROUNDS)).unwrap_or(100);
            return Some((reached, lost_percent));
        }
        before = before.max(here);
    }
    None
}

#[cfg(test)]
mod tests {
    use mapper_proto::wire::{Element, RoundTrip, Route};

    use super::*;

    /// Where frames get lost if so many do at each place, now and then.
    fn where_lost(lost: &[usize]) -> Option<(usize, u8)> {
        let places: Vec<_> =
            lost.iter().map(|&lost| Turned { lost, runs: lost.min(50 - lost).max(1) }).collect();
        super::where_lost(&places)
    }

    #[test]
    fn frames_get_lost_behind_the_last_place_that_loses_few() {
        assert_eq!(where_lost(&[10, 11, 9]), Some((0, 18)), "the own cable");
        assert_eq!(where_lost(&[0, 10, 12, 9]), Some((1, 18)));
        assert_eq!(where_lost(&[0, 0, 5]), Some((2, 10)));
        assert_eq!(where_lost(&[1, 0, 26, 30]), Some((2, 50)));
    }

    #[test]
    fn what_is_few_or_chance_or_lost_at_one_place_alone_is_no_cables_fault() {
        assert_eq!(where_lost(&[0, 1, 4, 3]), None, "few");
        assert_eq!(where_lost(&[4, 9, 10]), None, "5 more than 4 may be chance");
        assert_eq!(
            where_lost(&[0, 50, 0, 0]),
            None,
            "that crossbar answers no echoes, and sends on all frames"
        );
        assert_eq!(where_lost(&[0, 50, 0, 9]), None, "so nothing is known of what is behind it");
        assert_eq!(where_lost(&[]), None);
    }

    #[test]
    fn what_dies_or_comes_back_meanwhile_loses_no_frames_now_and_then() {
        let back = Some(Back { took: Duration::ZERO, arrived_ns: None, ended_at: None });
        let of =
            |echoes: &[Option<Back>]| super::where_lost(&[Turned { lost: 0, runs: 0 }, Turned::of(echoes)]);
        let (live, dead) = (vec![back; 25], vec![None; 25]);
        assert_eq!(Turned::of(&[back, None, None, back, None]), Turned { lost: 3, runs: 2 });
        for echoes in [[&live[..], &dead].concat(), [&dead[..], &live].concat(), vec![None; 50]] {
            assert_eq!(of(&echoes), None);
        }
        let for_a_while = [&live[..10], &dead[..20], &live[..20]].concat();
        assert_eq!(of(&for_a_while), None);
        assert_eq!(of(&[back, None].repeat(25)), Some((1, 50)));
    }

    #[test]
    fn one_path_is_examined_at_a_time_and_each_place_of_it_fifty_times() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let there: Route = [1, 2].into_iter().map(Element::Relative).collect();
        let hops = vec![PortRef { xbar: 3, port: 1 }, PortRef { xbar: 4, port: 2 }];
        let path = RoutePath { hops: hops.clone(), way: RoundTrip { there: there.clone(), back: there } };
        let to = (Mac::from_position(1), path);
        let basis = Arc::new(Basis::new(Arc::default()).unwrap());
        let mut examiner = Examiner::default();
        let plan = examiner.begin(at(1), to.clone(), 100, &basis).unwrap();
        assert_eq!((plan.echoes.len(), plan.rounds), (3, 50));
        assert_eq!(examiner.begin(at(20), to.clone(), 100, &basis), None, "one is under way");
        let back = Some(Back { took: Duration::ZERO, arrived_ns: None, ended_at: None });
        let now_and_then = [back, back, None, back, back].repeat(10);
        let sounded = vec![vec![back; 50], now_and_then, vec![None; 50]];
        let (examined, losing) = examiner.end(&sounded).unwrap();
        assert_eq!(
            (examined.hops, losing),
            (hops, Losing { reached: 1, lost_percent: 20, frame_bytes: 100 })
        );
        assert!(examiner.end(&sounded).is_none());
        assert_eq!(examiner.begin(at(10), to.clone(), 100, &basis), None, "too soon");
        assert!(examiner.begin(at(11), to, 100, &basis).is_some());
    }
}
