//! Routes to the networks of an interface's own addresses, which the kernel makes with each address and not again when
//! somebody takes them away.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_fib::{IpPrefix, RouteKey, Table};

use super::{AF_INET, AF_INET6, Kernel, KernelError, RTM_GETROUTE, RTM_NEWROUTE, route};
use crate::netlink::message::{attributes, ip, u32_at};

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
/// Bytes of the `ifaddrmsg` that stands before the attributes of an address.
const ADDRESS_FIXED_BYTES: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_RT_PRIORITY: u16 = 9;
const IFA_F_PERMANENT: u32 = 0x80;
/// Whoever gave the address wanted no such route, or makes it himself.
const IFA_F_NOPREFIXROUTE: u32 = 0x200;

const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
const RTPROT_KERNEL: u8 = 2;
const RTN_UNICAST: u8 = 1;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RT_TABLE_LOCAL: u32 = 255;
/// The metric that the kernel gives such routes of IPv6.
const METRIC_V6: u32 = 256;

/// The route to the network of an address that an interface has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// The network.
    pub to: IpPrefix,
    interface: u32,
    /// The address, of which packets that have none yet get theirs; the kernel gives it to routes of IPv4 alone.
    source: IpAddr,
    metric: u32,
}

impl Connected {
    /// What notices of this route name.
    pub const fn key(&self) -> RouteKey {
        RouteKey { table: Table::Main, to: self.to }
    }
}

/// A route out of an interface: where it leads, and the number of the interface.
type Leads = (IpPrefix, u32);

impl Kernel {
    /// The routes that the kernel made with the addresses of an interface, and those of them that are not there any more: no
    /// route to this network leads out of it, whoever made it.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn connected(&mut self, interface: u32) -> Result<(Vec<Connected>, Vec<Connected>), KernelError> {
        let mut read = || {
            // An address that goes takes its route along. So routes are read first, and an address that goes meanwhile
            // is not read at all. One that comes meanwhile has its route, which is then not put in its place.
            let of_kernel = self.leads(RTPROT_KERNEL)?;
            let all = self.networks_of(interface)?;
            let mut missing: Vec<Connected> = all.clone();
            missing.retain(|it| !of_kernel.contains(&(it.to, interface)));
            if !missing.is_empty() {
                let of_any = self.leads(0)?;
                missing.retain(|it| !of_any.contains(&(it.to, interface)));
            }
            Ok((all, missing))
        };
        read().map_err(|source| KernelError::NoAnswer {
            doing: "reading the routes to networks of an interface".to_owned(),
            source,
        })
    }

    /// Puts such a route back. One that somebody has to the same network is not replaced.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn put_connected(&mut self, connected: &Connected) -> Result<(), KernelError> {
        let Connected { to, interface, source, metric } = *connected;
        let is_v4 = to.ip.is_ipv4();
        let mut fixed = route::fixed_of_any(if is_v4 { AF_INET } else { AF_INET6 });
        fixed[1] = to.bits;
        fixed[4] = Table::Main.number() as u8;
        fixed[5] = RTPROT_KERNEL;
        fixed[6] = if is_v4 { RT_SCOPE_LINK } else { RT_SCOPE_UNIVERSE };
        fixed[7] = RTN_UNICAST;
        // Of IPv6, several interfaces may have a route to one network with one metric, as all have to that of link-local
        // addresses.
        let beside = if is_v4 { NLM_F_EXCL } else { NLM_F_APPEND };
        let made = self.socket.carry_out(RTM_NEWROUTE, NLM_F_CREATE | beside, &fixed, |inside| {
            inside.put_ip(route::RTA_DST, to.ip);
            inside.put_u32(route::RTA_OIF, interface);
            if is_v4 {
                inside.put_ip(route::RTA_PREFSRC, source);
            }
            if metric != 0 {
                inside.put_u32(route::RTA_PRIORITY, metric);
            }
        });
        made.map_err(|source| KernelError::Refused {
            what: format!("the route to {to}, the network of an address of interface number {interface}"),
            said: None,
            source,
        })
    }

    /// Where routes of this protocol lead, those of any with 0.
    fn leads(&mut self, protocol: u8) -> io::Result<BTreeSet<Leads>> {
        let mut all = BTreeSet::new();
        for family in [AF_INET, AF_INET6] {
            let mut fixed = route::fixed_of_any(family);
            fixed[5] = protocol;
            let told = self.socket.dump(RTM_GETROUTE, &fixed, Vec::new, |found, message| {
                found.extend(read_route(message.body));
            });
            all.append(&mut none_without_family(told)?.into_iter().collect());
        }
        Ok(all)
    }

    /// The routes that the kernel makes with the addresses of an interface.
    fn networks_of(&mut self, interface: u32) -> io::Result<Vec<Connected>> {
        let told = self.socket.dump(RTM_GETADDR, &[0; ADDRESS_FIXED_BYTES], Vec::new, |found, message| {
            if message.header.kind == RTM_NEWADDR {
                found.extend(read_address(message.body).filter(|it: &Connected| it.interface == interface));
            }
        });
        let mut all: Vec<Connected> = Vec::new();
        for connected in told? {
            // Of several addresses of one network the first has the route.
            if all.iter().all(|it| it.to != connected.to) {
                all.push(connected);
            }
        }
        Ok(all)
    }
}

