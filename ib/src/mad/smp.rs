//! The datagram: header, directed route, data.

use std::fmt;

use thiserror::Error;

use super::{Data, MAX_HOPS, Route, bytes, put, u16_at, u32_at, u64_at};

/// How long every management datagram is.
pub const MAD_BYTES: usize = 256;
/// How much data an SMP carries.
pub const DATA_BYTES: usize = 64;

const BASE_VERSION: u8 = 1;
const CLASS_BY_LID: u8 = 0x01;
const CLASS_DIRECTED: u8 = 0x81;
const CLASS_VERSION: u8 = 1;
/// The bit of the status that says that the datagram is on its way back.
const RETURNS: u16 = 0x8000;
/// The LID that says that the whole way is a directed route.
const PERMISSIVE_LID: u16 = 0xFFFF;

const CLASS_AT: usize = 1;
const METHOD_AT: usize = 3;
const STATUS_AT: usize = 4;
const HOP_COUNT_AT: usize = 7;
const TID_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;
const MODIFIER_AT: usize = 20;
const KEY_AT: usize = 24;
const SOURCE_LID_AT: usize = 32;
const DESTINATION_LID_AT: usize = 34;
const DATA_AT: usize = 64;
const PATH_AT: usize = 128;

/// The methods that a program sends and takes. They are part of the type of its datagrams, so that a program
/// which uses [`Method`] cannot write.
pub trait Methods: Copy + Eq + fmt::Debug + 'static {
    /// All methods.
    const ALL: &'static [Self];

    /// The number in the datagram.
    fn code(self) -> u8;

    /// Whether a datagram with this method answers another one, as bit 7 of its number says.
    fn answers(self) -> bool {
        self.code() & ANSWERS != 0
    }
}

/// The bit of a method's number that says that the datagram answers another.
const ANSWERS: u8 = 0x80;

/// The methods of a program that only reads. None of them writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Asks for an attribute.
    Get,
    /// Answers Get.
    GetResponse,
}

impl Methods for Method {
    const ALL: &'static [Self] = &[Self::Get, Self::GetResponse];

    fn code(self) -> u8 {
        match self {
            Self::Get => 0x01,
            Self::GetResponse => 0x81,
        }
    }
}

/// What a datagram of a subnet manager is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManagerMethod {
    /// Asks for an attribute.
    Get,
    /// Writes an attribute.
    Set,
    /// Answers Get and Set, with the attribute as it is afterwards.
    GetResponse,
    /// Tells the manager that something happened.
    Trap,
    /// Answers a trap, so that it is not repeated.
    TrapRepress,
}

impl Methods for ManagerMethod {
    const ALL: &'static [Self] = &[Self::Get, Self::Set, Self::GetResponse, Self::Trap, Self::TrapRepress];

    fn code(self) -> u8 {
        match self {
            Self::Get => 0x01,
            Self::Set => 0x02,
            Self::GetResponse => 0x81,
            Self::Trap => 0x05,
            Self::TrapRepress => 0x07,
        }
    }
}

/// What a datagram is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Attribute {
    /// What happened, in a trap.
    Notice,
    /// What people call the node.
    NodeDescription,
    /// What the node is.
    NodeInfo,
    /// What a switch can do, and how far its tables reach.
    SwitchInfo,
    /// The GUIDs of a port, eight at a time; the modifier says which eight.
    GuidInfo,
    /// The state of a port; the modifier is its number.
    PortInfo,
    /// The partitions of a port, 32 at a time; the modifier says which, and at a switch the port, shifted by 16.
    PartitionTable,
    /// The virtual lane of each service level; at a switch the modifier is the port that frames come in by, shifted by
    /// 8, and the one that they leave by.
    SlToVl,
    /// How lanes take turns; the modifier says which part of which table (bits 16 to 31), and at a switch
    /// also the port.
    VlArbitration,
    /// 64 entries of a forwarding table; the modifier says which block.
    LinearTable,
    /// A part of a switch's multicast table; the modifier says which block of LIDs, and which ports.
    MulticastTable,
    /// What a subnet manager says of itself.
    SmInfo,
}

