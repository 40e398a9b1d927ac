//! What is asked of an administration elsewhere, and how long its answers hold.

use super::*;
use crate::mad::sa::{Gid, PathRecord, RECORD_BYTES, Rmpp};

const MASTER: u16 = 7;
const OWN: u16 = 4;
const SECOND: Duration = Duration::from_secs(1);

fn inquiries() -> Inquiries {
    let mut inquiries = Inquiries::new(SECOND);
    inquiries.stand_at(Some(Standpoint { lid: OWN, administration: MASTER, level: 3 }));
    inquiries
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + SECOND * seconds as u32
}

/// The datagrams that go out, which must all be addressed to the master.
fn sent(inquiries: &mut Inquiries) -> Vec<SaMad> {
    let mut all = Vec::new();
    while let Some(packet) = inquiries.poll_transmit() {
        assert_eq!(packet.address, Address::Lid { lid: MASTER, queue_pair: 1, level: 3 });
        all.push(SaMad::parse(&packet.mad).unwrap());
    }
    all
}

fn receive(inquiries: &mut Inquiries, from: u16, mad: &SaMad, now: Instant) -> bool {
    let address = Address::Lid { lid: from, queue_pair: 1, level: 3 };
    inquiries.handle_packet(&Packet { address, mad: mad.emit() }, now)
}

fn answer(inquiries: &mut Inquiries, request: &SaMad, status: u16, record: &[u8], now: Instant) {
    receive(inquiries, MASTER, &request.answered(status).with_record(record), now);
}

/// Asks, and has the subscription that goes before it confirmed.
fn ask(inquiries: &mut Inquiries, to: &Destination) -> SaMad {
    inquiries.ask(1, "own mlx5_0", to, Instant::ZERO);
    let [subscription, question] = <[SaMad; 2]>::try_from(sent(inquiries)).unwrap();
    assert_eq!((subscription.method, subscription.attribute), (SaMethod::Set, SaAttribute::InformInfo));
    answer(inquiries, &subscription, 0, &[], Instant::ZERO);
    question
}

fn report() -> SaMad {
    SaMad {
        method: SaMethod::Report,
        status: 0,
        tid: 99,
        attribute: SaAttribute::Notice,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 0,
        offset: 0,
        mask: 0,
        data: [0; RECORD_BYTES],
    }
}

#[test]
fn a_name_becomes_a_lid_and_that_a_path() {
    let mut inquiries = inquiries();
    let question = ask(&mut inquiries, &Destination::Name("n3".to_owned()));
    assert_eq!((question.attribute, &question.data[44..47]), (SaAttribute::NodeRecord, &b"n3\0"[..]));
    // No node has the bare name, and one node with two ports has it followed by the name of this node's
    // adapter.
    answer(&mut inquiries, &question, SaStatus::NoRecords.code(), &[], Instant::ZERO);
    let question = sent(&mut inquiries).remove(0);
    assert_eq!(&question.data[44..54], b"n3 mlx5_0\0");
    answer(&mut inquiries, &question, SaStatus::TooManyRecords.code(), &[], Instant::ZERO);
    let question = sent(&mut inquiries).remove(0);
    assert_eq!((question.mask, question.data[40]), (1 << 14 | 1 << 12, 1));
    answer(&mut inquiries, &question, 0, &[0, 9], Instant::ZERO);
    let question = sent(&mut inquiries).remove(0);
    let wanted = PathRecord::parse(&question.data);
    assert_eq!((wanted.source_lid, wanted.destination_lid, wanted.is_reversible), (OWN, 9, true));
    let path = PathRecord { level: 2, ..wanted };
    answer(&mut inquiries, &question, 0, &path.emit(), Instant::ZERO);
    assert_eq!(inquiries.poll_found(), Some((1, FoundPath::Path(path))));
    assert!(sent(&mut inquiries).is_empty() && inquiries.open.is_empty());
}

