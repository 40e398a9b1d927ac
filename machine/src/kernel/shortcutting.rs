//! Packets by compressed segments are sent on where they come in, before any route is looked up.
//!
//! A chain of nftables at the ports (`netdev`, hook `ingress`) does what End.X does, to what it knows, and leaves the
//! rest to the routes: it strips the port's element by moving all others to the front, addresses the frame to the neighbour
//! there, and sends it out. Looking the way up takes the kernel two walks through all rules for each packet, and forwarding
//! as much again. The table belongs to the socket that made it, so that after a crash packets go by the routes.
//!
//! What takes a shortcut is seen by no firewall, so there is none where some firewall looks at packets of IPv6 on their
//! way.

use std::collections::BTreeMap;
use std::io;

use mapper_fib::segments::{self, Element};
use mapper_fib::shortcuts::Shortcuts;
use mapper_proto::Mac;

use super::nftables::{
    Batch, CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, CMP_EQUAL, CMP_NOT_EQUAL, DATA_VALUE, DELTABLE,
    FIXED_BYTES, GETCHAIN, HOOK_NUMBER, HOOK_PRIORITY, LIST_ELEMENT, META_PROTOCOL, NETWORK, NEWCHAIN,
    NEWRULE, NEWSET, NEWSETELEM, NEWTABLE, NFPROTO_INET, NFPROTO_IPV6, NFPROTO_NETDEV, NFPROTO_UNSPEC,
    NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, RULE_CHAIN, RULE_EXPRESSIONS, RULE_TABLE, TABLE_NAME, compare,
    expression, fixed, immediate, load, put_number, put_table, read,
};
use super::{Kernel, KernelError};
use crate::link::interface::Interface;
use crate::netlink::message::{Attributes, attributes};
use crate::netlink::socket::{Refused, RequestSocket};

const CHAIN: &str = "crossbar";
/// The map from elements to interfaces, and that to both link addresses of a frame. They are two so that `nft` can show
/// rules by them.
const INTERFACES: &str = "interfaces";
const ADDRESSES: &str = "addresses";
const INGRESS: u32 = 0;
/// The hooks of IP that packets pass which go on: before routing, while forwarded, and after it.
const ON_THE_WAY: [u32; 3] = [0, 2, 4];
/// The names of the tables that the older `ip6tables` has made. The file is there where the kernel has that, and root alone
/// may read it: a service that may not takes there to be some.
const OLDER_TABLES: &str = "/proc/thread-self/net/ip6_tables_names";
const HOOK_DEVICES: u16 = 4;
const DEVICE_NAME: u16 = 1;

/// The attributes of a set whose elements have data (a map).
const SET_TABLE: u16 = 1;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const SET_KEY_BYTES: u16 = 5;
const SET_DATA_TYPE: u16 = 6;
const SET_DATA_BYTES: u16 = 7;
const SET_DESCRIPTION: u16 = 9;
const SET_NUMBER: u16 = 10;
const DESCRIPTION_SIZE: u16 = 1;
/// A map whose elements do not change once it is in use.
const SET_CONSTANT_MAP: u32 = 2 | 8;
/// How `nft` shows what stands in maps: link addresses, short numbers, and names of interfaces.
const TYPE_LINK_ADDRESS: u32 = 6;
const TYPE_SHORT: u32 = 13;
const TYPE_INTERFACE: u32 = 20;
const ELEMENTS_TABLE: u16 = 1;
const ELEMENTS_SET: u16 = 2;
const ELEMENTS_LIST: u16 = 3;
const ELEMENT_KEY: u16 = 1;
const ELEMENT_DATA: u16 = 2;

/// Where values of the frame stand that are in its link header.
const LINK: u32 = 0;
/// The bytes of the header of IPv6 before the destination, and of all of it.
const DESTINATION_AT: usize = 24;
const HEADER_BYTES: usize = 40;
const BLOCK_BYTES: usize = segments::BLOCK_BITS as usize / 8;
const ELEMENT_BYTES: usize = segments::ELEMENT_BITS as usize / 8;
/// Where the elements begin.
const ELEMENTS_AT: usize = DESTINATION_AT + BLOCK_BYTES;