/// A kernel without one of the families has no routes of it.
fn none_without_family<T: Default>(told: io::Result<T>) -> io::Result<T> {
    match told {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(T::default()),
        told => told,
    }
}

/// Reads where a route leads that packets take, unless it is one to the machine itself.
fn read_route(body: &[u8]) -> Option<Leads> {
    let (family, bits, kind) = (*body.first()?, *body.get(1)?, *body.get(7)?);
    let (mut table, mut to, mut interface) = (u32::from(*body.get(4)?), None, 0);
    for (kind, value) in attributes(body.get(route::FIXED_BYTES..)?) {
        match kind {
            route::RTA_TABLE => table = u32_at(value, 0)?,
            route::RTA_DST => to = ip(value),
            route::RTA_OIF => interface = u32_at(value, 0)?,
            _ => {}
        }
    }
    let nowhere = if family == AF_INET6 {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    let is_way = kind == RTN_UNICAST && table != RT_TABLE_LOCAL;
    is_way.then_some((IpPrefix { ip: to.unwrap_or(nowhere), bits }, interface))
}

/// Reads the route that the kernel makes with an address; `None` if it makes none.
fn read_address(body: &[u8]) -> Option<Connected> {
    let &[family, bits, flags, _] = body.first_chunk()?;
    let interface = u32_at(body, 4)?;
    let (mut address, mut local, mut flags, mut metric) = (None, None, u32::from(flags), 0);
    for (kind, value) in attributes(body.get(ADDRESS_FIXED_BYTES..)?) {
        match kind {
            IFA_ADDRESS => address = ip(value),
            IFA_LOCAL => local = ip(value),
            IFA_FLAGS => flags = u32_at(value, 0)?,
            IFA_RT_PRIORITY => metric = u32_at(value, 0)?,
            _ => {}
        }
    }
    // Where both are there and differ, the interface leads to one other machine, whose address is the other one.
    let (source, address) = (local.or(address)?, address.or(local)?);
    let to = network(address, bits)?;
    // Networks of IPv6 that a router announced are followed by the kernel itself, so they do not count.
    let is_lasting = family != AF_INET6 || flags & IFA_F_PERMANENT != 0;
    let is_own = to == IpPrefix::host(source);
    if flags & IFA_F_NOPREFIXROUTE != 0 || !is_lasting || is_own {
        return None;
    }
    let metric = if metric == 0 && family == AF_INET6 { METRIC_V6 } else { metric };
    Some(Connected { to, interface, source, metric })
}

/// The network of an address whose first `bits` count.
fn network(address: IpAddr, bits: u8) -> Option<IpPrefix> {
    match address {
        IpAddr::V4(address) => {
            let kept = u32::MAX.checked_shl(32_u32.checked_sub(bits.into())?).unwrap_or(0);
            Some(IpPrefix { ip: Ipv4Addr::from_bits(address.to_bits() & kept).into(), bits })
        }
        IpAddr::V6(address) => (bits <= 128).then(|| IpPrefix::v6(address, bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about an address of interface 7, with these attributes.
    fn of_address(family: u8, bits: u8, flags: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![family, bits, flags, 0];
        body.extend(7_u32.to_ne_bytes());
        for (kind, value) in attributes {
            body.extend((4 + value.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
        }
        body
    }

    #[test]
    fn an_address_has_a_route_to_its_network() {
        let own: &[u8] = &[10, 77, 3, 9];
        let read =
            |bits, attributes: &[(u16, &[u8])]| read_address(&of_address(AF_INET, bits, 0x80, attributes));
        let connected = read(16, &[(IFA_ADDRESS, own), (IFA_LOCAL, own)]).unwrap();
        assert_eq!((connected.to.to_string(), connected.metric), ("10.77.0.0/16".to_owned(), 0));
        assert_eq!(connected.source, IpAddr::from([10, 77, 3, 9]));
        assert_eq!(
            read(32, &[(IFA_ADDRESS, own), (IFA_LOCAL, own)]),
            None,
            "its network is the address alone"
        );
        let none = IFA_F_NOPREFIXROUTE.to_ne_bytes();
        assert_eq!(read(16, &[(IFA_LOCAL, own), (IFA_FLAGS, &none)]), None);
        assert_eq!(read(33, &[(IFA_LOCAL, own)]), None);
        let metric = 50_u32.to_ne_bytes();
        assert_eq!(read(0, &[(IFA_LOCAL, own), (IFA_RT_PRIORITY, &metric)]).unwrap().metric, 50);
    }

    #[test]
    fn of_ipv6_only_an_address_that_somebody_gave_has_one() {
        let own = "fd77::9".parse::<Ipv6Addr>().unwrap().octets();
        let read = |flags| read_address(&of_address(AF_INET6, 64, flags, &[(IFA_ADDRESS, &own)]));
        let connected = read(0x80).unwrap();
        assert_eq!((connected.to.to_string(), connected.metric), ("fd77::/64".to_owned(), METRIC_V6));
        assert_eq!(read(0), None, "a router said so");
    }

    #[test]
    fn what_is_cut_off_is_passed_over() {
        for bytes in 0..12 {
            assert_eq!((read_route(&vec![255; bytes]), read_address(&vec![255; bytes])), (None, None));
        }
    }
}
