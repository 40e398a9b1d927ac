//! Changes an interface, by messages of rtnetlink (RFC 3549).

use std::io;

use mapper_proto::Mac;

use crate::netlink::message::Attributes;
use crate::netlink::socket::RequestSocket;

const RTM_NEWLINK: u16 = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET_CONF: u16 = 1;
const IPV4_DEVCONF_PROMOTE_SECONDARIES: u16 = 20;
const IFF_UP: u32 = 1;

/// Gives an interface an address and an MTU, and sets it up. When one of its IPv4 addresses is removed later, the others
/// of its network stay: Linux removes those that came after it, unless it is told not to.
pub(super) fn set_up(index: u32, mac: Mac, mtu: u32) -> io::Result<()> {
    change(index, IFF_UP, |attributes| {
        attributes.put(IFLA_ADDRESS, &mac.0);
        attributes.put_u32(IFLA_MTU, mtu);
        attributes.nest(IFLA_AF_SPEC, |families| {
            families.nest(libc::AF_INET as u16, |of_v4| {
                of_v4.nest(IFLA_INET_CONF, |settings| {
                    settings.put_u32(IPV4_DEVCONF_PROMOTE_SECONDARIES, 1);
                });
            });
        });
    })
}

/// Sets an interface up, and leaves everything else about it as it is.
pub(super) fn set_up_only(index: u32) -> io::Result<()> {
    change(index, IFF_UP, |_| {})
}

/// Gives an interface an MTU, and leaves everything else about it as it is.
pub(super) fn set_mtu(index: u32, mtu: u32) -> io::Result<()> {
    change(index, 0, |attributes| attributes.put_u32(IFLA_MTU, mtu))
}

/// Changes an interface, and sets these of its flags.
fn change(index: u32, flags: u32, attributes: impl FnOnce(&mut Attributes<'_>)) -> io::Result<()> {
    // The fields of ifinfomsg are family and type (both unspecified), index, flags, and which flags to
    // change.
    let fixed = [0, index, flags, flags].map(u32::to_ne_bytes).concat();
    RequestSocket::open()?.carry_out(RTM_NEWLINK, 0, &fixed, attributes)
}
