//! Services that ports offer.

use super::*;

#[test]
fn services_are_found_until_their_lease_ends() {
    let mut administration = administration();
    let record = ServiceRecord {
        id: 9,
        gid: Gid::of_port(PREFIX, 3),
        partition: 0xFFFF,
        lease: 10,
        key: [1; 16],
        ..ServiceRecord::parse(&[])
    };
    let mask = ServiceRecord::ID
        | ServiceRecord::GID
        | ServiceRecord::PARTITION
        | ServiceRecord::LEASE
        | ServiceRecord::KEY;
    let with = |method, mask, record: &ServiceRecord| {
        request(method, SaAttribute::ServiceRecord, mask, &record.emit())
    };
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Set, mask, &record)).status, 0);
    let found = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    let found = ServiceRecord::parse(&found.data);
    assert_eq!((found.gid, found.lease, found.key), (record.gid, 10, [0; 16]));
    let other = ServiceRecord { key: [2; 16], ..record };
    assert_eq!(
        ask(&mut administration, 3, &with(SaMethod::Set, mask, &other)).status,
        SaStatus::Denied.code()
    );
    assert_eq!(
        ask(&mut administration, 2, &with(SaMethod::Delete, mask, &record)).status,
        SaStatus::Denied.code()
    );
    let end = administration.poll_timeout().unwrap();
    assert_eq!(end, Instant::ZERO + std::time::Duration::from_secs(10));
    administration.handle_timeout(end);
    let gone = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    assert_eq!(gone.status, SaStatus::NoRecords.code());
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Set, mask, &record)).status, 0);
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Delete, mask, &record)).status, 0);
    let gone = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    assert_eq!(gone.status, SaStatus::NoRecords.code());
}
