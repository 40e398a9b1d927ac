//! One question for a path, in two steps: which node has the name, and which path leads there.

use crate::mad::sa::{Gid, PathRecord, RECORD_BYTES, Rmpp, SaAttribute, SaMad, SaMethod, SaStatus};

/// Where a path is to lead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// To the node that has this name.
    Name(String),
    /// To the port that has this GID.
    Gid(Gid),
    /// To the port that has this LID.
    Lid(u16),
}

/// What became of a question for a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundPath {
    /// This path leads there.
    Path(PathRecord),
    /// No node has this name, or no port this GID or LID.
    Nobody,
    /// There is such a node or port, but no path leads there.
    NoPath,
    /// Several nodes have this name.
    Several,
    /// No administration could be asked, or the one that was asked has not answered.
    Unavailable,
}

/// The longest name of a node, in bytes.
const MAX_NAME_BYTES: usize = 64;
const DESCRIPTION_AT: usize = 44;
const LOCAL_PORT_AT: usize = 40;
const DESCRIPTION: u64 = 1 << 14;
const LOCAL_PORT: u64 = 1 << 12;
/// The port whose path is told of a node with several ports.
const FIRST_PORT: u8 = 1;

#[derive(Debug)]
enum Step {
    /// Asks which port the node with the first of these names has. The other names are tried if no node has
    /// the first.
    Node { names: Vec<String>, is_of_first_port: bool },
    /// Asks which path leads there.
    Path,
}

/// A question under way.
#[derive(Debug)]
pub(super) struct Inquiry {
    step: Step,
    from_lid: u16,
    is_by_lid: bool,
    /// The request to send now. Its transaction is set when it is sent.
    pub(super) request: SaMad,
}

impl Inquiry {
    /// A question for the path from a LID of this port to a destination. The error is an outcome that is
    /// known without asking. A node may be named by the first word of its description, if the rest is as in
    /// this node's own description.
    pub(super) fn new(
        from_lid: u16,
        own_description: &str,
        destination: &Destination,
    ) -> Result<Self, FoundPath> {
        match destination {
            Destination::Name(name) => {
                let ending = own_description.split_once(' ').map(|(_, rest)| format!("{name} {rest}"));
                let mut names: Vec<String> = std::iter::once(name.clone()).chain(ending).collect();
                names.retain(|name| (1..=MAX_NAME_BYTES).contains(&name.len()));
                let request = node_request(names.first().ok_or(FoundPath::Nobody)?, false);
                let step = Step::Node { names, is_of_first_port: false };
                Ok(Self { step, from_lid, is_by_lid: false, request })
            }
            Destination::Gid(gid) => Ok(Self {
                step: Step::Path,
                from_lid,
                is_by_lid: false,
                request: path_request(from_lid, |record| {
                    record.destination = *gid;
                    PathRecord::DESTINATION
                }),
            }),
            Destination::Lid(lid) => Ok(Self {
                step: Step::Path,
                from_lid,
                is_by_lid: true,
                request: path_request_to_lid(from_lid, *lid),
            }),
        }
    }

    /// Takes the answer to the request. Returns the outcome, or `None` if there is more to ask.
    pub(super) fn take(&mut self, answer: &SaMad) -> Option<FoundPath> {
        match &self.step {
            Step::Node { .. } => self.take_node(answer),
            Step::Path if answer.status == 0 => Some(FoundPath::Path(PathRecord::parse(&answer.data))),
            Step::Path if is(answer, SaStatus::InvalidGid) => Some(FoundPath::Nobody),
            // Whether a LID exists shows only when a path to it is asked for.
            Step::Path
                if self.is_by_lid && (is(answer, SaStatus::NoRecords) || is(answer, SaStatus::Invalid)) =>
            {
                Some(FoundPath::Nobody)
            }
            Step::Path if is(answer, SaStatus::NoRecords) => Some(FoundPath::NoPath),
            Step::Path => Some(FoundPath::Unavailable),
        }
    }

    fn take_node(&mut self, answer: &SaMad) -> Option<FoundPath> {
        let Step::Node { names, is_of_first_port } = &mut self.step else { return None };
        if answer.status == 0 {
            let lid = u16::from_be_bytes([answer.data[0], answer.data[1]]);
            self.request = path_request_to_lid(self.from_lid, lid);
            self.step = Step::Path;
            return None;
        }
        if is(answer, SaStatus::TooManyRecords) && !*is_of_first_port {
            *is_of_first_port = true;
        } else if is(answer, SaStatus::NoRecords) && !*is_of_first_port {
            names.remove(0);
        } else {
            // If several ports have the name and not exactly one of them is the first port of its node, they
            // are of different nodes.
            let is_several = is(answer, SaStatus::TooManyRecords) || is(answer, SaStatus::NoRecords);
            return Some(if is_several { FoundPath::Several } else { FoundPath::Unavailable });
        }
        let Some(name) = names.first() else { return Some(FoundPath::Nobody) };
        self.request = node_request(name, *is_of_first_port);
        None
    }
}

fn is(answer: &SaMad, status: SaStatus) -> bool {
    answer.status == status.code()
}

/// A request to the administration, without the number of its transaction.
pub(super) fn request(method: SaMethod, attribute: SaAttribute, mask: u64, record: &[u8]) -> SaMad {
    let mad = SaMad {
        method,
        status: 0,
        tid: 0,
        attribute,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 0,
        offset: 0,
        mask,
        data: [0; RECORD_BYTES],
    };
    mad.with_record(record)
}

/// A request for the record of the node with this name, or for that of its first port.
fn node_request(name: &str, is_of_first_port: bool) -> SaMad {
    let mut record = [0; 108];
    let text = name.as_bytes();
    record[DESCRIPTION_AT..DESCRIPTION_AT + text.len()].copy_from_slice(text);
    record[LOCAL_PORT_AT] = FIRST_PORT;
    let mask = if is_of_first_port { DESCRIPTION | LOCAL_PORT } else { DESCRIPTION };
    request(SaMethod::Get, SaAttribute::NodeRecord, mask, &record)
}

/// A request for one path along which answers can come back. `to` names the destination, and returns the
/// component by which it does.
fn path_request(from_lid: u16, to: impl FnOnce(&mut PathRecord) -> u64) -> SaMad {
    let mut record =
        PathRecord { source_lid: from_lid, is_reversible: true, count: 1, ..PathRecord::default() };
    let mask = PathRecord::SOURCE_LID | PathRecord::REVERSIBLE | PathRecord::COUNT | to(&mut record);
    request(SaMethod::Get, SaAttribute::PathRecord, mask, &record.emit())
}

fn path_request_to_lid(from_lid: u16, lid: u16) -> SaMad {
    path_request(from_lid, |record| {
        record.destination_lid = lid;
        PathRecord::DESTINATION_LID
    })
}
