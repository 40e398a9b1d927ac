//! Prints any bytes as one line, in the manner of tcpdump.
//!
//! ```text
//! 0,-3 > probe loopback #10 there 3 left 2 from 02:00:00:00:00:09 level 1 type 4 session 5e551011 configured map none, 47 bytes
//! ```

use std::fmt;

use super::{
    Answer, Data, Element, Frame, FrameError, FrameKind, Info, InfoFlags, Message, Probe, ProbeKind, Reason,
    Reply, Route, Scout, Stamp, Undeliverable,
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
    /// Shows these bytes.
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
        write!(f, ", key {} sequence {} tag {}", auth.key_id, auth.sequence, Hex(&auth.tag))?;
    }
    write!(f, ", {} bytes", frame.len_bytes())
}

fn write_unreadable(f: &mut fmt::Formatter<'_>, rest: &[u8], error: FrameError) -> fmt::Result {
    match FrameKind::of(rest) {
        Ok(FrameKind::Mapper) => f.write_str("mapper ")?,
        Ok(FrameKind::Data) => f.write_str("data ")?,
        Ok(FrameKind::Undeliverable) => f.write_str("undeliverable ")?,
        Ok(FrameKind::Unknown(_)) | Err(_) => {}
    }
    write!(f, "[{error}] {}", Hex(rest))
}

/// The first bytes of a user's Ethernet frame: who, to whom, what.
fn write_data(f: &mut fmt::Formatter<'_>, Data { token, way_back, ethernet }: &Data<'_>) -> fmt::Result {
    write!(f, "data {token:016x} back {way_back} ")?;
    let Some((header, _)) = ethernet.split_first_chunk::<14>() else {
        return write!(f, "[no Ethernet header] {}", Hex(ethernet));
    };
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
        Message::Scout(Scout { id, info, way_back, way_there, reason }) => {
            f.write_str("scout ")?;
            write_reason(f, reason)?;
            write!(f, " #{id} there {way_there} back {way_back} from {}", Shown(info))
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
        Reason::MapRequest { version, piece } => write!(f, "map-request {version} piece {piece}"),
        Reason::Pause { max_ms } => write!(f, "pause {max_ms} ms"),
        Reason::Resume => f.write_str("resume"),
        Reason::Alive => f.write_str("alive"),
        Reason::Printf { text } => write!(f, "printf {text:?}"),
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
        Answer::MapRequest { version, piece, pieces, bytes } => {
            let length = bytes.len();
            return write!(f, "map-request {version} piece {piece} of {pieces} length {length}");
        }
    })
}

fn write_stamp(f: &mut fmt::Formatter<'_>, stamp: &Stamp) -> fmt::Result {
    let Stamp { tag, ports, arrival, .. } = stamp;
    write!(f, ", stamp {tag:#018x} ports {ports} arrival {arrival} carrier ")?;
    let mut any = false;
    for port in (0..=u8::MAX).filter(|&port| stamp.has_carrier(port)) {
        write!(f, "{}{port}", if any { "," } else { "" })?;
        any = true;
    }
    if any { Ok(()) } else { f.write_str("none") }
}

