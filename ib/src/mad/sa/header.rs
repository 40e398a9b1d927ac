//! The datagram: header, header of transfers, header of the administration, and the record.

use thiserror::Error;

use crate::mad::{MAD_BYTES, bytes, put, u16_at, u32_at, u64_at};

/// The class of the subnet's administration.
pub const CLASS: u8 = 0x03;
/// How many bytes of records a datagram carries.
pub const RECORD_BYTES: usize = MAD_BYTES - DATA_AT;
/// How many bytes of each segment the administration's own header takes. They count in the lengths of
/// transfers.
pub const SEGMENT_HEADER_BYTES: usize = DATA_AT - KEY_AT;

/// The offset of the class in each datagram.
pub const CLASS_AT: usize = 1;

const BASE_VERSION: u8 = 1;
const CLASS_VERSION: u8 = 2;
const STATUS_AT: usize = 4;
const TID_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;
const MODIFIER_AT: usize = 20;
const RMPP_VERSION_AT: usize = 24;
const RMPP_KIND_AT: usize = 25;
const RMPP_FLAGS_AT: usize = 26;
const RMPP_STATUS_AT: usize = 27;
const RMPP_SEGMENT_AT: usize = 28;
const RMPP_LENGTH_AT: usize = 32;
const KEY_AT: usize = 36;
const OFFSET_AT: usize = 44;
const MASK_AT: usize = 48;
const DATA_AT: usize = 56;

/// What a datagram is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaMethod {
    /// Asks for one record.
    Get,
    /// Writes a record: joins, registers, subscribes.
    Set,
    /// Tells a subscriber what happened.
    Report,
    /// Asks for all records that match the request.
    GetTable,
    /// Asks for paths between several ports.
    GetMulti,
    /// Takes a record away.
    Delete,
    /// Answers Get and Set.
    GetResponse,
    /// A subscriber took note.
    ReportResponse,
    /// Answers GetTable.
    GetTableResponse,
    /// Answers GetMulti.
    GetMultiResponse,
    /// Answers Delete.
    DeleteResponse,
    /// Anything else, by its number.
    Other(u8),
}

impl SaMethod {
    const ALL: [(u8, Self); 11] = [
        (0x01, Self::Get),
        (0x02, Self::Set),
        (0x06, Self::Report),
        (0x12, Self::GetTable),
        (0x14, Self::GetMulti),
        (0x15, Self::Delete),
        (0x81, Self::GetResponse),
        (0x86, Self::ReportResponse),
        (0x92, Self::GetTableResponse),
        (0x94, Self::GetMultiResponse),
        (0x95, Self::DeleteResponse),
    ];

    fn of(code: u8) -> Self {
        Self::ALL.into_iter().find(|known| known.0 == code).map_or(Self::Other(code), |known| known.1)
    }

    fn code(self) -> u8 {
        match self {
            Self::Other(code) => code,
            _ => Self::ALL.into_iter().find(|known| known.1 == self).map_or(0, |known| known.0),
        }
    }

    /// The method of the answer.
    #[must_use]
    pub fn answer(self) -> Self {
        match self {
            Self::Get | Self::Set => Self::GetResponse,
            other => Self::of(other.code() | 0x80),
        }
    }

    /// Whether a datagram with this method answers another one.
    pub fn answers(self) -> bool {
        self.code() & 0x80 != 0
    }
}

/// What a datagram is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaAttribute {
    /// What the administration can do.
    ClassPortInfo,
    /// What happened, in a report.
    Notice,
    /// What a subscriber wants to be told.
    InformInfo,
    /// A node.
    NodeRecord,
    /// A port.
    PortInfoRecord,
    /// Which virtual lane each service level takes at a port (SLtoVLMappingTableRecord).
    SlToVlRecord,
    /// A switch.
    SwitchInfoRecord,
    /// A part of a switch's forwarding table.
    LinearTableRecord,
    /// A part of a switch's multicast table.
    MulticastTableRecord,
    /// A subnet manager.
    SmInfoRecord,
    /// A cable.
    LinkRecord,
    /// The GUIDs of a port.
    GuidInfoRecord,
    /// A service that a port offers.
    ServiceRecord,
    /// The partitions of a port.
    PartitionRecord,
    /// A path between two ports.
    PathRecord,
    /// How virtual lanes take turns at a port (VLArbitrationTableRecord).
    VlArbitrationRecord,
    /// A multicast group, or a member of one.
    McMemberRecord,
    /// Paths between several ports.
    MultiPathRecord,
    /// A subscription.
    InformInfoRecord,
    /// Anything else, by its number.
    Other(u16),
}

