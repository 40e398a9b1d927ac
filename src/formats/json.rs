//! `mapper.map/1`: maps as JSON.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_proto::Mac;
use mapper_proto::map::{
    Cable, Fabric, Host, HostLabel, LinkSpeed, Map, MapVersion, ParseLinkSpeedError, PortRef, Xbar,
    XbarLabel, host_type,
};
use serde::{Deserialize, Serialize};

use super::{Malformed, is_name};
use mapper_routing::tables::MAX_LMC;

/// The name of the schema.
pub const SCHEMA: &str = "mapper.map/1";

/// A map as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapJson {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which map.
    #[serde(default)]
    pub version: VersionJson,
    /// The hosts.
    #[serde(default)]
    pub hosts: Vec<HostJson>,
    /// The xbars.
    #[serde(default)]
    pub xbars: Vec<XbarJson>,
    /// The cables between xbars.
    #[serde(default)]
    pub cables: Vec<CableJson>,
}

/// A map's version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionJson {
    /// The global mapper's address.
    pub mac: String,
    /// Its counter; 0 for no valid map.
    pub counter: u32,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostJson {
    /// Its address.
    pub mac: String,
    /// Its name; its address if nobody named it.
    #[serde(default)]
    pub name: Option<String>,
    /// Its level in the election.
    #[serde(default = "default_level")]
    pub level: u8,
    /// What it runs, by GM's numbers.
    #[serde(default = "default_host_type")]
    pub host_type: u8,
    /// The id of its xbar; null if it is cabled to the only other host, or to nothing.
    #[serde(default)]
    pub xbar: Option<String>,
    /// Its port there.
    #[serde(default)]
    pub port: Option<u8>,
    /// How fast its cable at the xbar is, such as `4xHDR`. Absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// What a file said of it.
    #[serde(flatten)]
    pub label: HostLabelJson,
}

/// What a file said of a host. Absent if it said nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLabelJson {
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_port: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lid: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lmc: Option<u8>,
    /// False for a host that has no cable, not even to the only other host.
    #[serde(skip_serializing_if = "Option::is_none")]
    cabled: Option<bool>,
}

/// An xbar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XbarJson {
    /// Its name, or `x1`, `x2`, and so on if nobody named it.
    pub id: String,
    /// How many ports it has.
    pub ports: u8,
    /// Its 64-bit identity as a hexadecimal number, null if it has none.
    #[serde(default)]
    pub tag: Option<String>,
    /// False while port numbers are known only up to an offset.
    #[serde(default = "default_ports_known")]
    pub ports_known: bool,
    /// What a file said of it. Absent if it said nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_guid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lid: Option<u16>,
}

/// A cable between xbars: the id and the port at each end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CableJson {
    /// The end that the map names first.
    pub a: (String, u8),
    /// The end that is not `a`.
    pub b: (String, u8),
    /// How fast it is, such as `4xHDR`. Absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
}

const fn default_level() -> u8 {
    1
}

const fn default_host_type() -> u8 {
    host_type::ETHERNET
}

const fn default_ports_known() -> bool {
    true
}

fn hex(number: u64) -> String {
    format!("{number:#018x}")
}

/// What people call the hosts and xbars of a map that agents explored: hosts by address, xbars
/// by tag.
#[derive(Debug, Clone, Default)]
pub struct Names {
    hosts: BTreeMap<Mac, String>,
    xbars: BTreeMap<u64, String>,
}

impl Names {
    /// The names in a fabric.
    pub fn of(fabric: &Fabric) -> Self {
        let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
        let xbars = fabric.map.xbars.iter().zip(&fabric.xbars);
        Self {
            hosts: hosts.map(|(host, label)| (host.mac, label.name.clone())).collect(),
            xbars: xbars.filter_map(|(xbar, label)| Some((xbar.tag?, label.name.clone()))).collect(),
        }
    }

    /// The names of hosts, where xbars have none.
    pub fn of_hosts(hosts: BTreeMap<Mac, String>) -> Self {
        Self { hosts, xbars: BTreeMap::new() }
    }

