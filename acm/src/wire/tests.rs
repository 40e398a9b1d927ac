use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// What stands in the machine's byte order is tested where that is the usual one.
#[cfg(target_endian = "little")]
#[test]
fn a_question_has_these_bytes() {
    let question = Question {
        sought: Sought::Destination {
            source: Some(Address::V4([10, 0, 0, 1].into())),
            destination: Address::Name("n2".to_owned()),
        },
        flags: EntryFlags::NO_DELAY,
    };
    let bytes = Request::Resolve(question).to_bytes(7).unwrap();
    let zeros = |count: usize| "00".repeat(count);
    let source = format!("01000000 0200 0000 0a000001 {}", zeros(60));
    let destination = format!("02000040 0100 0000 6e32 {}", zeros(62));
    assert_eq!(bytes, hex(&format!("01 01 00 000000 a000 0700000000000000 {source} {destination}")));
}

#[test]
fn one_entry_may_be_source_and_destination() {
    let here = Address::V4([10, 0, 0, 1].into());
    let both = EntryFlags::SOURCE.and(EntryFlags::DESTINATION).and(EntryFlags::VERIFY);
    let mut bytes = Vec::new();
    Header::request(Opcode::RESOLVE, (HEADER_BYTES + ENTRY_BYTES) as u16, 9).emit(&mut bytes);
    Entry::of_address(both, &here).emit(&mut bytes);
    let (_, request) = Request::parse(&bytes).unwrap();
    let sought = Sought::Destination { source: Some(here.clone()), destination: here };
    let flags = EntryFlags::DESTINATION.and(EntryFlags::VERIFY);
    assert_eq!(request, Request::Resolve(Question { sought, flags }));
    assert_eq!(Request::parse(&request.to_bytes(9).unwrap()).unwrap().1, request, "it is read alike again");
}

#[test]
fn counters_and_endpoints_are_in_network_order() {
    let bytes = Request::Counters { endpoint: 3, source: None }.to_bytes(0).unwrap();
    assert_eq!(bytes, hex("01 02 00 000300 0010 0000000000000000"));
    let bytes = Request::Endpoint { endpoint: 3, port: 1, page: 0 }.to_bytes(0).unwrap();
    assert_eq!(bytes, hex("01 03 00 030100 0010 0000000000000000"));
    let (header, _) = Request::parse(&bytes).unwrap();
    let info = EndpointInfo {
        guid: 0x0102_0304_0506_0708,
        port: 1,
        ports: 2,
        pkey: 0xffff,
        provider: "p".to_owned(),
        addresses: vec!["n1".to_owned(); MOST_ADDRESSES + 1],
    };
    let mut out = Vec::new();
    Reply::Endpoint(info.clone()).emit(header, &mut out);
    assert_eq!(out.len(), 16 + 80 + 64 * MOST_ADDRESSES);
    assert_eq!(out[..32], hex("01 83 00 030100 0220 0000000000000000 0102030405060708 01020000 ffff 0007"));
    let (_, Reply::Endpoint(read)) = Reply::parse(&out).unwrap() else { panic!("no endpoint") };
    assert_eq!(read, EndpointInfo { addresses: vec!["n1".to_owned(); MOST_ADDRESSES], ..info });

    let (header, _) =
        Request::parse(&Request::Counters { endpoint: 0, source: None }.to_bytes(0).unwrap()).unwrap();
    let mut out = Vec::new();
    Reply::Counters([1, 2, 3, 4, 5, 6, 7]).emit(header, &mut out);
    assert_eq!((out.len(), &out[..8]), (72, &hex("01 82 00 070000 0048")[..]));
    assert_eq!(out[64..], [0, 0, 0, 0, 0, 0, 0, 7]);
}

#[test]
fn the_number_of_a_change_travels_in_the_header() {
    let bytes = Request::Changed { seen: 0x0001_0203 }.to_bytes(0).unwrap();
    assert_eq!(bytes, hex("01 0f 00 010203 0010 0000000000000000"));
    let (header, request) = Request::parse(&bytes).unwrap();
    assert_eq!(request, Request::Changed { seen: 0x0001_0203 });
    let mut out = Vec::new();
    Reply::Changed(0x0004_0506).emit(header, &mut out);
    assert_eq!(out, hex("01 8f 00 040506 0010 0000000000000000"));
    assert_eq!(Reply::parse(&out).unwrap().1, Reply::Changed(0x0004_0506));
}

