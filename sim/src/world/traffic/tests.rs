//! Which part of a gap is held against which fault.

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
