//! The tag of a node's crossbar, which is the same after every start and differs between machines.

use crate::Mac;

/// How many ports' addresses count. The first gives the host its address. The second distinguishes machines
/// that were cloned with that address. If more counted, the tag would change whenever a port is added.
const TELLING_PORTS: usize = 2;

/// The tag of the crossbar of a node whose ports have these addresses, in the order of the ports.
///
/// Boards and metrics of all hosts name the crossbar by its tag, so it must not change from start to start.
/// It is the first port's address followed by sixteen bits, which are a checksum of the machine's id and of
/// the addresses of the first two ports. Machines that were cloned share the id or an address, but rarely all
/// of them. Other hosts know by the address that the crossbar is this node's: see [`is_of`].
pub fn derive(machine_id: &[u8], ports: &[Mac]) -> u64 {
    let mut told = machine_id.trim_ascii().to_vec();
    ports.iter().take(TELLING_PORTS).for_each(|mac| told.extend(mac.0));
    let sum = crc32fast::hash(&told);
    let first = ports.first().map_or(0, |mac| mac.to_u64());
    // The machine's id is confidential, and sixteen bits of a checksum do not reveal it.
    first << 16 | u64::from((sum ^ sum >> 16) & 0xffff)
}

/// Whether the crossbar with this tag is that of the node whose agent has this address. A host may also be cabled, by itself or
/// with others, to a crossbar that is a device of its own: that has another tag, or none.
pub fn is_of(tag: u64, mac: Mac) -> bool {
    tag >> 16 == mac.to_u64()
}

/// The host that a crossbar with this tag, and with these hosts, is called by: the one whose node it is, or else the only one that
/// is cabled to it, as people know hosts and not tags.
pub fn naming_host(tag: Option<u64>, hosts: impl IntoIterator<Item = Mac>) -> Option<Mac> {
    let mut hosts = hosts.into_iter();
    let first = hosts.next()?;
    let rest: Vec<Mac> = hosts.collect();
    let is_node = |mac: &Mac| tag.is_some_and(|tag| is_of(tag, *mac));
    let node = rest.iter().copied().chain([first]).find(is_node);
    node.or(rest.is_empty().then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_for_the_same_machine_and_begins_with_its_address() {
        let ports = [Mac::from_position(1), Mac::from_position(2)];
        let tag = derive(b"5a\n", &ports);
        assert_eq!(tag, derive(b"5a", &ports));
        assert_eq!(tag >> 16, ports[0].to_u64());
        let more = [ports[0], ports[1], Mac::from_position(3)];
        assert_eq!(tag, derive(b"5a", &more), "a port that is added changes nothing");
        assert!(is_of(tag, ports[0]) && !is_of(tag, ports[1]));
        assert!(
            !is_of(ports[0].to_u64(), ports[0]),
            "a crossbar that is no node's has its bare address for a tag"
        );
    }

    #[test]
    fn clones_that_share_the_id_or_an_address_have_their_own() {
        let [first, second, third] = [1, 2, 3].map(Mac::from_position);
        let tag = derive(b"5a", &[first, second]);
        assert_ne!(tag, derive(b"5b", &[first, second]), "the address was cloned");
        assert_ne!(tag, derive(b"5a", &[third, second]), "the id was cloned");
        assert_ne!(tag, derive(b"5a", &[first, third]), "the id and the first address were cloned");
        assert_ne!(derive(b"", &[first]), derive(b"", &[second]));
    }
}
