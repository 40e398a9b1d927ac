//! The interfaces at the ports of a machine, as they are looked up for what decides by which of them the kernel sends.

use mapper_fib::LEAST_MTU_OF_IPV6;
use mapper_host::kernel_path::PortInterface;
use mapper_machine::link::interface::Interface;

/// These interfaces as they are now, by their ports and names. Those that are gone are left out.
pub(crate) fn look_up(interfaces: impl IntoIterator<Item = (u8, String)>) -> Vec<PortInterface> {
    let found = interfaces.into_iter().filter_map(|(port, name)| {
        let Interface { index, mtu, carrier, .. } = Interface::look_up(&name).ok()??;
        Some(PortInterface { port, index, name, mtu, has_carrier: carrier })
    });
    found.collect()
}

/// Says in words at which of these interfaces the kernel carries nothing for their MTU.
pub(crate) fn too_small(interfaces: &[PortInterface]) -> Option<String> {
    let small: Vec<_> = interfaces.iter().filter(|it| !it.speaks_v6()).collect();
    let first = &small.first()?.name;
    let named: Vec<_> = small.iter().map(|it| format!("{} ({} bytes)", it.name, it.mtu)).collect();
    Some(format!(
        "the MTU is too small for IPv6 at {}: Linux switches IPv6 off below {LEAST_MTU_OF_IPV6}, so the kernel carries no \
         packets there; raise it at both ends of the cable, as with `ip link set {first} mtu 1500`",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_too_small_for_ipv6_are_named_with_what_to_do() {
        let interface = |name: &str, mtu| PortInterface {
            port: 1,
            index: 7,
            name: name.to_owned(),
            mtu,
            has_carrier: true,
        };
        assert_eq!(too_small(&[interface("p0", 1280)]), None);
        let words =
            too_small(&[("p0", 1280), ("p1", 1200), ("p2", 1279)].map(|(name, mtu)| interface(name, mtu)));
        let words = words.unwrap();
        assert!(
            words.contains("p1 (1200 bytes), p2 (1279 bytes)") && words.contains("p1 mtu 1500"),
            "{words}"
        );
    }

    #[test]
    fn interfaces_that_are_gone_are_left_out() {
        let found = look_up([(1, "lo".to_owned()), (2, "nosuch0".to_owned())]);
        assert!(found.iter().map(|it| (it.port, it.name.as_str())).eq([(1, "lo")]));
    }
}
