//! Fabrics as ibutils describes them: a `.topo` file of systems and the cables between them, and a `.ibnl` file
//! for each kind of system, which says what chips are in it.
//!
//! `MTS2400 SL1-1` begins a system (`CFG: leaf1=12x, leaf2=X` behind it chooses variants of its boards, `X` for
//! an empty place), and `P1 -4x-5G-> MT23108 H-1 P1` below it is a cable from its connector P1. A system may
//! be mentioned only at the far end of a cable.
//!
//! `.ibnl` files are looked for beside the `.topo` file, then in the folders of `IBDM_IBNL_PATH`, which ibutils
//! takes too.

mod build;
mod ibnl;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mapper_proto::map::Fabric;

use self::build::{Chips, Mention, Socket};
use self::ibnl::Description;
use super::{FormatError, Malformed, read_bounded};

/// How many `.ibnl` files of a folder are read.
const MAX_FILES: usize = 1000;

/// Whether a text is a `.topo` file: cables are arrows, and nothing is in quotes before the first. A file of systems
/// without a cable is told by its name; others of that name, with quotes in them, are ibnetdiscover's.
pub(super) fn is_topo(name: &str, text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines().take_while(|line| !line.contains('"')).any(|line| line.contains("->"))
        || name.ends_with(".topo") && !lines().any(|line| line.contains('"'))
}

/// The kinds of systems that are known.
#[derive(Default)]
pub(super) struct Systems {
    descriptions: Vec<Description>,
    by_name: BTreeMap<String, usize>,
    /// What is wrong with files that cannot be used.
    unusable: Vec<FormatError>,
}

impl Systems {
    /// Those that are described in a folder, or in one that the environment names. Of two of one name the first counts.
    pub(super) fn of_folder(folder: &Path) -> Self {
        let mut systems = Self::default();
        let more = std::env::var_os("IBDM_IBNL_PATH").unwrap_or_default();
        let more: Vec<PathBuf> = std::env::split_paths(&more).filter(|path| path.is_dir()).collect();
        for folder in [folder.to_owned()].iter().chain(&more) {
            let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
            let paths = entries.map(|entry| entry.path());
            let mut paths: Vec<PathBuf> =
                paths.filter(|path| path.extension().is_some_and(|extension| extension == "ibnl")).collect();
            paths.sort_unstable();
            paths.iter().take(MAX_FILES).for_each(|path| systems.read(path));
        }
        systems
    }

    fn read(&mut self, path: &Path) {
        let text = read_bounded(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let added =
            text.and_then(|text| self.add(&text).map_err(|wrong| wrong.in_file(&path.display().to_string())));
        self.unusable.extend(added.err());
    }

    /// Adds what a `.ibnl` file describes.
    fn add(&mut self, text: &str) -> Result<(), Malformed> {
        let description = ibnl::parse(text)?;
        for name in &description.top.names {
            self.by_name.entry(name.clone()).or_insert(self.descriptions.len());
        }
        self.descriptions.push(description);
        Ok(())
    }

    fn find(&self, place: String, name: &str) -> Result<&Description, Malformed> {
        self.by_name.get(name).map(|&index| &self.descriptions[index]).ok_or_else(|| {
            let known = build::list(self.by_name.keys());
            let wrong = self.unusable.iter().map(|error| format!("; not usable: {error}")).collect::<String>();
            let problem = format!(
                "there is no description of system `{name}`; expected a .ibnl file with `TOPSYSTEM {name}` beside \
                 this one or in a folder of IBDM_IBNL_PATH{wrong} (known: {known})"
            );
            Malformed::within(place, problem)
        })
    }
}

/// A system as the file mentions it.
struct System<'a> {
    line: usize,
    kind: &'a str,
    variants: BTreeMap<String, String>,
}

/// A cable as the file lists it.
struct Cable<'a> {
    line: usize,
    from: (&'a str, &'a str),
    to: (&'a str, &'a str),
    said: ibnl::SaidSpeed,
}

