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
    CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, CMP_EQUAL, CMP_NOT_EQUAL, DATA_VALUE, DELTABLE,
    FIXED_BYTES, GETCHAIN, HOOK_NUMBER, HOOK_PRIORITY, LIST_ELEMENT, META_PROTOCOL, NETWORK, NEWCHAIN,
    NEWRULE, NEWSET, NEWSETELEM, NEWTABLE, NFPROTO_INET, NFPROTO_IPV6, NFPROTO_NETDEV, NFPROTO_UNSPEC,
    NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NftablesBatch, RULE_CHAIN, RULE_EXPRESSIONS, RULE_TABLE,
    TABLE_NAME, VERDICT_REGISTER, Verdict, compare, decide, expression, fixed, immediate, load, put_number,
    put_table, put_verdict, read,
};
use super::{Kernel, KernelError, strangers};
use crate::link::interface::Interface;
use crate::netlink::message::{Attributes, attributes, text};
use crate::netlink::socket::{Refused, RequestSocket};

const CHAIN: &str = "crossbar";
const INGRESS: u32 = 0;
/// The hooks of IP that packets pass which go on: before routing, while forwarded, and after it.
const ON_THE_WAY: [u32; 3] = [0, 2, 4];
/// The names of the tables that the older `ip6tables` has made. The file exists if the kernel has the older `ip6tables`. Only root
/// may read it; a service that may not read it assumes that there are such tables.
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
/// How `nft` shows keys: bytes like those of link addresses.
const TYPE_LINK_ADDRESS: u32 = 6;
/// The data of a map by which it is decided where to go on.
const TYPE_VERDICT: u32 = 0xffff_ff00;
const VERDICT_BYTES: u32 = 16;
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

/// Registers of sixteen bytes: for what is looked at, for elements that move, for both link addresses and for the
/// interface.
const LOOKED_AT: u32 = 1;
const MOVED: u32 = 2;
const ADDRESSES: u32 = 3;
const INTERFACE: u32 = 4;
/// How many bytes the link addresses have that a frame begins with: its destination and its source.
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
        let remove = |batch: &mut NftablesBatch<'_>| {
            batch.add(DELTABLE, 0, |inside| inside.put_text(TABLE_NAME, &table));
        };
        let mut batch = NftablesBatch::begin(owner, NFPROTO_NETDEV);
        if !self.there.is_empty() {
            remove(&mut batch);
        }
        if !wanted.is_empty() {
            put(&mut batch, &table, wanted, macs);
        }
        let told = batch.commit();
        let is_done = matches!(told, Ok(None));
        if !is_done && !self.there.is_empty() {
            // The shortcuts of before may send packets to a neighbour that is not at that port any more.
            let mut batch = NftablesBatch::begin(owner, NFPROTO_NETDEV);
            remove(&mut batch);
            batch.commit()?;
        }
        self.there = if is_done { wanted.clone() } else { Shortcuts::default() };
        told
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

/// Whether a message about a chain tells one of others' that sees packets of IPv6 which go on. The own one sees what comes in by
/// other interfaces than ports.
fn sees_what_goes_on(body: &[u8]) -> bool {
    let Some((&family, told)) = body.first().zip(body.get(FIXED_BYTES..)) else { return false };
    let table = attributes(told).find(|(kind, _)| *kind == CHAIN_TABLE).map(|(_, name)| text(name));
    if family == NFPROTO_IPV6 && table.as_deref() == Some(strangers::TABLE) {
        return false;
    }
    let hook = attributes(told).find(|(kind, _)| *kind == CHAIN_HOOK).and_then(|(_, hook)| {
        let number = attributes(hook).find(|(kind, _)| *kind == HOOK_NUMBER)?.1;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    });
    [NFPROTO_INET, NFPROTO_IPV6].contains(&family) && hook.is_some_and(|hook| ON_THE_WAY.contains(&hook))
}

/// What is stripped of packets that a chain sends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stripped {
    /// The port's element.
    One,
    /// The element by which the packet left its sender, and the port's.
    Two,
}

