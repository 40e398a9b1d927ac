//! Messages of nftables (`nfnetlink`): batches of them, and the parts of rules.

use std::io;

use crate::netlink::message::{Attributes, Header, add_flags, write};
use crate::netlink::socket::{NLM_F_ACK, NLM_F_REQUEST, Refused, RequestSocket};

pub(super) const NLM_F_EXCL: u16 = 0x200;
pub(super) const NLM_F_CREATE: u16 = 0x400;
pub(super) const NLM_F_APPEND: u16 = 0x800;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// The part of nfnetlink that nftables is.
const SUBSYSTEM: u8 = 10;
pub(super) const NEWTABLE: u16 = (SUBSYSTEM as u16) << 8;
pub(super) const GETTABLE: u16 = NEWTABLE | 1;
pub(super) const DELTABLE: u16 = NEWTABLE | 2;
pub(super) const NEWCHAIN: u16 = NEWTABLE | 3;
pub(super) const GETCHAIN: u16 = NEWTABLE | 4;
pub(super) const NEWRULE: u16 = NEWTABLE | 6;
pub(super) const NEWSET: u16 = NEWTABLE | 9;
pub(super) const NEWSETELEM: u16 = NEWTABLE | 12;

pub(super) const NFPROTO_UNSPEC: u8 = 0;
/// The older version of IP.
pub(super) const NFPROTO_IPV4: u8 = 2;
/// Both versions of IP.
pub(super) const NFPROTO_INET: u8 = 1;
pub(super) const NFPROTO_IPV6: u8 = 10;
/// Frames where they come in.
pub(super) const NFPROTO_NETDEV: u8 = 5;
pub(super) const FIXED_BYTES: usize = 4;

pub(super) const TABLE_NAME: u16 = 1;
pub(super) const TABLE_FLAGS: u16 = 2;
pub(super) const TABLE_USERDATA: u16 = 6;
/// The table goes with the socket that made it.
pub(super) const TABLE_F_OWNER: u32 = 2;
/// The kind of the words about a table among its user data.
pub(super) const COMMENT: u8 = 0;

pub(super) const CHAIN_TABLE: u16 = 1;
pub(super) const CHAIN_NAME: u16 = 3;
pub(super) const CHAIN_HOOK: u16 = 4;
pub(super) const CHAIN_TYPE: u16 = 7;
pub(super) const HOOK_NUMBER: u16 = 1;
pub(super) const HOOK_PRIORITY: u16 = 2;

pub(super) const RULE_TABLE: u16 = 1;
pub(super) const RULE_CHAIN: u16 = 2;
pub(super) const RULE_EXPRESSIONS: u16 = 4;
pub(super) const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
pub(super) const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
/// The register that says where a packet goes on.
pub(super) const VERDICT_REGISTER: u32 = 0;
const VERDICT_CODE: u16 = 1;
const VERDICT_CHAIN: u16 = 2;
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
const NFT_GOTO: u32 = (-4_i32).cast_unsigned();
pub(super) const META_LENGTH: u32 = 0;
pub(super) const META_PROTOCOL: u32 = 1;
pub(super) const META_MARK: u32 = 3;
/// The number of the interface by which a packet came in.
pub(super) const META_INTERFACE: u32 = 4;
/// The version of IP, as one of the families above.
pub(super) const META_VERSION: u32 = 15;
pub(super) const META_INNER_PROTOCOL: u32 = 16;
/// Where values of a packet stand that are in the header of IP.
pub(super) const NETWORK: u32 = 1;
pub(super) const CMP_EQUAL: u32 = 0;
pub(super) const CMP_NOT_EQUAL: u32 = 1;
pub(super) const CMP_LESS_OR_EQUAL: u32 = 3;

/// Messages of one family that the kernel carries out all together or not at all.
pub(super) struct NftablesBatch<'a> {
    owner: &'a mut RequestSocket,
    family: u8,
    bytes: Vec<u8>,
    last: u32,
    /// Where the last message begins.
    last_at: usize,
}

impl<'a> NftablesBatch<'a> {
    /// Begins one of this family.
    pub(super) fn begin(owner: &'a mut RequestSocket, family: u8) -> Self {
        let mut batch = Self { owner, family, bytes: Vec::new(), last: 0, last_at: 0 };
        batch.frame(BATCH_BEGIN);
        batch
    }

    /// Appends a message that begins or ends the batch.
    fn frame(&mut self, kind: u16) {
        let sequence = self.owner.next_sequence();
        let header = Header { kind, flags: NLM_F_REQUEST, sequence, port: 0 };
        write(&mut self.bytes, header, &fixed(NFPROTO_UNSPEC, SUBSYSTEM.into()), |_| {});
    }

