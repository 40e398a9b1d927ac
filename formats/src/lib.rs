//! Fabrics as files.
//!
//! Readers are told apart by what a file says, never by its name:
//!
//! | file | told by | written |
//! |---|---|---|
//! | `mapper.map/1` JSON ([`json`]) | begins with `{` | exactly |
//! | GM `.map` | first line is two numbers | ports counted from 0; no tags, levels, GUIDs |
//! | `opensm-subnet.lst`, ibdiagnet `.lst` | a line begins with `{ SW`, `{ CA` or `{ RT` | no |
//! | `ibnetdiscover -p` | a line begins with `SW`, `CA` or `RT`, two numbers and a GUID | no |
//! | CSV of cables: UFM's NDT, NetBox's export, a spreadsheet | the first line names the columns of both ends | cables alone |
//! | ibutils `.topo`, with `.ibnl` files beside it | a line with `->` before any quotation mark | no |
//! | ibnetdiscover output, ibsim netlist | the rest | ports counted from 1; no levels |
//!
//! A fabric of InfiniBand that was explored becomes one by `discovered`.
//!
//! Written only: drawings for Graphviz and as SVG, the page of `mapper view` in one file, GraphML, and Slurm's
//! `topology.conf`.
//!
//! Tables of fabrics: forwarding tables ([`lfts`]), the service level of each pair ([`sls`]), and hosts'
//! source routes ([`routes`]). Hops that tables are made from: [`lid_matrix`]. What users set of engines:
//! [`guid_files`].
//!
//! A host's name is its node's id in the file. Its address is the low 48 bits of its GUID, or
//! what the file calls its address; without one, or where it is taken, `02:00:00:xx:xx:xx` by
//! position. No file makes a reader panic, and what it may hold is bounded.

pub mod ftree_order;
pub mod gm_routes;
pub mod guid_files;
pub mod json;
mod layout;
pub mod lfts;
pub mod lid_matrix;
pub mod page;
pub mod path_records;
pub mod routes;
pub mod sls;
pub mod tiers;
pub mod torus_file;

mod blocks;
mod cable_list;
mod diagnostics;
pub mod discovered;
mod dot;
mod draft;
mod gm_map;
mod graphml;
mod ibnetdiscover;
mod ibutils;
mod link_list;
mod loaded;
mod port_list;
mod slurm;
mod subnet_lst;
mod svg;

pub use loaded::Loaded;
pub use svg::plot_loads;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use mapper_fabric::{self, SpecError, identity};
use mapper_proto::map::Fabric;
use mapper_proto::quote;
use thiserror::Error;

/// Longest file that is read, in bytes. A fabric of 200,000 hosts needs about half of it.
pub const MAX_FILE_BYTES: u64 = 128 << 20;

/// The formats that fabrics are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// As ibnetdiscover prints it; ibsim reads it too.
    Ibnetdiscover,
    /// GM's `.map`.
    GmMap,
    /// `mapper.map/1`.
    Json,
    /// A drawing for Graphviz.
    Dot,
    /// A drawing.
    Svg,
    /// A page that shows the fabric in a browser, in one file.
    Html,
    /// Slurm's `topology.conf` for its tree plugin.
    Slurm,
    /// Slurm's `topology.yaml`: for each rail a tree, and leaves as blocks.
    SlurmYaml,
    /// A graph for programs that analyse or draw such.
    Graphml,
    /// A CSV of cables.
    Csv,
}

impl FileFormat {
    /// The format that a file's name asks for by its extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "net" | "topo" | "txt" | "ibnetdiscover" => Some(Self::Ibnetdiscover),
            "map" => Some(Self::GmMap),
            "json" => Some(Self::Json),
            "dot" | "gv" => Some(Self::Dot),
            "svg" => Some(Self::Svg),
            "html" | "htm" => Some(Self::Html),
            "conf" => Some(Self::Slurm),
            "yaml" | "yml" => Some(Self::SlurmYaml),
            "graphml" => Some(Self::Graphml),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Why there is no fabric to be had.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {MAX_FILE_BYTES} bytes, which no fabric needs", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file is malformed.
    #[error("{file}:{place}: {problem}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, or the JSON value.
        place: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// Tables cannot name the ports of the fabric, whatever the file says.
    #[error(transparent)]
    PortZero(#[from] lfts::PortZero),
    /// A generator spec is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// What was given is neither a file nor a spec.
    #[error(
        "`{argument}` is neither a file nor a generator spec; expected the path of an ibnetdiscover, ibsim, \
         OpenSM .lst, ibutils .topo, GM .map or mapper.map/1 file, a CSV of cables, or a spec like clos:hosts=128,ports=16"
    )]
    NoFabric {
        /// What was given.
        argument: String,
    },
}

