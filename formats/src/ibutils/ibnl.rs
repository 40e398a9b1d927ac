//! A system's description, as ibutils reads it from a `.ibnl` file: boards, chips, and what joins them.

use mapper_proto::map::{LaneRate, LinkSpeed};

use crate::Malformed;

/// What one `.ibnl` file describes.
#[derive(Debug)]
pub(super) struct Description {
    /// Boards that others are made of.
    pub boards: Vec<Board>,
    /// The system.
    pub top: Board,
}

/// A board, or the whole system.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// What it is called; behind a colon stands which variant it is, as in `LEAF:12x`.
    pub names: Vec<String>,
    pub parts: Vec<Part>,
}

/// What is on a board.
#[derive(Debug)]
pub(super) struct Part {
    pub name: String,
    pub kind: PartKind,
    pub cables: Vec<PartCable>,
}

#[derive(Debug)]
pub(super) enum PartKind {
    Switch {
        ports: u8,
    },
    Adapter {
        ports: u8,
    },
    /// Another board, by its name.
    Board(String),
}

/// What a port of a part leads to.
#[derive(Debug)]
pub(super) struct PartCable {
    pub port: String,
    pub said: SaidSpeed,
    /// A part of the same board, or nothing for a connector of the board.
    pub part: Option<String>,
    /// The part's port, or the connector's name.
    pub to: String,
}

/// What is said of a cable's speed, each half of it for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SaidSpeed {
    lanes: Option<u8>,
    rate: Option<LaneRate>,
}

impl SaidSpeed {
    /// Where this says nothing, what another says.
    pub(super) fn or(self, other: Self) -> Self {
        Self { lanes: self.lanes.or(other.lanes), rate: self.rate.or(other.rate) }
    }

    /// The speed. Of the half that nobody says ibutils takes 4x or 2.5G.
    pub(super) fn speed(self) -> Option<LinkSpeed> {
        let is_said = self != Self::default();
        let speed = LinkSpeed { lanes: self.lanes.unwrap_or(4), rate: self.rate.unwrap_or(LaneRate::Sdr) };
        is_said.then_some(speed)
    }
}

/// A line `P1 -4x-5G-> MT23108 H-1 P1`: the port, what is said of the speed, and the words behind the arrow.
pub(super) fn cable(content: &str) -> Option<(&str, SaidSpeed, Vec<&str>)> {
    let (front, to) = content.split_once("->")?;
    let (port, speed) = front.split_once([' ', '\t']).unwrap_or((front, ""));
    let mut said = SaidSpeed::default();
    for word in speed.split(['-', ' ', '\t']).filter(|word| !word.is_empty()) {
        match word.strip_suffix('G').and_then(LaneRate::of_signalled_gbps) {
            Some(rate) => said.rate = Some(rate),
            None => said.lanes = Some(LinkSpeed::of_lanes(word, LaneRate::Sdr)?.lanes),
        }
    }
    Some((port, said, to.split_ascii_whitespace().collect()))
}

/// The system in a text.
pub(super) fn parse(text: &str) -> Result<Description, Malformed> {
    let mut boards: Vec<Board> = Vec::new();
    let mut top: Option<usize> = None;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default().trim();
        let (word, rest) = content.split_once([' ', '\t']).unwrap_or((content, ""));
        match word {
            "" => {}
            "SYSTEM" | "TOPSYSTEM" => {
                if word == "TOPSYSTEM" && top.replace(boards.len()).is_some() {
                    return Err(Malformed::at(line, "a second TOPSYSTEM; expected one in a file"));
                }
                let names = rest.split(',').map(|name| name.trim().to_owned()).collect();
                boards.push(Board { names, parts: Vec::new() });
            }
            _ => part_or_cable(line, content, boards.last_mut())?,
        }
    }
    let Some(top) = top else {
        return Err(Malformed::at(text.lines().count().max(1), "no TOPSYSTEM; expected one in a file"));
    };
    let top = boards.remove(top);
    Ok(Description { boards, top })
}

fn part_or_cable(line: usize, content: &str, board: Option<&mut Board>) -> Result<(), Malformed> {
    let expected = || {
        let problem = "expected `SYSTEM`, `TOPSYSTEM`, `NODE SW 24 DEVICE U1`, `SUBSYSTEM BOARD leaf1`, \
                       or a cable such as `1 -4x-5G-> P1`";
        Malformed::at(line, problem)
    };
    let board = board.ok_or_else(expected)?;
    if let Some((port, said, to)) = cable(content) {
        let part = board.parts.last_mut().ok_or_else(expected)?;
        let (to_part, to) = match to[..] {
            [connector] => (None, connector),
            [part, port] => (Some(part.to_owned()), port),
            _ => return Err(expected()),
        };
        part.cables.push(PartCable { port: port.to_owned(), said, part: to_part, to: to.to_owned() });
        return Ok(());
    }
    let words: Vec<&str> = content.split_ascii_whitespace().collect();
    let (name, kind) = match words[..] {
        ["NODE", kind, ports, _, name] => {
            let ports = ports.parse().ok().filter(|&ports| ports > 0).ok_or_else(expected)?;
            let kind = match kind {
                "SW" => PartKind::Switch { ports },
                "CA" | "HCA" => PartKind::Adapter { ports },
                _ => return Err(expected()),
            };
            (name, kind)
        }
        ["SUBSYSTEM", of, name] => (name, PartKind::Board(of.to_owned())),
        // An attribute of a part, such as `U1=isChaBma`.
        [attribute] if attribute.contains('=') => return Ok(()),
        _ => return Err(expected()),
    };
    board.parts.push(Part { name: name.to_owned(), kind, cables: Vec::new() });
    Ok(())
}
