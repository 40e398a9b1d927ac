//! Packets that are too long for an outer header are looked up elsewhere, in messages of nftables (`nfnetlink`).
//!
//! A chain of the type `route` sees the packets that this machine sends itself, and has the kernel look for their way
//! once more when it changes what that goes by: of IPv6 the mark, by which a rule leads to a table of their own; of IPv4
//! the type of service, as routes of the table `main` can be for one of those alone. That needs no rule, and a
//! kernel that has had one of IPv4 looks up each packet that comes in twice, and all rules each time, also when the rule
//! is gone. A second chain gives the packet its own type of service back, which waited in the mark. The table belongs to the socket that made it: the kernel takes it away when the
//! process ends, and lets nobody else change it, nor flush it with all others. So none is left by a crash, after which
//! nobody would carry those packets.

use std::io;

use mapper_fib::object::{TOO_LONG, TOO_LONG_SERVICE};

use super::nftables::{
    CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, CMP_EQUAL, CMP_LESS_OR_EQUAL, CMP_NOT_EQUAL, COMMENT,
    DELTABLE, FIXED_BYTES, GETTABLE, HOOK_NUMBER, HOOK_PRIORITY, META_INNER_PROTOCOL, META_LENGTH, META_MARK,
    META_VERSION, NETWORK, NEWCHAIN, NEWRULE, NEWTABLE, NFPROTO_INET, NFPROTO_IPV4, NLM_F_APPEND,
    NLM_F_CREATE, NLM_F_EXCL, NftablesBatch, RULE_CHAIN, RULE_EXPRESSIONS, RULE_TABLE, TABLE_NAME,
    TABLE_USERDATA, Verdict, change_bits, compare, decide, expression, fixed, immediate, load, put_number,
    put_table, read,
};
use super::{Kernel, KernelError};
use crate::netlink::message::{Attributes, attributes, text};
use crate::netlink::socket::{Refused, RequestSocket};

const NF_INET_LOCAL_OUT: u32 = 3;
/// The priority of chains that set marks, which come after the tracking of connections.
const PRIORITY_MANGLE: i32 = -150;

/// The register that all values here pass through.
const REGISTER: u32 = 1;

/// The name of the table, which is of the family `inet`.
pub(super) const TABLE: &str = "mapper";

/// A chain of the table, at the packets that this machine sends.
struct Chain {
    name: &'static str,
    kind: &'static str,
    priority: i32,
}

/// Finds packets that are too long, and has them looked up elsewhere.
const FINDS: Chain = Chain { name: "too-long", kind: "route", priority: PRIORITY_MANGLE };
/// Makes them what they were, once they are looked up.
const RESTORES: Chain = Chain { name: "found-elsewhere", kind: "filter", priority: PRIORITY_MANGLE + 1 };

/// How many bytes of the header of IPv4 there are to the end of the type of service.
const SERVICE_ENDS: usize = 2;
/// The bits of that byte which say how packets are forwarded; the others are of explicit congestion notification.
const SERVICE_BITS: u8 = 0xfc;
/// The last two bytes of a mark in which a type of service waits.
const WAITS: [u8; 2] = *b"ml";

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
        let mut batch = NftablesBatch::begin(owner, NFPROTO_INET);
        if self.is_there {
            batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, TABLE));
        }
        if let Some(above) = above {
            // This fails if somebody else has a table of this name, and leaves that table as it is.
            batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| {
                put_table(inside, TABLE, &comment(above));
            });
            for chain in [&FINDS, &RESTORES] {
                batch.add(NEWCHAIN, NLM_F_CREATE, |inside| put_chain(inside, chain));
            }
            add_rule(&mut batch, &FINDS, |inside| pass_short(inside, above));
            add_rule(&mut batch, &FINDS, mark_unmarked);
            add_rule(&mut batch, &FINDS, exchange_service);
            add_rule(&mut batch, &RESTORES, restore_service);
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

/// The words about the table, which are what is read back.
fn comment(above: u32) -> String {
    format!("{COMMENT_BEFORE}{above}{COMMENT_AFTER}")
}

fn put_chain(attributes: &mut Attributes<'_>, chain: &Chain) {
    attributes.put_text(CHAIN_TABLE, TABLE);
    attributes.put_text(CHAIN_NAME, chain.name);
    attributes.nest(CHAIN_HOOK, |inside| {
        put_number(inside, HOOK_NUMBER, NF_INET_LOCAL_OUT);
        put_number(inside, HOOK_PRIORITY, chain.priority.cast_unsigned());
    });
    attributes.put_text(CHAIN_TYPE, chain.kind);
}

/// Adds a rule at the end of a chain.
fn add_rule(batch: &mut NftablesBatch<'_>, chain: &Chain, put: impl FnOnce(&mut Attributes<'_>)) {
    batch.add(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |inside| {
        inside.put_text(RULE_TABLE, TABLE);
        inside.put_text(RULE_CHAIN, chain.name);
        inside.nest(RULE_EXPRESSIONS, put);
    });
}

