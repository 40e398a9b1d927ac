//! What the tag of a node's crossbar is made of at this machine: see [`mapper_proto::crossbar_tag`].

/// The files that may hold the machine's id (machine-id(5)), the likelier one first.
const MACHINE_ID_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// The machine's id; empty if it has none, as in many containers.
pub(super) fn machine_id() -> Vec<u8> {
    MACHINE_ID_FILES.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default()
}

/// Makes each xbar that has hosts the crossbar of the node of the first of them.
#[cfg(test)]
pub(super) fn make_nodes(map: &mut mapper_proto::map::Map) {
    for host in map.hosts.iter().rev() {
        if let Some(at) = host.at {
            map.xbars[at.xbar as usize].tag = Some(mapper_proto::crossbar_tag::derive(b"5a", &[host.mac]));
        }
    }
}
