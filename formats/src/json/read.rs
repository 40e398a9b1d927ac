//! Reads fabrics that are written as `mapper.map/1`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Arguments;

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_proto::map::{
    Cable, Fabric, Host, HostLabel, LinkSpeed, MapVersion, ParseLinkSpeedError, PortRef, Xbar, XbarLabel,
};
use mapper_proto::{Mac, PortSet};
use mapper_routing::tables::MAX_LMC;

use super::{HostJson, MapJson, SCHEMA, VersionJson, XbarJson};
use crate::{Malformed, is_name};

/// The fabric in a text.
pub(crate) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let json: MapJson = serde_json::from_str(text).map_err(|error| Malformed::json(&error))?;
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
    let mut reader = JsonReader::default();
    for label in json.hosts.iter().map(|host| &host.label).filter(|label| label.port_guid.is_some()) {
        reader
            .machines_with_ports
            .extend(number(format_args!("hosts"), label.guid.as_deref()).ok().flatten());
    }
    for (i, xbar) in json.xbars.iter().enumerate() {
        reader.xbar(format_args!("xbars[{i}]"), xbar)?;
    }
    for (i, host) in json.hosts.iter().enumerate() {
        reader.host(format_args!("hosts[{i}]"), host)?;
    }
    for (i, cable) in json.cables.iter().enumerate() {
        let a = reader.port(format_args!("cables[{i}].a"), &cable.a.0, cable.a.1)?;
        let b = reader.port(format_args!("cables[{i}].b"), &cable.b.0, cable.b.1)?;
        reader.fabric.map.cables.push(Cable::new(a, b));
        reader.speed(format_args!("cables[{i}].speed"), cable.speed.as_deref(), &[a, b])?;
    }
    let mut fabric = reader.fabric;
    fabric.map.cables.sort_unstable();
    if json.version != VersionJson::default() {
        fabric.map.version = MapVersion {
            mac: mac(format_args!("version.mac"), &json.version.mac)?,
            counter: json.version.counter,
        };
    }
    Ok(fabric)
}

/// What has been read of a fabric so far.
#[derive(Default)]
struct JsonReader {
    fabric: Fabric,
    names: BTreeSet<String>,
    ids: BTreeMap<String, u32>,
    macs: BTreeSet<Mac>,
    tags: BTreeSet<u64>,
    /// The GUIDs of xbars and hosts' ports, and whose they are.
    guids: BTreeMap<u64, GuidOwner>,
    /// The GUIDs of machines of which some port has a GUID of its own: there they stand for no port.
    machines_with_ports: BTreeSet<u64>,
    /// The ports with a cable, of each xbar.
    cabled: Vec<PortSet>,
}

/// Who has a GUID.
struct GuidOwner {
    place: String,
    /// All ports of a machine share its GUID, and one that has none of its own goes by it: then the port's number.
    shared_by_port: Option<u8>,
}

impl JsonReader {
    /// Refuses a GUID that another has: tables name what they lead to by it. 0 is none.
    fn claim(
        &mut self,
        place: Arguments<'_>,
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
        self.guids.insert(guid, GuidOwner { place: place.to_string(), shared_by_port });
        Ok(())
    }

    /// Takes note of how fast the cable at these ports is, if that is said.
    fn speed(&mut self, place: Arguments<'_>, text: Option<&str>, ends: &[PortRef]) -> Result<(), Malformed> {
        let Some(text) = text else { return Ok(()) };
        let speed: LinkSpeed =
            text.parse().map_err(|error: ParseLinkSpeedError| Malformed::within(place, error.to_string()))?;
        self.fabric.link_speeds.extend(ends.iter().map(|&end| (end, speed)));
        Ok(())
    }

    fn name(&mut self, place: Arguments<'_>, name: &str) -> Result<(), Malformed> {
        if !is_name(name) {
            let expected = "expected 1 to 64 printable characters, no quotation marks";
            return Err(Malformed::within(place, format!("`{name}` is no name; {expected}")));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(Malformed::within(place, format!("there are two nodes `{name}`")));
        }
        Ok(())
    }

