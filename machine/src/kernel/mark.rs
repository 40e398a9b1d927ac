//! The mark of packets that are too long for an outer header, in messages of nftables (`nfnetlink`).
//!
//! A chain of the type `route` sees the packets that this machine sends itself, and has the kernel look for their way
//! once more when it marks one. The table belongs to the socket that made it: the kernel takes it away when the
//! process ends, and lets nobody else change it, nor flush it with all others. So none is left by a crash, after which
//! nobody would carry those packets.

use std::io;

use super::nftables::{
    Batch, CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, CMP_EQUAL, CMP_GREATER, CMP_NOT_EQUAL, COMMENT,
    DELTABLE, FIXED_BYTES, GETTABLE, HOOK_NUMBER, HOOK_PRIORITY, META_INNER_PROTOCOL, META_LENGTH, META_MARK,
    NEWCHAIN, NEWRULE, NEWTABLE, NFPROTO_INET, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, RULE_CHAIN,
    RULE_EXPRESSIONS, RULE_TABLE, TABLE_NAME, TABLE_USERDATA, compare, expression, fixed, immediate, load,
    put_number, put_table,
};
use super::{Kernel, KernelError};
use crate::netlink::message::{Attributes, attributes, text};
use crate::netlink::socket::{Refused, RequestSocket};

const NF_INET_LOCAL_OUT: u32 = 3;
/// The priority of chains that set marks, which come after the tracking of connections.
const PRIORITY_MANGLE: i32 = -150;

/// The register that all values here pass through.
const REGISTER: u32 = 1;

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
        let mut batch = Batch::begin(owner, NFPROTO_INET);
        if self.is_there {
            batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, TABLE));
        }
        if let Some(above) = above {
            // This fails if somebody else has a table of this name, and leaves that table as it is.
            batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| {
                put_table(inside, TABLE, &comment(above));
            });
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

/// The words about the table, which are what is read back.
fn comment(above: u32) -> String {
    format!("{COMMENT_BEFORE}{above}{COMMENT_AFTER}")
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
        compare(all, REGISTER, CMP_GREATER, &above.to_be_bytes());
        load(all, REGISTER, META_INNER_PROTOCOL);
        compare(all, REGISTER, CMP_NOT_EQUAL, &[libc::IPPROTO_TCP as u8]);
        load(all, REGISTER, META_MARK);
        compare(all, REGISTER, CMP_EQUAL, &[0; 4]);
        immediate(all, REGISTER, &mapper_fib::object::TOO_LONG.to_ne_bytes());
        expression(all, "meta", |inside| {
            put_number(inside, 2, META_MARK);
            put_number(inside, 3, REGISTER);
        });
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
