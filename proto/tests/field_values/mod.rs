//! What a frame's fields are called and what they hold, from the frame as the codec reads it.
//!
//! This is the reference for the tables of the wire format, and for what is made of them: names stand
//! as in the tables, and values as Wireshark shows them.

use mapper_proto::PortSet;
use mapper_proto::map::{Place, PortRef};
use mapper_proto::wire::{
    AgentState, Answer, Data, Frame, FrameKind, Hello, HelloEnd, HelloFlags, Info, InfoFlags, Message, Probe,
    ProbeKind, Reason, Reply, RoundTrip, STAMP_BYTES, Scout, ServiceNumber, Undeliverable, split_route,
};

/// Fields, in the order in which they travel.
pub(crate) type Values = Vec<(String, String)>;

/// The EtherType of mapper's frames.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const ETHERNET_HEADER_BYTES: usize = 14;

/// The fields of a frame and, if it is a data frame that carries another frame of ours, of that behind it.
/// `payload` is all behind the link's header.
///
/// # Panics
/// If the codec cannot read it.
pub(crate) fn of_payload(payload: &[u8]) -> Values {
    let mut values = Values::new();
    let mut rest = Some(payload);
    while let Some(payload) = rest {
        rest = of_frame(payload, &mut Writer { values: &mut values });
    }
    values
}

/// Writes down the fields of one frame and returns the payload that it carries in turn.
fn of_frame<'a>(payload: &'a [u8], out: &mut Writer<'_>) -> Option<&'a [u8]> {
    let (route, bytes) = split_route(payload).unwrap();
    let frame = Frame::parse(bytes).unwrap();
    out.put("route", &route.to_string());
    let kind = match frame.kind() {
        FrameKind::Mapper => "mapper",
        FrameKind::Data => "data",
        FrameKind::Undeliverable => "undeliverable",
        FrameKind::Hello => "hello",
        FrameKind::Unknown(number) => panic!("kind {number}"),
    };
    out.put("frame.kind", &format!("{kind} ({})", frame.kind().number()));
    out.put("frame.version", &mapper_proto::wire::PROTOCOL_VERSION);
    let flags = [("stamp", frame.has_stamp_area()), ("signature", frame.auth().is_some())];
    out.flags("frame.flags", &flags);
    out.put("frame.body_length", &frame.body().len());
    if frame.has_stamp_area() {
        stamp(&frame, &bytes[8..8 + STAMP_BYTES], out);
    }
    let mut carried = None;
    match frame.kind() {
        FrameKind::Mapper => message(&Message::read_body(frame.body()).unwrap(), out),
        FrameKind::Undeliverable => {
            let Undeliverable { token, tag, port } = Undeliverable::decode(bytes).unwrap();
            out.hex("undeliverable.token", token, 8);
            out.hex("undeliverable.tag", tag, 8);
            out.put("undeliverable.port", &port);
        }
        FrameKind::Hello => hello(&Hello::decode(bytes).unwrap(), out),
        FrameKind::Data | FrameKind::Unknown(_) => {
            let Data { token, way_back, ethernet } = Data::decode(bytes).unwrap();
            out.hex("data.token", token, 8);
            out.put("data.way_back", &way_back.to_string());
            if ethernet.get(12..ETHERNET_HEADER_BYTES) == Some(&ETHERTYPE) {
                carried = Some(&ethernet[ETHERNET_HEADER_BYTES..]);
            }
        }
    }
    if let Some(auth) = frame.auth() {
        out.put("signature.key", &auth.key_id);
        out.hex("signature.sequence", auth.sequence, 8);
        out.hex("signature.answers", auth.answers, 8);
        out.bytes("signature.tag", &auth.tag);
    }
    let crc = bytes[..frame.len_bytes()].last_chunk().copied().map(u32::from_be_bytes);
    out.hex("frame.crc", crc.unwrap().into(), 4);
    carried
}

fn stamp(frame: &Frame<'_>, area: &[u8], out: &mut Writer<'_>) {
    let stamp = frame.stamp().unwrap();
    out.hex("stamp.tag", stamp.map_or(0, |stamp| stamp.tag), 8);
    out.put("stamp.ports", &stamp.map_or(0, |stamp| stamp.ports));
    out.put("stamp.arrival", &stamp.map_or(0, |stamp| stamp.arrival));
    let carriers = stamp.map_or(PortSet::NONE, |stamp| stamp.carriers);
    let ports: Vec<String> = carriers.iter().map(|port| port.to_string()).collect();
    out.put("stamp.carriers", &if ports.is_empty() { "none".to_owned() } else { ports.join(",") });
    let crc = area.last_chunk().copied().map(u32::from_be_bytes);
    out.hex("stamp.crc", crc.unwrap().into(), 4);
}

