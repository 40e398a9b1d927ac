//! Systems of a `.topo` file taken apart to chips, and the cables between these.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_proto::map::{Fabric, HostLabel, Xbar, XbarLabel, host_type};

use super::ibnl::{Board, Description, PartKind, SaidSpeed};
use crate::Malformed;
use crate::draft::{Draft, HostNode, ListedKind, ListedNode, tag_xbars};

/// How deep boards may be in boards.
const MAX_DEPTH: usize = 8;

/// The chips of all systems.
#[derive(Default)]
pub(super) struct Chips {
    chips: Vec<Chip>,
    /// Boards and chips that were made, which bounds the work.
    made: u64,
}

struct Chip {
    line: usize,
    name: String,
    ports: u8,
    is_switch: bool,
    ends: Vec<ChipEnd>,
}

struct ChipEnd {
    line: usize,
    port: u8,
    peer: Socket,
    said: SaidSpeed,
}

/// A chip's port, and what was said of its speed on the way out to a connector.
#[derive(Clone, Copy)]
pub(super) struct Socket {
    chip: usize,
    port: u8,
    said: SaidSpeed,
}

/// What is told of a system where it is mentioned.
pub(super) struct Mention<'a> {
    pub line: usize,
    pub name: &'a str,
    /// The variant of each board that is not the usual one.
    pub variants: &'a BTreeMap<String, String>,
}

impl Chips {
    /// Makes a system, and gives its connectors.
    pub(super) fn system(
        &mut self,
        mention: &Mention<'_>,
        description: &Description,
    ) -> Result<BTreeMap<String, Socket>, Malformed> {
        let mut known = BTreeSet::new();
        let connectors = self.board(mention, description, &description.top, "", 0, &mut known)?;
        match mention.variants.keys().find(|board| !known.contains(*board)) {
            None => Ok(connectors),
            Some(board) => {
                let problem =
                    format!("`{}` has no board `{board}`; its boards: {}", mention.name, list(&known));
                Err(Malformed::at(mention.line, problem))
            }
        }
    }

    /// Makes what is on a board at `path` in its system, and gives the board's connectors.
    fn board(
        &mut self,
        mention: &Mention<'_>,
        description: &Description,
        board: &Board,
        path: &str,
        depth: usize,
        known: &mut BTreeSet<String>,
    ) -> Result<BTreeMap<String, Socket>, Malformed> {
        let mut sockets: BTreeMap<&str, BTreeMap<String, Socket>> = BTreeMap::new();
        for part in &board.parts {
            self.made += 1;
            if self.made > MAX_XBARS + MAX_HOSTS || depth > MAX_DEPTH {
                let problem =
                    format!("`{}` holds too many boards and chips, or boards too deep", mention.name);
                return Err(Malformed::at(mention.line, problem));
            }
            let path = if path.is_empty() { part.name.clone() } else { format!("{path}/{}", part.name) };
            let of_part = match &part.kind {
                PartKind::Switch { ports } => self.chip(mention, &path, *ports, true),
                PartKind::Adapter { ports } => self.chip(mention, &path, *ports, false),
                PartKind::Board(of) => {
                    known.insert(path.clone());
                    match variant(mention, description, &path, of)? {
                        Some(board) => self.board(mention, description, board, &path, depth + 1, known)?,
                        None => BTreeMap::new(),
                    }
                }
            };
            sockets.insert(&part.name, of_part);
        }
        self.join(mention.line, board, &sockets);
        Ok(connectors(board, &sockets))
    }

    fn chip(
        &mut self,
        mention: &Mention<'_>,
        path: &str,
        ports: u8,
        is_switch: bool,
    ) -> BTreeMap<String, Socket> {
        let (line, chip) = (mention.line, self.chips.len());
        let name = format!("{}/{path}", mention.name);
        self.chips.push(Chip { line, name, ports, is_switch, ends: Vec::new() });
        (1..=ports)
            .map(|port| (port.to_string(), Socket { chip, port, said: SaidSpeed::default() }))
            .collect()
    }

