//! What a client asks.

use super::{
    Address, ENTRY_BYTES, Entry, EntryFlags, EntryType, HEADER_BYTES, Header, MOST_ENTRIES, Malformed,
    Opcode, PathRecord, Status,
};

/// Which path is sought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought {
    /// To a name or an address, from a source or from what the service finds best.
    Destination {
        /// The source, if one was named.
        source: Option<Address>,
        /// The destination.
        destination: Address,
    },
    /// Along a path of which some fields are known: LIDs, GIDs, or all.
    Path(PathRecord),
}

/// A question for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which path is sought.
    pub sought: Sought,
    /// The bits of the entry that is the destination or the path. If that entry is the source as well,
    /// [`Sought::Destination`] says so, and no bit here.
    pub flags: EntryFlags,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A question for a path.
    Resolve(Question),
    /// A question that cannot be answered, and the status that says why.
    Unresolvable(Status),
    /// The counters of an endpoint.
    Counters {
        /// The number of the endpoint, from 1; 0 for all together.
        endpoint: u8,
        /// The endpoint's address, which counts before the number; or the status that says why it is none.
        source: Option<Result<Address, Status>>,
    },
    /// An endpoint and its addresses.
    Endpoint {
        /// The number of the endpoint, from 1.
        endpoint: u8,
        /// The port that it must have; 0 for any.
        port: u8,
        /// Which of its addresses, [`MOST_ADDRESSES`](super::MOST_ADDRESSES) at a time; 0 for the first. `ibacm` and its clients know no more
        /// than these.
        page: u8,
    },
    /// Whether something may be answered otherwise than at the change of this number; 0 asks for the number of now. The
    /// reply comes when there is another, or after a while with the same.
    Changed {
        /// The number, of which three bytes travel.
        seen: u32,
    },
}

impl Request {
    /// Whether a request of this opcode can be this long.
    pub(super) fn has_length(opcode: Opcode, bytes: usize) -> bool {
        let entries = bytes.checked_sub(HEADER_BYTES).filter(|rest| rest % ENTRY_BYTES == 0);
        let Some(entries) = entries.map(|rest| rest / ENTRY_BYTES) else { return false };
        match opcode {
            Opcode::RESOLVE => entries <= MOST_ENTRIES,
            Opcode::COUNTERS => entries <= 1,
            _ => entries == 0,
        }
    }

    /// Reads a request, whose length [`request_bytes`](super::request_bytes) has told.
    ///
    /// # Errors
    /// If the bytes are no request.
    pub fn parse(bytes: &[u8]) -> Result<(Header, Self), Malformed> {
        let length = super::request_bytes(bytes)?.ok_or(Malformed::CutOff)?;
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Malformed::CutOff)?;
        let header = Header::parse(header);
        let mut entries = Entry::parse_all(bytes.get(HEADER_BYTES..length).unwrap_or_default());
        let [first, second, third] = header.data;
        let request = match header.opcode {
            Opcode::RESOLVE => Self::resolve(entries),
            Opcode::COUNTERS => {
                let source = entries.next().map(|entry| entry.address().ok_or(Status::SOURCE_TYPE));
                Self::Counters { endpoint: second, source }
            }
            Opcode::CHANGED => Self::Changed { seen: u32::from_be_bytes([0, first, second, third]) },
            _ => Self::Endpoint { endpoint: first, port: second, page: third },
        };
        Ok((header, request))
    }

    /// Takes entries for the one destination and the one source that there may be.
    fn resolve(entries: impl Iterator<Item = Entry>) -> Self {
        let (mut source, mut destination) = (None, None);
        for (nth, entry) in entries.enumerate() {
            if let Some(path) = entry.path().filter(|_| nth == 0) {
                return Self::Resolve(Question { sought: Sought::Path(path), flags: entry.flags });
            }
            if entry.flags.has(EntryFlags::SOURCE) && source.replace(entry).is_some() {
                return Self::Unresolvable(Status::SOURCE_ADDRESS);
            }
            if entry.flags.has(EntryFlags::DESTINATION) && destination.replace(entry).is_some() {
                return Self::Unresolvable(Status::DESTINATION_ADDRESS);
            }
        }
        let Some(to) = destination else { return Self::Unresolvable(Status::DESTINATION_TYPE) };
        let source = source.map(|entry| entry.address().ok_or(Status::SOURCE_TYPE)).transpose();
        match (source, to.address()) {
            (Err(status), _) => Self::Unresolvable(status),
            (Ok(_), None) => Self::Unresolvable(Status::DESTINATION_TYPE),
            (Ok(source), Some(destination)) => Self::Resolve(Question {
                sought: Sought::Destination { source, destination },
                flags: to.flags.without(EntryFlags::SOURCE),
            }),
        }
    }

    /// The request as it travels.
    ///
    /// # Errors
    /// If it is [`Self::Unresolvable`], which no request says of itself.
    pub fn to_bytes(&self, tid: u64) -> Result<Vec<u8>, Malformed> {
        let (opcode, data, entries) = match self {
            Self::Resolve(Question { sought: Sought::Path(path), flags }) => {
                (Opcode::RESOLVE, [0; 3], vec![Entry::of_path(*flags, path)])
            }
            Self::Resolve(Question { sought: Sought::Destination { source, destination }, flags }) => {
                let source = source.iter().map(|it| Entry::of_address(EntryFlags::SOURCE, it));
                let flags = flags.without(EntryFlags::SOURCE).and(EntryFlags::DESTINATION);
                let to = Entry::of_address(flags, destination);
                (Opcode::RESOLVE, [0; 3], source.chain([to]).collect())
            }
            Self::Unresolvable(_) | Self::Counters { source: Some(Err(_)), .. } => {
                return Err(Malformed::Entry(EntryType(0).0));
            }
            Self::Counters { endpoint, source } => {
                let source = source.iter().flatten();
                let entries = source.map(|it| Entry::of_address(EntryFlags::SOURCE, it));
                (Opcode::COUNTERS, [0, *endpoint, 0], entries.collect::<Vec<_>>())
            }
            Self::Endpoint { endpoint, port, page } => {
                (Opcode::ENDPOINT, [*endpoint, *port, *page], Vec::new())
            }
            Self::Changed { seen } => {
                let [_, a, b, c] = seen.to_be_bytes();
                (Opcode::CHANGED, [a, b, c], Vec::new())
            }
        };
        let length = HEADER_BYTES + ENTRY_BYTES * entries.len();
        let mut out = Vec::with_capacity(length);
        Header { data, ..Header::request(opcode, length as u16, tid) }.emit(&mut out);
        entries.iter().for_each(|entry| entry.emit(&mut out));
        Ok(out)
    }
}