impl SaAttribute {
    const ALL: [(u16, Self); 19] = [
        (0x01, Self::ClassPortInfo),
        (0x02, Self::Notice),
        (0x03, Self::InformInfo),
        (0x11, Self::NodeRecord),
        (0x12, Self::PortInfoRecord),
        (0x13, Self::SlToVlRecord),
        (0x14, Self::SwitchInfoRecord),
        (0x15, Self::LinearTableRecord),
        (0x17, Self::MulticastTableRecord),
        (0x18, Self::SmInfoRecord),
        (0x20, Self::LinkRecord),
        (0x30, Self::GuidInfoRecord),
        (0x31, Self::ServiceRecord),
        (0x33, Self::PartitionRecord),
        (0x35, Self::PathRecord),
        (0x36, Self::VlArbitrationRecord),
        (0x38, Self::McMemberRecord),
        (0x3A, Self::MultiPathRecord),
        (0xF3, Self::InformInfoRecord),
    ];

    fn of(code: u16) -> Self {
        Self::ALL.into_iter().find(|known| known.0 == code).map_or(Self::Other(code), |known| known.1)
    }

    fn code(self) -> u16 {
        match self {
            Self::Other(code) => code,
            _ => Self::ALL.into_iter().find(|known| known.1 == self).map_or(0, |known| known.0),
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaStatus {
    /// Not now: the subnet is not up, or too much is under way.
    Busy,
    /// There is no such method for this attribute.
    MethodAttribute,
    /// There is no room for it, or the answer would be too long.
    NoResources,
    /// What it says makes no sense.
    Invalid,
    /// There is no such record.
    NoRecords,
    /// There are several, where one was asked for.
    TooManyRecords,
    /// No port has a GID that it names.
    InvalidGid,
    /// It does not say all that is needed.
    InsufficientComponents,
    /// The asker may not have it.
    Denied,
}

impl SaStatus {
    /// The number in the datagram.
    pub const fn code(self) -> u16 {
        match self {
            Self::Busy => 0x0001,
            Self::MethodAttribute => 0x000C,
            Self::NoResources => 0x0100,
            Self::Invalid => 0x0200,
            Self::NoRecords => 0x0300,
            Self::TooManyRecords => 0x0400,
            Self::InvalidGid => 0x0500,
            Self::InsufficientComponents => 0x0600,
            Self::Denied => 0x0700,
        }
    }
}

/// The header of transfers in several segments (RMPP, chapter 13.6). All zeros if the datagram is alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rmpp {
    /// The version, 1 if it is part of a transfer.
    pub version: u8,
    /// The kind of the datagram: [`Self::DATA`], [`Self::ACK`], [`Self::STOP`] or [`Self::ABORT`].
    pub kind: u8,
    /// [`Self::ACTIVE`], [`Self::FIRST`] and [`Self::LAST`].
    pub flags: u8,
    /// A code of how long the sender may take to answer, 31 for none.
    pub response_time: u8,
    /// Why a transfer ends.
    pub status: u8,
    /// The number of the segment that is sent, counted from 1, or of the one up to which all came.
    pub segment: u32,
    /// How many bytes follow, or the last segment that may be sent before the next acknowledgement.
    pub length: u32,
}

impl Rmpp {
    /// The datagram is a segment.
    pub const DATA: u8 = 1;
    /// The datagram says which segments came.
    pub const ACK: u8 = 2;
    /// The transfer ends because resources are lacking.
    pub const STOP: u8 = 3;
    /// The transfer ends because something is wrong.
    pub const ABORT: u8 = 4;

    /// The datagram is part of a transfer.
    pub const ACTIVE: u8 = 1;
    /// It is the first segment.
    pub const FIRST: u8 = 2;
    /// It is the last segment.
    pub const LAST: u8 = 4;

    /// The response time that stands for none.
    pub const NO_TIME: u8 = 31;

    /// Whether the datagram is part of a transfer.
    pub const fn is_active(&self) -> bool {
        self.version == 1 && self.flags & Self::ACTIVE != 0
    }
}

/// A datagram of the subnet's administration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SaMad {
    /// What it is for.
    pub method: SaMethod,
    /// 0 if all is well.
    pub status: u16,
    /// The transaction. Whatever carries the datagram may use the upper 32 bits for itself.
    pub tid: u64,
    /// What it is about.
    pub attribute: SaAttribute,
    /// A number whose meaning depends on the attribute.
    pub modifier: u32,
    /// The header of transfers.
    pub rmpp: Rmpp,
    /// The managers' key (SM_Key), or 0. Whoever sends it is told more.
    pub key: u64,
    /// The distance from one record to the next, in units of eight bytes.
    pub offset: u16,
    /// Which parts of the record mean something, a bit for each.
    pub mask: u64,
    /// Records, or a part of them.
    pub data: [u8; RECORD_BYTES],
}

/// Why bytes are no datagram of the subnet's administration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SaMadError {
    /// Every datagram has 256 bytes.
    #[error("a management datagram of {0} bytes; each has {MAD_BYTES}")]
    Size(usize),
    /// It is of another version or class.
    #[error("version {base}, class {class:#x}, class version {class_version}: none of the administration")]
    Class {
        /// Version of the header.
        base: u8,
        /// The class.
        class: u8,
        /// Version of the class.
        class_version: u8,
    },
}