    /// Joins the parts of a board. What leads to or from a connector that a variant has not is left out, as
    /// ibutils does: a board may describe the cables of all its variants.
    fn join(&mut self, line: usize, board: &Board, sockets: &BTreeMap<&str, BTreeMap<String, Socket>>) {
        for part in &board.parts {
            for cable in &part.cables {
                let from = sockets[part.name.as_str()].get(&cable.port);
                let to = cable.part.as_deref().and_then(|part| sockets.get(part)?.get(&cable.to));
                if let (Some(from), Some(to)) = (from, to) {
                    self.cable(line, [*from, *to], cable.said);
                }
            }
        }
    }

    /// Puts a cable between two ports.
    pub(super) fn cable(&mut self, line: usize, [from, to]: [Socket; 2], said: SaidSpeed) {
        for (here, peer) in [(from, to), (to, from)] {
            let end = ChipEnd { line, port: here.port, peer, said: here.said.or(said) };
            self.chips[here.chip].ends.push(end);
        }
    }

    /// The fabric, in which chips are called as ibutils calls them: `SYSTEM/board/U1`.
    pub(super) fn finish(self) -> Result<Fabric, Malformed> {
        let mut draft = Draft::default();
        let names: Vec<String> = self.chips.iter().map(|chip| chip.name.clone()).collect();
        for chip in self.chips {
            let kind = match chip.is_switch {
                true => ListedKind::Xbar(
                    XbarLabel { description: chip.name.clone(), ..Default::default() },
                    Xbar { ports: chip.ports, tag: None, ports_known: true },
                ),
                false => ListedKind::Host(HostNode {
                    label: HostLabel {
                        description: chip.name.clone(),
                        node_port: 1,
                        node_ports: chip.ports,
                        ..Default::default()
                    },
                    host_type: host_type::INFINIBAND,
                    mac: None,
                    interfaces: BTreeMap::new(),
                }),
            };
            draft.node(ListedNode { line: chip.line, name: chip.name, ports: (1, chip.ports), kind })?;
            for ChipEnd { line, port, peer, said } in chip.ends {
                draft.end(line, u64::from(port), &names[peer.chip], u64::from(peer.port))?;
                said.speed().into_iter().for_each(|speed| draft.link_speed(speed));
            }
        }
        let mut fabric = draft.finish()?;
        tag_xbars(&mut fabric);
        Ok(fabric)
    }
}

/// The board that is in a place, in the variant that the file asks for; none if its place is empty (`X`).
fn variant<'a>(
    mention: &Mention<'_>,
    description: &'a Description,
    path: &str,
    of: &str,
) -> Result<Option<&'a Board>, Malformed> {
    let name = match mention.variants.get(path).map(String::as_str) {
        Some("X") => return Ok(None),
        Some(variant) => format!("{of}:{variant}"),
        None => of.to_owned(),
    };
    let board = description.boards.iter().find(|board| board.names.contains(&name));
    board.map(Some).ok_or_else(|| {
        let system = &description.top.names[0];
        let problem = format!("system {system} has no board `{name}`, which `{}/{path}` is", mention.name);
        Malformed::at(mention.line, problem)
    })
}

/// What the connectors of a board lead to.
fn connectors(board: &Board, sockets: &BTreeMap<&str, BTreeMap<String, Socket>>) -> BTreeMap<String, Socket> {
    let mut connectors = BTreeMap::new();
    for part in &board.parts {
        for cable in part.cables.iter().filter(|cable| cable.part.is_none()) {
            if let Some(socket) = sockets[part.name.as_str()].get(&cable.port) {
                let said = socket.said.or(cable.said);
                connectors.insert(cable.to.clone(), Socket { said, ..*socket });
            }
        }
    }
    connectors
}

/// Names in a row.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
