//! Fabrics as ibnetdiscover prints them.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Fabric, HostLabel, PortRef};

use crate::draft::further_name;
use crate::port_shifts;

/// The fabric as text. Ports that count from 0 are moved to count from 1, for port 0 is a
/// switch's own. An xbar's GUID is its own, or its tag; a host's is its own, or its address.
pub(crate) fn write(fabric: &Fabric) -> String {
    let writer = Writer::new(fabric);
    let mut text = String::from("#\n# Topology file: written by mapper\n#\n");
    for xbar in 0..fabric.map.xbars.len() {
        text += &writer.xbar(xbar);
    }
    for machine in &writer.machines {
        text += &writer.machine(machine);
    }
    text
}

/// A fabric looked at from each node.
struct Writer<'a> {
    fabric: &'a Fabric,
    /// How far the ports of each xbar move.
    shifts: Vec<i16>,
    /// What each cabled port of each xbar leads to, by xbar.
    ports: Vec<BTreeMap<u8, Peer>>,
    /// The hosts of each machine, and the machine of each host.
    machines: Vec<Vec<usize>>,
    machine_of: Vec<usize>,
    /// Two hosts that one cable joins.
    pair: Option<[usize; 2]>,
}

#[derive(Clone, Copy)]
enum Peer {
    Xbar(PortRef),
    Host(usize),
}

