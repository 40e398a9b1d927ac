//! All frames, records and fields.

use super::{Base, Body, ElementKind, ElementLayout, Field, Flag, FrameLayout, Record, Shape, Variant};
use crate::wire::frame::{FLAG_AUTH, FLAG_STAMP, FrameKind};
use crate::wire::scout::{REPLY_ROOM_BYTES, code};
use crate::wire::{
    AgentState, HelloFlags, InfoFlags, ServiceNumber, TAG_BYTES, hello, message, probe, reply,
};

/// The kinds of route elements. A byte whose first bit is clear ends the route; all others are in error.
pub const ELEMENTS: [ElementLayout; 3] = [
    ElementLayout { first: 0x80..=0xbf, bytes: 1, kind: ElementKind::Relative },
    ElementLayout { first: 0xc0..=0xc0, bytes: 2, kind: ElementKind::Absolute },
    ElementLayout { first: 0xe0..=0xe0, bytes: 1, kind: ElementKind::Identify },
];

/// A frame, from its kind on.
pub const FRAME: FrameLayout = FrameLayout {
    header: Record {
        name: "frame",
        fields: &[
            field("kind", "What the frame carries", Shape::Code { bytes: 4, names: KINDS }),
            decimal("version", "The version of the protocol", 1),
            field("flags", "Which parts the frame has", Shape::Flags { bytes: 1, flags: FRAME_FLAGS }),
            decimal("body_length", "How many bytes the body has", 2),
        ],
    },
    stamp: Record {
        name: "stamp",
        fields: &[
            hexadecimal(
                "tag",
                "The identity of the crossbar; all is zero until one has stamped the frame",
                8,
            ),
            decimal("ports", "How many ports the crossbar has", 1),
            decimal("arrival", "The port by which the frame came in", 1),
            field("carriers", "The ports that have carrier", Shape::PortSet),
            hexadecimal("crc", "The CRC-32 of the stamp", 4),
        ],
    },
    stamp_mask: FLAG_STAMP,
    bodies: &[
        Body { kind: FrameKind::Mapper.number(), record: &MESSAGE },
        Body { kind: FrameKind::Data.number(), record: &DATA },
        Body { kind: FrameKind::Undeliverable.number(), record: &UNDELIVERABLE },
        Body { kind: FrameKind::Hello.number(), record: &HELLO },
    ],
    signature: Record {
        name: "signature",
        fields: &[
            decimal("key", "The number of the key that made the tag", 4),
            hexadecimal("sequence", "A number that grows with each frame of its sender", 8),
            hexadecimal("answers", "The sequence number of the frame that this one answers; 0 if none", 8),
            field("tag", "HMAC-SHA-256 over the frame, cut to 20 bytes", Shape::Bytes(TAG_BYTES)),
        ],
    },
    signature_mask: FLAG_AUTH,
    end: Record {
        name: "frame",
        fields: &[hexadecimal("crc", "The CRC-32 of the frame without route and stamp area", 4)],
    },
};

const KINDS: &[(u32, &str)] = &[
    (FrameKind::Mapper.number(), "mapper"),
    (FrameKind::Data.number(), "data"),
    (FrameKind::Undeliverable.number(), "undeliverable"),
    (FrameKind::Hello.number(), "hello"),
];

const FRAME_FLAGS: &[Flag] = &[
    Flag { mask: FLAG_STAMP as u16, name: "stamp", about: "A stamp area follows the header" },
    Flag { mask: FLAG_AUTH as u16, name: "signature", about: "A signature follows the body" },
];

const MESSAGE: Record =
    Record { name: "message", fields: &[field("type", "Which message it is", Shape::Choice(MESSAGES))] };

const MESSAGES: &[Variant] = &[
    Variant { code: message::code::PROBE, record: &PROBE },
    Variant { code: message::code::SCOUT, record: &SCOUT },
    Variant { code: message::code::REPLY, record: &REPLY },
];

const DATA: Record = Record {
    name: "data",
    fields: &[
        hexadecimal("token", "A number of the sender's; its first bit is set in a check of a path", 8),
        field("way_back", "The way from the last crossbar back to the sender", Shape::Route),
        field("ethernet", "The user's frame, or a check of a path", Shape::Ethernet),
    ],
};