#[test]
fn what_cannot_be_found_is_told_apart() {
    let gid = Destination::Gid(Gid(5));
    let name = Destination::Name("n3".to_owned());
    for (to, status, expected) in [
        (&gid, SaStatus::InvalidGid, FoundPath::Nobody),
        (&gid, SaStatus::NoRecords, FoundPath::NoPath),
        (&Destination::Lid(9), SaStatus::NoRecords, FoundPath::Nobody),
        (&gid, SaStatus::Denied, FoundPath::Unavailable),
        (&name, SaStatus::Denied, FoundPath::Unavailable),
    ] {
        let mut inquiries = inquiries();
        let question = ask(&mut inquiries, to);
        answer(&mut inquiries, &question, status.code(), &[], Instant::ZERO);
        assert_eq!(inquiries.poll_found(), Some((1, expected)), "{to:?} {status:?}");
    }
    let mut inquiries = inquiries();
    let mut question = ask(&mut inquiries, &name);
    for _ in 0..2 {
        assert_eq!(inquiries.poll_found(), None);
        answer(&mut inquiries, &question, SaStatus::TooManyRecords.code(), &[], Instant::ZERO);
        question = sent(&mut inquiries).pop().unwrap_or(question);
    }
    assert_eq!(inquiries.poll_found(), Some((1, FoundPath::Several)));
    inquiries.ask(2, "own", &Destination::Name("x".repeat(65)), Instant::ZERO);
    assert_eq!(inquiries.poll_found(), Some((2, FoundPath::Nobody)), "no node can have such a name");
}

#[test]
fn a_question_that_is_lost_is_sent_again_and_one_that_nobody_answers_is_given_up() {
    let mut inquiries = inquiries();
    let question = ask(&mut inquiries, &Destination::Lid(9));
    answer(&mut inquiries, &question, SaStatus::Busy.code(), &[], Instant::ZERO);
    for second in 1..=3 {
        assert_eq!(inquiries.poll_timeout(), Some(at(second)));
        inquiries.handle_timeout(at(second));
        assert_eq!(sent(&mut inquiries), std::slice::from_ref(&question));
    }
    inquiries.handle_timeout(at(4));
    assert_eq!(inquiries.poll_found(), Some((1, FoundPath::Unavailable)));
    // An answer that comes late, or from a stranger, changes nothing.
    assert!(receive(&mut inquiries, MASTER, &question.answered(0), at(5)));
    assert!(receive(&mut inquiries, 12, &report(), at(5)));
    assert!(!receive(&mut inquiries, 12, &question, at(5)), "a request is the administration's");
    assert_eq!((inquiries.poll_found(), sent(&mut inquiries)), (None, Vec::new()));
}

#[test]
fn what_was_told_holds_until_something_happens_and_for_a_minute_at_most() {
    let mut inquiries = inquiries();
    let mut number = 0;
    let mut find = |inquiries: &mut Inquiries, now: Instant| {
        number += 1;
        inquiries.ask(number, "own", &Destination::Lid(9), now);
        for request in sent(inquiries) {
            answer(inquiries, &request, 0, &[], now);
        }
        assert!(matches!(inquiries.poll_found(), Some((_, FoundPath::Path(_)))));
        inquiries.generation()
    };
    let first = find(&mut inquiries, at(0));
    inquiries.handle_timeout(at(59));
    assert_eq!(inquiries.generation(), first);
    inquiries.handle_timeout(at(60));
    assert_eq!(inquiries.generation(), first + 1);
    find(&mut inquiries, at(61));
    assert!(receive(&mut inquiries, MASTER, &report(), at(62)));
    assert_eq!(sent(&mut inquiries)[0].method, SaMethod::ReportResponse);
    assert_eq!(inquiries.generation(), first + 2);
    // The master may have been writing when it answered.
    for (told, risen) in [(63, 64), (65, 72)] {
        let before = find(&mut inquiries, at(told));
        inquiries.handle_timeout(at(risen));
        assert_eq!(inquiries.generation(), before + 1);
    }
    inquiries.handle_timeout(at(200));
    assert_eq!(inquiries.generation(), first + 4, "without answers there is nothing to drop");
    let before = find(&mut inquiries, at(201));
    inquiries.stand_at(None);
    assert_eq!(inquiries.generation(), before + 1);
    inquiries.ask(99, "own", &Destination::Lid(9), at(202));
    assert_eq!(inquiries.poll_found(), Some((99, FoundPath::Unavailable)));
}
