//! The list of a node's ports, and the name that it gives the node.

use super::OptionsError;

/// The most interfaces of a node: a crossbar has 255 ports, and the agent needs one of them.
pub(super) const MAX_NODE_PORTS: usize = 254;

/// The longest name of a node: it is part of the path of a unix socket, which has at most 107 bytes.
const MAX_NODE_NAME_BYTES: usize = 40;

/// Whether a word in the list of a node's ports stands for all interfaces that match.
pub(super) fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?'])
}

/// The name of a node, which has no one interface to be called by. It is made of all its ports and the plain
/// parts of its patterns, or if they are many, of the first and how many follow.
pub(super) fn node_name(ports: &[String]) -> Result<String, OptionsError> {
    if ports.is_empty() || ports.len() > MAX_NODE_PORTS {
        return Err(OptionsError::PortCount);
    }
    let different: std::collections::BTreeSet<_> = ports.iter().collect();
    if different.len() < ports.len() || ports.iter().any(String::is_empty) {
        return Err(OptionsError::PortTwice);
    }
    if ports.iter().any(|port| port.contains('=')) {
        return Err(OptionsError::PortOfXbar);
    }
    let plain: Vec<String> = ports.iter().map(|port| port.replace(['*', '?', '/'], "")).collect();
    let plain: Vec<String> = plain.into_iter().filter(|word| !word.is_empty()).collect();
    let name = if plain.is_empty() { "node".to_owned() } else { plain.join("+") };
    match plain.first() {
        Some(first) if name.len() > MAX_NODE_NAME_BYTES => Ok(format!("{first}+{}-more", ports.len() - 1)),
        _ => Ok(name),
    }
}
