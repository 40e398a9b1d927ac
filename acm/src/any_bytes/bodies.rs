//! The bodies of the fuzz targets for the ACM service: what must hold of any bytes.
#![allow(unreachable_pub, reason = "the fuzz targets are another crate")]

use mapper_acm::files::{PathTable, address_file, hosts_file, options_file};
use mapper_acm::service::{Handled, Service, Settings};
use mapper_acm::wire::{
    HEADER_BYTES, MOST_MESSAGE_BYTES, PathRecord, Reply, Request, reply_bytes, request_bytes,
};
use mapper_proto::Instant;

/// Requests: what is read is read alike when it is written again; a service answers each in a message that is a reply.
pub fn acm_request(bytes: &[u8]) {
    let Ok(Some(length)) = request_bytes(bytes) else {
        assert!(Request::parse(bytes).is_err());
        return;
    };
    assert!((HEADER_BYTES..=MOST_MESSAGE_BYTES).contains(&length));
    let (header, request) = Request::parse(bytes).expect("its length was told");
    if let Ok(again) = request.to_bytes(header.tid) {
        let read = Request::parse(&again).expect("it was written just now");
        assert_eq!((read.0.tid, read.1), (header.tid, request));
    }
    let mut out = Vec::new();
    let mut service = Service::new(Settings::default());
    match service.handle_request(Instant::ZERO, 1, bytes, &mut out) {
        Ok(Handled::Answered) => {
            let (reply, _) = Reply::parse(&out).expect("a service speaks correctly");
            assert_eq!((reply.tid, reply.opcode), (header.tid, header.opcode));
        }
        Ok(Handled::Waits) => assert!(out.is_empty() && service.poll_timeout().is_some()),
        Err(error) => panic!("{error}, where its length was told"),
    }
}

/// Replies: what is read is read alike when it is written again.
pub fn acm_reply(bytes: &[u8]) {
    let Ok(Some(_)) = reply_bytes(bytes) else {
        assert!(Reply::parse(bytes).is_err());
        return;
    };
    let Ok((header, reply)) = Reply::parse(bytes) else { return };
    let mut again = Vec::new();
    reply.emit(header, &mut again);
    let (_, read) = Reply::parse(&again).expect("it was written just now");
    assert_eq!(read, reply);
}

/// Path records: any 64 bytes are one, and all but the reserved ones are kept.
pub fn acm_path_record(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<{ PathRecord::BYTES }>() else { return };
    let again = PathRecord::parse(bytes).to_bytes();
    assert_eq!(bytes[..58], again[..58]);
}

/// The files of `ibacm`: no text makes a reader panic, and an error names a line that there is.
pub fn acm_files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count();
    let errors = [
        address_file::parse(&text).err(),
        hosts_file::parse(&text).err(),
        options_file::parse(&text).err(),
        PathTable::parse(&text).err(),
    ];
    assert!(errors.into_iter().flatten().all(|error| (1..=lines).contains(&error.line)));
}