/// What is wrong with a text, and where. The file's name joins it in [`parse`].
#[derive(Debug)]
struct Malformed {
    place: String,
    problem: String,
}

impl Malformed {
    /// What is wrong at a line.
    fn at(line: usize, problem: impl Into<String>) -> Self {
        Self::within(line.to_string(), problem)
    }

    /// What is wrong with a JSON text. Its column tells more than its line where a program wrote it all in one line.
    fn json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let problem = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        match column {
            0 => Self::at(line, problem),
            column => Self::within(format_args!("{line}, column {column}"), problem),
        }
    }

    /// The same, as the error of the file with this name.
    fn in_file(self, name: &str) -> FormatError {
        let Self { place, problem } = self;
        FormatError::Malformed { file: name.to_owned(), place, problem }
    }

    /// What is wrong within a JSON value.
    fn within(value: impl fmt::Display, problem: impl Into<String>) -> Self {
        // What a file says may be anything and of any length, in the place too: it may name an entry.
        let place = quote::harmless(&value.to_string(), quote::MAX_MESSAGE_BYTES);
        Self { place, problem: quote::harmless(&problem.into(), quote::MAX_MESSAGE_BYTES) }
    }
}

/// The fabric that `argument` means: a file's, if there is such a file, or else a generator's.
///
/// # Errors
/// If it is neither, or the file or the spec is no good.
pub fn resolve(argument: &str) -> Result<Fabric, FormatError> {
    resolve_plan(argument, None)
}

/// The plan that `argument` means: a file's, if there is such a file, or else a generator's. A list of cables may not say which
/// devices are crossbars; `found`, a fabric with devices of these names, tells then.
///
/// # Errors
/// If it is neither, or the file or the spec is no good.
pub fn resolve_plan(argument: &str, found: Option<&Fabric>) -> Result<Fabric, FormatError> {
    let path = Path::new(argument);
    if !path.exists() {
        if mapper_fabric::is_spec(argument) {
            return Ok(mapper_fabric::generate(argument)?);
        }
        if !argument.contains(['/', '.']) {
            return Err(FormatError::NoFabric { argument: argument.to_owned() });
        }
    }
    read_plan(path, found)
}

/// The fabric in a file.
///
/// # Errors
/// If it cannot be read, is too long, or is malformed; the error names the file and the line.
pub fn read_fabric(path: &Path) -> Result<Fabric, FormatError> {
    read_plan(path, None)
}

/// The plan in a file. `found` is a fabric that may know which devices of a list of cables are crossbars.
///
/// # Errors
/// If it cannot be read, is too long, or is malformed; the error names the file and the line.
pub fn read_plan(path: &Path, found: Option<&Fabric>) -> Result<Fabric, FormatError> {
    // Descriptions may be in any encoding; everything else in a file is ASCII.
    let bytes = read_bounded(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let folder =
        path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    parse_in(&path.display().to_string(), &text, folder, found)
}

/// The bytes of a file.
///
/// # Errors
/// If it cannot be read or is longer than [`MAX_FILE_BYTES`].
pub fn read_bounded(path: &Path) -> Result<Vec<u8>, FormatError> {
    let unreadable = |source| FormatError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FormatError::TooLong { path: path.to_owned() });
    }
    Ok(bytes)
}

/// The fabric in a text. `name` is what errors call the text.
///
/// # Errors
/// If it is malformed; the error names the line.
pub fn parse(name: &str, text: &str) -> Result<Fabric, FormatError> {
    parse_in(name, text, None, None)
}

