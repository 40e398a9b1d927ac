//! Multicast groups that hosts join and leave.

use super::*;

/// Has a host join a group, which the first one makes, or leave it.
fn take_part(trial: &mut Trial, host: usize, method: SaMethod) {
    let (_, lid) = trial.model.hosts()[host];
    let record = McMemberRecord {
        group: Gid(0xFF12_401B_FFFF_0000_0000_0000_0000_0021),
        port: Gid::of_port(Gid::LINK_PREFIX, trial.model.nodes[host].info.port_guid + 1),
        state: JoinState::FULL,
        partition: 0xFFFF,
        ..McMemberRecord::parse(&[])
    };
    let mask = McMemberRecord::GROUP
        | McMemberRecord::PORT
        | McMemberRecord::STATE
        | McMemberRecord::QUEUE_KEY
        | McMemberRecord::PARTITION
        | McMemberRecord::TRAFFIC_CLASS
        | McMemberRecord::LEVEL
        | McMemberRecord::FLOW_LABEL;
    let request = SaMad {
        method,
        status: 0,
        tid: 5,
        attribute: SaAttribute::McMemberRecord,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 0,
        offset: 0,
        mask,
        data: [0; RECORD_BYTES],
    };
    let mad = request.with_record(&record.emit()).emit();
    let address = Address::Lid { lid, queue_pair: 1, level: 0 };
    trial.manager.handle_packet(&Packet { address, mad }, trial.now);
}

#[test]
fn groups_that_hosts_join_get_trees_that_reach_them_and_nobody_else() {
    let mut trial = Trial::new(Model::ring(6));
    trial.run(Duration::from_secs(15));
    [1, 2, 5].into_iter().for_each(|host| take_part(&mut trial, host, SaMethod::Set));
    trial.run(Duration::from_secs(1));
    trial.model.check_group(0xC001, &[1, 2, 5]).unwrap();
    let (written, sent) = (trial.model.table_writes, trial.manager.sent());
    take_part(&mut trial, 5, SaMethod::Delete);
    trial.run(Duration::from_secs(1));
    trial.model.check_group(0xC001, &[1, 2]).unwrap();
    let parts = trial.model.table_writes - written;
    assert!(
        trial.manager.sent() - sent == parts && parts <= 12,
        "nothing but what differs is written: {parts}"
    );
    [1, 2].into_iter().for_each(|host| take_part(&mut trial, host, SaMethod::Delete));
    trial.run(Duration::from_secs(1));
    assert_eq!(trial.model.flood(0, 0xC001), Ok(Vec::new()), "that group is gone");
    trial.model.check_group(0xC000, &[0, 1, 2, 3, 4, 5]).unwrap();
}
