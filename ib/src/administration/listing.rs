//! Records of nodes, ports, switches, managers and cables.

use super::records::Records;
use super::subnet::Subnet;
use crate::mad::sa::{
    LINK_FIELDS, MANAGER_FIELDS, NODE_FIELDS, PORT_FIELDS, SWITCH_FIELDS, SaAttribute, SaMad, SaStatus,
    link_record, manager_record, matches, node_record, port_record, switch_record,
};
use crate::mad::{NodeInfo, NodeKind};

/// Bit 31 of the modifier. If it is set, a request is for ports that have all the capabilities that it names,
/// whatever other ones they have.
const BY_SINGLE_CAPABILITIES: u32 = 1 << 31;
/// The bit of the component mask for capabilities.
const CAPABILITIES: u64 = 1 << 7;
const CAPABILITIES_AT: usize = 24;

/// The records of an attribute that match a request.
pub(super) fn find(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    match request.attribute {
        SaAttribute::NodeRecord => nodes(subnet, request),
        SaAttribute::PortInfoRecord => ports(subnet, request),
        SaAttribute::SwitchInfoRecord => switches(subnet, request),
        SaAttribute::SmInfoRecord => managers(subnet, request),
        SaAttribute::LinkRecord => links(subnet, request),
        _ => Err(SaStatus::MethodAttribute),
    }
}

fn nodes(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    for end in subnet.ends() {
        let Some((info, description)) = subnet.nodes.get(&end.node) else { continue };
        let local_port = if info.kind == NodeKind::Switch { info.local_port } else { end.port };
        let info = NodeInfo { port_guid: end.guid, local_port, ..*info };
        let record = node_record(end.lid, &info, description);
        if matches(NODE_FIELDS, request.mask, &request.data, &record) {
            records.push(&record)?;
        }
    }
    Ok(records)
}

fn ports(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let capabilities = |bytes: &[u8]| -> u32 {
        bytes[CAPABILITIES_AT..CAPABILITIES_AT + 4].iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte))
    };
    let by_single = request.modifier & BY_SINGLE_CAPABILITIES != 0 && request.mask & CAPABILITIES != 0;
    let wanted = if by_single { capabilities(&request.data) } else { 0 };
    let mask = if by_single { request.mask & !CAPABILITIES } else { request.mask };
    let mut records = Records::default();
    for end in subnet.ends() {
        let of_switch = subnet.switches.get(&end.node).filter(|_| end.is_switch());
        let several =
            of_switch.into_iter().flat_map(|switch| switch.ports.iter().map(|(&port, of)| (port, of)));
        let single = (!end.is_switch()).then_some((end.port, &end.settings));
        for (port, settings) in several.chain(single) {
            let record = port_record(end.lid, port, settings);
            let has = capabilities(&record) & wanted == wanted;
            if has && matches(PORT_FIELDS, mask, &request.data, &record) {
                records.push(&record)?;
            }
        }
    }
    Ok(records)
}

fn switches(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    for end in subnet.ends().filter(|end| end.is_switch()) {
        let Some(info) = subnet.switch_infos.get(&end.node) else { continue };
        let record = switch_record(end.lid, info);
        if matches(SWITCH_FIELDS, request.mask, &request.data, &record) {
            records.push(&record)?;
        }
    }
    Ok(records)
}

fn managers(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    for (port, manager) in &subnet.managers {
        let Some(end) = subnet.by_guid(*port) else { continue };
        let record = manager_record(end.lid, manager);
        if matches(MANAGER_FIELDS, request.mask, &request.data, &record) {
            records.push(&record)?;
        }
    }
    Ok(records)
}

fn links(subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
    let mut records = Records::default();
    let lids: std::collections::BTreeMap<(u64, u8), u16> =
        subnet.ends().map(|end| ((end.node, end.port), end.lid)).collect();
    // The LID of a switch is that of its port 0, whichever port is meant.
    let lid_of = |(node, port): (u64, u8)| lids.get(&(node, port)).or_else(|| lids.get(&(node, 0))).copied();
    for (&guid, switch) in &subnet.switches {
        for (&port, &far) in &switch.cables {
            let near = (guid, port);
            let Some((from, to)) = lid_of(near).zip(lid_of(far)) else { continue };
            let back = (!subnet.switches.contains_key(&far.0)).then(|| link_record(to, far.1, port, from));
            for record in std::iter::once(link_record(from, port, far.1, to)).chain(back) {
                if matches(LINK_FIELDS, request.mask, &request.data, &record) {
                    records.push(&record)?;
                }
            }
        }
    }
    Ok(records)
}
