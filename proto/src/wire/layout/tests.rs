//! The tables say of any frame what the codec says of it.

#[path = "../../../tests/field_values/mod.rs"]
mod field_values;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Mac;
use crate::map::MapVersion;
use crate::wire::hello::tests::any_hello;
use crate::wire::message::tests::{message, route};
use crate::wire::{Data, Hello, Key, Message, Route, Seal, Stamp, Undeliverable, frame};
use field_values::Values;

/// Reads a frame by the tables alone.
struct Walk<'a> {
    rest: &'a [u8],
    values: Values,
    carried: Option<&'a [u8]>,
}

impl<'a> Walk<'a> {
    fn of_payload(payload: &'a [u8]) -> Values {
        let mut walk = Self { rest: payload, values: Values::new(), carried: None };
        walk.frame();
        while let Some(carried) = walk.carried.take() {
            walk.rest = carried;
            walk.frame();
        }
        walk.values
    }

    fn frame(&mut self) {
        let route = self.elements(self.rest);
        self.rest = &self.rest[route.0..];
        self.put("route", route.1);
        let header = self.rest;
        self.record(&FRAME.header);
        let kind = u32::from_be_bytes(header[..4].try_into().unwrap());
        let (flags, body_length) = (header[5], u16::from_be_bytes([header[6], header[7]]));
        if flags & FRAME.stamp_mask != 0 {
            self.record(&FRAME.stamp);
        }
        let (body, behind) = self.rest.split_at(body_length.into());
        self.rest = body;
        self.record(FRAME.bodies.iter().find(|body| body.kind == kind).unwrap().record);
        assert!(self.rest.is_empty(), "{} bytes are in no field", self.rest.len());
        self.rest = behind;
        if flags & FRAME.signature_mask != 0 {
            self.record(&FRAME.signature);
        }
        self.record(&FRAME.end);
    }

    fn record(&mut self, record: &Record) {
        for Field { name, shape, .. } in record.fields {
            self.field(&format!("{}.{name}", record.name), shape);
        }
    }

    fn field(&mut self, name: &str, shape: &Shape) {
        match shape {
            Shape::Unsigned { bytes, base } => {
                let value = self.number(*bytes);
                match base {
                    Base::Decimal => self.put(name, value.to_string()),
                    Base::Hexadecimal => self.put(name, format!("{value:#0width$x}", width = 2 + 2 * bytes)),
                }
            }
            Shape::Code { bytes, names } => {
                let value = self.number(*bytes);
                let word = names.iter().find(|(code, _)| u64::from(*code) == value);
                self.put(name, format!("{} ({value})", word.map_or("unknown", |(_, word)| word)));
            }
            Shape::Flags { bytes, flags } => {
                let value = self.number(*bytes);
                self.put(name, format!("{value:#0width$x}", width = 2 + 2 * bytes));
                for flag in *flags {
                    let set = value & u64::from(flag.mask) != 0;
                    self.put(&format!("{name}.{}", flag.name), u8::from(set).to_string());
                }
            }
            Shape::Mac => {
                let mac = Mac(self.take(6).try_into().unwrap());
                self.put(name, mac.to_string());
            }
            Shape::MapVersion => {
                let mac = Mac(self.take(6).try_into().unwrap());
                let version = MapVersion { mac, counter: self.number(4) as u32 };
                self.put(name, version.to_string());
            }
            Shape::Route => {
                let length = self.number(1) as usize;
                let bytes = self.take(length);
                let (used, text) = self.elements(bytes);
                assert_eq!(used, length, "{name} is all route");
                self.put(name, text);
            }
            Shape::PortSet => {
                let bits = self.take(32);
                let is_in = |port: &usize| bits[port / 8] >> (port % 8) & 1 == 1;
                let ports: Vec<String> = (0..256).filter(is_in).map(|port| port.to_string()).collect();
                self.put(name, if ports.is_empty() { "none".to_owned() } else { ports.join(",") });
            }
            Shape::Bytes(count) => {
                let bytes = self.take(*count);
                self.bytes(name, bytes);
            }
            Shape::CountedBytes => {
                let bytes = self.counted(name);
                self.bytes(name, bytes);
            }
            Shape::CountedText => {
                let bytes = self.counted(name);
                self.put(name, String::from_utf8(bytes.to_vec()).unwrap());
            }
            Shape::Room => {
                let count = self.number(2) as usize;
                self.put(name, count.to_string());
                assert!(self.take(count).iter().all(|&byte| byte == 0), "{name} is all zeros");
            }
            Shape::Zeros(count) => {
                assert!(self.take(*count).iter().all(|&byte| byte == 0), "{name} is all zeros");
            }
            Shape::Record(record) => self.record(record),
            Shape::List(record) => {
                let count = self.number(1);
                self.put(&format!("{name}.count"), count.to_string());
                (0..count).for_each(|_| self.record(record));
            }
            Shape::Optional(shape) => {
                let present = self.number(1);
                self.put(&format!("{name}.present"), present.to_string());
                if present == 1 {
                    self.field(name, shape);
                }
            }
            Shape::Choice(variants) => {
                let code = self.take(1)[0];
                let variant = variants.iter().find(|variant| variant.code == code).unwrap();
                self.put(name, format!("{} ({code})", variant.record.title()));
                self.record(variant.record);
            }
            Shape::Ethernet => {
                let ethernet = self.take(self.rest.len());
                self.carried = ethernet
                    .split_at_checked(14)
                    .filter(|(head, _)| head[12..] == [0x88, 0xb5])
                    .map(|cut| cut.1);
            }
        }
    }

