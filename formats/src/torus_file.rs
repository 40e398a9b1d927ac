//! Files that state a torus: its sizes, origin, datelines, and which ports lead where.
//!
//! ```toml
//! sizes = [6, 5, 5]              # X first
//! rings = [true, true, false]
//! origin = "n0-0-0"              # the xbar at 0 in each dimension
//! datelines = [0, 3, 0]          # each just below this coordinate; 0 for a line, which has none
//! regions = [3, 5, 5]            # coordinates a region
//! ports = { x-plus = [1], x-minus = [2], y-plus = [3], y-minus = [4] }
//! ```
//!
//! All may be left out: what is, is found from the map. Xbars are told by name, ports as the fabric
//! numbers them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use mapper_proto::PortSet;
use mapper_proto::map::Fabric;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{FormatError, Malformed, read_bounded};
use mapper_routing::engines::torus::TorusStatement;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sizes: Option<Spanned<Vec<u8>>>,
    rings: Option<Spanned<Vec<bool>>>,
    origin: Option<Spanned<String>>,
    datelines: Option<Spanned<Vec<u8>>>,
    regions: Option<Spanned<Vec<u8>>>,
    ports: Option<Spanned<DirectionPorts>>,
}

/// Ports by direction.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct DirectionPorts {
    x_plus: PortList,
    x_minus: PortList,
    y_plus: PortList,
    y_minus: PortList,
    z_plus: PortList,
    z_minus: PortList,
}

/// A set of ports that is written as a list of their numbers.
#[derive(Default)]
struct PortList(PortSet);

impl<'de> Deserialize<'de> for PortList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<u8>::deserialize(deserializer).map(|ports| Self(ports.into_iter().collect()))
    }
}

impl DirectionPorts {
    /// The sets in the order of [`TorusStatement::DIRECTIONS`].
    fn sets(self) -> [PortSet; 6] {
        [self.x_plus, self.x_minus, self.y_plus, self.y_minus, self.z_plus, self.z_minus].map(|list| list.0)
    }
}

/// Reads a file that states the torus that a fabric is.
///
/// # Errors
/// If it cannot be read, is too long, or is malformed; the error names the file and the line.
pub fn read(path: &Path, fabric: &Fabric) -> Result<TorusStatement, FormatError> {
    let bytes = read_bounded(path)?;
    parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes), fabric)
}

/// The torus that a text states a fabric to be. `name` is what errors call the text.
///
/// # Errors
/// If it is malformed; the error names the line.
pub fn parse(name: &str, text: &str, fabric: &Fabric) -> Result<TorusStatement, FormatError> {
    statement(name, text, fabric).map_err(|wrong| wrong.in_file(name))
}

fn statement(name: &str, text: &str, fabric: &Fabric) -> Result<TorusStatement, Malformed> {
    let at = |span: Range<usize>| 1 + text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
    let file: File = toml::from_str(text).map_err(|error| {
        let line = at(error.span().unwrap_or(text.len()..text.len()));
        Malformed::at(line, error.message().trim_end().replace('\n', ", "))
    })?;
    let lines = [
        ("sizes", file.sizes.as_ref().map(Spanned::span)),
        ("rings", file.rings.as_ref().map(Spanned::span)),
        ("datelines", file.datelines.as_ref().map(Spanned::span)),
        ("regions", file.regions.as_ref().map(Spanned::span)),
        ("ports", file.ports.as_ref().map(Spanned::span)),
        ("origin", file.origin.as_ref().map(Spanned::span)),
    ];
    let lines = lines.into_iter().filter_map(|(key, span)| Some((key, at(span?))));
    let lines: BTreeMap<&'static str, usize> = lines.collect();
    let bad = |key: &str, why: String| {
        Malformed::at(lines.get(key).copied().unwrap_or(1), format!("`{key}`: {why}"))
    };
    let origin = file.origin.map(|origin| {
        let place = fabric.xbars.iter().position(|label| label.name == *origin.get_ref());
        let missing = || bad("origin", format!("there is no xbar `{}` in the fabric", origin.get_ref()));
        place.map(|place| place as u32).ok_or_else(missing)
    });
    let ports = file.ports.map(Spanned::into_inner).unwrap_or_default();
    let statement = TorusStatement {
        sizes: file.sizes.map(Spanned::into_inner),
        rings: file.rings.map(Spanned::into_inner),
        origin: origin.transpose()?,
        datelines: file.datelines.map(Spanned::into_inner),
        regions: file.regions.map(Spanned::into_inner),
        ports: ports.sets(),
        written_at: lines.iter().map(|(&key, line)| (key, format!("{name}:{line}"))).collect(),
    };
    statement.check().map_err(|problem| bad(problem.key, problem.why))?;
    check_ports(&statement, fabric).map_err(|why| bad("ports", why))?;
    Ok(statement)
}

/// Checks that each port that is named is a port of some xbar.
fn check_ports(statement: &TorusStatement, fabric: &Fabric) -> Result<(), String> {
    let map = &fabric.map;
    let has = |port: u8| {
        let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
        let numbered = map.xbars.iter().any(|xbar| (1..=xbar.ports).contains(&port));
        numbered || ends.into_iter().any(|end| end.port == port)
    };
    let missing = statement.ports.iter().flat_map(PortSet::iter).find(|&port| !has(port));
    missing.map_or(Ok(()), |port| Err(format!("no xbar of the fabric has a port {port}")))
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    fn parsed(text: &str) -> Result<TorusStatement, String> {
        let fabric = generate("torus:x=6,y=5,z=5").unwrap();
        parse("t.toml", text, &fabric).map_err(|error| error.to_string())
    }

    #[test]
    fn all_that_can_be_stated_is_read() {
        let text = "# a torus\nsizes = [6, 5, 5]\nrings = [true, true, false]\norigin = \"n1-0-0\"\n\
                    datelines = [0, 0, 2]\nregions = [3, 5, 5]\nports = { x-plus = [1, 7], z-minus = [6] }\n";
        let [x_plus, z_minus] = [&[1, 7][..], &[6]].map(|ports| ports.iter().copied().collect());
        let none = PortSet::NONE;
        let expected = TorusStatement {
            sizes: Some(vec![6, 5, 5]),
            rings: Some(vec![true, true, false]),
            origin: Some(1),
            datelines: Some(vec![0, 0, 2]),
            regions: Some(vec![3, 5, 5]),
            ports: [x_plus, none, none, none, none, z_minus],
            written_at: ["sizes", "rings", "origin", "datelines", "regions", "ports"]
                .into_iter()
                .zip(2..)
                .map(|(key, line)| (key, format!("t.toml:{line}")))
                .collect(),
        };
        assert_eq!(parsed(text), Ok(expected));
        assert_eq!(parsed(""), Ok(TorusStatement::default()));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("\nsize = [6]", "t.toml:2: unknown field `size`"),
            ("sizes = [6, 5]\nrings = [true]", "t.toml:2: `rings`: it has 1 entry, but `sizes` has 2"),
            ("\n\norigin = \"n9\"", "t.toml:3: `origin`: there is no xbar `n9` in the fabric"),
            ("sizes = [6\n", "t.toml:"),
            ("sizes = [600]", "t.toml:1: invalid value: integer `600`"),
            (
                "\nports = { x-plus = [1], y-plus = [1] }",
                "t.toml:2: `ports`: port 1 is both x-plus and y-plus",
            ),
            ("[ports]\nup = [1]", "t.toml:2: unknown field `up`"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