/// Registers of sixteen bytes: for what is looked at, for both link addresses, for elements that move, and for the
/// interface.
const LOOKED_AT: u32 = 1;
const FOUND_ADDRESSES: u32 = 2;
const MOVED: u32 = 3;
const FOUND_INTERFACE: u32 = 4;
const INTERFACE_BYTES: usize = 4;
/// The link addresses that a frame begins with: its destination and its source.
const ADDRESSES_BYTES: usize = 12;
/// The size of a part of a register. What does not fill one is followed by zeros.
const WORD_BYTES: usize = 4;

/// What sends packets on where they come in.
#[derive(Debug)]
pub(super) struct Shortcutting {
    /// The socket that the table belongs to; none where the kernel has no nftables.
    owner: Option<RequestSocket>,
    /// What is there; nothing if there is no table.
    there: Shortcuts,
}

impl Shortcutting {
    /// Opens a socket for the table in the network namespace of this thread.
    pub(super) fn open() -> Self {
        Self { owner: RequestSocket::open_netfilter().ok(), there: Shortcuts::default() }
    }

    /// Whether chains of others may want to see packets that go on: of nftables, or of the older `ip6tables`.
    fn is_looked_at_by_others(&mut self) -> bool {
        let asked = self.owner.as_mut().map(|owner| {
            owner.dump(
                GETCHAIN,
                &fixed(NFPROTO_UNSPEC, 0),
                || false,
                |found, message| *found |= sees_what_goes_on(message.body),
            )
        });
        let of_nftables = asked.is_some_and(|found| found.unwrap_or(true));
        of_nftables
            || match std::fs::read_to_string(OLDER_TABLES) {
                Ok(names) => !names.trim().is_empty(),
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            }
    }

    /// Puts these in the place of those that are there. Returns what the kernel refused; then there are none.
    fn replace(&mut self, wanted: &Shortcuts, macs: &BTreeMap<u32, Mac>) -> io::Result<Option<Refused>> {
        let Some(owner) = &mut self.owner else {
            return Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT));
        };
        // The name is nobody else's, also where several daemons have ports in this namespace.
        let table = format!("mapper-{}", owner.port());
        let remove =
            |batch: &mut Batch<'_>| batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, &table));
        let mut batch = Batch::begin(owner, NFPROTO_NETDEV);
        if !self.there.is_empty() {
            remove(&mut batch);
        }
        if !wanted.is_empty() {
            put(&mut batch, &table, wanted, macs);
        }
        let refused = batch.commit()?;
        if refused.is_some() && !self.there.is_empty() {
            // What was there may send packets to who is not at that port any more.
            let mut batch = Batch::begin(owner, NFPROTO_NETDEV);
            remove(&mut batch);
            batch.commit()?;
        }
        self.there = if refused.is_none() { wanted.clone() } else { Shortcuts::default() };
        Ok(refused)
    }
}

impl Kernel {
    /// Sends packets by segments on by these shortcuts, and by no others; by none while a firewall looks at packets of
    /// IPv6 that go on, so call it again from time to time. What has no shortcut goes by the routes.
    ///
    /// Interfaces are those of the network namespace of this thread.
    ///
    /// # Errors
    /// If the kernel has no nftables at ports, an interface is gone, or this process may not change them: then there
    /// are none.
    pub fn set_shortcuts(&mut self, wanted: &Shortcuts) -> Result<(), KernelError> {
        let none = Shortcuts::default();
        let has_any = !wanted.is_empty() && !self.shortcutting.is_looked_at_by_others();
        let wanted = if has_any { wanted } else { &none };
        if self.shortcutting.there == *wanted {
            return Ok(());
        }
        let all = Interface::all().map_err(|source| KernelError::NoInterface { source: Some(source) })?;
        let macs = all.into_iter().map(|interface| (interface.index, interface.mac)).collect();
        let what = "shortcuts between ports (`netdev` of nftables)".to_owned();
        match self.shortcutting.replace(wanted, &macs) {
            Ok(None) => Ok(()),
            Ok(Some(refused)) => {
                let source = io::Error::from_raw_os_error(refused.errno);
                Err(KernelError::Refused { what, said: refused.said, source })
            }
            Err(source) => Err(KernelError::Refused { what, said: None, source }),
        }
    }
}

