//! Machines with several agents, each with an interface of its own.

use super::*;

/// What the agent of one interface knows, where host 2 is reached along this path.
fn rail(device: &str, own: u32, to: Path) -> Unit {
    let host = |n: u32, path| Host {
        mac: mac(n),
        name: Some(if n == own { "n1" } else { "n2" }.to_owned()),
        addresses: Vec::new(),
        path: Some(path),
    };
    Unit::new(device.to_owned(), mac(own), [host(own, PATH), host(own + 1, to)])
}

#[test]
fn of_the_paths_from_several_interfaces_the_best_is_told() {
    let n2 = || Address::Name("n2".to_owned());
    let mut service = Service::new(Settings::default());
    let mut told = |first: Path, second: Path| {
        service.set_unit(Instant::ZERO, 0, rail("eth0", 1, first));
        service.set_unit(Instant::ZERO, 1, rail("eth1", 11, second));
        let (path, source) = path(resolve(&mut service, None, n2()));
        assert_eq!(source, Some(Address::Name("n1".to_owned())));
        path.sgid
    };
    let [first, second] = [1, 11].map(|own| gid_of(mac(own)));
    // The codes of rates do not rise with them: 25 Gb/s has a greater one than 40.
    let (slow, fast) = (Path { rate_mbps: 25_000, ..PATH }, Path { rate_mbps: 40_000, ..PATH });
    assert_eq!((told(slow, fast), told(fast, slow), told(fast, fast)), (second, first, first));
    let long = Path { mtu_bytes: 4_096, ..PATH };
    assert_eq!((told(PATH, long), told(slow, long)), (second, first), "the rate counts before the MTU");
    assert_eq!(told(Path { hops: 5, ..PATH }, PATH), second);
    // What a client names counts, whatever would be better.
    service.set_unit(Instant::ZERO, 0, rail("eth0", 1, slow));
    let named = path(resolve(&mut service, Some(Address::V6(first)), n2())).0;
    assert_eq!(named.sgid, first);
}
