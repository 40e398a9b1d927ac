//! Segments of strangers are dropped where they come in by an interface that is none of the fabric's ports.
//!
//! The routes by which this machine's own packets leave lead to segments, too. Where the machine forwards IPv6 for other
//! interfaces, a packet that comes in by one of these with a segment for its destination would take such a route, and be
//! obeyed all over the fabric. A rule of routing cannot keep it out, as packets of other interfaces that the machine routes
//! into the fabric are looked up alike once they have their outer header. So a chain of nftables looks at packets as they come
//! in, before they have one.
//!
//! The table belongs to the socket that made it, so that it goes when the process ends.

use std::collections::BTreeSet;
use std::io;

use mapper_fib::segments;

use super::nftables::{
    CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, CMP_EQUAL, CMP_NOT_EQUAL, DELTABLE, HOOK_NUMBER,
    HOOK_PRIORITY, META_INTERFACE, NEWCHAIN, NEWRULE, NEWTABLE, NFPROTO_IPV6, NLM_F_APPEND, NLM_F_CREATE,
    NLM_F_EXCL, NftablesBatch, RULE_CHAIN, RULE_EXPRESSIONS, RULE_TABLE, TABLE_NAME, Verdict, compare,
    decide, load, put_number, put_table, read,
};
use super::{Kernel, KernelError};
use crate::netlink::message::Attributes;
use crate::netlink::socket::{Refused, RequestSocket};

/// The name of the table, which is of the family `ip6`.
pub(super) const TABLE: &str = "mapper-strangers";
const CHAIN: &str = "segments";
const PRE_ROUTING: u32 = 0;
/// The priority of chains that drop packets before anything else looks at them.
const PRIORITY_RAW: i32 = -300;
/// The register that all values here pass through.
const REGISTER: u32 = 1;
/// Where the destination stands in the header of IPv6, and how many of its bytes all segments have alike.
const DESTINATION_AT: usize = 24;
const BLOCK_BYTES: usize = segments::BLOCK_BITS as usize / 8;

/// What drops segments of strangers.
#[derive(Debug)]
pub(super) struct StrangersSegments {
    /// The socket that the table belongs to; none where the kernel has no nftables.
    owner: Option<RequestSocket>,
    /// The interfaces that segments may come in by; `None` if there is no table.
    may_come_by: Option<BTreeSet<u32>>,
}

impl StrangersSegments {
    /// Opens a socket for the table in the network namespace of this thread.
    pub(super) fn open() -> Self {
        Self { owner: RequestSocket::open_netfilter().ok(), may_come_by: None }
    }

    /// Has segments dropped that come in by other interfaces than these, or none with `None`. Returns what the kernel refused.
    fn set(&mut self, may_come_by: Option<&BTreeSet<u32>>) -> io::Result<Option<Refused>> {
        let Some(owner) = &mut self.owner else {
            return Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT));
        };
        let mut batch = NftablesBatch::begin(owner, NFPROTO_IPV6);
        if self.may_come_by.is_some() {
            batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, TABLE));
        }
        if let Some(interfaces) = may_come_by {
            batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| {
                put_table(inside, TABLE, "segments come in by the fabric's ports alone");
            });
            batch.add(NEWCHAIN, NLM_F_CREATE, put_chain);
            batch.add(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |inside| {
                inside.put_text(RULE_TABLE, TABLE);
                inside.put_text(RULE_CHAIN, CHAIN);
                inside.nest(RULE_EXPRESSIONS, |all| drop_segments(all, interfaces));
            });
        }
        let refused = batch.commit()?;
        if refused.is_none() {
            self.may_come_by = may_come_by.cloned();
        }
        Ok(refused)
    }
}

impl Kernel {
    /// Has packets to segments dropped that come in by other interfaces than these, by their numbers; with `None` none is. A
    /// machine that forwards IPv6 by no other interface needs no such look at its packets.
    ///
    /// # Errors
    /// If the kernel has no nftables, or this process may not change them.
    pub fn drop_strangers_segments(
        &mut self,
        may_come_by: Option<&BTreeSet<u32>>,
    ) -> Result<(), KernelError> {
        if self.strangers.may_come_by.as_ref() == may_come_by {
            return Ok(());
        }
        let what = "that segments of strangers are dropped (table `mapper-strangers` of nftables)".to_owned();
        match self.strangers.set(may_come_by) {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => {
                let source = io::Error::from_raw_os_error(refused.errno);
                Err(KernelError::Refused { what, said: refused.said, source })
            }
            Err(source) => Err(KernelError::Refused { what, said: None, source }),
        }
    }
}

fn put_chain(attributes: &mut Attributes<'_>) {
    attributes.put_text(CHAIN_TABLE, TABLE);
    attributes.put_text(CHAIN_NAME, CHAIN);
    attributes.nest(CHAIN_HOOK, |inside| {
        put_number(inside, HOOK_NUMBER, PRE_ROUTING);
        put_number(inside, HOOK_PRIORITY, PRIORITY_RAW.cast_unsigned());
    });
    attributes.put_text(CHAIN_TYPE, "filter");
}

fn drop_segments(all: &mut Attributes<'_>, may_come_by: &BTreeSet<u32>) {
    read(all, REGISTER, DESTINATION_AT, BLOCK_BYTES);
    compare(all, REGISTER, CMP_EQUAL, &segments::block()[..]);
    load(all, REGISTER, META_INTERFACE);
    for interface in may_come_by {
        compare(all, REGISTER, CMP_NOT_EQUAL, &interface.to_ne_bytes());
    }
    decide(all, Verdict::Drop);
}
