//! The stamp of a tagged xbar: who it is, by which port the frame came in, which ports have carrier.
//!
//! ```text
//!  0     8       9         10        42       46
//! +-----+-------+---------+---------+--------+
//! | tag | ports | arrival | carrier | CRC-32 |
//! +-----+-------+---------+---------+--------+
//! ```
//!
//! An area of zeros has not been stamped.

use crate::PortSet;
use std::ops::Range;

use super::cursor::WireReader;
use super::frame::FrameError;

/// Bytes of the stamp area.
pub const STAMP_BYTES: usize = 46;

mod field {
    use super::Range;

    pub(super) const TAG: Range<usize> = 0..8;
    pub(super) const PORTS: usize = 8;
    pub(super) const ARRIVAL: usize = 9;
    pub(super) const CARRIER: Range<usize> = 10..42;
    pub(super) const CRC: Range<usize> = 42..46;
}

/// What a tagged xbar writes into a frame that asks it to identify itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// The xbar's 64-bit identity.
    pub tag: u64,
    /// How many ports it has.
    pub ports: u8,
    /// The port by which the frame came in.
    pub arrival: u8,
    /// The ports that have carrier.
    pub carriers: PortSet,
}

impl Stamp {
    /// Whether this port has carrier.
    pub const fn has_carrier(&self, port: u8) -> bool {
        self.carriers.contains(port)
    }

    /// Writes the stamp over the first [`STAMP_BYTES`] of `area`; a shorter area is left as it is.
    pub fn write(&self, area: &mut [u8]) {
        let Some(area) = area.first_chunk_mut::<STAMP_BYTES>() else { return };
        let Self { tag, ports, arrival, carriers } = self;
        area[field::TAG].copy_from_slice(&tag.to_be_bytes());
        area[field::PORTS] = *ports;
        area[field::ARRIVAL] = *arrival;
        area[field::CARRIER].copy_from_slice(&carriers.to_bytes());
        let crc = crc32fast::hash(&area[..field::CRC.start]);
        area[field::CRC].copy_from_slice(&crc.to_be_bytes());
    }

    /// The stamp at the front of `area`; `None` if the area is all zeros.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] if the area is too short, [`FrameError::BadCrc`] if the stamp is
    /// damaged.
    pub fn read(area: &[u8]) -> Result<Option<Self>, FrameError> {
        let area = area.first_chunk::<STAMP_BYTES>().ok_or(FrameError::Truncated)?;
        if area.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let mut reader = WireReader::new(area);
        let (tag, ports, arrival) = (reader.u64()?, reader.u8()?, reader.u8()?);
        let mut carriers = [0; PortSet::BYTES];
        carriers.copy_from_slice(reader.bytes(field::CARRIER.len())?);
        if reader.u32()? != crc32fast::hash(&area[..field::CRC.start]) {
            return Err(FrameError::BadCrc);
        }
        Ok(Some(Self { tag, ports, arrival, carriers: carriers.into() }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp() -> impl Strategy<Value = Stamp> {
        (any::<u64>(), any::<u8>(), any::<u8>(), any::<[u8; 32]>())
            .prop_map(|(tag, ports, arrival, bits)| Stamp { tag, ports, arrival, carriers: bits.into() })
    }

    #[test]
    fn zeros_are_no_stamp() {
        assert_eq!(Stamp::read(&[0; STAMP_BYTES]), Ok(None));
        assert_eq!(Stamp::read(&[0; STAMP_BYTES - 1]), Err(FrameError::Truncated));
    }

    #[test]
    fn a_stamp_of_zeros_is_a_stamp() {
        let zero = Stamp { tag: 0, ports: 0, arrival: 0, carriers: PortSet::NONE };
        let mut area = [0xa5; STAMP_BYTES];
        zero.write(&mut area);
        assert_eq!(Stamp::read(&area), Ok(Some(zero)));
    }

    #[test]
    fn carrier_bits_are_counted_from_port_0() {
        let carriers = PortSet::from_iter([1, 255]);
        let mut area = [0; STAMP_BYTES];
        Stamp { tag: 1, ports: 8, arrival: 1, carriers }.write(&mut area);
        assert_eq!((area[field::CARRIER.start], area[field::CARRIER.end - 1]), (0b10, 0x80));
    }

    proptest! {
        #[test]
        fn writing_covers_every_byte_and_no_more(stamp in stamp()) {
            let mut dirty = [0xa5; STAMP_BYTES + 1];
            let mut clean = [0; STAMP_BYTES + 1];
            stamp.write(&mut dirty);
            stamp.write(&mut clean);
            prop_assert_eq!(&dirty[..STAMP_BYTES], &clean[..STAMP_BYTES]);
            prop_assert_eq!(dirty[STAMP_BYTES], 0xa5);
            prop_assert_eq!(Stamp::read(&dirty), Ok(Some(stamp)));
        }

        #[test]
        fn a_flipped_bit_is_never_missed(stamp in stamp(), at in 0..STAMP_BYTES, bit in 0..8u8) {
            let mut area = [0; STAMP_BYTES];
            stamp.write(&mut area);
            area[at] ^= 1 << bit;
            prop_assert_eq!(Stamp::read(&area), Err(FrameError::BadCrc));
        }
    }
}