/// The fabric in a text.
pub(super) fn parse(text: &str, known: &Systems) -> Result<Fabric, Malformed> {
    let (systems, cables) = listed(text)?;
    let mut chips = Chips::default();
    let mut connectors = BTreeMap::new();
    let mut in_order: Vec<(&&str, &System<'_>)> = systems.iter().collect();
    in_order.sort_by_key(|(_, system)| system.line);
    for (&name, System { line, kind, variants }) in in_order {
        let description = known.find(place(text, *line, kind), kind)?;
        let mention = Mention { line: *line, name, variants };
        connectors.insert(name, chips.system(&mention, description)?);
    }
    for Cable { line, from, to, said } in cables {
        let socket = |(system, connector): (&str, &str)| {
            socket(&connectors, place(text, line, connector), (system, connector))
        };
        let ends = [socket(from)?, socket(to)?];
        chips.cable(line, ends, said);
    }
    chips.finish()
}

fn socket(
    connectors: &BTreeMap<&str, BTreeMap<String, Socket>>,
    place: String,
    (system, connector): (&str, &str),
) -> Result<Socket, Malformed> {
    connectors.get(system).and_then(|known| known.get(connector)).copied().ok_or_else(|| {
        let known = connectors.get(system).map(|known| build::list(known.keys())).unwrap_or_default();
        let problem = format!("system `{system}` has no connector `{connector}`; expected one of {known}");
        Malformed::within(place, problem)
    })
}

/// Where a word of the text is: its line and column, both counted from 1.
fn place(text: &str, line: usize, word: &str) -> String {
    let offset = (word.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    match offset.and_then(|offset| text.get(..offset)).and_then(|before| before.rsplit('\n').next()) {
        Some(before) => format!("{line}, column {}", before.chars().count() + 1),
        None => line.to_string(),
    }
}

/// The systems and cables of a text.
fn listed(text: &str) -> Result<(BTreeMap<&str, System<'_>>, Vec<Cable<'_>>), Malformed> {
    let mut systems: BTreeMap<&str, System<'_>> = BTreeMap::new();
    let mut cables = Vec::new();
    let mut current = None;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let expected = || {
            let problem =
                "expected a system (`MTS2400 SL1-1`) or a cable below one (`P1 -4x-5G-> MT23108 H-1 P1`)";
            Malformed::at(line, problem)
        };
        if content.contains("->") {
            let (port, said, to) = ibnl::cable(content).ok_or_else(expected)?;
            let from = current.ok_or_else(expected)?;
            let [kind, name, to_port] = to[..] else { return Err(expected()) };
            mention(&mut systems, line, kind, name)?;
            cables.push(Cable { line, from: (from, port), to: (name, to_port), said });
            continue;
        }
        let (front, configuration) = content.split_once("CFG:").unwrap_or((content, ""));
        let words: Vec<&str> = front.split_ascii_whitespace().collect();
        let [kind, name] = words[..] else { return Err(expected()) };
        let variants = variants(configuration).ok_or_else(|| {
            Malformed::at(line, "expected a variant for each board behind CFG: `leaf1=12x, leaf2=X`")
        })?;
        mention(&mut systems, line, kind, name)?.variants.extend(variants);
        current = Some(name);
    }
    Ok((systems, cables))
}

/// The system of a name, which is of one kind wherever it is mentioned.
fn mention<'a, 'b>(
    systems: &'b mut BTreeMap<&'a str, System<'a>>,
    line: usize,
    kind: &'a str,
    name: &'a str,
) -> Result<&'b mut System<'a>, Malformed> {
    let system = systems.entry(name).or_insert_with(|| System { line, kind, variants: BTreeMap::new() });
    if system.kind != kind {
        let problem = format!("`{name}` is a {kind} here, but a {} at line {}", system.kind, system.line);
        return Err(Malformed::at(line, problem));
    }
    Ok(system)
}

/// The variant of each board that is named.
fn variants(configuration: &str) -> Option<BTreeMap<String, String>> {
    let pairs = configuration.split([',', ' ', '\t']).filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').map(|(board, of)| (board.to_owned(), of.to_owned()))).collect()
}
