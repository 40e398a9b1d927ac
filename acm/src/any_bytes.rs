//! The bodies of the fuzz targets as property tests: random bytes, and messages that were damaged.

mod bodies;

use mapper_acm::wire::{Address, EntryFlags, PathRecord, Question, Request, Sought};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A request of every kind.
fn good_requests() -> Vec<Vec<u8>> {
    let address = |text: &str| Address::V4(text.parse().unwrap());
    let ask = |sought, flags| Request::Resolve(Question { sought, flags });
    let to = |source| Sought::Destination { source, destination: address("10.0.0.1") };
    let path = PathRecord { dlid: 7, reversible: true, ..PathRecord::default() };
    let requests = [
        ask(to(None), EntryFlags::default()),
        ask(to(Some(Address::Name("n1".to_owned()))), EntryFlags::NO_DELAY),
        ask(Sought::Path(path), EntryFlags::VERIFY),
        Request::Counters { endpoint: 1, source: None },
        Request::Counters { endpoint: 0, source: Some(Ok(address("10.0.0.2"))) },
        Request::Endpoint { endpoint: 1, port: 0, page: 0 },
    ];
    requests.iter().map(|request| request.to_bytes(9).unwrap()).collect()
}

/// Random bytes, or a good message with some bytes changed, cut off, or added.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged =
        (select(good_requests()), vec((any::<Index>(), any::<u8>()), 0..4), any::<Index>(), 0..90usize);
    let damaged = damaged.prop_map(|(mut message, changes, end, more)| {
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        if more == 0 {
            message.truncate(end.index(message.len() + 1));
        } else {
            message.resize(message.len() + more - 1, 0xa5);
        }
        message
    });
    prop_oneof![vec(any::<u8>(), 0..200), damaged]
}

/// The same with the bit that makes a reply of a request.
fn replies() -> impl Strategy<Value = Vec<u8>> {
    (bytes(), any::<bool>(), select(vec![16_u16, 72, 88, 96, 160])).prop_map(|(mut bytes, fails, length)| {
        bytes.resize(usize::from(length), 0x5a);
        bytes[0] = 1;
        bytes[1] = bytes[1] & 3 | 0x80;
        bytes[2] = u8::from(fails);
        let length = if bytes[1] == 0x81 { length.to_ne_bytes() } else { length.to_be_bytes() };
        bytes[6..8].copy_from_slice(&length);
        if bytes[1] == 0x81 && bytes.len() > 16 {
            bytes[20..22].copy_from_slice(&0x10_u16.to_ne_bytes());
        }
        bytes
    })
}

/// Lines of words that files have.
fn text() -> impl Strategy<Value = String> {
    const WORDS: [&str; 21] = [
        "#",
        "Channel Adapter",
        "Switch",
        "0x7",
        ",",
        "base LID",
        "1",
        ":",
        "4",
        "3",
        "default",
        "node",
        "fe80::1",
        "timeout",
        "addr_prot",
        "acm",
        "\n",
        "\n",
        "-1",
        "65536",
        "\u{e9}",
    ];
    vec(select(&WORDS[..]), 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn requests(bytes in bytes()) {
        bodies::acm_request(&bytes);
    }

    #[test]
    fn any_replies(bytes in replies()) {
        bodies::acm_reply(&bytes);
    }

    #[test]
    fn path_records(bytes in vec(any::<u8>(), 64)) {
        bodies::acm_path_record(&bytes);
    }

    #[test]
    fn files(text in text(), bytes in vec(any::<u8>(), 0..100)) {
        bodies::acm_files(text.as_bytes());
        bodies::acm_files(&bytes);
    }
}
