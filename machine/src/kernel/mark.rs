//! The mark of packets that are too long for an outer header, in messages of nftables (`nfnetlink`).
//!
//! A chain of the type `route` sees the packets that this machine sends itself, and has the kernel look for their way
//! once more when it marks one. The table belongs to the socket that made it: the kernel takes it away when the
//! process ends, and lets nobody else change it, nor flush it with all others. So none is left by a crash, after which
//! nobody would carry those packets.

use std::io;

use super::{Kernel, KernelError};
use crate::netlink::message::{Attributes, Header, attributes, text, write};
use crate::netlink::socket::{NLM_F_ACK, NLM_F_REQUEST, Refused, RequestSocket};

const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// The part of nfnetlink that nftables is.
const SUBSYSTEM: u8 = 10;
const NEWTABLE: u16 = (SUBSYSTEM as u16) << 8;
const GETTABLE: u16 = NEWTABLE | 1;
const DELTABLE: u16 = NEWTABLE | 2;
const NEWCHAIN: u16 = NEWTABLE | 3;
const NEWRULE: u16 = NEWTABLE | 6;

const NFPROTO_UNSPEC: u8 = 0;
/// The family of tables that see packets of both versions of IP.
const NFPROTO_INET: u8 = 1;
const FIXED_BYTES: usize = 4;

const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_USERDATA: u16 = 6;
/// The flag of a table that the kernel removes together with the socket that made it.
const TABLE_F_OWNER: u32 = 2;
/// The kind of the words about a table among its user data.
const COMMENT: u8 = 0;

const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const NF_INET_LOCAL_OUT: u32 = 3;
/// The priority of chains that set marks, which come after the tracking of connections.
const PRIORITY_MANGLE: i32 = -150;

const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
/// The register that all values here pass through.
const REGISTER: u32 = 1;
const META_LENGTH: u32 = 0;
const META_MARK: u32 = 3;
const META_PROTOCOL: u32 = 16;
const CMP_EQUAL: u32 = 0;
const CMP_NOT_EQUAL: u32 = 1;
const CMP_GREATER: u32 = 4;

/// The name of the table, which is of the family `inet`, and of its chain.
pub(super) const TABLE: &str = "mapper";
const CHAIN: &str = "too-long";
/// What the table's comment says before and after the number of bytes.
const COMMENT_BEFORE: &str = "packets longer than ";
const COMMENT_AFTER: &str = " bytes leave by the tap interface";

/// What makes the kernel mark packets.
#[derive(Debug)]
pub(super) struct LengthMarks {
    /// The socket that the table belongs to; none where the kernel has no nftables.
    owner: Option<RequestSocket>,
    /// Whether the table is there.
    is_there: bool,
}

impl LengthMarks {
    /// Opens a socket for the table in the network namespace of this thread.
    pub(super) fn open() -> Self {
        Self { owner: RequestSocket::open_netfilter().ok(), is_there: false }
    }

    /// Has packets of more than `above` bytes marked, or none with `None`. Returns what the kernel refused.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` if the kernel has no nftables; else if it does not answer.
    pub(super) fn set(&mut self, above: Option<u32>) -> io::Result<Option<Refused>> {
        if above.is_none() && !self.is_there {
            return Ok(None);
        }
        let Some(owner) = &mut self.owner else {
            return Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT));
        };
        let mut batch = Batch::begin(owner);
        if self.is_there {
            batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, TABLE));
        }
        if let Some(above) = above {
            // This fails if somebody else has a table of this name, and leaves that table as it is.
            batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| put_table(inside, above));
            batch.add(NEWCHAIN, NLM_F_CREATE, put_chain);
            batch.add(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |inside| put_rule(inside, above));
        }
        let refused = batch.commit()?;
        if refused.is_none() {
            self.is_there = above.is_some();
        }
        Ok(refused)
    }

    /// Above which length packets are marked now, in bytes.
    fn read_back(&mut self) -> io::Result<Option<u32>> {
        let Some(owner) = self.owner.as_mut().filter(|_| self.is_there) else { return Ok(None) };
        let asked = owner.get(
            GETTABLE,
            &fixed(NFPROTO_INET, 0),
            |inside| inside.put_text(TABLE_NAME, TABLE),
            |message| read_table(message.body),
        );
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                self.is_there = false;
                Ok(None)
            }
            asked => asked,
        }
    }
}

impl Kernel {
    /// Above which length packets are marked as too long, in bytes; `None` if none are.
    pub(super) fn marked_above(&mut self) -> Result<Option<u32>, KernelError> {
        let doing = || "reading which packets are marked as too long (nftables)".to_owned();
        self.marking.read_back().map_err(|source| KernelError::NoAnswer { doing: doing(), source })
    }
}

/// Messages that the kernel carries out all together or not at all.
struct Batch<'a> {
    owner: &'a mut RequestSocket,
    bytes: Vec<u8>,
    last: u32,
}

impl<'a> Batch<'a> {
    fn begin(owner: &'a mut RequestSocket) -> Self {
        let mut batch = Self { owner, bytes: Vec::new(), last: 0 };
        batch.frame(BATCH_BEGIN);
        batch
    }

    /// Appends a message that begins or ends the batch.
    fn frame(&mut self, kind: u16) {
        let sequence = self.owner.next_sequence();
        let header = Header { kind, flags: NLM_F_REQUEST, sequence, port: 0 };
        write(&mut self.bytes, header, &fixed(NFPROTO_UNSPEC, SUBSYSTEM.into()), |_| {});
    }