impl Attribute {
    const ALL: [Self; 12] = [
        Self::Notice,
        Self::NodeDescription,
        Self::NodeInfo,
        Self::SwitchInfo,
        Self::GuidInfo,
        Self::PortInfo,
        Self::PartitionTable,
        Self::SlToVl,
        Self::VlArbitration,
        Self::LinearTable,
        Self::MulticastTable,
        Self::SmInfo,
    ];

    const fn code(self) -> u16 {
        match self {
            Self::Notice => 0x02,
            Self::NodeDescription => 0x10,
            Self::NodeInfo => 0x11,
            Self::SwitchInfo => 0x12,
            Self::GuidInfo => 0x14,
            Self::PortInfo => 0x15,
            Self::PartitionTable => 0x16,
            Self::SlToVl => 0x17,
            Self::VlArbitration => 0x18,
            Self::LinearTable => 0x19,
            Self::MulticastTable => 0x1B,
            Self::SmInfo => 0x20,
        }
    }

    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "Notice",
            Self::NodeDescription => "NodeDescription",
            Self::NodeInfo => "NodeInfo",
            Self::SwitchInfo => "SwitchInfo",
            Self::GuidInfo => "GUIDInfo",
            Self::PortInfo => "PortInfo",
            Self::PartitionTable => "P_KeyTable",
            Self::SlToVl => "SLtoVLMappingTable",
            Self::VlArbitration => "VLArbitrationTable",
            Self::LinearTable => "LinearForwardingTable",
            Self::MulticastTable => "MulticastForwardingTable",
            Self::SmInfo => "SMInfo",
        }
    }
}

/// A subnet management datagram that goes a directed route all the way, or one [`RoutedByLid`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Smp<M = Method> {
    /// What it is for.
    pub method: M,
    /// The status without its direction; 0 means that all is well, bit 0 that the node is busy.
    pub status: u16,
    /// The transaction. Whatever carries the datagram may use the upper 32 bits for itself.
    pub tid: u64,
    /// What it is about.
    pub attribute: Attribute,
    /// Which of several is meant: for [`Attribute::PortInfo`] the port.
    pub modifier: u32,
    /// The key of management; 0 for none. Whoever does not have a port's key may not write to the port.
    pub key: u64,
    /// The way of the request.
    pub route: Route,
    /// What is carried.
    pub data: Data,
}

/// A subnet management datagram that goes to a LID by the switches' tables. It has no route of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutedByLid<M>(pub Smp<M>);

/// Why bytes are no SMP that this program sends or expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SmpError {
    /// Every datagram has 256 bytes.
    #[error("a management datagram of {0} bytes; each has {MAD_BYTES}")]
    Size(usize),
    /// It is of another version or class.
    #[error("version {base}, class {class:#x}, class version {class_version}: no directed-route SMP")]
    Class {
        /// Version of the header.
        base: u8,
        /// The class.
        class: u8,
        /// Version of the class.
        class_version: u8,
    },
    /// The method is none that is expected.
    #[error("method {0:#x} is none that is expected here")]
    Method(u8),
    /// The attribute is none that is asked for here.
    #[error("attribute {0:#x} was never asked for")]
    Attribute(u16),
    /// The route is longer than routes can be.
    #[error("a route of {0} hops; there are at most {MAX_HOPS}")]
    HopCount(u8),
}

impl Smp<Method> {
    /// A question for an attribute with its modifier to the node at the end of a route, with a key of
    /// management.
    pub fn asking(tid: u32, (attribute, modifier): (Attribute, u32), key: u64, route: Route) -> Self {
        Self {
            method: Method::Get,
            status: 0,
            tid: tid.into(),
            attribute,
            modifier,
            key,
            route,
            data: [0; DATA_BYTES],
        }
    }
}