const UNDELIVERABLE: Record = Record {
    name: "undeliverable",
    fields: &[
        hexadecimal("token", "The token of the data frame", 8),
        hexadecimal("tag", "The identity of the crossbar", 8),
        decimal("port", "The port that has no carrier", 1),
    ],
};

const HELLO: Record = Record {
    name: "hello",
    fields: &[
        field("end", "What is at the sender's end of the cable", Shape::Choice(ENDS)),
        field("mac", "The address of the sender's interface", Shape::Mac),
        decimal("mtu", "The most bytes behind the Ethernet header at the sender's interface", 4),
        field(
            "flags",
            "What the sender's kernel obeys that arrives at this interface",
            Shape::Flags { bytes: 2, flags: HELLO_FLAGS },
        ),
        field("heard", "The interfaces whose hellos the sender has heard here lately", Shape::List(&HEARD)),
    ],
};

const ENDS: &[Variant] = &[
    Variant {
        code: hello::CODE_XBAR,
        record: &Record {
            name: "hello.xbar",
            fields: &[
                field(
                    "tag",
                    "The identity of the sender's crossbar",
                    Shape::Optional(&Shape::Unsigned { bytes: 8, base: Base::Hexadecimal }),
                ),
                decimal("port", "The number of the sender's port", 1),
            ],
        },
    },
    Variant {
        code: hello::CODE_HOST,
        record: &Record {
            name: "hello.host",
            fields: &[field("address", "The address by which the fabric knows the host", Shape::Mac)],
        },
    },
];

const HELLO_FLAGS: &[Flag] = &[
    Flag {
        mask: HelloFlags::SRV6.bits(),
        name: "srv6",
        about: "Segments of whole addresses (SRv6) are obeyed",
    },
    Flag {
        mask: HelloFlags::SRV6_COMPRESSED.bits(),
        name: "srv6_compressed",
        about: "Compressed segments (SRv6 with Next-C-SID) are obeyed",
    },
    Flag {
        mask: HelloFlags::ROUTES.bits(),
        name: "routes",
        about: "IP packets are routed by their destination",
    },
];

const HEARD: Record =
    Record { name: "heard", fields: &[field("mac", "The address of an interface", Shape::Mac)] };

const INFO: Record = Record {
    name: "info",
    fields: &[
        decimal("level", "The sender's level: of the agents that may map, the highest does", 1),
        field("mac", "The sender's address", Shape::Mac),
        decimal("host_type", "What the sender's host runs", 1),
        hexadecimal("session", "A number that the sender drew when it started", 4),
        field("state", "Where the sender is in its life", Shape::Code { bytes: 1, names: STATES }),
        field("version", "The map that the sender holds", Shape::MapVersion),
        decimal("pieces", "How many pieces that map has", 2),
        field("flags", "What else the sender says of itself", Shape::Flags { bytes: 1, flags: INFO_FLAGS }),
        decimal("mtu", "How long the frames may be that the sender sends and takes, in bytes", 2),
        hexadecimal("mtu_ports", "The ports of a node that have no more than that: bit n - 1 for port n", 4),
    ],
};

const STATES: &[(u32, &str)] = &[
    (AgentState::Starting.code() as u32, "starting"),
    (AgentState::Mapping.code() as u32, "mapping"),
    (AgentState::Passive.code() as u32, "passive"),
    (AgentState::Fetching.code() as u32, "fetching"),
    (AgentState::Routing.code() as u32, "routing"),
    (AgentState::Configured.code() as u32, "configured"),
    (AgentState::Isolated.code() as u32, "isolated"),
];

const INFO_FLAGS: &[Flag] = &[
    Flag {
        mask: InfoFlags::SUBTREE_COMPLETE as u16,
        name: "subtree_complete",
        about: "The sender and all below it in the tree are configured with its map",
    },
    Flag {
        mask: InfoFlags::NETWORK_COMPLETE as u16,
        name: "network_complete",
        about: "The whole network is configured with this map",
    },
    Flag {
        mask: InfoFlags::PRINTEUR as u16,
        name: "printeur",
        about: "The sender prints what others send it to print",
    },
    Flag {
        mask: InfoFlags::CONTESTED as u16,
        name: "contested",
        about: "Another host has the sender's address",
    },
    Flag { mask: InfoFlags::NON_CLOS as u16, name: "non_clos", about: "The sender is set to --non-clos" },
];