fn hello(hello: &Hello, out: &mut Writer<'_>) {
    let Hello { end, mac, mtu, flags, heard } = hello;
    match end {
        HelloEnd::Xbar { tag, port } => {
            out.put("hello.end", &"xbar (1)");
            out.put("hello.xbar.tag.present", &u8::from(tag.is_some()));
            if let Some(tag) = tag {
                out.hex("hello.xbar.tag", *tag, 8);
            }
            out.put("hello.xbar.port", port);
        }
        HelloEnd::Host { mac } => {
            out.put("hello.end", &"host (2)");
            out.put("hello.host.address", mac);
        }
    }
    out.put("hello.mac", mac);
    out.put("hello.mtu", mtu);
    out.hex("hello.flags", flags.bits().into(), 2);
    let named = [
        ("srv6", HelloFlags::SRV6),
        ("srv6_compressed", HelloFlags::SRV6_COMPRESSED),
        ("routes", HelloFlags::ROUTES),
    ];
    for (name, flag) in named {
        out.put(&format!("hello.flags.{name}"), &u8::from(flags.contains(flag)));
    }
    out.put("hello.heard.count", &heard.len());
    heard.iter().for_each(|mac| out.put("heard.mac", mac));
}

fn message(message: &Message, out: &mut Writer<'_>) {
    match message {
        Message::Probe(Probe { id, kind, left, info, way_there }) => {
            out.put("message.type", &"probe (1)");
            out.hex("probe.id", (*id).into(), 4);
            let kind = match kind {
                ProbeKind::Loopback => "loopback (0)",
                ProbeKind::Compare => "compare (1)",
                ProbeKind::Identify => "identify (2)",
            };
            out.put("probe.kind", &kind);
            out.put("probe.left", &left);
            out.info(info);
            out.put("probe.way_there", &way_there);
        }
        Message::Scout(Scout { id, info, way: RoundTrip { there, back }, reason: why }) => {
            out.put("message.type", &"scout (2)");
            out.hex("scout.id", (*id).into(), 4);
            out.info(info);
            out.put("scout.way_back", &back);
            out.put("scout.way_there", &there);
            reason(why, out);
        }
        Message::Reply(Reply { id, to, info, answer: what }) => {
            out.put("message.type", &"reply (3)");
            out.hex("reply.id", (*id).into(), 4);
            out.put("reply.to", &to);
            out.info(info);
            answer(what, out);
        }
    }
}

fn reason(reason: &Reason, out: &mut Writer<'_>) {
    let name = match reason {
        Reason::Mapping => "mapping (1)",
        Reason::QueryMapVersion { .. } => "query-map-version (2)",
        Reason::Tree { .. } => "tree (3)",
        Reason::Verify => "verify (4)",
        Reason::MapRequest { .. } => "map-request (5)",
        Reason::Pause { .. } => "pause (6)",
        Reason::Resume => "resume (7)",
        Reason::Printf { .. } => "printf (8)",
        Reason::Alive { .. } => "alive (9)",
        Reason::AddressConflict { .. } => "address-conflict (10)",
        Reason::Hello => "hello (11)",
        Reason::Service { .. } => "service (12)",
    };
    out.put("scout.reason", &name);
    match reason {
        Reason::Mapping | Reason::Verify | Reason::Resume | Reason::Hello => {}
        Reason::QueryMapVersion { seen, suspects } => {
            out.put("scout.query_map_version.seen", &seen);
            out.put("scout.query_map_version.suspects.count", &suspects.len());
            for PortRef { xbar, port } in suspects {
                out.put("suspect.xbar", &xbar);
                out.put("suspect.port", &port);
            }
        }
        Reason::Tree { version, level } => {
            out.put("scout.tree.version", &version);
            out.put("scout.tree.level", &level);
        }
        Reason::MapRequest { version, piece, room_bytes } => {
            out.put("scout.map_request.version", &version);
            out.put("scout.map_request.piece", &piece);
            out.put("scout.map_request.room_bytes", &room_bytes);
        }
        Reason::Pause { max_ms } => out.put("scout.pause.max_ms", &max_ms),
        Reason::Printf { text } => {
            out.put("scout.printf.text.length", &text.len());
            out.put("scout.printf.text", &text);
        }
        Reason::Alive { answer_bytes } => out.put("scout.alive.answer_bytes", &answer_bytes),
        Reason::AddressConflict { places } => {
            out.put("scout.address_conflict.places.count", &places.len());
            places.iter().for_each(|place| out.place(place));
        }
        Reason::Service { service, room_bytes, question } => {
            out.service("scout.service.service", *service);
            out.counted("scout.service.question", question);
            out.put("scout.service.room_bytes", &room_bytes);
        }
    }
}