impl Stripped {
    /// Packets that come straight from their sender are looked at first, as one byte tells them; all others take a look-up in
    /// the map.
    const ALL: [Self; 2] = [Self::Two, Self::One];

    /// The name of the map from elements to chains.
    const fn map(self) -> &'static str {
        match self {
            Self::One => "from-crossbars",
            Self::Two => "from-senders",
        }
    }

    /// The name of the chain that sends packets on out of the port whose element this is.
    fn chain(self, element: u16) -> String {
        // The lower byte is the port's number.
        let [_, port] = element.to_be_bytes();
        format!("{}-{port}", self.map())
    }

    /// Where the port's element stands in the header of IPv6.
    const fn port_at(self) -> usize {
        match self {
            Self::One => ELEMENTS_AT,
            Self::Two => ELEMENTS_AT + ELEMENT_BYTES,
        }
    }
}

/// Adds the table with all that is in it.
fn put(batch: &mut NftablesBatch<'_>, table: &str, wanted: &Shortcuts, macs: &BTreeMap<u32, Mac>) {
    batch.add(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, |inside| {
        put_table(inside, table, "packets by segments go on before routes are looked up");
    });
    for stripped in Stripped::ALL {
        for (&element, &(interface, neighbour)) in &wanted.to {
            let chain = stripped.chain(element);
            let own = macs.get(&interface).copied().unwrap_or(Mac([0; 6]));
            batch.add(NEWCHAIN, NLM_F_CREATE, |inside| put_chain(inside, table, &chain, |_| {}));
            add_rule(batch, table, &chain, |all| send_on(all, stripped, interface, [neighbour, own]));
        }
    }
    for (number, stripped) in (1..).zip(Stripped::ALL) {
        put_map(batch, table, number, stripped, wanted);
    }
    batch.add(NEWCHAIN, NLM_F_CREATE, |inside| {
        put_chain(inside, table, CHAIN, |inside| put_hook(inside, wanted));
    });
    for put in [pass_other_protocols, pass_other_addresses] {
        add_rule(batch, table, CHAIN, put);
    }
    for stripped in Stripped::ALL {
        add_rule(batch, table, CHAIN, |all| find_port(all, stripped));
    }
}

fn put_chain(
    attributes: &mut Attributes<'_>,
    table: &str,
    name: &str,
    put: impl FnOnce(&mut Attributes<'_>),
) {
    attributes.put_text(CHAIN_TABLE, table);
    attributes.put_text(CHAIN_NAME, name);
    put(attributes);
}

/// Has a chain look at what comes in at the ports.
fn put_hook(attributes: &mut Attributes<'_>, wanted: &Shortcuts) {
    attributes.nest(CHAIN_HOOK, |inside| {
        put_number(inside, HOOK_NUMBER, INGRESS);
        put_number(inside, HOOK_PRIORITY, 0);
        inside.nest(HOOK_DEVICES, |devices| {
            wanted.from.iter().for_each(|name| devices.put_text(DEVICE_NAME, name));
        });
    });
    attributes.put_text(CHAIN_TYPE, "filter");
}

/// Adds a rule at the end of a chain.
fn add_rule(batch: &mut NftablesBatch<'_>, table: &str, chain: &str, put: impl FnOnce(&mut Attributes<'_>)) {
    batch.add(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, |inside| {
        inside.put_text(RULE_TABLE, table);
        inside.put_text(RULE_CHAIN, chain);
        inside.nest(RULE_EXPRESSIONS, put);
    });
}

