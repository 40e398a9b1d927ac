//! Records arrive whole, whatever is lost on the way.

use proptest::prelude::*;

use super::*;
use crate::mad::sa::{SaAttribute, SaMethod};

const ADDRESS: Address = Address::Lid { lid: 7, queue_pair: 1, level: 0 };
const KEY: Key = (7, 1, 99);

fn request() -> SaMad {
    SaMad {
        method: SaMethod::GetTable,
        status: 0,
        tid: KEY.2,
        attribute: SaAttribute::NodeRecord,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 1,
        offset: 0,
        mask: 0,
        data: [3; RECORD_BYTES],
    }
}

/// A receiver like that of a kernel. It takes segments in order, and acknowledges every few of them and each
/// that is out of order.
#[derive(Default)]
struct Receiver {
    records: Vec<u8>,
    came: u32,
    window: u32,
    is_whole: bool,
    aborted: Option<u8>,
}

impl Receiver {
    fn ack(&self) -> Rmpp {
        let length = self.came + self.window;
        Rmpp {
            version: 1,
            kind: Rmpp::ACK,
            flags: Rmpp::ACTIVE,
            segment: self.came,
            length,
            ..Rmpp::default()
        }
    }

    fn take(&mut self, packet: &Packet) -> Option<Rmpp> {
        let mad = SaMad::parse(&packet.mad).unwrap();
        assert_eq!((mad.method, mad.tid, mad.key), (SaMethod::GetTableResponse, KEY.2, 0));
        if mad.rmpp.kind == Rmpp::ABORT {
            self.aborted = Some(mad.rmpp.status);
            return None;
        }
        assert_eq!((mad.rmpp.kind, mad.rmpp.is_active()), (Rmpp::DATA, true));
        if mad.rmpp.segment != self.came + 1 {
            return Some(self.ack());
        }
        assert_eq!(mad.rmpp.flags & Rmpp::FIRST != 0, self.came == 0);
        self.came += 1;
        let is_last = mad.rmpp.flags & Rmpp::LAST != 0;
        let length = if is_last { mad.rmpp.length as usize - SEGMENT_HEADER_BYTES } else { RECORD_BYTES };
        self.records.extend_from_slice(&mad.data[..length]);
        self.is_whole = is_last;
        (is_last || self.came.is_multiple_of(self.window.max(1))).then(|| self.ack())
    }
}

proptest! {
    #[test]
    fn records_arrive_whole_although_segments_and_words_get_lost(
        length in 0_usize..20_000,
        window in 1_u32..100,
        lost in prop::collection::vec(prop::bool::weighted(0.2), 0..300),
    ) {
        let mut lost = lost.into_iter();
        let records: Vec<u8> = (0..length).map(|at| (at * 7 + at / 256) as u8).collect();
        let mut transfers = Transfers::default();
        let mut now = Instant::ZERO;
        prop_assert!(transfers.begin(KEY, ADDRESS, &request(), (14, records.clone()), now));
        let mut receiver = Receiver { window, ..Receiver::default() };
        while transfers.poll_timeout().is_some() {
            while let Some(packet) = transfers.poll_transmit(now) {
                if lost.next().unwrap_or(false) {
                    continue;
                }
                if let Some(word) = receiver.take(&packet)
                    && !lost.next().unwrap_or(false)
                {
                    transfers.handle(&KEY, &word, now);
                }
            }
            if let Some(at) = transfers.poll_timeout() {
                now = at;
                transfers.handle_timeout(now);
            }
        }
        while let Some(packet) = transfers.poll_transmit(now) {
            receiver.take(&packet);
        }
        // A sender that hears nothing for long gives up and says so. It may be the last acknowledgement that
        // it never heard.
        prop_assert!(receiver.is_whole || receiver.aborted == Some(126));
        if receiver.is_whole {
            prop_assert_eq!(receiver.records, records);
        }
        prop_assert_eq!(transfers.bytes, 0);
    }

    #[test]
    fn any_word_of_a_receiver_is_taken_or_ends_the_transfer(
        words in prop::collection::vec((0..6_u8, any::<u8>(), 0..20_u32, 0..40_u32), 0..30),
    ) {
        let mut transfers = Transfers::default();
        prop_assert!(transfers.begin(KEY, ADDRESS, &request(), (14, vec![1; 2000]), Instant::ZERO));
        for (kind, status, segment, length) in words {
            while transfers.poll_transmit(Instant::ZERO).is_some() {}
            let word = Rmpp { version: 1, kind, flags: 1, status, segment, length, ..Rmpp::default() };
            transfers.handle(&KEY, &word, Instant::ZERO);
        }
    }
}