/// The fabric in a text, which may need further files of the folder that it is in.
fn parse_in(
    name: &str,
    text: &str,
    folder: Option<&Path>,
    found: Option<&Fabric>,
) -> Result<Fabric, FormatError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_comment = |line: &str| line.starts_with(['#', ';']) && !cable_list::begins_with_fields(line);
    let is_text = |line: &str| !line.is_empty() && !is_comment(line) && diagnostics::begins(line) != Some(0);
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let (number, first) = lines.find(|&(_, line)| is_text(line)).unzip();
    let number = number.unwrap_or(1);
    let fabric = match first {
        None => Err(Malformed::at(1, "there is nothing in it; expected a fabric")),
        Some(line) if cable_list::begins(line) => cable_list::parse(text, number, found),
        Some(line) if subnet_lst::begins(line) => subnet_lst::parse(text),
        Some(line) if port_list::begins(line) => port_list::parse(text),
        Some(line) if line.starts_with('{') => json::parse(text),
        Some(line) if line.starts_with(|c: char| c.is_ascii_digit()) => gm_map::parse(text),
        Some(line) if is_only_written(line) => Err(Malformed::at(
            1,
            "it is in no known format; expected ibnetdiscover, ibsim, OpenSM .lst, ibutils .topo, GM .map, mapper.map/1 JSON, or a \
             CSV of cables (drawings, pages, GraphML and Slurm's files are written and not read)",
        )),
        Some(_) if ibutils::is_topo(name, text) => {
            ibutils::parse(text, &folder.map(ibutils::Systems::of_folder).unwrap_or_default())
        }
        Some(line) if cable_list::is_csv(name, line) => Err(cable_list::without_columns(number, line)),
        Some(_) => ibnetdiscover::parse(text),
    };
    fabric.map_err(|wrong| wrong.in_file(name))
}

/// Whether the first line of a text is of a format that is written and not read, or of JSON that is no object.
fn is_only_written(line: &str) -> bool {
    let first_word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    // No line of ibnetdiscover's begins with a bracket and no port in it, and none names a graph without `=` or a switch of Slurm's.
    matches!(line, "[" | "[]" | "---")
        || line.starts_with('<')
        || matches!(first_word, "graph" | "digraph" | "strict") && !line.contains('=')
        || line.starts_with("SwitchName=")
}

/// A fabric as text.
pub fn write(fabric: &Fabric, format: FileFormat) -> String {
    match format {
        FileFormat::Ibnetdiscover => ibnetdiscover::write(fabric),
        FileFormat::GmMap => gm_map::write(fabric),
        FileFormat::Json => json::write(fabric),
        FileFormat::Dot => dot::write(fabric),
        FileFormat::Svg => svg::write(fabric),
        FileFormat::Slurm => slurm::write(fabric),
        FileFormat::SlurmYaml => slurm::write_yaml(fabric),
        FileFormat::Graphml => graphml::write(fabric),
        FileFormat::Csv => cable_list::write(fabric),
        FileFormat::Html => page::of_fabric(fabric, &format!("{} hosts", fabric.map.hosts.len())),
    }
}

/// How far the port numbers of each xbar must move for a format whose ports count from `first`,
/// 0 or 1.
///
/// A port 0 in use shows that ports count from 0, and one as high as the number of ports that
/// they count from 1. If no xbar shows the wrong one, all stay as they are; if any does, all move
/// but those that show the right one (an explored map can count either way). Plain xbars, whose
/// numbers an explored map chose, and those with an identity are told apart.
fn port_shifts(fabric: &Fabric, first: u8) -> Vec<i16> {
    let map = &fabric.map;
    let is_plain = |xbar: usize| usize::from(identity(&map.xbars[xbar]).is_none());
    let mut wrong = [false; 2];
    let mut right = vec![false; map.xbars.len()];
    let cabled = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    for end in cabled.chain(map.hosts.iter().filter_map(|host| host.at)) {
        let (is_first, is_last) = (end.port == 0, end.port >= map.xbars[end.xbar as usize].ports);
        let (is_right, is_wrong) = if first == 0 { (is_first, is_last) } else { (is_last, is_first) };
        right[end.xbar as usize] |= is_right;
        wrong[is_plain(end.xbar as usize)] |= is_wrong;
    }
    let shift = if first == 0 { -1 } else { 1 };
    let moves = |(xbar, right): (usize, bool)| wrong[is_plain(xbar)] && !right;
    right.into_iter().enumerate().map(|xbar| if moves(xbar) { shift } else { 0 }).collect()
}

/// Whether a text can be a node's name in every format: short, printable, without quotation
/// marks.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= 64 && !text.contains(|c: char| c == '"' || c.is_control())
}

#[cfg(test)]
mod tests;