impl SaMad {
    /// Reads a datagram.
    ///
    /// # Errors
    /// If it is of another size, class or version.
    pub fn parse(mad: &[u8]) -> Result<Self, SaMadError> {
        if mad.len() != MAD_BYTES {
            return Err(SaMadError::Size(mad.len()));
        }
        let [base, class, class_version, method] = bytes(mad, 0);
        if (base, class, class_version) != (BASE_VERSION, CLASS, CLASS_VERSION) {
            return Err(SaMadError::Class { base, class, class_version });
        }
        Ok(Self {
            method: SaMethod::of(method),
            status: u16_at(mad, STATUS_AT),
            tid: u64_at(mad, TID_AT),
            attribute: SaAttribute::of(u16_at(mad, ATTRIBUTE_AT)),
            modifier: u32_at(mad, MODIFIER_AT),
            rmpp: Rmpp {
                version: mad[RMPP_VERSION_AT],
                kind: mad[RMPP_KIND_AT],
                flags: mad[RMPP_FLAGS_AT] & 7,
                response_time: mad[RMPP_FLAGS_AT] >> 3,
                status: mad[RMPP_STATUS_AT],
                segment: u32_at(mad, RMPP_SEGMENT_AT),
                length: u32_at(mad, RMPP_LENGTH_AT),
            },
            key: u64_at(mad, KEY_AT),
            offset: u16_at(mad, OFFSET_AT),
            mask: u64_at(mad, MASK_AT),
            data: bytes(mad, DATA_AT),
        })
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; MAD_BYTES] {
        let mut mad = [0; MAD_BYTES];
        put(&mut mad, 0, &[BASE_VERSION, CLASS, CLASS_VERSION, self.method.code()]);
        put(&mut mad, STATUS_AT, &self.status.to_be_bytes());
        put(&mut mad, TID_AT, &self.tid.to_be_bytes());
        put(&mut mad, ATTRIBUTE_AT, &self.attribute.code().to_be_bytes());
        put(&mut mad, MODIFIER_AT, &self.modifier.to_be_bytes());
        mad[RMPP_VERSION_AT] = self.rmpp.version;
        mad[RMPP_KIND_AT] = self.rmpp.kind;
        mad[RMPP_FLAGS_AT] = self.rmpp.response_time << 3 | self.rmpp.flags & 7;
        mad[RMPP_STATUS_AT] = self.rmpp.status;
        put(&mut mad, RMPP_SEGMENT_AT, &self.rmpp.segment.to_be_bytes());
        put(&mut mad, RMPP_LENGTH_AT, &self.rmpp.length.to_be_bytes());
        put(&mut mad, KEY_AT, &self.key.to_be_bytes());
        put(&mut mad, OFFSET_AT, &self.offset.to_be_bytes());
        put(&mut mad, MASK_AT, &self.mask.to_be_bytes());
        put(&mut mad, DATA_AT, &self.data);
        mad
    }

    /// The answer to this request, without a record. The managers' key is left out of it, as answers have none.
    #[must_use]
    pub fn answered(&self, status: u16) -> Self {
        // A request for paths between several ports is answered by path records.
        let attribute = match self.attribute {
            SaAttribute::MultiPathRecord => SaAttribute::PathRecord,
            other => other,
        };
        Self {
            method: self.method.answer(),
            attribute,
            status,
            rmpp: Rmpp::default(),
            key: 0,
            offset: 0,
            ..self.clone()
        }
    }

    /// This datagram with one record. A record that does not fit is cut off.
    #[must_use]
    pub fn with_record(mut self, record: &[u8]) -> Self {
        self.data = [0; RECORD_BYTES];
        let length = record.len().min(RECORD_BYTES);
        put(&mut self.data, 0, &record[..length]);
        self.offset = record.len().div_ceil(8) as u16;
        self
    }
}