    /// What a host is called, if that is known.
    pub fn of_host(&self, mac: Mac) -> Option<&str> {
        self.hosts.get(&mac).map(String::as_str)
    }

    /// A map with these names: a host that has none is called by its address, an xbar by its
    /// position. No two nodes are called the same: hosts of one name have their addresses behind it.
    pub fn label(&self, map: &Map) -> Fabric {
        let known = |xbar: &Xbar| self.xbars.get(&xbar.tag?).cloned();
        let mut taken: BTreeSet<String> = map.xbars.iter().filter_map(known).collect();
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        let named = |host: &Host| self.hosts.get(&host.mac).map(String::as_str);
        map.hosts.iter().filter_map(named).for_each(|name| *count.entry(name).or_default() += 1);
        let macs: BTreeSet<String> = map.hosts.iter().map(|host| host.mac.to_string()).collect();
        let mut names = Vec::with_capacity(map.hosts.len());
        for host in &map.hosts {
            let name = named(host).filter(|name| !macs.contains(*name));
            let alone = name.filter(|name| count[name] == 1).map(str::to_owned);
            let ways = [alone, name.map(|name| format!("{name} {}", host.mac))];
            let free = ways.into_iter().flatten().find(|name| !taken.contains(name));
            let name = free.unwrap_or_else(|| host.mac.to_string());
            taken.insert(name.clone());
            names.push(name);
        }
        let hosts = names.into_iter().map(|name| HostLabel {
            name,
            node_port: 1,
            node_ports: 1,
            ..Default::default()
        });
        let mut positions = (1_usize..).map(|position| format!("x{position}"));
        let mut unnamed = || positions.find(|name| !taken.contains(name)).unwrap_or_default();
        let xbars = map
            .xbars
            .iter()
            .map(|xbar| XbarLabel { name: known(xbar).unwrap_or_else(&mut unnamed), ..Default::default() });
        Fabric { hosts: hosts.collect(), xbars: xbars.collect(), map: map.clone(), ..Fabric::default() }
    }
}

/// A map that agents explored as JSON, with the names that are known.
pub fn map_to_json(map: &Map, names: &Names) -> MapJson {
    fabric_to_json(&names.label(map))
}

/// A fabric as JSON.
pub fn fabric_to_json(fabric: &Fabric) -> MapJson {
    let map = &fabric.map;
    let id = |xbar: u32| fabric.xbars[xbar as usize].name.clone();
    let end = |end: PortRef| (id(end.xbar), end.port);
    let speed = |end: PortRef| fabric.link_speeds.get(&end).map(LinkSpeed::to_string);
    let host = |(host, label): (&Host, &HostLabel)| HostJson {
        mac: host.mac.to_string(),
        name: Some(label.name.clone()),
        level: host.level,
        host_type: host.host_type,
        xbar: host.at.map(|at| id(at.xbar)),
        port: host.at.map(|at| at.port),
        speed: host.at.and_then(speed),
        label: HostLabelJson {
            description: label.description.clone(),
            guid: label.guid.map(hex),
            port_guid: label.port_guid.map(hex),
            system_guid: label.system_guid.map(hex),
            node_port: Some(label.node_port).filter(|&port| port != 1),
            node_ports: Some(label.node_ports).filter(|&ports| ports != 1),
            lid: label.lid,
            lmc: Some(label.lmc).filter(|&lmc| lmc != 0),
            cabled: label.uncabled.then_some(false),
        },
    };
    let xbar = |(xbar, label): (&Xbar, &XbarLabel)| XbarJson {
        id: label.name.clone(),
        ports: xbar.ports,
        tag: xbar.tag.map(hex),
        ports_known: xbar.ports_known,
        description: label.description.clone(),
        guid: label.guid.map(hex),
        system_guid: label.system_guid.map(hex),
        lid: label.lid,
    };
    let cable = |cable: &Cable| CableJson { a: end(cable.a), b: end(cable.b), speed: speed(cable.a) };
    MapJson {
        schema: SCHEMA.to_owned(),
        version: VersionJson { mac: map.version.mac.to_string(), counter: map.version.counter },
        hosts: map.hosts.iter().zip(&fabric.hosts).map(host).collect(),
        xbars: map.xbars.iter().zip(&fabric.xbars).map(xbar).collect(),
        cables: map.cables.iter().map(cable).collect(),
    }
}

