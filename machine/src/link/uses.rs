//! What else the machine uses an interface for.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The flag of a route that is in use (`RTF_UP`).
const ROUTE_UP: u32 = 0x0001;
/// The flag of a route that refuses packets (`RTF_REJECT`).
const ROUTE_REJECTS: u32 = 0x0200;

/// The interfaces that the default routes of IPv4 and IPv6 lead to: the machine reaches other networks by
/// these. They are those of this process's network namespace.
///
/// # Errors
/// If the kernel's lists of routes cannot be read. A kernel without IPv6 has no such list.
pub fn default_route_interfaces() -> io::Result<BTreeSet<String>> {
    let (routes, ipv6_routes) = (list("/proc/self/net/route")?, list("/proc/self/net/ipv6_route")?);
    let interfaces = routes.lines().filter_map(of_route).chain(ipv6_routes.lines().filter_map(of_ipv6_route));
    Ok(interfaces.map(str::to_owned).collect())
}

/// The text of one of the kernel's lists; empty if there is no such list.
fn list(path: &str) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

/// The interface of a line of `/proc/net/route`, if the line is a default route.
fn of_route(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [interface, destination, _gateway, flags, _, _, _, mask, ..] = words[..] else { return None };
    let is_default = destination == "00000000" && mask == "00000000";
    (is_default && is_in_use(flags)).then_some(interface)
}

/// The interface of a line of `/proc/net/ipv6_route`, if the line is a default route.
fn of_ipv6_route(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [destination, length, .., flags, interface] = words[..] else { return None };
    let is_default = destination.bytes().all(|digit| digit == b'0') && length == "00";
    (is_default && is_in_use(flags)).then_some(interface)
}

fn is_in_use(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & (ROUTE_UP | ROUTE_REJECTS) == ROUTE_UP)
}

/// Whether an interface is wireless. The kernel says so in `/sys` alone, which may show the interfaces of
/// another network namespace; there are no wireless ones in most others.
pub fn is_wireless(interface: &str) -> bool {
    let of_interface = Path::new("/sys/class/net").join(interface);
    ["phy80211", "wireless"].into_iter().any(|entry| of_interface.join(entry).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_default_routes_that_are_in_use_count() {
        for (line, expected) in [
            ("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT", None),
            ("eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0", Some("eth0")),
            ("eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0", None),
            ("*\t00000000\t00000000\t0200\t0\t0\t100\t00000000\t0\t0\t0", None),
            ("", None),
        ] {
            assert_eq!(of_route(line), expected, "{line}");
        }
        let zeros = "0".repeat(32);
        let line = |length: &str, flags: &str| {
            format!(
                "{zeros} {length} {zeros} 00 fe80{} 00000400 00000002 00000000 {flags}     eth1",
                "0".repeat(28)
            )
        };
        assert_eq!(of_ipv6_route(&line("00", "00000003")), Some("eth1"));
        assert_eq!(of_ipv6_route(&line("40", "00000003")), None);
        assert_eq!(of_ipv6_route(&line("00", "00200200")), None);
        assert_eq!(of_ipv6_route("00"), None);
    }
}
