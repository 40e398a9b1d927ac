//! Which column says what.

use csv::StringRecord;

use super::{FIELDS, ListedEnd, Malformed, at};

/// What the columns of an end may be called, in small letters without blanks and marks: those of one end, and those of
/// the other. Most telling names come first.
const DEVICES: [[&str; 2]; 12] = [
    ["startdevice", "enddevice"],
    ["sideadevice", "sidebdevice"],
    ["devicea", "deviceb"],
    ["adevice", "bdevice"],
    ["device1", "device2"],
    ["sourcedevice", "destinationdevice"],
    ["fromdevice", "todevice"],
    ["nodea", "nodeb"],
    ["node1", "node2"],
    ["localdevice", "remotedevice"],
    ["source", "destination"],
    ["from", "to"],
];

const PORTS: [[&str; 2]; 17] = [
    ["startport", "endport"],
    ["sideaname", "sidebname"],
    ["terminationa", "terminationb"],
    ["aterminations", "bterminations"],
    ["porta", "portb"],
    ["aport", "bport"],
    ["port1", "port2"],
    ["device1port", "device2port"],
    ["sourceport", "destinationport"],
    ["fromport", "toport"],
    ["nodeaport", "nodebport"],
    ["node1port", "node2port"],
    ["deviceaport", "devicebport"],
    ["localport", "remoteport"],
    ["interfacea", "interfaceb"],
    ["sourceinterface", "destinationinterface"],
    ["frominterface", "tointerface"],
];

const KINDS: [[&str; 2]; 8] = [
    ["starttype", "endtype"],
    ["typea", "typeb"],
    ["rolea", "roleb"],
    ["fromtype", "totype"],
    ["fromrole", "torole"],
    ["sourcetype", "destinationtype"],
    ["kinda", "kindb"],
    ["node1type", "node2type"],
];

/// What an end is plugged into, as NetBox tells it.
const TERMINATIONS: [[&str; 2]; 3] = [
    ["sideatype", "sidebtype"],
    ["terminationatype", "terminationbtype"],
    ["aterminationtype", "bterminationtype"],
];

/// Where each end's facts are.
pub(super) struct Columns {
    device: [usize; 2],
    /// None if the port stands in the field of the device.
    port: Option<[usize; 2]>,
    kind: Option<[usize; 2]>,
    link_type: Option<usize>,
    /// What the cable is made of, as NetBox tells it.
    medium: Option<usize>,
    terminations: Option<[usize; 2]>,
    status: Option<usize>,
    names: Vec<String>,
}

impl Columns {
    /// The columns by their names, if these name the devices at both ends.
    pub(super) fn of(names: &[&str]) -> Option<Self> {
        let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let one = |wanted: &str| plain.iter().position(|name| name == wanted);
        let both = |known: &[[&str; 2]]| known.iter().find_map(|[a, b]| Some([one(a)?, one(b)?]));
        let device = both(&DEVICES)?;
        Some(Self {
            device,
            port: both(&PORTS),
            kind: both(&KINDS),
            link_type: one("linktype"),
            medium: one("type"),
            terminations: both(&TERMINATIONS),
            status: one("status"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// The ends of the cable in a line; none if the line is of another kind of cable.
    pub(super) fn cable(
        &self,
        line: usize,
        record: &StringRecord,
    ) -> Result<Option<[SaidEnd; 2]>, Malformed> {
        let field = |column: usize| record.get(column).unwrap_or_default();
        // UFM counts data links only; NetBox says which cables are on their way out.
        let is_data =
            self.link_type.is_none_or(|column| matches!(plain(field(column)).as_str(), "data" | ""));
        let is_in = self.status.is_none_or(|column| plain(field(column)) != "decommissioning");
        let is_power = self.medium.is_some_and(|column| plain(field(column)) == "power");
        // NetBox names such ends dcim.powerport, dcim.poweroutlet and dcim.consoleport.
        let is_other = |column: usize| {
            let termination = plain(field(column));
            ["power", "console"].iter().any(|kind| termination.contains(kind))
        };
        let is_other = self.terminations.is_some_and(|ends| ends.into_iter().any(is_other));
        if !is_data || !is_in || is_power || is_other {
            return Ok(None);
        }
        let end = |side: usize| -> Result<SaidEnd, Malformed> {
            let place = (self.device[side], self.names[self.device[side]].clone());
            let text = field(place.0);
            let (device, port, column) = match self.port {
                Some(ports) => (text, field(ports[side]), (ports[side], self.names[ports[side]].clone())),
                None => {
                    let parted = text.rsplit_once([':', '/']).ok_or_else(|| {
                        let problem =
                            format!("`{text}` has no port; expected a device and its port, as in leaf1:7");
                        Malformed::within(at(line, &place), problem)
                    })?;
                    (parted.0, parted.1, place.clone())
                }
            };
            if device.is_empty() {
                return Err(Malformed::within(at(line, &place), "the device at this end has no name"));
            }
            if port.is_empty() {
                return Err(Malformed::within(at(line, &column), format!("`{device}` has no port here")));
            }
            let end = ListedEnd { line, device: device.to_owned(), port: port.to_owned(), column };
            let is_xbar = self.kind.and_then(|kinds| is_xbar(field(kinds[side])));
            Ok(SaidEnd { end, is_xbar })
        };
        Ok(Some([end(0)?, end(1)?]))
    }
}

/// An end, and whether the list says that its device is a crossbar.
pub(super) struct SaidEnd {
    pub(super) end: ListedEnd,
    pub(super) is_xbar: Option<bool>,
}

/// What a column says that a device is.
fn is_xbar(kind: &str) -> Option<bool> {
    match plain(kind).as_str() {
        "switch" | "sw" | "xbar" | "crossbar" | "leaf" | "spine" | "core" | "tor" => Some(true),
        "host" | "node" | "server" | "hca" | "ca" | "nic" | "adapter" | "compute" | "storage" => Some(false),
        _ => None,
    }
}

/// A name in small letters, its letters and digits alone. [`FIELDS`] does not belong to it.
fn plain(name: &str) -> String {
    let name = name.trim().trim_start_matches(FIELDS);
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