/// The fabric as text: one host, xbar or cable a line.
pub(super) fn write(fabric: &Fabric) -> String {
    fabric_to_json(fabric).to_string()
}

impl std::fmt::Display for MapJson {
    /// JSON with one host, xbar or cable a line, so that maps can be compared line by line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |value: serde_json::Result<String>| value.map_err(|_| std::fmt::Error);
        writeln!(f, "{{\n  \"schema\": {},", line(serde_json::to_string(&self.schema))?)?;
        write!(f, "  \"version\": {}", line(serde_json::to_string(&self.version))?)?;
        write_list(f, "hosts", &self.hosts)?;
        write_list(f, "xbars", &self.xbars)?;
        write_list(f, "cables", &self.cables)?;
        f.write_str("\n}\n")
    }
}

fn write_list<T: Serialize>(f: &mut std::fmt::Formatter<'_>, key: &str, items: &[T]) -> std::fmt::Result {
    write!(f, ",\n  \"{key}\": [")?;
    for (i, item) in items.iter().enumerate() {
        let text = serde_json::to_string(item).map_err(|_| std::fmt::Error)?;
        write!(f, "{}\n    {text}", if i == 0 { "" } else { "," })?;
    }
    f.write_str(if items.is_empty() { "]" } else { "\n  ]" })
}

/// The fabric in a text.
pub(super) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let json: MapJson =
        serde_json::from_str(text).map_err(|error| Malformed::at(error.line(), error.to_string()))?;
    fabric_from_json(&json)
}

/// The fabric in a JSON map.
fn fabric_from_json(json: &MapJson) -> Result<Fabric, Malformed> {
    if json.schema != SCHEMA {
        let problem = format!("`{}` is not read here; expected `{SCHEMA}`", json.schema);
        return Err(Malformed::within("schema", problem));
    }
    for (list, count, limit) in
        [("xbars", json.xbars.len(), MAX_XBARS), ("hosts", json.hosts.len(), MAX_HOSTS)]
    {
        if count as u64 > limit {
            return Err(Malformed::within(list, format!("there are {count}; expected at most {limit}")));
        }
    }
    let mut reader = Reader::default();
    for label in json.hosts.iter().map(|host| &host.label).filter(|label| label.port_guid.is_some()) {
        reader.machines_with_ports.extend(number("hosts", label.guid.as_deref()).ok().flatten());
    }
    for (i, xbar) in json.xbars.iter().enumerate() {
        reader.xbar(&format!("xbars[{i}]"), xbar)?;
    }
    for (i, host) in json.hosts.iter().enumerate() {
        reader.host(&format!("hosts[{i}]"), host)?;
    }
    for (i, cable) in json.cables.iter().enumerate() {
        let a = reader.port(&format!("cables[{i}].a"), &cable.a.0, cable.a.1)?;
        let b = reader.port(&format!("cables[{i}].b"), &cable.b.0, cable.b.1)?;
        reader.fabric.map.cables.push(Cable::new(a, b));
        reader.speed(&format!("cables[{i}].speed"), cable.speed.as_deref(), &[a, b])?;
    }
    let mut fabric = reader.fabric;
    fabric.map.cables.sort_unstable();
    if json.version != VersionJson::default() {
        fabric.map.version =
            MapVersion { mac: mac("version.mac", &json.version.mac)?, counter: json.version.counter };
    }
    Ok(fabric)
}