impl<M: Methods> Smp<M> {
    /// The bytes, with the hop pointer at the route's start.
    pub fn emit(&self) -> [u8; MAD_BYTES] {
        let mut mad = self.emit_common(CLASS_DIRECTED);
        let direction = if self.method.answers() { RETURNS } else { 0 };
        put(&mut mad, STATUS_AT, &(self.status & !RETURNS | direction).to_be_bytes());
        let ports = self.route.ports();
        mad[HOP_COUNT_AT] = ports.len() as u8;
        put(&mut mad, SOURCE_LID_AT, &PERMISSIVE_LID.to_be_bytes());
        put(&mut mad, DESTINATION_LID_AT, &PERMISSIVE_LID.to_be_bytes());
        put(&mut mad, PATH_AT + 1, ports);
        mad
    }

    fn emit_common(&self, class: u8) -> [u8; MAD_BYTES] {
        let mut mad = [0; MAD_BYTES];
        put(&mut mad, 0, &[BASE_VERSION, class, CLASS_VERSION, self.method.code()]);
        put(&mut mad, TID_AT, &self.tid.to_be_bytes());
        put(&mut mad, ATTRIBUTE_AT, &self.attribute.code().to_be_bytes());
        put(&mut mad, MODIFIER_AT, &self.modifier.to_be_bytes());
        put(&mut mad, KEY_AT, &self.key.to_be_bytes());
        put(&mut mad, DATA_AT, &self.data);
        mad
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// If the bytes are no such datagram, or one of a kind that this program has no use for.
    pub fn parse(mad: &[u8]) -> Result<Self, SmpError> {
        let smp = Self::parse_common(mad, CLASS_DIRECTED)?;
        let hops = mad[HOP_COUNT_AT];
        let too_long = SmpError::HopCount(hops);
        let path = mad.get(PATH_AT + 1..PATH_AT + 1 + usize::from(hops)).ok_or(too_long)?;
        let route = Route::new(path).ok_or(too_long)?;
        Ok(Self { status: smp.status & !RETURNS, route, ..smp })
    }

    fn parse_common(mad: &[u8], expected: u8) -> Result<Self, SmpError> {
        if mad.len() != MAD_BYTES {
            return Err(SmpError::Size(mad.len()));
        }
        let [base, class, class_version, method] = bytes(mad, 0);
        if (base, class, class_version) != (BASE_VERSION, expected, CLASS_VERSION) {
            return Err(SmpError::Class { base, class, class_version });
        }
        let method = M::ALL
            .iter()
            .copied()
            .find(|known| known.code() == method)
            .ok_or(SmpError::Method(mad[METHOD_AT]))?;
        let code = u16_at(mad, ATTRIBUTE_AT);
        let attribute =
            Attribute::ALL.into_iter().find(|known| known.code() == code).ok_or(SmpError::Attribute(code))?;
        Ok(Self {
            method,
            status: u16_at(mad, STATUS_AT),
            tid: u64_at(mad, TID_AT),
            attribute,
            modifier: u32_at(mad, MODIFIER_AT),
            key: u64_at(mad, KEY_AT),
            route: Route::LOCAL,
            data: bytes(mad, DATA_AT),
        })
    }
}

impl<M: Methods> RoutedByLid<M> {
    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; MAD_BYTES] {
        let mut mad = self.0.emit_common(CLASS_BY_LID);
        put(&mut mad, STATUS_AT, &self.0.status.to_be_bytes());
        mad
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// If the bytes are no such datagram, or one of a kind that this program has no use for.
    pub fn parse(mad: &[u8]) -> Result<Self, SmpError> {
        Smp::parse_common(mad, CLASS_BY_LID).map(Self)
    }
}

/// The answer to a request that came. It has the bytes of the request, which contain the way back, with a
/// status and data.
pub fn answer(request: &[u8; MAD_BYTES], status: u16, data: &Data) -> [u8; MAD_BYTES] {
    let mut mad = *request;
    mad[METHOD_AT] = ManagerMethod::GetResponse.code();
    let direction = if mad[CLASS_AT] == CLASS_DIRECTED { RETURNS } else { 0 };
    put(&mut mad, STATUS_AT, &(status & !RETURNS | direction).to_be_bytes());
    put(&mut mad, DATA_AT, data);
    mad
}