#[test]
fn segments_are_laid_out_as_the_specification_says() {
    let mut transfers = Transfers::default();
    assert!(transfers.begin(KEY, ADDRESS, &request(), (14, vec![9; 224]), Instant::ZERO));
    let first = transfers.poll_transmit(Instant::ZERO).unwrap();
    // The header says version 1, data, no response time, active and first, segment 1, and the length of 224
    // bytes with a header for each segment.
    assert_eq!(first.mad[24..36], [1, 1, 31 << 3 | 3, 0, 0, 0, 0, 1, 0, 0, 1, 8]);
    assert_eq!(first.mad[44..46], [0, 14]);
    assert_eq!(transfers.poll_transmit(Instant::ZERO), None, "nobody said yet how far to go on");
    let word = Rmpp { version: 1, kind: Rmpp::ACK, flags: 1, segment: 1, length: 5, ..Rmpp::default() };
    transfers.handle(&KEY, &word, Instant::ZERO);
    let last = transfers.poll_transmit(Instant::ZERO).unwrap();
    assert_eq!(last.mad[24..36], [1, 1, 31 << 3 | 5, 0, 0, 0, 0, 2, 0, 0, 0, 44]);
    assert_eq!(last.mad[56 + 24..], [0; 176]);
    transfers.handle(&KEY, &Rmpp { segment: 2, ..word }, Instant::ZERO);
    assert_eq!(transfers.poll_timeout(), None, "all is acknowledged");
}

#[test]
fn a_receiver_that_is_silent_or_says_what_cannot_be_is_told_that_the_transfer_ends() {
    let mut transfers = Transfers::default();
    let mut now = Instant::ZERO;
    assert!(transfers.begin(KEY, ADDRESS, &request(), (14, vec![9; 500]), now));
    let mut sent = Vec::new();
    while let Some(at) = transfers.poll_timeout() {
        sent.extend(std::iter::from_fn(|| transfers.poll_transmit(now)));
        now = at;
        transfers.handle_timeout(now);
    }
    assert_eq!(sent.len(), 1 + RETRIES as usize, "the first segment, and again");
    let aborted = SaMad::parse(&transfers.poll_transmit(now).unwrap().mad).unwrap().rmpp;
    assert_eq!((aborted.kind, aborted.status), (Rmpp::ABORT, 126));
    assert!(transfers.begin(KEY, ADDRESS, &request(), (14, vec![9; 500]), now));
    transfers.poll_transmit(now).unwrap();
    let word = Rmpp { version: 1, kind: Rmpp::ACK, flags: 1, segment: 3, length: 9, ..Rmpp::default() };
    transfers.handle(&KEY, &word, now);
    let aborted = SaMad::parse(&transfers.poll_transmit(now).unwrap().mad).unwrap().rmpp;
    assert_eq!((aborted.kind, aborted.status), (Rmpp::ABORT, 123));
    assert_eq!(transfers.poll_timeout(), None);
}

#[test]
fn transfers_take_turns_and_there_is_a_most() {
    let mut transfers = Transfers::default();
    let key = |lid| (lid, 1, 99);
    for lid in 0..MAX_TRANSFERS as u16 {
        let address = Address::Lid { lid, queue_pair: 1, level: 0 };
        assert!(transfers.begin(key(lid), address, &request(), (14, vec![9; 500]), Instant::ZERO));
    }
    assert!(!transfers.begin(key(999), ADDRESS, &request(), (14, vec![9; 500]), Instant::ZERO));
    let word = Rmpp { version: 1, kind: Rmpp::ACK, flags: 1, segment: 1, length: 5, ..Rmpp::default() };
    let sent: Vec<Address> =
        std::iter::from_fn(|| transfers.poll_transmit(Instant::ZERO)).map(|packet| packet.address).collect();
    assert_eq!(sent.len(), MAX_TRANSFERS);
    for lid in [3, 5] {
        transfers.handle(&key(lid), &word, Instant::ZERO);
    }
    let turns: Vec<u16> = std::iter::from_fn(|| transfers.poll_transmit(Instant::ZERO))
        .map(|packet| match packet.address {
            Address::Lid { lid, .. } => lid,
            Address::Directed => 0,
        })
        .collect();
    assert_eq!(turns, [3, 5, 3, 5]);
    assert!(!transfers.begin(key(999), ADDRESS, &request(), (14, vec![9; MAX_BYTES]), Instant::ZERO));
}

#[test]
fn where_receivers_are_silent_a_transfer_ends_with_its_first_segment() {
    let mut transfers = Transfers::default();
    transfers.end_with_first();
    let mut transfers = transfers.without_transfers();
    assert!(transfers.begin(KEY, ADDRESS, &request(), (14, vec![9; 500]), Instant::ZERO));
    assert!(transfers.poll_transmit(Instant::ZERO).is_some());
    assert_eq!((transfers.poll_transmit(Instant::ZERO), transfers.poll_timeout()), (None, None));
}
