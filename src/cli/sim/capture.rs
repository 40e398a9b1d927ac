//! `mapper sim --pcapng`: the frames at the interfaces of all hosts as a file for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use mapper_machine::link::ethernet::Marking;
use mapper_proto::Mac;
use mapper_proto::map::Fabric;
use mapper_sim::world::{CapturedFrame, Direction, FrameSink, TraceError};

use crate::pcapng::{self, Packet, PcapngWriter};

/// Writes frames with the Ethernet header that daemons give them.
pub(super) struct Capture {
    file: String,
    out: PcapngWriter<BufWriter<File>>,
    marking: Marking,
}

impl Capture {
    /// Creates the file, and describes in it an interface for each host of the fabric.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn create(path: &Path, fabric: &Fabric) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        let begin = || -> io::Result<_> {
            let mut out = PcapngWriter::begin(BufWriter::new(File::create(path)?))?;
            for (host, label) in fabric.map.hosts.iter().zip(&fabric.hosts) {
                let says_more = label.description != label.name;
                out.interface(&label.name, if says_more { &label.description } else { "" }, host.mac)?;
            }
            Ok(out)
        };
        match begin() {
            Ok(out) => Ok(Self { file, out, marking: Marking::default() }),
            Err(source) => Err(TraceError::Io { file, source }),
        }
    }

    fn checked(&self, written: io::Result<()>) -> Result<(), TraceError> {
        written.map_err(|source| TraceError::Io { file: self.file.clone(), source })
    }
}

impl FrameSink for Capture {
    fn frame(&mut self, frame: &CapturedFrame<'_>) -> Result<(), TraceError> {
        let (direction, source) = match frame.direction {
            Direction::Sent { from } => (pcapng::Direction::Outbound, from),
            // The sender of a frame that arrives is a crossbar, and simulated crossbars have no addresses.
            Direction::Received => (pcapng::Direction::Inbound, Mac::default()),
        };
        let header = self.marking.header(source);
        let written = self.out.packet(&Packet {
            interface: frame.host,
            at: Duration::from_nanos(frame.at.as_nanos()),
            direction,
            parts: [&header, frame.payload],
            comments: frame.remarks,
        });
        self.checked(written)
    }

    fn end(&mut self) -> Result<(), TraceError> {
        let flushed = self.out.flush();
        self.checked(flushed)
    }
}