/// What an agent says of itself.
struct Shown<'a>(&'a Info);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Info { rank, host_type, session, state, version, pieces, flags } = self.0;
        write!(
            f,
            "{} level {} type {host_type} session {session:08x} {state} map {version}",
            rank.mac, rank.level
        )?;
        if *pieces > 0 {
            write!(f, " pieces {pieces}")?;
        }
        let InfoFlags { subtree_complete, network_complete, printeur } = flags;
        let flags = [
            (subtree_complete, " subtree-complete"),
            (network_complete, " network-complete"),
            (printeur, " printeur"),
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
mod tests {
    use super::*;
    use crate::Mac;
    use crate::map::{MapVersion, Rank};
    use crate::wire::{AgentState, frame};

    fn info() -> Info {
        Info {
            rank: Rank { level: 1, mac: Mac([2, 0, 0, 0, 0, 9]) },
            host_type: 4,
            session: 0x5e55_1011,
            state: AgentState::Passive,
            ..Info::default()
        }
    }

    fn version() -> MapVersion {
        MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 }
    }

    fn printed(route: &[Element], frame: &[u8]) -> String {
        let route = Route::from_iter(route.iter().copied());
        Printer::new(&[route.as_bytes(), frame].concat()).to_string()
    }

    const FROM: &str = "from 02:00:00:00:00:09 level 1 type 4 session 5e551011 passive map none";

    #[test]
    fn probes_are_shown() {
        let probe = |kind| {
            let way_there = Route::from_iter([Element::Relative(1)]);
            Message::Probe(Probe { id: 10, kind, left: 2, info: info(), way_there }).encode()
        };
        let route = [Element::Relative(3), Element::Absolute(7), Element::Identify];
        assert_eq!(
            printed(&route, &probe(ProbeKind::Loopback)),
            format!("3,@7,? > probe loopback #10 there 1 left 2 {FROM}, 47 bytes")
        );
        let mut frame = probe(ProbeKind::Identify);
        assert_eq!(
            printed(&[], &frame),
            format!("- > probe identify #10 there 1 left 2 {FROM}, unstamped, 93 bytes")
        );
        let mut carrier = [0; 32];
        carrier[0] = 0b110;
        Stamp { tag: 0xfeed, ports: 16, arrival: 2, carrier }.write(&mut frame[frame::HEADER_BYTES..]);
        assert_eq!(
            printed(&[], &frame),
            format!(
                "- > probe identify #10 there 1 left 2 {FROM}, stamp 0x000000000000feed ports 16 arrival 2 carrier \
                 1,2, 93 bytes"
            )
        );
        frame[frame::HEADER_BYTES] ^= 1;
        assert_eq!(
            printed(&[], &frame),
            format!(
                "- > probe identify #10 there 1 left 2 {FROM}, [stamp: the CRC-32 does not match], 93 bytes"
            )
        );
    }

    #[test]
    fn scouts_are_shown() {
        for (reason, shown) in [
            (Reason::Mapping, "mapping"),
            (Reason::QueryMapVersion { seen: MapVersion::NONE, suspects: vec![] }, "query-map-version"),
            (
                Reason::QueryMapVersion {
                    seen: version(),
                    suspects: vec![PortRef { xbar: 1, port: 2 }, PortRef { xbar: 3, port: 4 }],
                },
                "query-map-version suspects 1:2,3:4 of 02:00:00:00:00:0a/7",
            ),
            (Reason::Tree { version: version(), level: 3 }, "tree 02:00:00:00:00:0a/7 level 3"),
            (Reason::Verify, "verify"),
            (Reason::MapRequest { version: version(), piece: 5 }, "map-request 02:00:00:00:00:0a/7 piece 5"),
            (Reason::Pause { max_ms: 9 }, "pause 9 ms"),
            (Reason::Resume, "resume"),
            (Reason::Alive, "alive"),
            (Reason::Printf { text: "a\n\u{7}b".to_owned() }, "printf \"a\\n\\u{7}b\""),
        ] {
            let way_there = Route::from_iter([Element::Absolute(9)]);
            let scout = Scout { id: 1, info: info(), way_back: Route::new(), way_there, reason };
            let frame = Message::Scout(scout).encode();
            let expected = format!("- > scout {shown} #1 there @9 back - {FROM}, {} bytes", frame.len());
            assert_eq!(printed(&[], &frame), expected);
        }
    }

    #[test]
    fn replies_are_shown_with_all_flags() {
        let flags = InfoFlags { subtree_complete: true, network_complete: true, printeur: true };
        let info = Info { version: version(), pieces: 3, flags, ..info() };
        let answer = Answer::MapRequest { version: version(), piece: 1, pieces: 3, bytes: vec![0; 20] };
        let reply = Reply { id: 1, to: Mac([2, 0, 0, 0, 0, 1]), info, answer };
        assert_eq!(
            printed(&[], &Message::Reply(reply).encode()),
            "- > reply map-request 02:00:00:00:00:0a/7 piece 1 of 3 length 20 #1 to 02:00:00:00:00:01 from \
             02:00:00:00:00:09 level 1 type 4 session 5e551011 passive map 02:00:00:00:00:0a/7 pieces 3 \
             subtree-complete network-complete printeur, 86 bytes"
        );
    }

    fn data(ethernet: &[u8]) -> Vec<u8> {
        Data { token: 7, way_back: [Element::Relative(1)].into_iter().collect(), ethernet }.encode().unwrap()
    }

    #[test]
    fn a_notice_is_shown() {
        assert_eq!(
            printed(&[], &Undeliverable { token: 7, tag: 0xfeed, port: 3 }.encode()),
            "- > undeliverable 0000000000000007 at 0x000000000000feed port 3, 29 bytes"
        );
    }

    #[test]
    fn data_is_shown() {
        let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], b"payload"].concat();
        assert_eq!(
            printed(&[Element::Relative(-1)], &data(&ethernet)),
            "-1 > data 0000000000000007 back 1 02:00:00:00:00:02 > 02:00:00:00:00:01 type 0x0800 length 21, \
             43 bytes"
        );
        assert_eq!(
            printed(&[], &data(b"short")),
            "- > data 0000000000000007 back 1 [no Ethernet header] 73686f7274, 27 bytes"
        );
    }

    #[test]
    fn what_is_malformed_is_shown_as_such() {
        let good =
            Message::Reply(Reply { id: 1, to: Mac([0; 6]), info: info(), answer: Answer::Mapping }).encode();
        let mut damaged = good.clone();
        damaged[9] ^= 1;
        for (bytes, shown) in [
            (&[][..], "- > [the frame is too short] no bytes"),
            (&[0x83, 0xff, 1], "3 > [byte 0xff begins no route element] ff01"),
            (&[0x83, 0xc0], "3 > [the route ends inside an element] c0"),
            (&[0x80; 260], "[the route is longer than 252 bytes] > [the frame is too short] no bytes"),
            (&[0, 0, 0, 8, 1], "- > [frame type 0x00000008 is not known here] 0000000801"),
            (&good[..12], "- > mapper [the frame is too short] 0000700f0100002603000000"),
            (
                &damaged,
                "- > mapper [the CRC-32 does not match] 0000700f0100002603010000010000000000000102000000.. and 26 \
                 bytes more",
            ),
        ] {
            assert_eq!(Printer::new(bytes).to_string(), shown);
        }
        let no_message = frame::build(FrameKind::Mapper, false, None, |body| body.push(9));
        assert_eq!(printed(&[], &no_message), "- > mapper [the message is malformed] 09, 13 bytes");
    }

    #[test]
    fn a_trailer_is_shown() {
        let auth = frame::AuthTrailer { key_id: 1, sequence: 2, tag: [0xab; 20] };
        let frame = frame::build(FrameKind::Mapper, false, Some(&auth), |_| {});
        assert_eq!(
            printed(&[], &frame),
            format!(
                "- > mapper [the message is malformed] no bytes, key 1 sequence 2 tag {}, 44 bytes",
                "ab".repeat(20)
            )
        );
    }

    #[test]
    fn a_line_is_one_line() {
        let bytes: Vec<u8> = (0..=255).collect();
        for start in 0..bytes.len() {
            let line = Printer::new(&bytes[start..]).to_string();
            assert!(!line.is_empty() && line.chars().all(|c| !c.is_control()), "{line:?}");
        }
    }
}
