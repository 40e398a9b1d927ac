//! Frames as a pcapng file: PCAP Next Generation Capture File Format, draft-ietf-opsawg-pcapng.
//!
//! The file is one section, whose numbers are little-endian. It has the section's header, an interface
//! description for each interface, then an enhanced packet block for each frame. Times are in nanoseconds,
//! and all frames are whole.

use std::io::{self, Write};
use std::time::Duration;

use mapper_proto::Mac;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;

/// The codes of options. Except for the first two, each belongs to one kind of block.
mod option {
    pub(super) const END_OF_OPTIONS: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const SECTION_USER_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(super) const INTERFACE_MAC_ADDRESS: u16 = 6;
    pub(super) const INTERFACE_TIME_RESOLUTION: u16 = 9;
    pub(super) const INTERFACE_FCS_LENGTH: u16 = 13;
    pub(super) const PACKET_FLAGS: u16 = 2;
}

/// The unit of times, as the power of ten by which a second is divided.
const NANOSECONDS: u8 = 9;

/// Which way a frame went through its interface, as the packet's flags say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It was received.
    Inbound = 1,
    /// It was sent.
    Outbound = 2,
}

/// A frame, and what the file tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The interface, counted from 0 in the order in which they were described.
    pub interface: u32,
    /// When the frame passed the interface, since the beginning of 1970.
    pub at: Duration,
    /// Which way the frame went.
    pub direction: Direction,
    /// The bytes of the frame, one part behind the other, without frame check sequence.
    pub parts: [&'a [u8]; 2],
    /// Comments that Wireshark shows with the frame.
    pub comments: &'a [String],
}

/// Writes a pcapng file block by block.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    /// The block that is being made.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file with the header of its section.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new() };
        writer.u32(BYTE_ORDER_MAGIC);
        // The version of the format is 1.0.
        writer.u16(1);
        writer.u16(0);
        // The length of the section is not known before its end, so it is given as unknown.
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(
            option::SECTION_USER_APPLICATION,
            concat!("mapper ", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        writer.end_block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Describes the next interface. All interfaces must be described before the first frame.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn interface(&mut self, name: &str, description: &str, mac: Mac) -> io::Result<()> {
        self.u16(LINKTYPE_ETHERNET);
        self.u16(0);
        // A limit of 0 says that no frame is cut off.
        self.u32(0);
        self.option(option::INTERFACE_NAME, name.as_bytes());
        if !description.is_empty() {
            self.option(option::INTERFACE_DESCRIPTION, description.as_bytes());
        }
        self.option(option::INTERFACE_MAC_ADDRESS, &mac.0);
        self.option(option::INTERFACE_TIME_RESOLUTION, &[NANOSECONDS]);
        self.option(option::INTERFACE_FCS_LENGTH, &[0]);
        self.end_block(INTERFACE_DESCRIPTION)
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let Packet { interface, at, direction, parts, comments } = packet;
        let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let length = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
        self.u32(*interface);
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
        // The original length of the frame is the same, since nothing is cut off.
        self.u32(length);
        self.u32(length);
        parts.iter().for_each(|part| self.block.extend_from_slice(part));
        self.pad();
        comments.iter().for_each(|comment| self.option(option::COMMENT, comment.as_bytes()));
        self.option(option::PACKET_FLAGS, &(*direction as u32).to_le_bytes());
        self.end_block(ENHANCED_PACKET)
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn u16(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    /// Pads the block to a multiple of four bytes, where values and blocks must end.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Adds an option to the block. A value that is too long for an option is cut off.
    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.u16(code);
        self.u16(length);
        self.block.extend_from_slice(&value[..length.into()]);
        self.pad();
    }

    /// Ends the options and writes the block: its type, its length, the block itself and its length again.
    fn end_block(&mut self, block_type: u32) -> io::Result<()> {
        self.u16(option::END_OF_OPTIONS);
        self.u16(0);
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&block_type.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_golden_bytes() {
        let mut file = Vec::new();
        let mut writer = PcapngWriter::begin(&mut file).unwrap();
        writer.interface("h1", "", Mac([2, 0, 0, 0, 0, 1])).unwrap();
        let packet = Packet {
            interface: 0,
            at: Duration::from_nanos(0x1_0000_0002),
            direction: Direction::Outbound,
            parts: [&[0xaa; 14], &[0xbb; 3]],
            comments: &["lost".to_owned()],
        };
        writer.packet(&packet).unwrap();
        // The section header is left out of the comparison, since it tells the version of the program.
        let header = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
        assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert_eq!(file[8..24], [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat());
        assert_eq!(file[header - 4..header], file[4..8]);
        let golden = "01000000 3c000000 01000000 00000000 0200 0200 68310000 0600 0600 020000000001 0000 \
                      0900 0100 09000000 0d00 0100 00000000 00000000 3c000000 \
                      06000000 48000000 00000000 01000000 02000000 11000000 11000000 \
                      aaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbb 000000 \
                      0100 0400 6c6f7374 0200 0400 02000000 00000000 48000000";
        let bytes: String = file[header..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, golden.replace(' ', ""));
    }

    #[test]
    fn blocks_follow_each_other_whatever_is_in_them() {
        let mut file = Vec::new();
        let mut writer = PcapngWriter::begin(&mut file).unwrap();
        writer.interface(&"n".repeat(70_000), "a description", Mac::default()).unwrap();
        for length in 0..9 {
            let payload = vec![7; length];
            let comments = vec!["c".repeat(length); length % 3];
            let (at, direction) = (Duration::MAX, Direction::Inbound);
            let packet = Packet { interface: 0, at, direction, parts: [&payload, &[]], comments: &comments };
            writer.packet(&packet).unwrap();
        }
        writer.flush().unwrap();
        let (mut at, mut blocks) = (0, 0);
        while at < file.len() {
            let length = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(file[at + length - 4..at + length], file[at + 4..at + 8]);
            (at, blocks) = (at + length, blocks + 1);
        }
        assert_eq!(blocks, 2 + 9);
    }
}