impl<'a> Writer<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let map = &fabric.map;
        let mut ports = vec![BTreeMap::new(); map.xbars.len()];
        for cable in &map.cables {
            ports[cable.a.xbar as usize].insert(cable.a.port, Peer::Xbar(cable.b));
            ports[cable.b.xbar as usize].insert(cable.b.port, Peer::Xbar(cable.a));
        }
        for (index, host) in map.hosts.iter().enumerate() {
            if let Some(at) = host.at {
                ports[at.xbar as usize].insert(at.port, Peer::Host(index));
            }
        }
        let (machines, machine_of) = machines(&fabric.hosts);
        Self {
            fabric,
            shifts: port_shifts(fabric, 1),
            ports,
            machines,
            machine_of,
            pair: fabric.face_to_face(),
        }
    }

    fn port(&self, xbar: usize, port: u8) -> i16 {
        i16::from(port) + self.shifts[xbar]
    }

    /// A peer, its LID behind its description.
    fn peer(&self, peer: Peer) -> (String, &str, u16) {
        match peer {
            Peer::Xbar(PortRef { xbar, port }) => {
                let label = &self.fabric.xbars[xbar as usize];
                let end = format!("\"{}\"[{}]", label.name, self.port(xbar as usize, port));
                (end, &label.description, label.lid.unwrap_or(0))
            }
            Peer::Host(host) => {
                let label = &self.fabric.hosts[host];
                let machine = self.machines[self.machine_of[host]][0];
                let name = &self.fabric.hosts[machine].name;
                let end = format!("\"{name}\"[{}]({:x}) ", label.node_port, self.port_guid(host));
                (end, &label.description, label.lid.unwrap_or(0))
            }
        }
    }

    /// The speed of the cable in an xbar's port, behind a blank; nothing if nobody knows it.
    fn speed(&self, at: PortRef) -> String {
        self.fabric.link_speeds.get(&at).map(|speed| format!(" {speed}")).unwrap_or_default()
    }

    fn port_guid(&self, host: usize) -> u64 {
        self.fabric.hosts[host].port_guid.unwrap_or(self.fabric.map.hosts[host].mac.to_u64())
    }

    fn xbar(&self, index: usize) -> String {
        let (label, xbar) = (&self.fabric.xbars[index], &self.fabric.map.xbars[index]);
        let mut text = String::from("\nvendid=0x0\ndevid=0x0\n");
        if let Some(system) = label.system_guid {
            text += &format!("sysimgguid={system:#x}\n");
        }
        if let Some(guid) = label.guid.or(xbar.tag) {
            text += &format!("switchguid={guid:#x}({guid:x})\n");
        }
        let (ports, lid) = (xbar.ports, label.lid.unwrap_or(0));
        let description = printable(&label.description);
        text += &format!(
            "Switch\t{ports} \"{}\"\t\t# \"{description}\" base port 0 lid {lid} lmc 0\n",
            label.name
        );
        for (&number, &peer) in &self.ports[index] {
            let (end, description, lid) = self.peer(peer);
            let (port, description) = (self.port(index, number), printable(description));
            let speed = self.speed(PortRef { xbar: index as u32, port: number });
            text += &format!("[{port}]\t{end}\t\t# \"{description}\" lid {lid}{speed}\n");
        }
        text
    }

    fn machine(&self, hosts: &[usize]) -> String {
        let label = &self.fabric.hosts[hosts[0]];
        let guid = label.guid.unwrap_or(self.fabric.map.hosts[hosts[0]].mac.to_u64());
        let kind = if label.name.starts_with("R-") { "Rt" } else { "Ca" };
        let mut text = String::from("\nvendid=0x0\ndevid=0x0\n");
        if let Some(system) = label.system_guid {
            text += &format!("sysimgguid={system:#x}\n");
        }
        text += &format!(
            "caguid={guid:#x}\n{kind}\t{} \"{}\"\t\t# \"{}\"\n",
            self.node_ports(hosts),
            label.name,
            printable(&label.description)
        );
        for &host in hosts {
            let label = &self.fabric.hosts[host];
            let peer = match self.fabric.map.hosts[host].at {
                Some(at) => Peer::Xbar(at),
                None => match self.face_to_face(host) {
                    Some(other) => Peer::Host(other),
                    None => continue,
                },
            };
            let (end, description, lid) = self.peer(peer);
            let _ = writeln!(
                text,
                "[{}]({:x}) \t{end}\t\t# lid {} lmc {} \"{}\" lid {lid}{}",
                label.node_port,
                self.port_guid(host),
                label.lid.unwrap_or(0),
                label.lmc,
                printable(description),
                self.fabric.map.hosts[host].at.map(|at| self.speed(at)).unwrap_or_default()
            );
        }
        text
    }

    /// How many ports a machine has, at least those of its hosts.
    fn node_ports(&self, hosts: &[usize]) -> u8 {
        let labels = hosts.iter().map(|&host| &self.fabric.hosts[host]);
        labels.map(|label| label.node_ports.max(label.node_port)).max().unwrap_or(1)
    }

    /// The host that a host is cabled to without an xbar.
    fn face_to_face(&self, host: usize) -> Option<usize> {
        let [a, b] = self.pair?;
        [(a, b), (b, a)].into_iter().find(|&(one, _)| one == host).map(|(_, other)| other)
    }
}

/// Hosts that are interfaces of one machine, first interface first, and each host's machine.
fn machines(labels: &[HostLabel]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let by_name: BTreeMap<&str, usize> =
        labels.iter().enumerate().map(|(i, label)| (label.name.as_str(), i)).collect();
    let first = |label: &HostLabel| {
        let node = label.name.rsplit_once("-p")?.0;
        let &first = by_name.get(node)?;
        let same = labels[first].guid == label.guid && labels[first].node_port < label.node_port;
        (same && further_name(node, label.node_port) == label.name).then_some(first)
    };
    let firsts: Vec<Option<usize>> = labels.iter().map(first).collect();
    let mut machines = Vec::new();
    let mut machine_of = vec![0; labels.len()];
    for host in (0..labels.len()).filter(|&host| firsts[host].is_none()) {
        machine_of[host] = machines.len();
        machines.push(vec![host]);
    }
    for (host, first) in firsts.iter().enumerate() {
        if let Some(first) = *first {
            machine_of[host] = machine_of[first];
            machines[machine_of[first]].push(host);
        }
    }
    (machines, machine_of)
}

/// A description that stays on its line and in its quotes.
fn printable(description: &str) -> String {
    description.replace('"', "'").replace(|c: char| c.is_control(), " ")
}