    fn add(&mut self, kind: u16, flags: u16, put: impl FnOnce(&mut Attributes<'_>)) {
        self.last = self.owner.next_sequence();
        let flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let header = Header { kind, flags, sequence: self.last, port: 0 };
        write(&mut self.bytes, header, &fixed(NFPROTO_INET, 0), put);
    }

    /// Sends it. Returns the first message that was refused.
    fn commit(mut self) -> io::Result<Option<Refused>> {
        self.frame(BATCH_END);
        Ok(self.owner.exchange(&self.bytes, self.last)?.into_iter().next())
    }
}

/// The fixed part of a message (`nfgenmsg`).
const fn fixed(family: u8, resource: u16) -> [u8; FIXED_BYTES] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// Numbers of nftables are in the network's order.
fn put_number(attributes: &mut Attributes<'_>, kind: u16, value: u32) {
    attributes.put(kind, &value.to_be_bytes());
}

fn put_table(attributes: &mut Attributes<'_>, above: u32) {
    attributes.put_text(TABLE_NAME, TABLE);
    put_number(attributes, TABLE_FLAGS, TABLE_F_OWNER);
    // `nft list tables` shows the comment, and the limit is read back from it.
    let comment = format!("{COMMENT_BEFORE}{above}{COMMENT_AFTER}\0");
    let told = [&[COMMENT, comment.len() as u8], comment.as_bytes()].concat();
    attributes.put(TABLE_USERDATA, &told);
}

fn put_chain(attributes: &mut Attributes<'_>) {
    attributes.put_text(CHAIN_TABLE, TABLE);
    attributes.put_text(CHAIN_NAME, CHAIN);
    attributes.nest(CHAIN_HOOK, |inside| {
        put_number(inside, HOOK_NUMBER, NF_INET_LOCAL_OUT);
        put_number(inside, HOOK_PRIORITY, PRIORITY_MANGLE.cast_unsigned());
    });
    attributes.put_text(CHAIN_TYPE, "route");
}

/// Packets that are longer, are not of TCP and bear no mark yet get the mark.
fn put_rule(attributes: &mut Attributes<'_>, above: u32) {
    attributes.put_text(RULE_TABLE, TABLE);
    attributes.put_text(RULE_CHAIN, CHAIN);
    attributes.nest(RULE_EXPRESSIONS, |all| {
        load(all, META_LENGTH);
        // The kernel compares byte by byte, so the number is turned round where the machine has the other order.
        expression(all, "byteorder", |inside| {
            put_number(inside, 1, REGISTER);
            put_number(inside, 2, REGISTER);
            // From the machine's order to the network's, 4 bytes, 4 at a time.
            put_number(inside, 3, 1);
            put_number(inside, 4, 4);
            put_number(inside, 5, 4);
        });
        compare(all, CMP_GREATER, &above.to_be_bytes());
        load(all, META_PROTOCOL);
        compare(all, CMP_NOT_EQUAL, &[libc::IPPROTO_TCP as u8]);
        load(all, META_MARK);
        compare(all, CMP_EQUAL, &[0; 4]);
        expression(all, "immediate", |inside| {
            put_number(inside, 1, REGISTER);
            let mark = mapper_fib::object::TOO_LONG.to_ne_bytes();
            inside.nest(2, |data| data.put(DATA_VALUE, &mark));
        });
        expression(all, "meta", |inside| {
            put_number(inside, 2, META_MARK);
            put_number(inside, 3, REGISTER);
        });
    });
}

fn expression(list: &mut Attributes<'_>, name: &str, data: impl FnOnce(&mut Attributes<'_>)) {
    list.nest(LIST_ELEMENT, |element| {
        element.put_text(EXPRESSION_NAME, name);
        element.nest(EXPRESSION_DATA, data);
    });
}

/// Loads what the kernel knows of a packet.
fn load(list: &mut Attributes<'_>, key: u32) {
    expression(list, "meta", |inside| {
        put_number(inside, 1, REGISTER);
        put_number(inside, 2, key);
    });
}

/// Goes on only where the comparison holds.
fn compare(list: &mut Attributes<'_>, how: u32, with: &[u8]) {
    expression(list, "cmp", |inside| {
        put_number(inside, 1, REGISTER);
        put_number(inside, 2, how);
        inside.nest(3, |data| data.put(DATA_VALUE, with));
    });
}

/// Reads from a message about our table above which length packets are marked.
fn read_table(body: &[u8]) -> Option<u32> {
    let (_, told) = attributes(body.get(FIXED_BYTES..)?).find(|(kind, _)| *kind == TABLE_USERDATA)?;
    let [COMMENT, _, comment @ ..] = told else { return None };
    text(comment).strip_prefix(COMMENT_BEFORE)?.strip_suffix(COMMENT_AFTER)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::{HEADER_BYTES, messages};

    #[test]
    fn what_a_table_says_of_itself_is_read_and_garbage_is_not() {
        let mut bytes = Vec::new();
        let header = Header { kind: NEWTABLE, flags: 0, sequence: 1, port: 0 };
        write(&mut bytes, header, &fixed(NFPROTO_INET, 0), |inside| put_table(inside, 1460));
        assert_eq!(read_table(messages(&bytes).next().unwrap().body), Some(1460));
        let body = &bytes[HEADER_BYTES..];
        for cut in 0..body.len() - 4 {
            assert_eq!(read_table(&body[..cut]), None);
        }
    }
}
