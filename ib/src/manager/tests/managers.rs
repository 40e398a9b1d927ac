//! Other managers: what they are told, and which of them this one obeys.

use super::*;

/// A request of another manager by a directed route.
fn sm_info(method: ManagerMethod, modifier: u32, info: &SmInfo) -> Packet {
    let smp = Smp {
        method,
        status: 0,
        tid: 5,
        attribute: Attribute::SmInfo,
        modifier,
        key: 0,
        route: Route::new(&[1]).unwrap(),
        data: info.emit(),
    };
    Packet { address: Address::Directed, mad: smp.emit() }
}

#[test]
fn other_managers_are_told_the_truth_and_only_those_with_the_key_are_obeyed() {
    let mut trial = Trial::new(Model::ring(3));
    trial.run(Duration::from_secs(15));
    let other = SmInfo { guid: 1, key: 1, activity: 0, priority: 9, state: SmState::Master, is_agent: false };
    trial.manager.handle_packet(&sm_info(ManagerMethod::Get, 0, &other), trial.now);
    let answer = trial.manager.poll_transmit(trial.now).unwrap();
    let answer = Smp::<ManagerMethod>::parse(&answer.mad).unwrap();
    let told = SmInfo::parse(&answer.data);
    assert_eq!((answer.method, told.state, told.priority), (ManagerMethod::GetResponse, SmState::Master, 1));
    // Nobody can disable a master.
    trial.manager.handle_packet(&sm_info(ManagerMethod::Set, Command::Disable.modifier(), &other), trial.now);
    assert_eq!(trial.manager.role(), SmState::Master);
    trial.manager.role = SmState::Standby;
    let stranger = SmInfo { key: 2, ..other };
    let handover = Command::Handover.modifier();
    trial.manager.handle_packet(&sm_info(ManagerMethod::Set, handover, &stranger), trial.now);
    assert_eq!(trial.manager.role(), SmState::Standby);
    trial.manager.handle_packet(&sm_info(ManagerMethod::Set, handover, &other), trial.now);
    assert_eq!(trial.manager.role(), SmState::Master);
}

#[test]
fn only_the_master_that_the_port_was_told_has_an_agent_look_at_switches() {
    let mut trial = Trial::new(Model::ring(3));
    trial.run(Duration::from_secs(15));
    let own = trial.manager.status();
    trial.manager.role = SmState::Standby;
    let switches = vec![ShareSwitch { lid: 4, linear_top: 6 }, ShareSwitch { lid: 5, linear_top: 6 }];
    let version = SubnetVersion { master: own.guid, counter: 9 };
    let share =
        AgentMad { level: 3, guid: own.guid, version, number: 1, word: AgentWord::Share(switches) }.emit();
    let mut told_by = |lid: u16| {
        let address = Address::Lid { lid, queue_pair: 1, level: 0 };
        trial.manager.handle_packet(&Packet { address, mad: share }, trial.now);
        std::iter::from_fn(|| trial.manager.poll_transmit(trial.now)).count()
    };
    assert_eq!(told_by(own.manager_lid + 1), 0, "a stranger's datagram causes no others");
    assert_eq!(told_by(own.manager_lid), 2);
    assert_eq!(told_by(own.manager_lid), 0, "the share is under way already");
    assert_eq!(trial.manager.status().version, Some(version));
}

#[test]
fn who_ranks_higher_has_the_higher_priority_or_the_lower_guid() {
    let info = |guid, priority| SmInfo {
        guid,
        key: 1,
        activity: 0,
        priority,
        state: SmState::Standby,
        is_agent: false,
    };
    assert!(info(9, 2).outranks(&info(1, 1)) && info(1, 1).outranks(&info(9, 1)));
    assert!(!info(1, 1).outranks(&info(1, 1)));
    assert_eq!(SmInfo::parse(&[0; DATA_BYTES]).state, SmState::NotActive);
}
