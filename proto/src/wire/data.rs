//! Users' Ethernet frames as they travel, and what a crossbar says that cannot send one on.
//!
//! ```text
//!  0       8     9          9 + n
//! +-------+-----+----------+----------------+
//! | token |  n  | way back | Ethernet frame |      the body of a data frame
//! +-------+-----+----------+----------------+
//!
//!  0       8     16     17
//! +-------+-----+------+
//! | token | tag | port |      the body of a notice
//! +-------+-----+------+
//! ```
//!
//! Elements that were obeyed are gone from a frame, so a data frame carries the whole way back: the
//! xbar that cannot send it on uses its last part.
//!
//! Checks of paths travel as data frames, too, so that whatever keeps users' frames from passing keeps
//! them: a mapper frame stands behind an Ethernet header as a user's packet does, zeros behind it make
//! up the length, and the first bit of the token is set, which in a user's frame is clear.

use super::cursor::{Unreadable, WireReader, Write};
use super::frame::{self, Frame, FrameError, FrameKind, MAX_BODY_BYTES};
use super::{Element, PROTOCOL_VERSION, Route};
use crate::Mac;

/// The first bit of the token of a check; see [`Data::carry`].
const CHECK_BIT: u64 = 1 << 63;
/// The token of a carried frame that no crossbar sends a notice about.
const QUIET_TOKEN: u64 = CHECK_BIT | Data::QUIET;
/// Bytes of an Ethernet header.
const ETHERNET_HEADER_BYTES: usize = 14;
/// The EtherType of what a check carries: one of the two for experiments (IEEE 802). What a frame
/// carries is told by its token, not by this.
const CARRIED_ETHERTYPE: u16 = 0x88b5;

/// A user's Ethernet frame on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Means something to its sender alone, who finds it again in an [`Undeliverable`]. Whoever
    /// cannot guess it cannot forge one.
    pub token: u64,
    /// The way from the last xbar back to the sender, an element for each xbar.
    pub way_back: Route,
    /// The user's frame, from its destination address on.
    pub ethernet: &'a [u8],
}

impl<'a> Data<'a> {
    /// Bytes that a data frame has beside its routes, forth and back, and the user's frame.
    pub const OVERHEAD_BYTES: usize = frame::HEADER_BYTES + 8 + 1 + frame::CRC_BYTES;

    /// The token with which [`Self::carry`] makes a frame whose sender does not want to know if it cannot be delivered.
    pub const QUIET: u64 = 0;

    /// Most bytes of the way back and the user's frame together.
    pub const MAX_PAYLOAD_BYTES: usize = MAX_BODY_BYTES - 9;