/// The chain has nothing to say of packets that are not longer, which most are: it costs them as little as it can.
fn pass_short(all: &mut Attributes<'_>, above: u32) {
    load(all, REGISTER, META_LENGTH);
    // The kernel compares byte by byte, so the number is turned round where the machine has the other order.
    expression(all, "byteorder", |inside| {
        put_number(inside, 1, REGISTER);
        put_number(inside, 2, REGISTER);
        // From the machine's order to the network's, 4 bytes, 4 at a time.
        put_number(inside, 3, 1);
        put_number(inside, 4, 4);
        put_number(inside, 5, 4);
    });
    compare(all, REGISTER, CMP_LESS_OR_EQUAL, &above.to_be_bytes());
    decide(all, Verdict::Accept);
}

/// Packets that are not of TCP and bear no mark yet get the mark.
fn mark_unmarked(all: &mut Attributes<'_>) {
    load(all, REGISTER, META_INNER_PROTOCOL);
    compare(all, REGISTER, CMP_NOT_EQUAL, &[libc::IPPROTO_TCP as u8]);
    load(all, REGISTER, META_MARK);
    compare(all, REGISTER, CMP_EQUAL, &[0; 4]);
    immediate(all, REGISTER, &TOO_LONG.to_ne_bytes());
    set_mark(all);
}

/// What is marked and of IPv4 gets the type of service that routes are for, and its own waits in the mark: there stand
/// the first two bytes of the header, the type of service being the second one, and what tells such a mark from others.
fn exchange_service(all: &mut Attributes<'_>) {
    load(all, REGISTER, META_MARK);
    compare(all, REGISTER, CMP_EQUAL, &TOO_LONG.to_ne_bytes());
    load(all, REGISTER, META_VERSION);
    compare(all, REGISTER, CMP_EQUAL, &[NFPROTO_IPV4]);
    read(all, REGISTER, 0, SERVICE_ENDS);
    change_bits(all, REGISTER, &[0xff; 4], &[0, 0, WAITS[0], WAITS[1]]);
    set_mark(all);
    // The bits of explicit congestion notification stay.
    change_bits(all, REGISTER, &[0xff, !SERVICE_BITS, 0, 0], &[0, TOO_LONG_SERVICE, 0, 0]);
    write_service(all);
}

/// What has that type of service, and its own in the mark, gets that back, and bears no mark any more.
fn restore_service(all: &mut Attributes<'_>) {
    load(all, REGISTER, META_MARK);
    change_bits(all, REGISTER, &[0, 0, 0xff, 0xff], &[0; 4]);
    compare(all, REGISTER, CMP_EQUAL, &[0, 0, WAITS[0], WAITS[1]]);
    load(all, REGISTER, META_VERSION);
    compare(all, REGISTER, CMP_EQUAL, &[NFPROTO_IPV4]);
    read(all, REGISTER, 0, SERVICE_ENDS);
    change_bits(all, REGISTER, &[0, SERVICE_BITS, 0, 0], &[0; 4]);
    compare(all, REGISTER, CMP_EQUAL, &[0, TOO_LONG_SERVICE, 0, 0]);
    load(all, REGISTER, META_MARK);
    write_service(all);
    immediate(all, REGISTER, &[0; 4]);
    set_mark(all);
}

/// Gives the packet the mark that the register holds.
fn set_mark(all: &mut Attributes<'_>) {
    expression(all, "meta", |inside| {
        put_number(inside, 2, META_MARK);
        put_number(inside, 3, REGISTER);
    });
}

/// Writes the first two bytes of the header of IPv4 from the register, and corrects its checksum.
fn write_service(all: &mut Attributes<'_>) {
    expression(all, "payload", |inside| {
        put_number(inside, 5, REGISTER);
        put_number(inside, 2, NETWORK);
        put_number(inside, 3, 0);
        put_number(inside, 4, SERVICE_ENDS as u32);
        // The checksum is the one of IP (1), and stands at byte 10 of the header.
        put_number(inside, 6, 1);
        put_number(inside, 7, 10);
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
    use crate::netlink::message::{HEADER_BYTES, Header, messages, write};

    #[test]
    fn what_a_table_says_of_itself_is_read_and_garbage_is_not() {
        let mut bytes = Vec::new();
        let header = Header { kind: NEWTABLE, flags: 0, sequence: 1, port: 0 };
        write(&mut bytes, header, &fixed(NFPROTO_INET, 0), |inside| {
            put_table(inside, TABLE, &comment(1460));
        });
        assert_eq!(read_table(messages(&bytes).next().unwrap().body), Some(1460));
        let body = &bytes[HEADER_BYTES..];
        for cut in 0..body.len() - 4 {
            assert_eq!(read_table(&body[..cut]), None);
        }
    }
}
