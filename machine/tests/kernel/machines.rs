//! Machines with cables between: network namespaces, whose kernels hold what the fabric needs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use mapper_fib::crossbar::{self, CabledPort, Delivery, Role};
use mapper_fib::segments::{Element, Packing, segments};
use mapper_fib::{GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Table, changes};
use mapper_machine::kernel::{Abilities, Kernel};
use mapper_machine::link::interface::Interface;
use mapper_machine::sysctl::{ForwardingNeeds, KeptSettings};

use crate::namespace::Namespace;

/// A machine of the fabric.
pub(crate) struct Machine {
    pub(crate) namespace: Namespace,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
    pub(crate) kernel: Kernel,
}

impl Machine {
    /// Makes the machine with this number, with addresses on an interface of their own.
    pub(crate) fn new(number: u8) -> Self {
        let namespace = Namespace::new();
        let (v4, v6) =
            (Ipv4Addr::new(10, 1, 0, number), Ipv6Addr::new(0xfd00, 0x6d61, 0, 0, 0, 0, 0, number.into()));
        namespace.ip("link set lo up");
        namespace.ip("tuntap add dev fabric0 mode tap");
        namespace.ip("link set fabric0 up");
        namespace.ip(&format!("addr add {v4}/24 dev fabric0"));
        namespace.ip(&format!("addr add {v6}/64 dev fabric0 nodad"));
        let kernel = namespace.enter(|| Kernel::open().unwrap());
        Self { namespace, v4, v6, kernel }
    }

    /// An interface of the machine.
    pub(crate) fn interface(&self, name: &str) -> Interface {
        self.namespace.enter(|| Interface::look_up(name).unwrap().unwrap())
    }

    /// Lays a cable from this port to one of another machine, both up.
    pub(crate) fn cable(&self, port: &str, other: &Self, other_port: &str) {
        self.namespace
            .ip(&format!("link add {port} type veth peer name {other_port} netns {}", other.namespace.name));
        self.namespace.ip(&format!("link set {port} up"));
        other.namespace.ip(&format!("link set {other_port} up"));
    }

    /// This machine's port `port`, whose cable leads to `other_port` of `other`.
    pub(crate) fn port(
        &self,
        number: u8,
        name: &str,
        (other, other_number, other_name): (&Self, u8, &str),
    ) -> CabledPort {
        let neighbour = other.interface(other_name).mac;
        let interface = self.interface(name).index;
        let (name, neighbour_port) = (name.to_owned(), other_number);
        CabledPort { port: number, interface, name, neighbour, neighbour_port, sends_segments: true }
    }

    /// What the machine takes from its ports.
    pub(crate) const fn delivery(&self) -> Delivery {
        Delivery { v4: Some(self.v4), v6: true, agent_port: None }
    }

    /// Installs what leads from what is there to this, and wants it read back.
    pub(crate) fn install(&mut self, wanted: &Objects) {
        let there = self.kernel.dump().unwrap();
        let failed = self.kernel.apply(&changes(&there, wanted));
        assert!(failed.is_empty(), "{failed:?}");
        let read = self.kernel.dump().unwrap();
        assert_eq!(changes(&read, wanted), [], "what was installed is what is read");
    }

    /// Sets one of `/proc/sys`.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.namespace.enter(|| std::fs::write(format!("/proc/sys/net/{name}"), value).unwrap());
    }

    /// Sets what these ports need, for good.
    pub(crate) fn forward(&self, ports: &[CabledPort], forwards: bool, force_forwarding: bool) {
        let dir = tempfile::tempdir().unwrap();
        let ports = ports.iter().map(|port| (port.interface, port.name.clone())).collect();
        let needs = ForwardingNeeds { ports, tap: None, forwards, force_forwarding };
        self.namespace.enter(|| {
            let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
            let failed = settings.keep(&needs);
            assert!(failed.is_empty(), "{failed:?}");
        });
    }

    /// What the kernel can.
    pub(crate) fn abilities(&mut self) -> Abilities {
        let kernel = &mut self.kernel;
        self.namespace.enter(|| Abilities::try_out(kernel, true).unwrap())
    }
}

/// Routes to another machine's addresses, over these routes of elements. Those with the number `number` and its
/// double are theirs.
pub(crate) fn routes_to(
    from: &Machine,
    to: &Machine,
    number: u32,
    interface: u32,
    routes: &[Vec<Element>],
    packing: Packing,
) -> Objects {
    let mut objects = Objects::default();
    let families: [(IpAddr, IpAddr, Element); 2] = [
        (to.v4.into(), from.v4.into(), Element::DeliverV4),
        (to.v6.into(), from.v6.into(), Element::DeliverV6),
    ];
    for (family, (destination, source, last)) in (0u32..).zip(families) {
        let group = GroupId(2 * number + family);
        let mut members = Vec::new();
        for (at, route) in (0u32..).zip(routes) {
            let elements: Vec<_> = route.iter().copied().chain([last]).collect();
            let segments = segments(&elements, packing).unwrap();
            let id = NexthopId(group.0 * 16 + at);
            objects.nexthops.insert(id, Nexthop::Segments { interface, segments });
            members.push(id);
        }
        objects.groups.insert(group, members);
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(destination) };
        objects.routes.insert(key, Route::Group { group, source: Some(source), mtu: 1380 });
    }
    objects
}

/// What a machine's ports need, if it forwards for others too.
pub(crate) fn ports(machine: &Machine, ports: &[CabledPort], packing: Packing) -> Objects {
    crossbar::by_segments(ports, Role::Crossbar, machine.delivery(), packing)
}

/// Waits until the kernel has made all addresses that it makes by itself, with their routes.
pub(crate) fn settled(machine: &Machine) {
    let started = Instant::now();
    loop {
        let output = machine.namespace.command_line("ip -6 addr show tentative").output().unwrap();
        if output.stdout.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "an address stays tentative");
        std::thread::sleep(Duration::from_millis(20));
    }
}
