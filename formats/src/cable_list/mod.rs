//! Lists of cables as CSV, a line each: UFM's NDT tables, NetBox's export and import, and what people keep in a
//! spreadsheet.
//!
//! The first line that is no comment names the columns, in any order, large or small letters, with or without blanks:
//!
//! | | NDT | NetBox | others |
//! |---|---|---|---|
//! | device at an end | `StartDevice`, `EndDevice` | `side_a_device`, `Device A` | `device_a`, `from`, `source`, `node1` .. |
//! | its port | `StartPort`, `EndPort` | `side_a_name`, `Termination A` | `port_a`, `from port`, `source_port` .. |
//! | what the device is | | | `type_a`, `from type`, `role_a`: switch, leaf, host .. |
//! | what the cable is for | `LinkType`: only `Data` counts | `status`: not `decommissioning`; `type`: not `power`; `side_a_type`: no port for power or a console | |
//!
//! Device and port may stand in one field, as in `leaf1:7` or `leaf1/7`, if there is no column for the port.
//! Commas, semicolons and tabs part columns.
//!
//! **Ports.** `21`, `Port 21`, `P21`, `swp21` and `Ethernet1/21` are port 21 of a crossbar, if what stands before the
//! number is the same for all its ports. A host's port that is a number or `Port 2` is that; any other is the name
//! of an adapter, as in `mlx5_0`, and each adapter is a node of its own, as InfiniBand has it.
//!
//! **Which devices are crossbars**, the first of these that knows: a column; a fabric that was found and has a node of
//! that name; ports named as those of adapters; the words switch, leaf, spine, core, tor, `sw` in a name, or `IB` and
//! a number at its end, as NDT has it; and one with more than two cables.

mod columns;
mod devices;
mod ports;
mod racks;
mod writer;

#[cfg(test)]
mod tests;

use mapper_proto::map::Fabric;

use self::columns::Columns;
use self::devices::Devices;
pub(super) use self::writer::write;
use super::Malformed;

/// The most cables of a list.
const MAX_CABLES: usize = 1 << 20;

/// What stands before the name of a column in NDT tables.
const FIELDS: &str = "#Fields:";

/// Whether a line names the columns of a list of cables.
pub(super) fn begins(line: &str) -> bool {
    let delimiter = delimiter(line);
    let header = line.trim_start_matches('\u{feff}');
    let names: Vec<&str> =
        header.split(delimiter as char).map(|name| name.trim().trim_matches('"')).collect();
    Columns::of(&names).is_some()
}

/// Whether a line that looks like a comment names the columns, as the first line of some NDT tables does: `#Fields:` stands
/// before the first column there.
pub(super) fn begins_with_fields(line: &str) -> bool {
    line.starts_with(FIELDS) && begins(line)
}

/// Whether a file is a CSV by its name, or by a first line with several columns, and so no fabric of another format.
pub(super) fn is_csv(name: &str, line: &str) -> bool {
    let is_called_so = [".csv", ".tsv"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    let parted = line.split(delimiter(line) as char).count();
    is_called_so || parted > 3 && !line.contains(['"', '[', '{', '='])
}

/// What is wrong with a CSV whose first line, which has this number, names no devices.
pub(super) fn without_columns(number: usize, line: &str) -> Malformed {
    Malformed::at(
        number,
        format!(
            "no columns for the devices at both ends of a cable in `{}`; expected a first line such as \
             `device a,port a,device b,port b`, `StartDevice,StartPort,EndDevice,EndPort`, \
             `side_a_device,side_a_name,side_b_device,side_b_name`, or `from,to` with fields as leaf1:7",
            line.trim_start_matches('\u{feff}')
        ),
    )
}

/// What parts the columns: what is most often in the first line.
fn delimiter(line: &str) -> u8 {
    let count = |delimiter: &u8| line.bytes().filter(|byte| byte == delimiter).count();
    // Of equals the last one counts, which is the comma.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

/// One end of a cable as a line says it.
struct ListedEnd {
    line: usize,
    device: String,
    port: String,
    /// The column that says the port, counted from 0, and what it is called.
    column: (usize, String),
}

/// The fabric in a text, of which the line with this number names the columns; what stands before it are comments. `found`
/// may know what its devices are.
pub(super) fn parse(text: &str, header_line: usize, found: Option<&Fabric>) -> Result<Fabric, Malformed> {
    let skipped = header_line - 1;
    let header = text.lines().nth(skipped).unwrap_or_default();
    let body: String = text.split_inclusive('\n').skip(skipped).collect();
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter(header))
        .trim(csv::Trim::All)
        .flexible(true)
        .has_headers(true)
        .from_reader(body.as_bytes());
    let malformed = |error: &csv::Error| {
        let line = error.position().map_or(0, |at| at.line() as usize) + skipped;
        Malformed::at(line, format!("it is no line of a CSV: {error}"))
    };
    let names = reader.headers().map_err(|error| malformed(&error))?.clone();
    let names: Vec<&str> = names.iter().collect();
    let columns =
        Columns::of(&names).ok_or_else(|| Malformed::at(header_line, "expected the names of columns"))?;
    let mut devices = Devices::default();
    for record in reader.records() {
        let record = record.map_err(|error| malformed(&error))?;
        let line = record.position().map_or(0, |at| at.line() as usize) + skipped;
        if record.iter().all(str::is_empty) || record.get(0).is_some_and(|first| first.starts_with('#')) {
            continue;
        }
        match columns.cable(line, &record)? {
            Some(ends) => devices.cable(ends)?,
            None => devices.leave_out(line),
        }
        if devices.cable_count() > MAX_CABLES {
            return Err(Malformed::at(line, format!("there are more than {MAX_CABLES} cables")));
        }
    }
    devices.finish(found)
}

/// Where in a file something is wrong.
fn at(line: usize, (column, name): &(usize, String)) -> String {
    format!("{line}, column {} ({name})", column + 1)
}