#[test]
fn a_path_record_has_its_fields_where_verbs_have_them() {
    let record = PathRecord {
        service_id: 1,
        dgid: "fe80::2".parse().unwrap(),
        sgid: "fe80::3".parse().unwrap(),
        dlid: 4,
        slid: 5,
        flow_label: 6,
        hop_limit: 7,
        traffic_class: 8,
        reversible: true,
        paths: 1,
        pkey: 0xffff,
        qos_class: 9,
        sl: 10,
        mtu: Selected::exactly(4),
        rate: Selected::exactly(3),
        life_time: Selected::exactly(18),
        preference: 11,
    };
    let gid = |last| format!("fe80 000000000000 00000000000000 {last}");
    let text = format!(
        "0000000000000001 {} {} 0004 0005 00000607 08 81 ffff 009a 84 83 92 0b 000000000000",
        gid("02"),
        gid("03")
    );
    assert_eq!(record.to_bytes().to_vec(), hex(&text));
    assert_eq!(PathRecord::parse(&record.to_bytes()), record);
}

#[test]
fn of_destinations_there_is_one_and_of_sources_at_most_one() {
    let entry = |flags, kind| Entry { flags: EntryFlags(flags), kind: EntryType(kind), info: [0; 64] };
    let parsed = |entries: &[Entry]| {
        let mut bytes = Vec::new();
        Header::request(Opcode::RESOLVE, (16 + 72 * entries.len()) as u16, 0).emit(&mut bytes);
        entries.iter().for_each(|entry| entry.emit(&mut bytes));
        match Request::parse(&bytes).unwrap().1 {
            Request::Unresolvable(status) => Some(status),
            _ => None,
        }
    };
    assert_eq!(parsed(&[]), Some(Status::DESTINATION_TYPE));
    assert_eq!(parsed(&[entry(1, 2)]), Some(Status::DESTINATION_TYPE));
    assert_eq!(parsed(&[entry(2, 2), entry(2, 2)]), Some(Status::DESTINATION_ADDRESS));
    assert_eq!(parsed(&[entry(1, 2), entry(1, 2), entry(2, 2)]), Some(Status::SOURCE_ADDRESS));
    assert_eq!(parsed(&[entry(1, 9), entry(2, 2)]), Some(Status::SOURCE_TYPE));
    assert_eq!(parsed(&[entry(1, 2), entry(2, 9)]), Some(Status::DESTINATION_TYPE));
    assert_eq!(parsed(&[entry(2, 1), entry(1, 3)]), None);
    assert_eq!(parsed(&[entry(1 << 31, 0x10)]), None);
}

#[test]
fn what_is_no_message_is_seen_as_soon_as_it_can_be() {
    assert_eq!(request_bytes(&[]), Ok(None));
    assert_eq!(request_bytes(&[2]), Err(Malformed::Version(2)));
    let mut bytes = hex("01 02 00 000000 0010 0000000000000000");
    assert_eq!((request_bytes(&bytes[..15]), request_bytes(&bytes)), (Ok(None), Ok(Some(16))));
    bytes[1] = 4;
    assert_eq!(request_bytes(&bytes), Err(Malformed::Opcode(4)));
    bytes[1] = 0x82;
    assert_eq!(request_bytes(&bytes), Err(Malformed::Opcode(0x82)));
    bytes[1] = 2;
    for length in [0_u16, 15, 17, 160, 65_535] {
        bytes[6..8].copy_from_slice(&length.to_be_bytes());
        assert_eq!(request_bytes(&bytes), Err(Malformed::Length { opcode: 2, bytes: length }));
    }
    bytes[6..8].copy_from_slice(&88_u16.to_be_bytes());
    assert_eq!(request_bytes(&bytes), Ok(None));
}