/// Adds the map from elements to chains. Its number is one within the batch. Its keys fill a word, as the kernel finds those
/// in half the time; the bytes behind the element are zeros, as those of a register are into which fewer were
/// read.
fn put_map(batch: &mut NftablesBatch<'_>, table: &str, number: u32, stripped: Stripped, wanted: &Shortcuts) {
    batch.add(NEWSET, NLM_F_CREATE, |inside| {
        inside.put_text(SET_TABLE, table);
        inside.put_text(SET_NAME, stripped.map());
        put_number(inside, SET_FLAGS, SET_CONSTANT_MAP);
        put_number(inside, SET_KEY_TYPE, TYPE_LINK_ADDRESS);
        put_number(inside, SET_KEY_BYTES, WORD_BYTES as u32);
        put_number(inside, SET_DATA_TYPE, TYPE_VERDICT);
        put_number(inside, SET_DATA_BYTES, VERDICT_BYTES);
        inside.nest(SET_DESCRIPTION, |inside| put_number(inside, DESCRIPTION_SIZE, wanted.to.len() as u32));
        put_number(inside, SET_NUMBER, number);
    });
    batch.add(NEWSETELEM, NLM_F_CREATE, |inside| {
        inside.put_text(ELEMENTS_TABLE, table);
        inside.put_text(ELEMENTS_SET, stripped.map());
        inside.nest(ELEMENTS_LIST, |list| {
            for &element in wanted.to.keys() {
                let [high, low] = element.to_be_bytes();
                list.nest(LIST_ELEMENT, |inside| {
                    inside.nest(ELEMENT_KEY, |key| key.put(DATA_VALUE, &[high, low, 0, 0]));
                    inside.nest(ELEMENT_DATA, |data| {
                        put_verdict(data, Verdict::GoTo(&stripped.chain(element)));
                    });
                });
            }
        });
    });
}

/// What is not of IPv6 is none of this chain's.
fn pass_other_protocols(all: &mut Attributes<'_>) {
    load(all, LOOKED_AT, META_PROTOCOL);
    compare(all, LOOKED_AT, CMP_NOT_EQUAL, &(libc::ETH_P_IPV6 as u16).to_be_bytes());
    decide(all, Verdict::Accept);
}

/// What is to no segment is none of this chain's.
fn pass_other_addresses(all: &mut Attributes<'_>) {
    read(all, LOOKED_AT, DESTINATION_AT, BLOCK_BYTES);
    compare(all, LOOKED_AT, CMP_NOT_EQUAL, &segments::block()[..]);
    decide(all, Verdict::Accept);
}

/// Goes on at the chain of the port whose element is next.
fn find_port(all: &mut Attributes<'_>, stripped: Stripped) {
    if stripped == Stripped::Two {
        // All elements by which packets leave their senders begin with the same byte.
        read(all, LOOKED_AT, ELEMENTS_AT, 1);
        compare(all, LOOKED_AT, CMP_EQUAL, &Element::FirstPort(0).bits().to_be_bytes()[..1]);
    }
    read(all, LOOKED_AT, stripped.port_at(), ELEMENT_BYTES);
    expression(all, "lookup", |inside| {
        inside.put_text(1, stripped.map());
        put_number(inside, 2, LOOKED_AT);
        put_number(inside, 3, VERDICT_REGISTER);
    });
}

/// Sends packets out of an interface, to and from these link addresses. The last element of an address is left to the
/// routes, as others may stand in a routing header.
fn send_on(all: &mut Attributes<'_>, stripped: Stripped, interface: u32, [to, from]: [Mac; 2]) {
    let rest_at = stripped.port_at() + ELEMENT_BYTES;
    let rest = HEADER_BYTES - rest_at;
    // Zeros take the place of what moves. Where what moves ends within a word, they are there already.
    if rest.is_multiple_of(WORD_BYTES) {
        immediate(all, MOVED, &[0; HEADER_BYTES - ELEMENTS_AT]);
    }
    read(all, MOVED, rest_at, rest);
    compare(all, MOVED, CMP_NOT_EQUAL, &vec![0; rest]);
    replace(all, MOVED, NETWORK, ELEMENTS_AT, HEADER_BYTES - ELEMENTS_AT);
    immediate(all, ADDRESSES, &[to.0, from.0].concat());
    replace(all, ADDRESSES, LINK, 0, ADDRESSES_BYTES);
    immediate(all, INTERFACE, &interface.to_ne_bytes());
    expression(all, "fwd", |inside| put_number(inside, 1, INTERFACE));
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