const PROBE: Record = Record {
    name: "probe",
    fields: &[
        hexadecimal("id", "Tells this probe from all others of its sender", 4),
        field("kind", "Why it was sent", Shape::Choice(PROBE_KINDS)),
        decimal("left", "How many route elements are left over where it turns", 1),
        field("info", "What the sender says of itself", Shape::Record(&INFO)),
        field("way_there", "The way from the sender to where it turns", Shape::Route),
        REPLY_ROOM,
    ],
};

const PROBE_KINDS: &[Variant] = &[
    Variant { code: probe::code::LOOPBACK, record: &Record { name: "probe.loopback", fields: &[] } },
    Variant { code: probe::code::COMPARE, record: &Record { name: "probe.compare", fields: &[] } },
    Variant { code: probe::code::IDENTIFY, record: &Record { name: "probe.identify", fields: &[] } },
];

const SCOUT: Record = Record {
    name: "scout",
    fields: &[
        hexadecimal("id", "Tells this scout from all others of its sender", 4),
        field("info", "What the sender says of itself", Shape::Record(&INFO)),
        field("way_back", "The way back to the sender", Shape::Route),
        field("way_there", "The way that the scout takes", Shape::Route),
        REPLY_ROOM,
        field("reason", "Why it was sent", Shape::Choice(REASONS)),
    ],
};

const REASONS: &[Variant] = &[
    Variant { code: code::MAPPING, record: &Record { name: "scout.mapping", fields: &[] } },
    Variant { code: code::QUERY_MAP_VERSION, record: &QUERY_MAP_VERSION },
    Variant { code: code::TREE, record: &TREE },
    Variant { code: code::VERIFY, record: &Record { name: "scout.verify", fields: &[] } },
    Variant { code: code::MAP_REQUEST, record: &MAP_REQUEST },
    Variant { code: code::PAUSE, record: &PAUSE },
    Variant { code: code::RESUME, record: &Record { name: "scout.resume", fields: &[] } },
    Variant { code: code::PRINTF, record: &PRINTF },
    Variant { code: code::ALIVE, record: &ALIVE },
    Variant { code: code::ADDRESS_CONFLICT, record: &ADDRESS_CONFLICT },
    Variant { code: code::HELLO, record: &Record { name: "scout.hello", fields: &[] } },
    Variant { code: code::SERVICE, record: &SERVICE_QUESTION },
];

const QUERY_MAP_VERSION: Record = Record {
    name: "scout.query_map_version",
    fields: &[
        field("seen", "The map that the suspects refer to", Shape::MapVersion),
        field("suspects", "Where that map no longer holds", Shape::List(&SUSPECT)),
    ],
};

const SUSPECT: Record = Record {
    name: "suspect",
    fields: &[
        decimal("xbar", "The number of a crossbar in the map", 4),
        decimal("port", "The number of a port of it", 1),
    ],
};

const TREE: Record = Record {
    name: "scout.tree",
    fields: &[
        field("version", "The map to collect", Shape::MapVersion),
        decimal("level", "The level of the global mapper that made it", 1),
    ],
};

const MAP_REQUEST: Record = Record {
    name: "scout.map_request",
    fields: &[
        field("version", "The map", Shape::MapVersion),
        decimal("piece", "The piece, counted from 0", 2),
        field("room_bytes", "Most bytes that the piece may have", Shape::Room),
    ],
};

const PAUSE: Record = Record {
    name: "scout.pause",
    fields: &[decimal("max_ms", "The milliseconds after which the pause ends by itself", 2)],
};

const PRINTF: Record =
    Record { name: "scout.printf", fields: &[field("text", "What is to be printed", Shape::CountedText)] };

const ALIVE: Record = Record {
    name: "scout.alive",
    fields: &[decimal("answer_bytes", "How long the answer shall be, its route and all", 2)],
};

const ADDRESS_CONFLICT: Record = Record {
    name: "scout.address_conflict",
    fields: &[field("places", "Where hosts with this address are", Shape::List(&PLACE))],
};

