//! Which part of a gap is held against which fault.

use super::calm::Until;
use super::*;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// How long a gap from 100 to 400 ms counts behind faults at these moments, in milliseconds, if a frame was sent each 50 ms.
fn kept_gaps(faults: &[u64], no_safe_route_at: Option<u64>, renewed_at: Option<u64>) -> Vec<u128> {
    let users = TrafficOptions { rate: 1.0, partners: 1, flows: 1, broadcasts: false, from: None };
    let mut traffic = Traffic { started: true, ..Traffic::new(&users, 2, 1) };
    for &at in faults {
        let well = Circumstances {
            all_well: true,
            orderly: true,
            ends_xbar: false,
            left_within: Duration::ZERO,
            paths_left_within: Duration::ZERO,
        };
        traffic.strike(ms(at), Fault::Heal, "heal", well);
    }
    let no_safe_route_at = no_safe_route_at.map(ms);
    let gap = Gap { from: ms(100), to: ms(400), renewed_at: renewed_at.map(ms), no_safe_route_at };
    Traffic::note_parts(&mut traffic.effects, gap, Duration::from_millis(50));
    traffic.effects.iter().map(|effect| effect.kept_gap.unwrap().as_millis()).collect()
}

#[test]
fn a_gap_counts_up_to_the_next_fault_and_to_the_moment_when_no_safe_route_is_left() {
    assert_eq!(kept_gaps(&[50], None, None), [300]);
    assert_eq!(kept_gaps(&[50, 200], None, None), [100, 200]);
    assert_eq!(
        kept_gaps(&[60, 210], None, None),
        [110, 150],
        "the first frame behind the second fault was sent at 250 ms"
    );
    assert_eq!(
        kept_gaps(&[60, 390], None, None),
        [290, 0],
        "the first frame behind the second fault arrived"
    );
    assert_eq!(kept_gaps(&[50], Some(160), None), [60]);
    assert_eq!(kept_gaps(&[50], Some(80), None), [0], "it was known before the first frame was lost");
    assert_eq!(kept_gaps(&[50], Some(20), None), [300], "that was behind an earlier fault");
    assert_eq!(kept_gaps(&[50, 200], Some(250), None), [100, 50]);
    assert_eq!(kept_gaps(&[50, 200], Some(150), None), [50, 200]);
    assert_eq!(kept_gaps(&[50], None, Some(60)), [0], "the two had to find each other anew");
}

/// What is wrong if, of four frames of one flow to hosts 1 and 2 each, the second one arrives, then the first, the second again, and
/// the third when it counts as lost, at each of the hosts, while this goes on.
fn wrongs(disturb: impl Fn(&mut Disturbances)) -> Vec<Option<&'static str>> {
    let users = TrafficOptions { rate: 100.0, partners: 2, flows: 1, broadcasts: false, from: None };
    let mut traffic = Traffic { started: true, ..Traffic::new(&users, 3, 1) };
    disturb(&mut traffic.disturbances);
    for _ in 0..8 {
        traffic.next_frame(0, ms(1));
    }
    let arrive = |traffic: &mut Traffic, number| {
        [1, 2].map(|to| traffic.arrive(to, UserFrame { from: 0, to, number }, |_| Upheavals::default()))
    };
    let mut wrongs = Vec::new();
    for number in [1, 0, 1] {
        wrongs.extend(arrive(&mut traffic, number));
    }
    traffic.settle_all(ms(1000));
    wrongs.extend(arrive(&mut traffic, 2));
    assert_eq!(wrongs[..2], [None; 2], "the first ones arrive as they should");
    wrongs.split_off(2)
}

#[test]
fn each_disturbance_excuses_what_it_can_do() {
    let overtaken = Some("was overtaken by a later one of its flow");
    let (twice, late) = (Some("arrived twice"), Some("arrived more than 250 ms after it was sent"));
    let all = [overtaken, overtaken, twice, twice, late, late];
    let on = Until(Instant::FAR);
    assert_eq!(wrongs(|_| ()), all);
    assert_eq!(wrongs(|it| it.garbled = on), all, "these are no broadcasts");
    assert_eq!(wrongs(|it| it.overtaken = on), [None, None, twice, twice, late, late]);
    assert_eq!(wrongs(|it| it.copied = on), [overtaken, overtaken, None, None, late, late]);
    assert_eq!(wrongs(|it| it.held_up = on), [overtaken, overtaken, twice, twice, None, None]);
    assert_eq!(
        wrongs(|it| it.replayed[2] = on),
        [overtaken, None, twice, None, late, None],
        "a hostile host reaches one of the two"
    );
    assert_eq!(wrongs(|it| it.copied = Until(ms(1))), all, "it had ended when the frames were sent");
}