/// Whether a message about a chain tells one that sees packets of IPv6 which go on.
fn sees_what_goes_on(body: &[u8]) -> bool {
    let Some((&family, told)) = body.first().zip(body.get(FIXED_BYTES..)) else { return false };
    let hook = attributes(told).find(|(kind, _)| *kind == CHAIN_HOOK).and_then(|(_, hook)| {
        let number = attributes(hook).find(|(kind, _)| *kind == HOOK_NUMBER)?.1;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    });
    [NFPROTO_INET, NFPROTO_IPV6].contains(&family) && hook.is_some_and(|hook| ON_THE_WAY.contains(&hook))
}

/// Adds the table with all that is in it.
fn put(batch: &mut Batch<'_>, table: &str, wanted: &Shortcuts, macs: &BTreeMap<u32, Mac>) {
    batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| {
        put_table(inside, table, "packets by segments go on before routes are looked up");
    });
    batch.add(NEWCHAIN, NLM_F_CREATE, |inside| put_chain(inside, table, wanted));
    let interface = |_, interface: u32, _: &Mac| interface.to_ne_bytes().to_vec();
    let addresses = |own: Mac, _, neighbour: &Mac| [neighbour.0, own.0].concat();
    put_map(
        batch,
        table,
        (1, INTERFACES),
        (TYPE_INTERFACE, INTERFACE_BYTES),
        &elements(wanted, macs, interface),
    );
    put_map(
        batch,
        table,
        (2, ADDRESSES),
        (TYPE_LINK_ADDRESS, ADDRESSES_BYTES),
        &elements(wanted, macs, addresses),
    );
    for strips in [1, 2] {
        batch.add(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |inside| {
            inside.put_text(RULE_TABLE, table);
            inside.put_text(RULE_CHAIN, CHAIN);
            inside.nest(RULE_EXPRESSIONS, |all| put_rule(all, strips));
        });
    }
}

fn put_chain(attributes: &mut Attributes<'_>, table: &str, wanted: &Shortcuts) {
    attributes.put_text(CHAIN_TABLE, table);
    attributes.put_text(CHAIN_NAME, CHAIN);
    attributes.nest(CHAIN_HOOK, |inside| {
        put_number(inside, HOOK_NUMBER, INGRESS);
        put_number(inside, HOOK_PRIORITY, 0);
        inside.nest(HOOK_DEVICES, |devices| {
            wanted.from.iter().for_each(|name| devices.put_text(DEVICE_NAME, name));
        });
    });
    attributes.put_text(CHAIN_TYPE, "filter");
}

/// The elements of ports, and what `data` makes of the port's own link address, its interface and its neighbour.
fn elements(
    wanted: &Shortcuts,
    macs: &BTreeMap<u32, Mac>,
    data: impl Fn(Mac, u32, &Mac) -> Vec<u8>,
) -> Vec<(u16, Vec<u8>)> {
    let own = |interface: u32| macs.get(&interface).copied().unwrap_or(Mac([0; 6]));
    let of = |(element, (interface, neighbour)): (&u16, &(u32, Mac))| {
        (*element, data(own(*interface), *interface, neighbour))
    };
    wanted.to.iter().map(of).collect()
}