/// A fabric half read.
#[derive(Default)]
struct Reader {
    fabric: Fabric,
    names: BTreeSet<String>,
    ids: BTreeMap<String, u32>,
    macs: BTreeSet<Mac>,
    tags: BTreeSet<u64>,
    /// The GUIDs of xbars and hosts' ports, and whose they are.
    guids: BTreeMap<u64, GuidOwner>,
    /// The GUIDs of machines of which some port has a GUID of its own: there they stand for no port.
    machines_with_ports: BTreeSet<u64>,
    /// Ports with a cable.
    cabled: BTreeSet<PortRef>,
}

/// Who has a GUID.
struct GuidOwner {
    place: String,
    /// All ports of a machine share its GUID, and one that has none of its own goes by it: then the port's number.
    shared_by_port: Option<u8>,
}

impl Reader {
    /// Refuses a GUID that another has: tables name what they lead to by it. 0 is none.
    fn claim(
        &mut self,
        place: String,
        guid: Option<u64>,
        shared_by_port: Option<u8>,
    ) -> Result<(), Malformed> {
        let Some(guid) = guid.filter(|&guid| guid != 0) else { return Ok(()) };
        if let Some(first) = self.guids.get(&guid) {
            let ports = [first.shared_by_port, shared_by_port];
            if ports.iter().all(Option::is_some) && ports[0] != ports[1] {
                return Ok(());
            }
            let problem = format!(
                "GUID {guid:#x} is that of {} already; each GUID must be one xbar's or port's",
                first.place
            );
            return Err(Malformed::within(place, problem));
        }
        self.guids.insert(guid, GuidOwner { place, shared_by_port });
        Ok(())
    }

    /// Takes note of how fast the cable at these ports is, if that is said.
    fn speed(&mut self, place: &str, text: Option<&str>, ends: &[PortRef]) -> Result<(), Malformed> {
        let Some(text) = text else { return Ok(()) };
        let speed: LinkSpeed =
            text.parse().map_err(|error: ParseLinkSpeedError| Malformed::within(place, error.to_string()))?;
        self.fabric.link_speeds.extend(ends.iter().map(|&end| (end, speed)));
        Ok(())
    }

    fn name(&mut self, place: &str, name: &str) -> Result<(), Malformed> {
        if !is_name(name) {
            let expected = "expected 1 to 64 printable characters, no quotation marks";
            return Err(Malformed::within(place, format!("`{name}` is no name; {expected}")));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(Malformed::within(place, format!("there are two nodes `{name}`")));
        }
        Ok(())
    }

    fn xbar(&mut self, place: &str, json: &XbarJson) -> Result<(), Malformed> {
        self.name(&format!("{place}.id"), &json.id)?;
        let tag = number(&format!("{place}.tag"), json.tag.as_deref())?;
        if json.ports == 0 {
            return Err(Malformed::within(format!("{place}.ports"), "0 ports; expected 1 to 255"));
        }
        if let Some(tag) = tag
            && !self.tags.insert(tag)
        {
            return Err(Malformed::within(
                format!("{place}.tag"),
                format!("there are two xbars with tag {tag:#x}"),
            ));
        }
        let guid = number(&format!("{place}.guid"), json.guid.as_deref())?;
        self.claim(format!("{place}.guid"), guid, None)?;
        self.ids.insert(json.id.clone(), self.fabric.map.xbars.len() as u32);
        self.fabric.map.xbars.push(Xbar { ports: json.ports, tag, ports_known: json.ports_known });
        self.fabric.xbars.push(XbarLabel {
            name: json.id.clone(),
            description: json.description.clone(),
            guid,
            system_guid: number(&format!("{place}.system_guid"), json.system_guid.as_deref())?,
            lid: json.lid,
        });
        Ok(())
    }

