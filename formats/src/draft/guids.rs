//! GUIDs that may be one node's or one port's alone.

use std::collections::BTreeMap;

use super::{Draft, ListedKind};
use crate::Malformed;

impl Draft {
    /// Refuses a GUID that two nodes, or two ports of machines, have. Tables name what they lead to by it.
    ///
    /// All ports of a machine share its GUID, and so may two entries for one machine. A machine's GUID stands for a port only
    /// where the port has none of its own. A port's own GUID may equal its machine's.
    pub(crate) fn check_guids(&self) -> Result<(), Malformed> {
        let mut owners: BTreeMap<u64, Owner<'_>> = BTreeMap::new();
        for node in &self.nodes {
            let whole = |port| Owner { name: &node.name, line: node.line, port };
            match &node.kind {
                ListedKind::Xbar(label, _) => claim(&mut owners, label.guid, whole(None))?,
                ListedKind::Host(host) => {
                    let ports = host.interfaces.iter().filter(|(_, said)| said.guid.is_some());
                    let mut ports = ports.peekable();
                    if ports.peek().is_none() {
                        claim(&mut owners, host.label.guid, whole(None))?;
                    }
                    for (&port, said) in ports {
                        claim(&mut owners, said.guid, Owner { line: said.line, ..whole(Some(port)) })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Who has a GUID.
#[derive(Clone, Copy)]
struct Owner<'a> {
    name: &'a str,
    line: usize,
    /// The port of a machine, if it is the port's.
    port: Option<u8>,
}

impl Owner<'_> {
    fn describe(&self) -> String {
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        format!("`{}`{port}", self.name)
    }
}

/// Gives a GUID to a node or port, unless another has it. 0 is none.
fn claim<'a>(
    owners: &mut BTreeMap<u64, Owner<'a>>,
    guid: Option<u64>,
    owner: Owner<'a>,
) -> Result<(), Malformed> {
    let Some(guid) = guid.filter(|&guid| guid != 0) else { return Ok(()) };
    let Some(first) = owners.insert(guid, owner) else { return Ok(()) };
    let each = if owner.port.is_some() && first.port.is_some() { "port" } else { "node" };
    let (second, first, at) = (owner.describe(), first.describe(), first.line);
    let problem = format!(
        "{second} has GUID {guid:#x}, which is that of {first} at line {at}; each GUID must be one {each}'s"
    );
    Err(Malformed::at(owner.line, problem))
}
