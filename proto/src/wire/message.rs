//! Mapper messages and the frames that carry them.

use super::cursor::{Unreadable, WireReader, Write};
use super::frame::{self, Frame, FrameError, FrameKind};
use super::{Probe, ProbeKind, Reply, Scout, Seal, Stamp};

/// A mapper message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// See [`Probe`].
    Probe(Probe),
    /// See [`Scout`].
    Scout(Scout),
    /// See [`Reply`].
    Reply(Reply),
}

/// The first byte of a body, which says what message it is.
pub(super) mod code {
    pub(crate) const PROBE: u8 = 1;
    pub(crate) const SCOUT: u8 = 2;
    pub(crate) const REPLY: u8 = 3;
}

impl Message {
    /// How many bytes longer a frame is for its authentication trailer.
    pub const SEAL_BYTES: usize = frame::AUTH_BYTES;

    /// The frame that carries this message, from its type on. The frame of an identify probe has
    /// an empty stamp area.
    ///
    /// What goes beyond the bounds that the fields name is cut off.
    pub fn encode(&self) -> Vec<u8> {
        frame::build(FrameKind::Mapper, self.wants_stamp(), None, |body| self.write(body))
    }

    /// The frame that carries this message, as [`encode`](Self::encode) makes it, with an authentication trailer.
    pub fn encode_sealed(&self, seal: Seal<'_>) -> Vec<u8> {
        frame::build(FrameKind::Mapper, self.wants_stamp(), Some(seal), |body| self.write(body))
    }

    /// The message in the frame that begins with these bytes, and the stamp that an xbar wrote
    /// into it. Padding may follow the frame.
    ///
    /// # Errors
    /// As [`Frame::parse`]; [`FrameError::UnknownKind`] if the frame carries no message,
    /// [`FrameError::Malformed`] if its fields make no sense, [`FrameError::BadCrc`] also if the
    /// stamp is damaged.
    pub fn decode(frame: &[u8]) -> Result<(Self, Option<Stamp>), FrameError> {
        Self::read_frame(&Frame::parse(frame)?)
    }

    /// The message in a frame, and the stamp that an xbar wrote into it. An authentication trailer
    /// is not looked at.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn read_frame(frame: &Frame<'_>) -> Result<(Self, Option<Stamp>), FrameError> {
        if frame.kind() != FrameKind::Mapper {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        let message = Self::read_body(frame.body())?;
        if message.wants_stamp() != frame.has_stamp_area() {
            return Err(FrameError::Malformed);
        }
        Ok((message, frame.stamp()?))
    }

    /// The message in the body of a frame.
    ///
    /// # Errors
    /// [`FrameError::Malformed`] if its fields make no sense.
    pub fn read_body(body: &[u8]) -> Result<Self, FrameError> {
        Ok(Self::read(body)?)
    }

    /// Whether a tagged xbar is asked to write into the frame.
    fn wants_stamp(&self) -> bool {
        matches!(self, Self::Probe(Probe { kind: ProbeKind::Identify, .. }))
    }

    fn write(&self, body: &mut Vec<u8>) {
        match self {
            Self::Probe(probe) => {
                body.put_u8(code::PROBE);
                probe.write(body);
            }
            Self::Scout(scout) => {
                body.put_u8(code::SCOUT);
                scout.write(body);
            }
            Self::Reply(reply) => {
                body.put_u8(code::REPLY);
                reply.write(body);
            }
        }
    }

    fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = WireReader::new(body);
        let message = match reader.u8()? {
            code::PROBE => Self::Probe(Probe::read(&mut reader)?),
            code::SCOUT => Self::Scout(Scout::read(&mut reader)?),
            code::REPLY => Self::Reply(Reply::read(&mut reader)?),
            _ => return Err(Unreadable),
        };
        reader.finish()?;
        Ok(message)
    }
}

#[cfg(test)]
pub(super) mod tests;