/// Adds a map from elements to data of this type and size. Its number is one within the batch.
fn put_map(
    batch: &mut Batch<'_>,
    table: &str,
    (number, name): (u32, &str),
    (data_type, data_bytes): (u32, usize),
    elements: &[(u16, Vec<u8>)],
) {
    batch.add(NEWSET, NLM_F_CREATE, |inside| {
        inside.put_text(SET_TABLE, table);
        inside.put_text(SET_NAME, name);
        put_number(inside, SET_FLAGS, SET_CONSTANT_MAP);
        put_number(inside, SET_KEY_TYPE, TYPE_SHORT);
        put_number(inside, SET_KEY_BYTES, ELEMENT_BYTES as u32);
        put_number(inside, SET_DATA_TYPE, data_type);
        put_number(inside, SET_DATA_BYTES, data_bytes as u32);
        inside.nest(SET_DESCRIPTION, |inside| put_number(inside, DESCRIPTION_SIZE, elements.len() as u32));
        put_number(inside, SET_NUMBER, number);
    });
    batch.add(NEWSETELEM, NLM_F_CREATE, |inside| {
        inside.put_text(ELEMENTS_TABLE, table);
        inside.put_text(ELEMENTS_SET, name);
        inside.nest(ELEMENTS_LIST, |list| {
            for (element, data) in elements {
                list.nest(LIST_ELEMENT, |inside| {
                    inside.nest(ELEMENT_KEY, |key| key.put(DATA_VALUE, &element.to_be_bytes()));
                    inside.nest(ELEMENT_DATA, |value| value.put(DATA_VALUE, data));
                });
            }
        });
    });
}

/// Sends packets on whose next element is a port's; with two that are stripped, the one before it is that by which the
/// packet left its sender. The last element of an address is left to the routes, as others may stand in a routing
/// header.
fn put_rule(all: &mut Attributes<'_>, strips: usize) {
    load(all, LOOKED_AT, META_PROTOCOL);
    compare(all, LOOKED_AT, CMP_EQUAL, &(libc::ETH_P_IPV6 as u16).to_be_bytes());
    read(all, LOOKED_AT, DESTINATION_AT, BLOCK_BYTES);
    compare(all, LOOKED_AT, CMP_EQUAL, &segments::block()[..]);
    if strips == 2 {
        // All elements of this kind begin with the same byte.
        read(all, LOOKED_AT, ELEMENTS_AT, 1);
        compare(all, LOOKED_AT, CMP_EQUAL, &Element::FirstPort(0).bits().to_be_bytes()[..1]);
    }
    let port_at = ELEMENTS_AT + (strips - 1) * ELEMENT_BYTES;
    read(all, LOOKED_AT, port_at, ELEMENT_BYTES);
    look_up(all, INTERFACES, FOUND_INTERFACE);
    look_up(all, ADDRESSES, FOUND_ADDRESSES);
    let rest_at = port_at + ELEMENT_BYTES;
    let rest = HEADER_BYTES - rest_at;
    // Zeros take the place of what moves. Where what moves ends within a word, they are there already.
    if rest.is_multiple_of(WORD_BYTES) {
        immediate(all, MOVED, &[0; HEADER_BYTES - ELEMENTS_AT]);
    }
    read(all, MOVED, rest_at, rest);
    compare(all, MOVED, CMP_NOT_EQUAL, &vec![0; rest]);
    replace(all, MOVED, NETWORK, ELEMENTS_AT, HEADER_BYTES - ELEMENTS_AT);
    replace(all, FOUND_ADDRESSES, LINK, 0, ADDRESSES_BYTES);
    expression(all, "fwd", |inside| put_number(inside, 1, FOUND_INTERFACE));
}

/// Goes on only where what is looked at stands in this map, and puts what it leads to into a register.
fn look_up(list: &mut Attributes<'_>, map: &str, found: u32) {
    expression(list, "lookup", |inside| {
        inside.put_text(1, map);
        put_number(inside, 2, LOOKED_AT);
        put_number(inside, 3, found);
    });
}

/// Writes what a register holds into the frame. No checksum is over it.
fn replace(list: &mut Attributes<'_>, register: u32, base: u32, at: usize, bytes: usize) {
    expression(list, "payload", |inside| {
        put_number(inside, 5, register);
        put_number(inside, 2, base);
        put_number(inside, 3, at as u32);
        put_number(inside, 4, bytes as u32);
    });
}