    /// How many bytes of route elements stand at the front, and what they are.
    fn elements(&self, bytes: &[u8]) -> (usize, String) {
        let (mut at, mut shown) = (0, Vec::new());
        while let Some(&first) = bytes.get(at).filter(|&&first| first >= 0x80) {
            let element = ELEMENTS.iter().find(|element| element.first.contains(&first)).unwrap();
            shown.push(match element.kind {
                ElementKind::Relative => (i16::from(first & 0x3f) - i16::from(first & 0x20) * 2).to_string(),
                ElementKind::Absolute => format!("@{}", bytes[at + 1]),
                ElementKind::Identify => "?".to_owned(),
            });
            at += element.bytes;
        }
        (at, if shown.is_empty() { "-".to_owned() } else { shown.join(",") })
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(count);
        self.rest = rest;
        head
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn counted(&mut self, name: &str) -> &'a [u8] {
        let length = self.number(2);
        self.put(&format!("{name}.length"), length.to_string());
        self.take(length as usize)
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            self.put(name, digits.join(":"));
        }
    }

    fn put(&mut self, name: &str, value: String) {
        self.values.push((name.to_owned(), value));
    }
}

/// Calls `see` with the full name of each field that the tables have, and the field.
fn each_field(record: &'static Record, see: &mut impl FnMut(String, &'static Field)) {
    for field in record.fields {
        see(format!("{}.{}", record.name, field.name), field);
        match field.shape {
            Shape::Record(below) | Shape::List(below) => each_field(below, see),
            Shape::Choice(variants) => variants.iter().for_each(|variant| each_field(variant.record, see)),
            _ => {}
        }
    }
}

#[test]
fn names_are_those_of_filters_and_no_two_fields_share_one() {
    static WHOLE: FrameLayout = FRAME;
    let mut fields = BTreeMap::new();
    let mut see = |name: String, field: &'static Field| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        assert!(name.chars().all(is_plain), "{name}");
        assert!(field.about.is_ascii() && !field.about.ends_with('.'), "{name}: {}", field.about);
        // What an agent says of itself stands in several messages.
        let before = fields.insert(name.clone(), field.about);
        assert!(before.is_none_or(|about| about == field.about), "{name} is the name of two fields");
    };
    for record in [&WHOLE.header, &WHOLE.stamp, &WHOLE.signature, &WHOLE.end] {
        each_field(record, &mut see);
    }
    WHOLE.bodies.iter().for_each(|body| each_field(body.record, &mut see));
    assert!(fields.len() > 60, "{fields:?}");
}

fn with_route(route: &Route, frame: &[u8]) -> Vec<u8> {
    [route.as_bytes(), frame].concat()
}

proptest! {
    #[test]
    fn of_any_message_the_tables_say_what_the_codec_says(
        route in route(),
        message in message(),
        sealed in any::<Option<[u64; 2]>>(),
        stamped in any::<Option<(u64, u8, u8, [u8; 32])>>(),
        padding in 0..64usize,
    ) {
        let key = Key::new(7, [9; 32]);
        let mut frame = match sealed {
            None => message.encode(),
            Some([sequence, answers]) => message.encode_sealed(Seal { key: &key, sequence, answers }),
        };
        if let (true, Some((tag, ports, arrival, bits))) = (frame[5] & FRAME.stamp_mask != 0, stamped) {
            Stamp { tag, ports, arrival, carriers: bits.into() }.write(&mut frame[frame::HEADER_BYTES..]);
        }
        frame.resize(frame.len() + padding, 0xa5);
        let payload = with_route(&route, &frame);
        prop_assert_eq!(Walk::of_payload(&payload), field_values::of_payload(&payload));
    }

    #[test]
    fn of_any_users_frame_the_tables_say_what_the_codec_says(
        (there, way_back) in (route(), route()),
        token in any::<u64>(),
        ethernet in proptest::collection::vec(0..0x88_u8, 0..200),
    ) {
        let data = Data { token, way_back, ethernet: &ethernet }.encode().unwrap();
        let payload = with_route(&there, &data);
        prop_assert_eq!(Walk::of_payload(&payload), field_values::of_payload(&payload));
    }

    #[test]
    fn of_any_check_the_tables_say_what_the_codec_says(
        (there, way_back, message) in (route(), route(), message()),
        wanted_bytes in 0..9000usize,
    ) {
        let message: Message = message;
        let macs = (Mac::from_position(1), Mac::from_position(2));
        prop_assume!(message.encode().len() < 8000);
        let check = Data::carry(5, &way_back, macs, &message.encode(), wanted_bytes).unwrap();
        let payload = with_route(&there, &check);
        prop_assert_eq!(Walk::of_payload(&payload), field_values::of_payload(&payload));
    }

    #[test]
    fn of_any_hello_the_tables_say_what_the_codec_says(there in route(), hello in any_hello()) {
        let hello: Hello = hello;
        let payload = with_route(&there, &hello.encode());
        prop_assert_eq!(Walk::of_payload(&payload), field_values::of_payload(&payload));
    }

    #[test]
    fn of_any_notice_the_tables_say_what_the_codec_says(
        there in route(),
        (token, tag, port) in any::<(u64, u64, u8)>(),
    ) {
        let payload = with_route(&there, &Undeliverable { token, tag, port }.encode());
        prop_assert_eq!(Walk::of_payload(&payload), field_values::of_payload(&payload));
    }
}
