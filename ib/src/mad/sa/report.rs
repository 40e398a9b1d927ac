//! What subscribers are told of what happened in the subnet.

use super::{Gid, InformInfo};
use crate::mad::{DATA_BYTES, Data, Notice, put, u16_at, u32_at};

const NUMBER_AT: usize = 4;
const ISSUER_AT: usize = 6;
const SUBJECT_AT: usize = 16;
const ISSUER_GID_AT: usize = 64;
/// The first byte of notices of the specification about the management of subnets.
const GENERIC_MANAGEMENT: u8 = 0x83;
/// The kind of node that tells, for a manager.
const MANAGER: u32 = 4;

/// The attribute Notice as the administration passes it on, with the GID of the port that told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubnetNotice {
    notice: Data,
    issuer: Gid,
}

impl SubnetNotice {
    /// The length in bytes.
    pub const BYTES: usize = DATA_BYTES + Gid::BYTES;

    /// A port can be reached.
    pub const IN_SERVICE: u16 = 64;
    /// A port cannot be reached any more.
    pub const OUT_OF_SERVICE: u16 = 65;
    /// There is a new group.
    pub const GROUP_MADE: u16 = 66;
    /// A group is gone.
    pub const GROUP_GONE: u16 = 67;

    /// A notice of the manager itself about a port or a group.
    pub fn of_subject(number: u16, subject: Gid, manager_lid: u16, manager: Gid) -> Self {
        let mut notice = [0; DATA_BYTES];
        put(&mut notice, 0, &(u32::from(GENERIC_MANAGEMENT) << 24 | MANAGER).to_be_bytes());
        put(&mut notice, NUMBER_AT, &number.to_be_bytes());
        put(&mut notice, ISSUER_AT, &manager_lid.to_be_bytes());
        put(&mut notice, SUBJECT_AT, &subject.emit());
        Self { notice, issuer: manager }
    }

    /// A notice that passes on the trap of a node.
    pub const fn of_trap(notice: Data, issuer: Gid) -> Self {
        Self { notice, issuer }
    }

    /// Whether a subscriber wants to be told this.
    pub fn is_wanted(&self, wanted: &InformInfo) -> bool {
        let first = u32_at(&self.notice, 0);
        let (is_generic, kind) = (first >> 31 != 0, (first >> 24 & 0x7F) as u16);
        let issuer = Notice::parse(&self.notice).issuer;
        let is_from = if wanted.gid != Gid::default() {
            wanted.gid == self.issuer
        } else {
            wanted.first_lid == InformInfo::ALL || (wanted.first_lid..=wanted.last_lid).contains(&issuer)
        };
        let fits = |wanted: u16, is: u16| wanted == InformInfo::ALL || wanted == is;
        is_from
            && is_generic == wanted.is_generic
            && fits(wanted.trap_type, kind)
            && fits(wanted.trap, u16_at(&self.notice, NUMBER_AT))
            && (wanted.producer == InformInfo::ALL_PRODUCERS
                || wanted.producer == first & InformInfo::ALL_PRODUCERS)
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        put(&mut data, 0, &self.notice);
        put(&mut data, ISSUER_GID_AT, &self.issuer.emit());
        data
    }
}