    fn host(&mut self, place: &str, json: &HostJson) -> Result<(), Malformed> {
        let mac = mac(&format!("{place}.mac"), &json.mac)?;
        // An address from a GUID may have the multicast bit, so that is no fault.
        if [[0; 6], [0xff; 6]].contains(&mac.0) {
            let problem =
                format!("{mac} is no address of a host; expected one that is neither all zeros nor all ones");
            return Err(Malformed::within(format!("{place}.mac"), problem));
        }
        if !self.macs.insert(mac) {
            return Err(Malformed::within(format!("{place}.mac"), format!("there are two hosts {mac}")));
        }
        let name = json.name.clone().unwrap_or_else(|| mac.to_string());
        self.name(&format!("{place}.name"), &name)?;
        let at = match (&json.xbar, json.port) {
            (Some(id), Some(port)) => Some(self.port(&format!("{place}.xbar"), id, port)?),
            (None, None) => None,
            _ => return Err(Malformed::within(place, "expected both `xbar` and `port`, or neither")),
        };
        if at.is_some() && json.label.cabled == Some(false) {
            let problem = "a host without a cable at an xbar; expected `xbar` and `port`, or `cabled: false`";
            return Err(Malformed::within(format!("{place}.cabled"), problem));
        }
        let (level, host_type) = (json.level, json.host_type);
        self.fabric.map.hosts.push(Host { mac, level, host_type, at });
        let label = &json.label;
        let lmc = label.lmc.unwrap_or(0);
        if lmc > MAX_LMC {
            let problem = format!("an LMC of {lmc}; expected 0 to {MAX_LMC}, for 2^LMC addresses");
            return Err(Malformed::within(format!("{place}.lmc"), problem));
        }
        let guid = number(&format!("{place}.guid"), label.guid.as_deref())?;
        let port_guid = number(&format!("{place}.port_guid"), label.port_guid.as_deref())?;
        let node_port = label.node_port.unwrap_or(1);
        match port_guid {
            Some(_) => self.claim(format!("{place}.port_guid"), port_guid, None)?,
            None if guid.is_some_and(|guid| self.machines_with_ports.contains(&guid)) => {}
            None => self.claim(format!("{place}.guid"), guid, Some(node_port))?,
        }
        let at_port: Vec<PortRef> = at.into_iter().collect();
        self.speed(&format!("{place}.speed"), json.speed.as_deref(), &at_port)?;
        self.fabric.hosts.push(HostLabel {
            name,
            description: label.description.clone(),
            guid,
            port_guid,
            system_guid: number(&format!("{place}.system_guid"), label.system_guid.as_deref())?,
            node_port,
            node_ports: label.node_ports.unwrap_or(1),
            lid: label.lid,
            lmc,
            uncabled: label.cabled == Some(false),
        });
        Ok(())
    }

    /// A port that exists and has no cable yet.
    fn port(&mut self, place: &str, id: &str, port: u8) -> Result<PortRef, Malformed> {
        let Some(&xbar) = self.ids.get(id) else {
            return Err(Malformed::within(place, format!("there is no xbar `{id}`; expected the id of one")));
        };
        let Xbar { ports, .. } = self.fabric.map.xbars[xbar as usize];
        if port > ports {
            let problem = format!("`{id}` has no port {port}; expected at most {ports}");
            return Err(Malformed::within(place, problem));
        }
        let end = PortRef { xbar, port };
        if !self.cabled.insert(end) {
            return Err(Malformed::within(place, format!("`{id}` port {port} has a cable already")));
        }
        if [0, ports].iter().all(|&port| self.cabled.contains(&PortRef { xbar, port })) {
            let problem =
                format!("`{id}` uses ports 0 and {ports}; expected ports that count from 0, or from 1");
            return Err(Malformed::within(place, problem));
        }
        Ok(end)
    }
}

fn mac(place: &str, text: &str) -> Result<Mac, Malformed> {
    text.parse()
        .map_err(|error: mapper_proto::mac::ParseMacError| Malformed::within(place, error.to_string()))
}

/// A hexadecimal number of 64 bits.
fn number(place: &str, text: Option<&str>) -> Result<Option<u64>, Malformed> {
    let Some(text) = text else { return Ok(None) };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let valid = digits.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(number) if valid => Ok(Some(number)),
        _ => Err(Malformed::within(place, format!("`{text}` is not a hexadecimal number of 64 bits"))),
    }
}