const PLACE: Record = Record {
    name: "place",
    fields: &[
        decimal("xbar", "The number of a crossbar in the sender's map", 4),
        decimal("port", "The number of a port of it", 1),
        field(
            "tag",
            "The identity of the crossbar",
            Shape::Optional(&Shape::Unsigned { bytes: 8, base: Base::Hexadecimal }),
        ),
    ],
};

const SERVICE_QUESTION: Record = Record {
    name: "scout.service",
    fields: &[
        field("service", "Which service is asked", SERVICES),
        field("question", "What it is asked", Shape::CountedBytes),
        field("room_bytes", "Most bytes that the answer may have beyond those of the question", Shape::Room),
    ],
};

const SERVICES: Shape = Shape::Code { bytes: 1, names: &NAMES_OF_SERVICES };

/// The numbers and names of all services. This is a loop, as a constant cannot be made by iterators.
const NAMES_OF_SERVICES: [(u32, &str); ServiceNumber::ALL.len()] = {
    let mut names = [(0, ""); ServiceNumber::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        let (number, name) = ServiceNumber::ALL[at];
        names[at] = (number.0 as u32, name);
        at += 1;
    }
    names
};

const REPLY: Record = Record {
    name: "reply",
    fields: &[
        hexadecimal("id", "The id of what it answers", 4),
        field("to", "The address of who asked", Shape::Mac),
        field("info", "What the sender says of itself", Shape::Record(&INFO)),
        field("answer", "What it answers", Shape::Choice(ANSWERS)),
    ],
};

const ANSWERS: &[Variant] = &[
    Variant { code: reply::CODE_PROBE, record: &Record { name: "reply.probe", fields: &[] } },
    Variant { code: code::MAPPING, record: &Record { name: "reply.mapping", fields: &[] } },
    Variant {
        code: code::QUERY_MAP_VERSION,
        record: &Record { name: "reply.query_map_version", fields: &[] },
    },
    Variant { code: code::TREE, record: &Record { name: "reply.tree", fields: &[] } },
    Variant { code: code::VERIFY, record: &Record { name: "reply.verify", fields: &[] } },
    Variant { code: code::MAP_REQUEST, record: &PIECE },
    Variant { code: code::PAUSE, record: &Record { name: "reply.pause", fields: &[] } },
    Variant { code: code::RESUME, record: &Record { name: "reply.resume", fields: &[] } },
    Variant { code: code::PRINTF, record: &Record { name: "reply.printf", fields: &[] } },
    Variant { code: code::ALIVE, record: &Record { name: "reply.alive", fields: &[] } },
    Variant { code: code::ADDRESS_CONFLICT, record: &Record { name: "reply.address_conflict", fields: &[] } },
    Variant { code: code::HELLO, record: &Record { name: "reply.hello", fields: &[] } },
    Variant { code: code::SERVICE, record: &SERVICE_ANSWER },
];

const PIECE: Record = Record {
    name: "reply.map_request",
    fields: &[
        field("version", "The map", Shape::MapVersion),
        decimal("piece", "The piece, counted from 0", 2),
        decimal("pieces", "How many pieces the map has", 2),
        decimal("needs_bytes", "How much room the piece takes; 0 if it cannot be had here", 2),
        field("bytes", "The bytes of the piece", Shape::CountedBytes),
    ],
};

const SERVICE_ANSWER: Record = Record {
    name: "reply.service",
    fields: &[
        field("service", "Which service answers", SERVICES),
        field("answer", "What it answers", Shape::Optional(&Shape::CountedBytes)),
    ],
};

const REPLY_ROOM: Field = field(
    "reply_room",
    "Zeros, so that no reply is longer than what it answers",
    Shape::Zeros(REPLY_ROOM_BYTES),
);

const fn field(name: &'static str, about: &'static str, shape: Shape) -> Field {
    Field { name, about, shape }
}

const fn decimal(name: &'static str, about: &'static str, bytes: usize) -> Field {
    field(name, about, Shape::Unsigned { bytes, base: Base::Decimal })
}

const fn hexadecimal(name: &'static str, about: &'static str, bytes: usize) -> Field {
    field(name, about, Shape::Unsigned { bytes, base: Base::Hexadecimal })
}