    /// Appends a message.
    pub(super) fn add(&mut self, kind: u16, flags: u16, put: impl FnOnce(&mut Attributes<'_>)) {
        self.last = self.owner.next_sequence();
        self.last_at = self.bytes.len();
        let flags = NLM_F_REQUEST | flags;
        let header = Header { kind, flags, sequence: self.last, port: 0 };
        write(&mut self.bytes, header, &fixed(self.family, 0), put);
    }

    /// Sends it. Returns the first message that was refused. Only the last one asks for an answer, as what is refused is
    /// answered in any case, and so many answers may not fit the socket's buffer.
    pub(super) fn commit(mut self) -> io::Result<Option<Refused>> {
        add_flags(&mut self.bytes[self.last_at..], NLM_F_ACK);
        self.frame(BATCH_END);
        Ok(self.owner.exchange(&self.bytes, self.last)?.into_iter().next())
    }
}

/// The fixed part of a message (`nfgenmsg`).
pub(super) const fn fixed(family: u8, resource: u16) -> [u8; FIXED_BYTES] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// Numbers of nftables are in the network's order.
pub(super) fn put_number(attributes: &mut Attributes<'_>, kind: u16, value: u32) {
    attributes.put(kind, &value.to_be_bytes());
}

/// Puts what a new table is: its name, that it goes with the socket that made it, and words that
/// `nft list tables` shows.
pub(super) fn put_table(attributes: &mut Attributes<'_>, name: &str, comment: &str) {
    attributes.put_text(TABLE_NAME, name);
    put_number(attributes, TABLE_FLAGS, TABLE_F_OWNER);
    let comment = format!("{comment}\0");
    let told = [&[COMMENT, comment.len() as u8], comment.as_bytes()].concat();
    attributes.put(TABLE_USERDATA, &told);
}

/// Puts an expression of a rule.
pub(super) fn expression(list: &mut Attributes<'_>, name: &str, data: impl FnOnce(&mut Attributes<'_>)) {
    list.nest(LIST_ELEMENT, |element| {
        element.put_text(EXPRESSION_NAME, name);
        element.nest(EXPRESSION_DATA, data);
    });
}

/// Loads what the kernel knows of a packet into a register.
pub(super) fn load(list: &mut Attributes<'_>, register: u32, key: u32) {
    expression(list, "meta", |inside| {
        put_number(inside, 1, register);
        put_number(inside, 2, key);
    });
}

/// Goes on only where the comparison with what a register holds is true.
pub(super) fn compare(list: &mut Attributes<'_>, register: u32, how: u32, with: &[u8]) {
    expression(list, "cmp", |inside| {
        put_number(inside, 1, register);
        put_number(inside, 2, how);
        inside.nest(3, |data| data.put(DATA_VALUE, with));
    });
}

/// Loads bytes of the network header into a register.
pub(super) fn read(list: &mut Attributes<'_>, register: u32, at: usize, bytes: usize) {
    expression(list, "payload", |inside| {
        put_number(inside, 1, register);
        put_number(inside, 2, NETWORK);
        put_number(inside, 3, at as u32);
        put_number(inside, 4, bytes as u32);
    });
}

/// Keeps the bits of a register that are in `mask`, and turns those that are in `turned`.
pub(super) fn change_bits(list: &mut Attributes<'_>, register: u32, mask: &[u8], turned: &[u8]) {
    expression(list, "bitwise", |inside| {
        put_number(inside, 1, register);
        put_number(inside, 2, register);
        put_number(inside, 3, mask.len() as u32);
        inside.nest(4, |data| data.put(DATA_VALUE, mask));
        inside.nest(5, |data| data.put(DATA_VALUE, turned));
    });
}

/// Puts a value into a register.
pub(super) fn immediate(list: &mut Attributes<'_>, register: u32, value: &[u8]) {
    expression(list, "immediate", |inside| {
        put_number(inside, 1, register);
        inside.nest(2, |data| data.put(DATA_VALUE, value));
    });
}

/// Where a packet goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict<'a> {
    /// The chain has nothing more to say of it.
    Accept,
    /// Nowhere.
    Drop,
    /// At this chain, and not back here.
    GoTo(&'a str),
}

/// Puts a verdict as the data of an expression or of an element of a map.
pub(super) fn put_verdict(data: &mut Attributes<'_>, verdict: Verdict<'_>) {
    data.nest(DATA_VERDICT, |inside| match verdict {
        Verdict::Accept => put_number(inside, VERDICT_CODE, NF_ACCEPT),
        Verdict::Drop => put_number(inside, VERDICT_CODE, NF_DROP),
        Verdict::GoTo(chain) => {
            put_number(inside, VERDICT_CODE, NFT_GOTO);
            inside.put_text(VERDICT_CHAIN, chain);
        }
    });
}

/// Has the packet go on there.
pub(super) fn decide(list: &mut Attributes<'_>, verdict: Verdict<'_>) {
    expression(list, "immediate", |inside| {
        put_number(inside, 1, VERDICT_REGISTER);
        inside.nest(2, |data| put_verdict(data, verdict));
    });
}
