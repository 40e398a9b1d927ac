//! How many packets each nexthop of a group has taken, as the kernel counts them (Linux 6.9).

use std::collections::BTreeMap;

use mapper_fib::{GroupId, NexthopId};

use super::{Kernel, KernelError, RTM_GETNEXTHOP, nexthop};
use crate::netlink::message::{Attributes, attributes, u32_at};

const NHA_ID: u16 = 1;
const NHA_GROUPS: u16 = 9;
const NHA_OP_FLAGS: u16 = 14;
const NHA_GROUP_STATS: u16 = 15;
/// The flag of a request that wants counts.
const NHA_OP_FLAG_DUMP_STATS: u32 = 1;
const NHA_GROUP_STATS_ENTRY_ID: u16 = 1;
const NHA_GROUP_STATS_ENTRY_PACKETS: u16 = 2;
/// Bytes of the `nhmsg` that stands before the attributes.
const FIXED_BYTES: usize = 8;

impl Kernel {
    /// How many packets each nexthop has taken as a member of a group of ours; those that passed this machine by their
    /// destination are left out. Kernels before 6.9 count nothing, and
    /// then nothing is listed.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn packets(&mut self) -> Result<BTreeMap<NexthopId, u64>, KernelError> {
        let mut request = nexthop::fixed_of_none().to_vec();
        let mut wanted = Attributes::of(&mut request);
        wanted.put(NHA_GROUPS, &[]);
        wanted.put_u32(NHA_OP_FLAGS, NHA_OP_FLAG_DUMP_STATS);
        let counts = self.socket.dump(RTM_GETNEXTHOP, &request, BTreeMap::new, |counts, message| {
            counts.extend(read(message.body).into_iter().flatten());
        });
        match counts {
            // Kernels that do not know the question refuse it.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(BTreeMap::new()),
            counts => {
                let doing = "reading how many packets took each nexthop".to_owned();
                counts.map_err(|source| KernelError::NoAnswer { doing, source })
            }
        }
    }
}

/// Reads the counts of one group; `None` if the message has none, or the group is for packets that pass.
fn read(body: &[u8]) -> Option<Vec<(NexthopId, u64)>> {
    let of_kind = |wanted| attributes(body.get(FIXED_BYTES..)?).find(|&(kind, _)| kind == wanted);
    let group = of_kind(NHA_ID).and_then(|(_, value)| GroupId::of_number(u32_at(value, 0)?));
    if group.is_some_and(GroupId::is_of_passing) {
        return None;
    }
    let (_, stats) = of_kind(NHA_GROUP_STATS)?;
    Some(attributes(stats).filter_map(|(_, entry)| read_entry(entry)).collect())
}

fn read_entry(entry: &[u8]) -> Option<(NexthopId, u64)> {
    let (mut id, mut packets) = (None, None);
    for (kind, value) in attributes(entry) {
        match kind {
            NHA_GROUP_STATS_ENTRY_ID => id = NexthopId::of_number(u32_at(value, 0)?),
            // Counts that fit 32 bits are told in as many.
            NHA_GROUP_STATS_ENTRY_PACKETS => {
                packets = match value.first_chunk() {
                    Some(&bytes) => Some(u64::from_ne_bytes(bytes)),
                    None => u32_at(value, 0).map(u64::from),
                };
            }
            _ => {}
        }
    }
    Some((id?, packets?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_read_in_either_width_and_others_nexthops_are_passed_over() {
        let mut body = vec![0; FIXED_BYTES];
        let mut told = Attributes::of(&mut body);
        told.nest(NHA_GROUP_STATS, |entries| {
            for (number, packets) in [
                (NexthopId(3).number(), &7_u32.to_ne_bytes()[..]),
                (NexthopId(4).number(), &(1_u64 << 40).to_ne_bytes()),
                (5, &9_u32.to_ne_bytes()),
            ] {
                entries.nest(1, |entry| {
                    entry.put_u32(NHA_GROUP_STATS_ENTRY_ID, number);
                    entry.put(NHA_GROUP_STATS_ENTRY_PACKETS, packets);
                });
            }
        });
        assert_eq!(read(&body), Some(vec![(NexthopId(3), 7), (NexthopId(4), 1 << 40)]));
        for (group, is_read) in [(GroupId(7), true), (GroupId(7).of_passing(), false)] {
            let mut of_group = body.clone();
            Attributes::of(&mut of_group).put_u32(NHA_ID, group.number());
            assert_eq!(read(&of_group).is_some(), is_read, "{group:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_passed_over(body: Vec<u8>) {
            let _ = read(&body);
        }
    }
}