    /// The frame that carries it, from its type on.
    ///
    /// # Errors
    /// [`FrameError::Oversized`] if it is too long for a frame.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        if self.ethernet.len() + self.way_back.as_bytes().len() + 9 > MAX_BODY_BYTES {
            return Err(FrameError::Oversized);
        }
        Ok(frame::build(FrameKind::Data, false, None, |body| {
            body.put_u64(self.token);
            body.put_route(&self.way_back);
            body.extend_from_slice(self.ethernet);
        }))
    }

    /// What is in a data frame that begins at its type. Padding may follow.
    ///
    /// # Errors
    /// As [`Frame::parse`]; [`FrameError::UnknownKind`] if it is no data frame,
    /// [`FrameError::Malformed`] if its way back is no route.
    pub fn decode(frame: &'a [u8]) -> Result<Self, FrameError> {
        let frame = Frame::parse(frame)?;
        if frame.kind() != FrameKind::Data {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        Self::read_body(frame.body())
    }

    /// How long the frame is that carries so much.
    pub fn len_bytes(way_back: &Route, ethernet: &[u8]) -> usize {
        Self::OVERHEAD_BYTES + way_back.as_bytes().len() + ethernet.len()
    }

    /// Writes the same frame as [`Self::encode`] to the front of `out`, without allocating.
    /// Returns how long it is.
    ///
    /// # Errors
    /// [`FrameError::Oversized`] if it is too long for a frame or for `out`.
    pub fn write(token: u64, way_back: &Route, ethernet: &[u8], out: &mut [u8]) -> Result<usize, FrameError> {
        let way_back = way_back.as_bytes();
        let body_bytes = 9 + way_back.len() + ethernet.len();
        let length = frame::HEADER_BYTES + body_bytes + frame::CRC_BYTES;
        if body_bytes > MAX_BODY_BYTES || length > out.len() {
            return Err(FrameError::Oversized);
        }
        let (covered, crc) = out[..length].split_at_mut(length - frame::CRC_BYTES);
        let (header, body) = covered.split_at_mut(frame::HEADER_BYTES);
        header[frame::field::KIND].copy_from_slice(&FrameKind::Data.number().to_be_bytes());
        header[frame::field::VERSION] = PROTOCOL_VERSION;
        header[frame::field::FLAGS] = 0;
        header[frame::field::BODY_LENGTH].copy_from_slice(&(body_bytes as u16).to_be_bytes());
        body[..8].copy_from_slice(&token.to_be_bytes());
        body[8] = way_back.len() as u8;
        body[9..9 + way_back.len()].copy_from_slice(way_back);
        body[9 + way_back.len()..].copy_from_slice(ethernet);
        crc.copy_from_slice(&crc32fast::hash(covered).to_be_bytes());
        Ok(length)
    }

    /// The user's frame in a data frame that begins at its type, without allocating. The way back
    /// is skipped, not checked.
    ///
    /// # Errors
    /// As [`Self::decode`]; [`FrameError::Malformed`] if it is a check.
    pub fn ethernet_of(frame: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let frame = Frame::parse(frame)?;
        if frame.kind() != FrameKind::Data {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        let mut reader = WireReader::new(frame.body());
        if Self::is_check_token(reader.u64()?) {
            return Err(FrameError::Malformed);
        }
        let way_back_bytes = reader.u8()?;
        reader.bytes(way_back_bytes.into())?;
        Ok(reader.rest())
    }

    /// The data frame that carries a mapper frame from one host to the other as if a user had sent it,
    /// made up to `wanted_bytes` with zeros. Only the 63 low bits of the token travel.
    ///
    /// # Errors
    /// [`FrameError::Oversized`] if it is too long for a frame.
    pub fn carry(
        token: u64,
        way_back: &Route,
        (to, from): (Mac, Mac),
        mapper_frame: &[u8],
        wanted_bytes: usize,
    ) -> Result<Vec<u8>, FrameError> {
        let room = wanted_bytes.min(frame::MAX_FRAME_BYTES).saturating_sub(Self::carrying_bytes(way_back, 0));
        let mut ethernet = Vec::with_capacity(ETHERNET_HEADER_BYTES + room.max(mapper_frame.len()));
        ethernet.put_mac(to);
        ethernet.put_mac(from);
        ethernet.put_u16(CARRIED_ETHERTYPE);
        ethernet.extend_from_slice(mapper_frame);
        ethernet.put_zeros(room.saturating_sub(mapper_frame.len()));
        let most = Self::MAX_PAYLOAD_BYTES - way_back.as_bytes().len();
        ethernet.truncate(most.max(ETHERNET_HEADER_BYTES + mapper_frame.len()));
        Data { token: token | CHECK_BIT, way_back: way_back.clone(), ethernet: &ethernet }.encode()
    }

    /// How long the data frame is that carries a mapper frame of so many bytes, not made up.
    pub fn carrying_bytes(way_back: &Route, mapper_bytes: usize) -> usize {
        Self::OVERHEAD_BYTES + way_back.as_bytes().len() + ETHERNET_HEADER_BYTES + mapper_bytes
    }

    /// The token of a user's frame with these bits.
    pub const fn user_token(bits: u64) -> u64 {
        bits & !CHECK_BIT
    }

    /// Whether a token that travelled is that of the check that was sent with these bits.
    pub const fn is_same_check(sent: u64, token: u64) -> bool {
        Self::is_check_token(token) && Self::user_token(sent) == Self::user_token(token)
    }

    /// Whether a notice or data frame with this token is about a check, or is one.
    pub const fn is_check_token(token: u64) -> bool {
        token & CHECK_BIT != 0
    }

    /// Whether the frame that begins with these bytes is a data frame that carries a mapper frame.
    /// Nothing is checked but that.
    pub fn is_check(frame: &[u8]) -> bool {
        FrameKind::of(frame) == Ok(FrameKind::Data)
            && frame.get(frame::HEADER_BYTES).is_some_and(|first| first & 0x80 != 0)
    }

    /// The mapper frame that a data frame carries, from its type on; zeros may follow.
    ///
    /// # Errors
    /// [`FrameError::UnknownKind`] if it carries a user's frame, [`FrameError::Malformed`] if it makes no
    /// sense.
    pub fn carried_in(frame: &Frame<'a>) -> Result<&'a [u8], FrameError> {
        let mut reader = WireReader::new(frame.body());
        if frame.kind() != FrameKind::Data || !Self::is_check_token(reader.u64()?) {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        let way_back_bytes = reader.u8()?;
        reader.bytes(way_back_bytes.into())?;
        reader.bytes(ETHERNET_HEADER_BYTES)?;
        Ok(reader.rest())
    }

    pub(super) fn read_body(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = WireReader::new(body);
        Ok(Self { token: reader.u64()?, way_back: reader.route()?, ethernet: reader.rest() })
    }
}

/// What a tagged xbar tells the sender of a data frame whose port has no carrier, or has lost it just after the frame left.
///
/// It is smaller than any Ethernet frame, carries no authentication, as xbars have no key, and
/// must be believed for its token alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Undeliverable {
    /// The token of the data frame.
    pub token: u64,
    /// The xbar's tag.
    pub tag: u64,
    /// The port that has no carrier.
    pub port: u8,
}

impl Undeliverable {
    /// The frame that carries it, from its type on.
    pub fn encode(&self) -> Vec<u8> {
        let Self { token, tag, port } = *self;
        frame::build(FrameKind::Undeliverable, false, None, |body| {
            body.put_u64(token);
            body.put_u64(tag);
            body.put_u8(port);
        })
    }

    /// The frame of this notice behind the route by which it travels.
    pub(super) fn encode_with_route(&self, way_home: &Route) -> Vec<u8> {
        [way_home.as_bytes(), &self.encode()].concat()
    }

    /// What is in a notice that begins at its type. Padding may follow.
    ///
    /// # Errors
    /// As [`Frame::parse`]; [`FrameError::UnknownKind`] if it is no such notice.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let frame = Frame::parse(frame)?;
        if frame.kind() != FrameKind::Undeliverable {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        Self::read_body(frame.body())
    }

    pub(super) fn read_body(body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = WireReader::new(body);
        let notice = Self { token: reader.u64()?, tag: reader.u64()?, port: reader.u8()? };
        reader.finish()?;
        Ok(notice)
    }
}

/// The token of the data frame in `payload` (route and frame, as it arrived at an xbar), and the
/// way from that xbar's port of arrival back to its sender; `None` if the sender wants no notice. Nothing but what this
/// needs is checked.
pub(super) fn token_and_way_home(payload: &[u8]) -> Option<(u64, Route)> {
    let (left, length) = Route::parse(payload).ok()?;
    let mut reader = WireReader::new(&payload[length..]);
    read_token_and_way_home(&mut reader, left.elements().count()).ok()
}

fn read_token_and_way_home(reader: &mut WireReader<'_>, left: usize) -> Result<(u64, Route), Unreadable> {
    let header = reader.bytes(frame::HEADER_BYTES)?;
    if header[frame::field::KIND] != FrameKind::Data.number().to_be_bytes() {
        return Err(Unreadable);
    }
    let token = reader.u64()?;
    if token == QUIET_TOKEN {
        return Err(Unreadable);
    }
    // The way back has an element for each xbar of the route. Those from here on are not needed.
    let way_back: Vec<Element> = reader.route()?.elements().collect();
    let home = way_back.get(left..).ok_or(Unreadable)?;
    Ok((token, home.iter().copied().collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn route(deltas: &[i8]) -> Route {
        deltas.iter().map(|&delta| Element::Relative(delta)).collect()
    }

    #[test]
    fn an_xbar_finds_the_way_home_from_where_the_frame_is() {
        // Along 1, 2, 3 there; back along -3, -2, -1.
        let data = Data { token: 7, way_back: route(&[-3, -2, -1]), ethernet: b"hello" };
        let frame = data.encode().unwrap();
        let at = |left: &[i8]| token_and_way_home(&[route(left).as_bytes(), &frame].concat());
        assert_eq!(at(&[1, 2, 3]), Some((7, Route::new())));
        assert_eq!(at(&[2, 3]), Some((7, route(&[-1]))));
        assert_eq!(at(&[3]), Some((7, route(&[-2, -1]))));
        assert_eq!(at(&[0, 1, 2, 3]), None, "longer than the way back");
        let macs = (Mac::from_position(1), Mac::from_position(2));
        let quiet = Data::carry(Data::QUIET, &data.way_back, macs, b"answer", 0).unwrap();
        assert_eq!(token_and_way_home(&[route(&[3]).as_bytes(), &quiet].concat()), None);
        let notice = Undeliverable { token: 7, tag: 8, port: 9 }.encode();
        assert_eq!(token_and_way_home(&[route(&[1]).as_bytes(), &notice].concat()), None);
        assert_eq!(token_and_way_home(&frame[..12]), None);
    }

    #[test]
    fn a_notice_comes_back_and_is_smaller_than_any_ethernet_frame() {
        let notice = Undeliverable { token: u64::MAX, tag: 0x0102_0304_0506_0708, port: 255 };
        let mut bytes = notice.encode();
        assert!(bytes.len() <= 46);
        bytes.resize(46, 0xa5);
        assert_eq!(Undeliverable::decode(&bytes), Ok(notice));
        assert!(matches!(Data::decode(&bytes), Err(FrameError::UnknownKind(_))));
    }

    #[test]
    fn a_check_looks_like_a_users_frame_and_is_told_by_its_token() {
        let (to, from) = (Mac::from_position(1), Mac::from_position(2));
        let (back, message) = (route(&[-3, 1]), Undeliverable { token: 7, tag: 8, port: 9 }.encode());
        for wanted in [0, 100, 600, 9000, MAX_BODY_BYTES, 100_000] {
            let check = Data::carry(5, &back, (to, from), &message, wanted).unwrap();
            let least = Data::len_bytes(&back, &[0; 14]) + message.len();
            assert!(check.len() >= wanted.min(9000).max(least) && check.len() <= wanted.max(least));
            assert!(Data::is_check(&check));
            assert_eq!(Data::ethernet_of(&check), Err(FrameError::Malformed), "never delivered");
            let carried = Data::carried_in(&Frame::parse(&check).unwrap()).unwrap();
            assert!(carried.starts_with(&message) && carried[message.len()..].iter().all(|&byte| byte == 0));
            let data = Data::decode(&check).unwrap();
            assert_eq!((&data.ethernet[..6], &data.ethernet[6..12]), (&to.0[..], &from.0[..]));
            assert_eq!(data.way_back, back);
            let user = Data { token: Data::user_token(data.token), ..data }.encode().unwrap();
            assert!(!Data::is_check(&user) && Data::ethernet_of(&user).is_ok());
            assert!(Data::carried_in(&Frame::parse(&user).unwrap()).is_err());
            assert_eq!(user.len(), check.len());
        }
        assert!(Data::carry(5, &back, (to, from), &[0; 10_000], 0).is_err());
    }

    proptest! {
        #[test]
        fn data_comes_back(
            token in (0..=u64::MAX >> 1),
            deltas in proptest::collection::vec(-31..=31i8, 0..20),
            ethernet in proptest::collection::vec(any::<u8>(), 0..2000),
            padding in 0..64usize,
        ) {
            let data = Data { token, way_back: route(&deltas), ethernet: &ethernet };
            let mut bytes = data.encode().unwrap();
            let overhead = Data::OVERHEAD_BYTES + data.way_back.as_bytes().len();
            prop_assert_eq!(bytes.len(), overhead + ethernet.len());
            prop_assert_eq!(bytes.len(), Data::len_bytes(&data.way_back, &ethernet));
            let mut written = vec![0xa5; bytes.len()];
            let length = Data::write(token, &data.way_back, &ethernet, &mut written);
            prop_assert_eq!(length, Ok(bytes.len()));
            prop_assert_eq!(&written, &bytes);
            written.pop();
            let cut = Data::write(token, &data.way_back, &ethernet, &mut written);
            prop_assert_eq!(cut, Err(FrameError::Oversized));
            bytes.resize(bytes.len() + padding, 0xa5);
            prop_assert_eq!(Data::ethernet_of(&bytes), Ok(&ethernet[..]));
            prop_assert_eq!(Data::decode(&bytes), Ok(data));
        }

        #[test]
        fn any_bytes_are_no_trouble(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _some_or_none = token_and_way_home(&bytes);
            let _is_or_not = Data::is_check(&bytes);
            let _carried = Frame::parse(&bytes).map(|frame| Data::carried_in(&frame).is_ok());
        }
    }
}