    fn xbar(&mut self, place: Arguments<'_>, json: &XbarJson) -> Result<(), Malformed> {
        self.name(format_args!("{place}.id"), &json.id)?;
        let tag = number(format_args!("{place}.tag"), json.tag.as_deref())?;
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
        let guid = number(format_args!("{place}.guid"), json.guid.as_deref())?;
        self.claim(format_args!("{place}.guid"), guid, None)?;
        self.ids.insert(json.id.clone(), self.fabric.map.xbars.len() as u32);
        self.cabled.push(PortSet::NONE);
        self.fabric.map.xbars.push(Xbar { ports: json.ports, tag, ports_known: json.ports_known });
        self.fabric.xbars.push(XbarLabel {
            name: json.id.clone(),
            description: json.description.clone(),
            guid,
            system_guid: number(format_args!("{place}.system_guid"), json.system_guid.as_deref())?,
            lid: json.lid,
        });
        Ok(())
    }

    fn host(&mut self, place: Arguments<'_>, json: &HostJson) -> Result<(), Malformed> {
        let mac = mac(format_args!("{place}.mac"), &json.mac)?;
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
        self.name(format_args!("{place}.name"), &name)?;
        let at = match (&json.xbar, json.port) {
            (Some(id), Some(port)) => Some(self.port(format_args!("{place}.xbar"), id, port)?),
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
        let guid = number(format_args!("{place}.guid"), label.guid.as_deref())?;
        let port_guid = number(format_args!("{place}.port_guid"), label.port_guid.as_deref())?;
        let node_port = label.node_port.unwrap_or(1);
        match port_guid {
            Some(_) => self.claim(format_args!("{place}.port_guid"), port_guid, None)?,
            None if guid.is_some_and(|guid| self.machines_with_ports.contains(&guid)) => {}
            None => self.claim(format_args!("{place}.guid"), guid, Some(node_port))?,
        }
        let at_port: Vec<PortRef> = at.into_iter().collect();
        self.speed(format_args!("{place}.speed"), json.speed.as_deref(), &at_port)?;
        self.fabric.hosts.push(HostLabel {
            name,
            description: label.description.clone(),
            guid,
            port_guid,
            system_guid: number(format_args!("{place}.system_guid"), label.system_guid.as_deref())?,
            node_port,
            node_ports: label.node_ports.unwrap_or(1),
            lid: label.lid,
            lmc,
            uncabled: label.cabled == Some(false),
        });
        Ok(())
    }

    /// A port that exists and has no cable yet.
    fn port(&mut self, place: Arguments<'_>, id: &str, port: u8) -> Result<PortRef, Malformed> {
        let Some(&xbar) = self.ids.get(id) else {
            return Err(Malformed::within(place, format!("there is no xbar `{id}`; expected the id of one")));
        };
        let Xbar { ports, .. } = self.fabric.map.xbars[xbar as usize];
        if port > ports {
            let problem = format!("`{id}` has no port {port}; expected at most {ports}");
            return Err(Malformed::within(place, problem));
        }
        let cabled = &mut self.cabled[xbar as usize];
        if cabled.contains(port) {
            return Err(Malformed::within(place, format!("`{id}` port {port} has a cable already")));
        }
        cabled.insert(port);
        if cabled.contains(0) && cabled.contains(ports) {
            let problem =
                format!("`{id}` uses ports 0 and {ports}; expected ports that count from 0, or from 1");
            return Err(Malformed::within(place, problem));
        }
        Ok(PortRef { xbar, port })
    }
}

fn mac(place: Arguments<'_>, text: &str) -> Result<Mac, Malformed> {
    text.parse()
        .map_err(|error: mapper_proto::mac::ParseMacError| Malformed::within(place, error.to_string()))
}

/// A hexadecimal number of 64 bits.
fn number(place: Arguments<'_>, text: Option<&str>) -> Result<Option<u64>, Malformed> {
    let Some(text) = text else { return Ok(None) };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let valid = digits.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(number) if valid => Ok(Some(number)),
        _ => Err(Malformed::within(place, format!("`{text}` is not a hexadecimal number of 64 bits"))),
    }
}
