//! What the service replies.

use super::{
    Address, COUNTERS, ENTRY_BYTES, EndpointInfo, Entry, EntryFlags, HEADER_BYTES, Header, Malformed, Opcode,
    PathRecord, Status, bytes_at,
};

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The request failed; the reply is a header alone.
    Failed(Status),
    /// A path.
    Path {
        /// The bits of its entry: [`EntryFlags::PATH`], or those of the path that was asked for.
        flags: EntryFlags,
        /// The path.
        path: PathRecord,
        /// The source that the service chose, if the client named none.
        source: Option<Address>,
    },
    /// Counters: errors, resolved, no data, addresses asked for, addresses found in the cache, routes asked for, routes
    /// found in the cache.
    Counters([u64; COUNTERS]),
    /// An endpoint.
    Endpoint(EndpointInfo),
    /// The number of the last change, of which three bytes travel. The reply is a header alone.
    Changed(u32),
}

impl Reply {
    /// The bytes of a reply with counters.
    const COUNTERS_BYTES: usize = HEADER_BYTES + COUNTERS * 8;

    /// Whether a reply of this opcode can be this long.
    pub(super) fn has_length(opcode: Opcode, bytes: usize) -> bool {
        bytes == HEADER_BYTES
            || match opcode {
                Opcode::RESOLVE => [1, 2].iter().any(|entries| HEADER_BYTES + entries * ENTRY_BYTES == bytes),
                Opcode::COUNTERS => bytes == Self::COUNTERS_BYTES,
                Opcode::CHANGED => false,
                _ => EndpointInfo::has_length(bytes),
            }
    }

    fn status(&self) -> Status {
        match self {
            Self::Failed(status) => *status,
            Self::Path { .. } | Self::Counters(_) | Self::Endpoint(_) | Self::Changed(_) => Status::SUCCESS,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Failed(_) | Self::Changed(_) => HEADER_BYTES,
            Self::Path { source, .. } => HEADER_BYTES + ENTRY_BYTES * (1 + usize::from(source.is_some())),
            Self::Counters(_) => Self::COUNTERS_BYTES,
            Self::Endpoint(endpoint) => endpoint.bytes(),
        }
    }

    /// Appends the reply to the request with this header to `out`.
    pub fn emit(&self, to: Header, out: &mut Vec<u8>) {
        let mut header = to.reply(self.status(), self.bytes() as u16);
        match self {
            Self::Counters(_) => header.data[0] = COUNTERS as u8,
            Self::Changed(number) => {
                let [_, a, b, c] = number.to_be_bytes();
                header.data = [a, b, c];
            }
            Self::Failed(_) | Self::Path { .. } | Self::Endpoint(_) => {}
        }
        header.emit(out);
        match self {
            Self::Failed(_) | Self::Changed(_) => {}
            Self::Path { flags, path, source } => {
                Entry::of_path(*flags, path).emit(out);
                if let Some(source) = source {
                    Entry::of_address(EntryFlags::SOURCE, source).emit(out);
                }
            }
            Self::Counters(counters) => counters.iter().for_each(|count| out.extend(count.to_be_bytes())),
            Self::Endpoint(endpoint) => endpoint.emit(out),
        }
    }

    /// Reads a reply, whose length [`reply_bytes`](super::reply_bytes) has told.
    ///
    /// # Errors
    /// If the bytes are no reply.
    pub fn parse(bytes: &[u8]) -> Result<(Header, Self), Malformed> {
        let length = super::reply_bytes(bytes)?.ok_or(Malformed::CutOff)?;
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Malformed::CutOff)?;
        let header = Header::parse(header);
        let rest = bytes.get(HEADER_BYTES..length).unwrap_or_default();
        if !header.status.is_success() {
            return Ok((header, Self::Failed(header.status)));
        }
        if header.opcode == Opcode::CHANGED {
            let [a, b, c] = header.data;
            return Ok((header, Self::Changed(u32::from_be_bytes([0, a, b, c]))));
        }
        if rest.is_empty() {
            return Err(Malformed::Length { opcode: header.code(), bytes: header.length });
        }
        let reply = match header.opcode {
            Opcode::RESOLVE => Self::parse_path(rest)?,
            Opcode::COUNTERS => {
                Self::Counters(std::array::from_fn(|at| u64::from_be_bytes(bytes_at(rest, at * 8))))
            }
            _ => Self::Endpoint(EndpointInfo::parse(rest)),
        };
        Ok((header, reply))
    }

    fn parse_path(rest: &[u8]) -> Result<Self, Malformed> {
        let mut entries = Entry::parse_all(rest);
        let first = entries.next().ok_or(Malformed::CutOff)?;
        let path = first.path().ok_or(Malformed::Entry(first.kind.0))?;
        let source = match entries.next() {
            None => None,
            Some(entry) => match entry.address() {
                Some(address) if entry.flags.has(EntryFlags::SOURCE) => Some(address),
                _ => return Err(Malformed::Entry(entry.kind.0)),
            },
        };
        Ok(Self::Path { flags: first.flags, path, source })
    }
}
