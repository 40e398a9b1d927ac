//! Datagrams that are longer than what the kernels' ways carry.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::can_carry_ip;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::ring::Ring;

/// Whether a datagram of this many bytes, and a ping as long, gets from one machine to an address of another.
fn long_ones_arrive(from: &Namespace, to: &Namespace, address: IpAddr, bytes: usize) -> bool {
    let receiver = to.enter(|| UdpSocket::bind((address, 0)).unwrap());
    let port = receiver.local_addr().unwrap().port();
    receiver.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    from.enter(|| {
        let sender = UdpSocket::bind((if address.is_ipv4() { "0.0.0.0" } else { "::" }, 0)).unwrap();
        sender.send_to(&vec![7; bytes], (address, port)).unwrap();
    });
    let mut buffer = vec![0; 65536];
    let arrived = receiver.recv(&mut buffer).is_ok_and(|received| received == bytes);
    let ping = from.command_line(&format!("ping -c 1 -W 1 -s {bytes} {address}")).output().unwrap();
    arrived && ping.status.success()
}

/// The type of service with which a datagram of this many bytes arrives that was sent with `service`, if it does.
fn arrived_service(
    (from, to): (&Namespace, &Namespace),
    address: Ipv4Addr,
    bytes: usize,
    service: u8,
) -> Option<u8> {
    const HEADERS_BYTES: usize = 28;
    // Such a socket is given the header of IP as well.
    let mut receiver = to.enter(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap());
    receiver.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    from.enter(|| {
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        sender.set_tos_v4(service.into()).unwrap();
        sender.send_to(&vec![7; bytes], &SocketAddr::from((address, 9)).into()).unwrap();
    });
    let mut packet = vec![0; 65536];
    loop {
        if receiver.read(&mut packet).ok()? == HEADERS_BYTES + bytes {
            return Some(packet[1]);
        }
    }
}

#[test]
fn datagrams_keep_their_type_of_service_whatever_their_length_and_ipv4_has_no_rule() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    let ends = (&ring.machines[0], &ring.machines[1]);
    // Some code points, with and without explicit congestion notification; the last is that of long ones on their way.
    for service in [0, 0x02, 0x28, 0xba, 0x0c] {
        for bytes in [100, 1432, 1433, 3000, 20_000] {
            wait_for(&format!("{bytes} bytes with the type of service {service:#x}"), || {
                arrived_service(ends, Ipv4Addr::new(10, 1, 0, 2), bytes, service)
                    .map(|arrived| assert_eq!(arrived, service))
            });
        }
    }
    let rules = ring.text(0, "ip -4 rule");
    assert_eq!(rules.lines().count(), 3, "one would slow down all packets: {rules}");
}

#[test]
fn datagrams_that_are_longer_than_any_packet_arrive_by_whatever_packets_go() {
    if !can_carry_ip() {
        return;
    }
    for kind in ["srv6", "routes", "tap"] {
        let ring = Ring::new(3);
        let _daemons: Vec<_> = (0..3).map(|at| ring.start_addressed(at, &["--data-path", kind])).collect();
        if kind != "tap" {
            (0..3).for_each(|at| ring.wait_for_kind(at, kind));
        }
        let six: IpAddr = wait_for("the other host's address is known", || {
            let addresses = ring.board(1, &[])["addresses"].to_string();
            let six = addresses.split('"').find(|text| text.starts_with("fd6d:"))?;
            six.split('/').next()?.parse().ok()
        });
        for address in [IpAddr::from([10, 1, 0, 2]), six] {
            // The first is as long as no way by segments carries and every cable does.
            for bytes in [1440, 3000, 20_000, 60_000] {
                wait_for(&format!("{bytes} bytes reach {address} by {kind}"), || {
                    long_ones_arrive(&ring.machines[0], &ring.machines[1], address, bytes).then_some(())
                });
            }
        }
        if kind == "srv6" {
            // Packets as long as a way carries go by the kernels.
            wait_for("pings that do not go by the tap interface", || {
                let by_tap = ring.sent_by_tap(0);
                let whole = ring.run(0, "ping -c 20 -i 0.01 -M do -s 1432 10.1.0.2");
                (whole.status.success() && ring.sent_by_tap(0) < by_tap + 20).then_some(())
            });
        }
    }
}
