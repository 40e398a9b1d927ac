//! Traps about wrong keys.

use super::*;

/// A trap about a packet with a wrong key from one LID to another.
fn wrong_key(number: u16, key: u32, [from, to]: [u16; 2]) -> Packet {
    let mut packet = trap_of(number, to);
    let details = if number == Notice::MANAGEMENT_KEY { 28..32 } else { 16..20 };
    packet.mad[64 + 12..64 + 14].copy_from_slice(&from.to_be_bytes());
    packet.mad[64 + 14..64 + 16].copy_from_slice(&to.to_be_bytes());
    packet.mad[64 + details.start..64 + details.end].copy_from_slice(&key.to_be_bytes());
    packet
}

#[test]
fn a_wrong_key_is_told_once_with_who_used_it_and_counted_from_then_on() {
    let mut trial = Trial::new(Model::ring(3));
    trial.run(Duration::from_secs(15));
    trial.events.clear();
    let lids = [1, 2].map(|host| trial.model.hosts()[host].1);
    let mut by_route = wrong_key(Notice::MANAGEMENT_KEY, 7, [0xFFFF, lids[1]]);
    by_route.mad[64 + 33] = 0x80 | 3;
    let told = [
        wrong_key(Notice::PARTITION_KEY, 0x8123, lids),
        wrong_key(Notice::PARTITION_KEY, 0x8124, lids),
        wrong_key(Notice::QUEUE_KEY, 0x1B, [lids[0], 999]),
        wrong_key(Notice::MANAGEMENT_KEY, 7, lids),
        by_route,
    ];
    for packet in told {
        trial.manager.handle_packet(&packet, trial.now);
        let repress = trial.manager.poll_transmit(trial.now).unwrap();
        let answer = RoutedByLid::<ManagerMethod>::parse(&repress.mad).unwrap().0;
        assert_eq!(answer.method, ManagerMethod::TrapRepress);
    }
    trial.run(Duration::from_secs(1));
    let words: Vec<&str> = trial
        .events
        .iter()
        .filter_map(|event| if let Event::WrongKey(words) = event { Some(words.as_str()) } else { None })
        .collect();
    let (a, b) =
        (format!("`node 1` (0x1100) at LID {}", lids[0]), format!("`node 2` (0x1200) at LID {}", lids[1]));
    let expected = [
        format!("{a} sent to {b} with a wrong key of a partition (P_Key 0x8123)"),
        format!("{a} sent to nobody's LID 999 with a wrong key of a queue pair (Q_Key 0x0000001b)"),
        format!("{a} sent to {b} with a wrong key of management (M_Key)"),
        format!(
            "somebody 3 cables away by a directed route sent to {b} with a wrong key of management (M_Key)"
        ),
    ];
    assert_eq!(words, expected);
    let status = trial.manager.status();
    let counts = status.counts;
    assert_eq!(
        [
            counts[SubnetCount::WrongManagementKeys],
            counts[SubnetCount::WrongPartitionKeys],
            counts[SubnetCount::WrongQueueKeys]
        ],
        [2, 2, 1]
    );
    let twice = format!("{a} sent to {b} with a wrong key of a partition (P_Key 0x8124) (2 times)");
    assert!(status.wrong_keys.contains(&twice), "{:?}", status.wrong_keys);
    assert_eq!(trial.manager.status().counts[SubnetCount::Sweeps], 2, "nothing is explored for it");
}

#[test]
fn a_switch_with_another_key_of_management_takes_no_write_and_the_key_is_named_as_what_may_be_wrong() {
    let mut model = Model::ring(3);
    let own = model.nodes[4].ports[&0].with_key(5);
    model.nodes[4].ports.insert(0, own);
    let mut trial = Trial::new(model);
    trial.run(Duration::from_secs(10));
    let problems = trial.manager.status().problems;
    let hint = "no answer; it may have another key of management (M_Key): see m-key-file (directed route";
    assert!(problems.iter().any(|problem| problem.contains(hint)), "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains("`node 4`")), "{problems:?}");
}
