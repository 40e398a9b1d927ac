//! Reports to subscribers.

use super::*;

#[test]
fn subscribers_are_told_of_ports_and_groups_until_they_take_note() {
    let mut administration = administration();
    assert_eq!(subscribe(&mut administration, 2, InformInfo::ALL), 0);
    assert_eq!(subscribe(&mut administration, 1, SubnetNotice::GROUP_MADE), 0);
    let mut less = inventory();
    less.adapters.pop();
    administration.begin(subnet_of(&less, &routes()));
    let told = administration.poll_transmit(Instant::ZERO).unwrap();
    assert_eq!(told.address, Address::Lid { lid: 2, queue_pair: 1, level: 0 });
    let report = SaMad::parse(&told.mad).unwrap();
    assert_eq!((report.method, report.attribute), (SaMethod::Report, SaAttribute::Notice));
    assert_eq!((report.data[5], report.data[31]), (65, 3));
    assert_eq!(administration.poll_transmit(Instant::ZERO), None);
    let at = administration.poll_timeout().unwrap();
    administration.handle_timeout(at);
    assert_eq!(administration.poll_transmit(at), Some(told.clone()), "told again");
    // Whatever carries datagrams may have put its own number into the upper half.
    let note = SaMad { method: SaMethod::ReportResponse, tid: report.tid | 1 << 40, ..report };
    send(&mut administration, 2, &note, at);
    assert_eq!(administration.poll_timeout(), None);
    administration.begin(subnet_of(&inventory(), &routes()));
    let report = SaMad::parse(&administration.poll_transmit(at).unwrap().mad).unwrap();
    assert_eq!((report.data[5], report.data[31]), (64, 3));
}

#[test]
fn a_subscriber_that_is_silent_is_given_up_and_one_that_ends_it_is_told_no_more() {
    let mut administration = administration();
    subscribe(&mut administration, 2, InformInfo::ALL);
    let mut less = inventory();
    less.adapters.pop();
    administration.begin(subnet_of(&less, &routes()));
    let mut times = 0;
    let mut now = Instant::ZERO;
    while administration.poll_transmit(now).is_some() {
        times += 1;
        now = administration.poll_timeout().unwrap();
        administration.handle_timeout(now);
    }
    assert_eq!((times, administration.poll_timeout()), (4, None));
    let ended = InformInfo {
        first_lid: InformInfo::ALL,
        is_generic: true,
        trap_type: InformInfo::ALL,
        trap: InformInfo::ALL,
        queue_pair: 1,
        producer: InformInfo::ALL_PRODUCERS,
        ..InformInfo::parse(&[])
    };
    let asked = request(SaMethod::Set, SaAttribute::InformInfo, 0, &ended.emit());
    assert_eq!(ask(&mut administration, 2, &asked).status, 0);
    assert_eq!(ask(&mut administration, 2, &asked).status, SaStatus::Invalid.code());
    administration.begin(subnet_of(&inventory(), &routes()));
    assert_eq!(administration.poll_transmit(now), None);
}
