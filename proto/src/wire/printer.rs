//! Prints any bytes as one line, in the manner of tcpdump.
//!
//! ```text
//! 0,-3 > probe loopback #10 there 3 left 2 from 02:00:00:00:00:09 level 1 type 4 session 5e551011 configured map none, 47 bytes
//! ```

use std::fmt;

use super::{
    Answer, Data, Element, Frame, FrameError, FrameKind, Hello, Info, InfoFlags, Message, Probe, ProbeKind,
    Reason, Reply, RoundTrip, Route, Scout, Stamp, Undeliverable,
};
use crate::map::PortRef;

/// Most bytes shown of what cannot be read.
const MAX_SHOWN_BYTES: usize = 24;

/// Shows all behind a link's header: the route, then what the frame says. Any bytes will do: what
/// is malformed is shown as such. The line has no control characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Printer<'a> {
    payload: &'a [u8],
}

impl<'a> Printer<'a> {
    /// A printer of these bytes.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { payload }
    }
}

impl fmt::Display for Printer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (route, rest) = self.payload.split_at(route_length(self.payload));
        match Route::parse(route) {
            Ok((route, _)) => write!(f, "{route} > ")?,
            Err(error) => write!(f, "[{error}] > ")?,
        }
        if let Err(error) = Element::first(rest) {
            return write!(f, "[{error}] {}", Hex(rest));
        }
        match Frame::parse(rest) {
            Ok(frame) => write_frame(f, &frame),
            Err(error) => write_unreadable(f, rest, error),
        }
    }
}

/// How many bytes at the front are route elements that can be read.
fn route_length(payload: &[u8]) -> usize {
    let mut at = 0;
    while let Ok(Some(element)) = Element::first(&payload[at..]) {
        at += element.len_bytes();
    }
    at
}

fn write_frame(f: &mut fmt::Formatter<'_>, frame: &Frame<'_>) -> fmt::Result {
    match frame.kind() {
        FrameKind::Mapper => match Message::read_body(frame.body()) {
            Ok(message) => write_message(f, &message)?,
            Err(error) => write!(f, "mapper [{error}] {}", Hex(frame.body()))?,
        },
        FrameKind::Data => match Data::read_body(frame.body()) {
            Ok(data) => write_data(f, &data)?,
            Err(error) => write!(f, "data [{error}] {}", Hex(frame.body()))?,
        },
        FrameKind::Undeliverable => match Undeliverable::read_body(frame.body()) {
            Ok(Undeliverable { token, tag, port }) => {
                write!(f, "undeliverable {token:016x} at {tag:#018x} port {port}")?;
            }
            Err(error) => write!(f, "undeliverable [{error}] {}", Hex(frame.body()))?,
        },
        FrameKind::Hello => match Hello::read_body(frame.body()) {
            Ok(hello) => write_hello(f, &hello)?,
            Err(error) => write!(f, "hello [{error}] {}", Hex(frame.body()))?,
        },
        FrameKind::Unknown(number) => write!(f, "type {number:#010x} {}", Hex(frame.body()))?,
    }
    if frame.has_stamp_area() {
        match frame.stamp() {
            Ok(Some(stamp)) => write_stamp(f, &stamp)?,
            Ok(None) => f.write_str(", unstamped")?,
            Err(error) => write!(f, ", [stamp: {error}]")?,
        }
    }
    if let Some(auth) = frame.auth() {
        write!(f, ", key {} sequence {:016x}", auth.key_id, auth.sequence)?;
        if auth.answers != 0 {
            write!(f, " answers {:016x}", auth.answers)?;
        }
    }
    write!(f, ", {} bytes", frame.len_bytes())
}

fn write_unreadable(f: &mut fmt::Formatter<'_>, rest: &[u8], error: FrameError) -> fmt::Result {
    match FrameKind::of(rest) {
        Ok(FrameKind::Mapper) => f.write_str("mapper ")?,
        Ok(FrameKind::Data) => f.write_str("data ")?,
        Ok(FrameKind::Undeliverable) => f.write_str("undeliverable ")?,
        Ok(FrameKind::Hello) => f.write_str("hello ")?,
        Ok(FrameKind::Unknown(_)) | Err(_) => {}
    }
    write!(f, "[{error}] {}", Hex(rest))
}

fn write_hello(f: &mut fmt::Formatter<'_>, hello: &Hello) -> fmt::Result {
    let Hello { end, mac, mtu, flags, heard } = hello;
    write!(f, "hello from {end} at {mac} mtu {mtu}")?;
    flags.names().try_for_each(|name| write!(f, " {name}"))?;
    f.write_str(if heard.is_empty() { " heard nobody" } else { " heard" })?;
    heard.iter().try_for_each(|mac| write!(f, " {mac}"))
}

/// The first bytes of a user's Ethernet frame: who, to whom, what.
fn write_data(f: &mut fmt::Formatter<'_>, Data { token, way_back, ethernet }: &Data<'_>) -> fmt::Result {
    write!(f, "data {token:016x} back {way_back} ")?;
    let Some((header, carried)) = ethernet.split_first_chunk::<14>() else {
        return write!(f, "[no Ethernet header] {}", Hex(ethernet));
    };
    if Data::is_check_token(*token) {
        // A check carries a mapper frame. What that carries in turn is not shown, so that lines stay short.
        return match Frame::parse(carried).and_then(|frame| Message::read_body(frame.body())) {
            Ok(message) => write_message(f, &message),
            Err(error) => write!(f, "check [{error}] {}", Hex(carried)),
        };
    }
    let mac = |at: usize| crate::Mac(std::array::from_fn(|nth| header[at + nth]));
    let ether_type = u16::from_be_bytes([header[12], header[13]]);
    write!(f, "{} > {} type {ether_type:#06x} length {}", mac(6), mac(0), ethernet.len())
}