fn answer(answer: &Answer, out: &mut Writer<'_>) {
    let name = match answer {
        Answer::Probe => "probe (0)",
        Answer::Mapping => "mapping (1)",
        Answer::QueryMapVersion => "query-map-version (2)",
        Answer::Tree => "tree (3)",
        Answer::Verify => "verify (4)",
        Answer::MapRequest { .. } => "map-request (5)",
        Answer::Pause => "pause (6)",
        Answer::Resume => "resume (7)",
        Answer::Printf => "printf (8)",
        Answer::Alive => "alive (9)",
        Answer::AddressConflict => "address-conflict (10)",
        Answer::Hello => "hello (11)",
        Answer::Service { .. } => "service (12)",
    };
    out.put("reply.answer", &name);
    match answer {
        Answer::MapRequest { version, piece, pieces, needs_bytes, bytes } => {
            out.put("reply.map_request.version", &version);
            out.put("reply.map_request.piece", &piece);
            out.put("reply.map_request.pieces", &pieces);
            out.put("reply.map_request.needs_bytes", &needs_bytes);
            out.counted("reply.map_request.bytes", bytes);
        }
        Answer::Service { service, answer } => {
            out.service("reply.service.service", *service);
            out.put("reply.service.answer.present", &u8::from(answer.is_some()));
            if let Some(answer) = answer {
                out.counted("reply.service.answer", answer);
            }
        }
        Answer::Probe
        | Answer::Mapping
        | Answer::QueryMapVersion
        | Answer::Tree
        | Answer::Verify
        | Answer::Pause
        | Answer::Resume
        | Answer::Printf
        | Answer::AddressConflict
        | Answer::Alive
        | Answer::Hello => {}
    }
}

/// Writes fields down by their shape.
struct Writer<'a> {
    values: &'a mut Values,
}

impl Writer<'_> {
    fn put(&mut self, name: &str, value: &impl ToString) {
        self.values.push((name.to_owned(), value.to_string()));
    }

    fn hex(&mut self, name: &str, value: u64, bytes: usize) {
        self.put(name, &format!("{value:#0width$x}", width = 2 + 2 * bytes));
    }

    /// Bytes, unless there are none.
    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            self.put(name, &digits.join(":"));
        }
    }

    fn counted(&mut self, name: &str, bytes: &[u8]) {
        self.put(&format!("{name}.length"), &bytes.len());
        self.bytes(name, bytes);
    }

    /// A byte of single bits, the lowest first.
    fn flags(&mut self, name: &str, flags: &[(&str, bool)]) {
        let set = flags.iter().enumerate().filter(|(_, (_, set))| *set);
        self.hex(name, set.map(|(nth, _)| 1 << nth).sum(), 1);
        for (flag, set) in flags {
            self.put(&format!("{name}.{flag}"), &u8::from(*set));
        }
    }

    fn service(&mut self, name: &str, service: ServiceNumber) {
        let known = ServiceNumber::ALL.iter().find(|(number, _)| *number == service);
        let word = known.map_or("unknown", |(_, name)| name);
        self.put(name, &format!("{word} ({})", service.0));
    }

    fn place(&mut self, Place { at, tag }: &Place) {
        self.put("place.xbar", &at.xbar);
        self.put("place.port", &at.port);
        self.put("place.tag.present", &u8::from(tag.is_some()));
        if let Some(tag) = tag {
            self.hex("place.tag", *tag, 8);
        }
    }

    fn info(&mut self, info: &Info) {
        let Info { rank, host_type, session, state, version, pieces, flags, mtu } = info;
        self.put("info.level", &rank.level);
        self.put("info.mac", &rank.mac);
        self.put("info.host_type", &host_type);
        self.hex("info.session", (*session).into(), 4);
        let code = match state {
            AgentState::Starting => 0,
            AgentState::Mapping => 1,
            AgentState::Passive => 2,
            AgentState::Fetching => 3,
            AgentState::Routing => 4,
            AgentState::Configured => 5,
            AgentState::Isolated => 6,
        };
        self.put("info.state", &format!("{state} ({code})"));
        self.put("info.version", &version);
        self.put("info.pieces", &pieces);
        let InfoFlags { subtree_complete, network_complete, printeur, contested, non_clos } = *flags;
        let flags = [
            ("subtree_complete", subtree_complete),
            ("network_complete", network_complete),
            ("printeur", printeur),
            ("contested", contested),
            ("non_clos", non_clos),
        ];
        self.flags("info.flags", &flags);
        self.put("info.mtu", &mtu.bytes);
        let mtu_ports: u64 = mtu.ports.iter().map(|port| 1 << (port - 1)).sum();
        self.hex("info.mtu_ports", mtu_ports, 4);
    }
}