fn write_message(f: &mut fmt::Formatter<'_>, message: &Message) -> fmt::Result {
    match message {
        Message::Probe(Probe { id, kind, left, info, way_there }) => {
            let kind = match kind {
                ProbeKind::Loopback => "loopback",
                ProbeKind::Compare => "compare",
                ProbeKind::Identify => "identify",
            };
            write!(f, "probe {kind} #{id} there {way_there} left {left} from {}", Shown(info))
        }
        Message::Scout(Scout { id, info, way: RoundTrip { there, back }, reason }) => {
            f.write_str("scout ")?;
            write_reason(f, reason)?;
            write!(f, " #{id} there {there} back {back} from {}", Shown(info))
        }
        Message::Reply(Reply { id, to, info, answer }) => {
            f.write_str("reply ")?;
            write_answer(f, answer)?;
            write!(f, " #{id} to {to} from {}", Shown(info))
        }
    }
}

fn write_reason(f: &mut fmt::Formatter<'_>, reason: &Reason) -> fmt::Result {
    match reason {
        Reason::Mapping => f.write_str("mapping"),
        Reason::QueryMapVersion { seen, suspects } => {
            f.write_str("query-map-version")?;
            for (nth, PortRef { xbar, port }) in suspects.iter().enumerate() {
                let before = if nth == 0 { " suspects " } else { "," };
                write!(f, "{before}{xbar}:{port}")?;
            }
            if seen.is_some() { write!(f, " of {seen}") } else { Ok(()) }
        }
        Reason::Tree { version, level } => write!(f, "tree {version} level {level}"),
        Reason::Verify => f.write_str("verify"),
        Reason::MapRequest { version, piece, room_bytes } => {
            write!(f, "map-request {version} piece {piece} room {room_bytes}")
        }
        Reason::Pause { max_ms } => write!(f, "pause {max_ms} ms"),
        Reason::Resume => f.write_str("resume"),
        Reason::Alive { answer_bytes } => write!(f, "alive answer {answer_bytes}"),
        Reason::Printf { text } => write!(f, "printf {text:?}"),
        Reason::AddressConflict { places } => {
            f.write_str("address-conflict")?;
            places.iter().try_for_each(|place| write!(f, ", {place}"))
        }
        Reason::Hello => f.write_str("hello"),
        Reason::Service { service, room_bytes, question } => {
            write!(f, "service {} length {} room {room_bytes}", service.0, question.len())
        }
    }
}

fn write_answer(f: &mut fmt::Formatter<'_>, answer: &Answer) -> fmt::Result {
    f.write_str(match answer {
        Answer::Probe => "probe",
        Answer::Mapping => "mapping",
        Answer::QueryMapVersion => "query-map-version",
        Answer::Tree => "tree",
        Answer::Verify => "verify",
        Answer::Pause => "pause",
        Answer::Resume => "resume",
        Answer::Alive => "alive",
        Answer::Printf => "printf",
        Answer::AddressConflict => "address-conflict",
        Answer::Hello => "hello",
        Answer::Service { service, answer: None } => return write!(f, "service {} none", service.0),
        Answer::Service { service, answer: Some(answer) } => {
            return write!(f, "service {} length {}", service.0, answer.len());
        }
        Answer::MapRequest { version, piece, pieces, needs_bytes, bytes } => {
            let length = bytes.len();
            return write!(
                f,
                "map-request {version} piece {piece} of {pieces} length {length} of {needs_bytes}"
            );
        }
    })
}

fn write_stamp(f: &mut fmt::Formatter<'_>, stamp: &Stamp) -> fmt::Result {
    let Stamp { tag, ports, arrival, .. } = stamp;
    write!(f, ", stamp {tag:#018x} ports {ports} arrival {arrival} carrier ")?;
    let mut any = false;
    for port in stamp.carriers.iter() {
        write!(f, "{}{port}", if any { "," } else { "" })?;
        any = true;
    }
    if any { Ok(()) } else { f.write_str("none") }
}

/// What an agent says of itself.
struct Shown<'a>(&'a Info);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Info { rank, host_type, session, state, version, pieces, flags, mtu } = self.0;
        write!(
            f,
            "{} level {} type {host_type} session {session:08x} {state} map {version}",
            rank.mac, rank.level
        )?;
        if *pieces > 0 {
            write!(f, " pieces {pieces}")?;
        }
        if mtu.bytes > 0 {
            write!(f, " mtu {}", mtu.bytes)?;
        }
        let InfoFlags { subtree_complete, network_complete, printeur, contested, non_clos } = flags;
        let flags = [
            (subtree_complete, " subtree-complete"),
            (network_complete, " network-complete"),
            (printeur, " printeur"),
            (contested, " contested"),
            (non_clos, " non-clos"),
        ];
        flags.into_iter().filter(|(set, _)| **set).try_for_each(|(_, name)| f.write_str(name))
    }
}

/// Bytes as hexadecimal digits, cut off if there are many.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(MAX_SHOWN_BYTES)];
        if shown.is_empty() {
            return f.write_str("no bytes");
        }
        for byte in shown {
            write!(f, "{byte:02x}")?;
        }
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, ".. and {more} bytes more"),
        }
    }
}

#[cfg(test)]
mod tests;
