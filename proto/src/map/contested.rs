//! Addresses that two hosts have.
//!
//! A mapper that finds one address at two ports, behind which two agents answer, believes neither:
//! both are left out of the map's hosts, and [`Map::contested`] tells everybody of them.

use std::fmt;

use super::{Map, PortRef};
use crate::Mac;

/// A port whose host has an address that another host has too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Contested {
    /// The address. [`Mac::NOBODY`] where no host is behind the port, but xbars that cannot be believed: they
    /// show the tag of another, or answer as ever more xbars, however many are asked for.
    pub mac: Mac,
    /// The port that this one of the hosts is cabled to.
    pub at: PortRef,
}

/// A port as a person finds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The port, by the xbar's number in the map.
    pub at: PortRef,
    /// The xbar's identity, if it is tagged.
    pub tag: Option<u64>,
}

/// An address that several hosts have, and where they are; or, for [`Mac::NOBODY`], the ports behind
/// which is no xbar that can be believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressConflict {
    /// The address.
    pub mac: Mac,
    /// Where those hosts are cabled, as far as is known.
    pub places: Vec<Place>,
}

impl fmt::Display for Place {
    /// An xbar without identity is called as in a map file: x1, x2 and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortRef { xbar, port } = self.at;
        match self.tag {
            Some(tag) => write!(f, "port {port} of xbar {tag:016x}"),
            None => write!(f, "port {port} of xbar x{}", u64::from(xbar) + 1),
        }
    }
}

impl fmt::Display for AddressConflict {
    /// What is wrong and what to do, less the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mac == Mac::NOBODY {
            f.write_str("no crossbar that can be believed, as it shows the tag of another, answers without end, or what it says cannot be so")?;
            for (index, place) in self.places.iter().enumerate() {
                write!(f, "{} {place}", if index == 0 { ": at" } else { " and at" })?;
            }
            return f.write_str("; it is left out of the map: see what is plugged in there");
        }
        f.write_str(match self.places.len() {
            0 | 1 => "another host has this address too",
            2 => "two hosts have this address",
            _ => "several hosts have this address",
        })?;
        for (index, place) in self.places.iter().enumerate() {
            let before = match index {
                0 if self.places.len() == 1 => "; one is at",
                0 => ": at",
                _ => " and at",
            };
            write!(f, "{before} {place}")?;
        }
        f.write_str("; none of them is believed: give one another address")
    }
}

impl Map {
    /// The addresses that several hosts have, in rising order, and where those hosts are.
    pub fn address_conflicts(&self) -> Vec<AddressConflict> {
        let same = |a: &Contested, b: &Contested| a.mac == b.mac;
        let conflict = |of_one: &[Contested]| AddressConflict {
            mac: of_one[0].mac,
            places: of_one.iter().map(|contested| self.place(contested.at)).collect(),
        };
        self.contested.chunk_by(same).map(conflict).collect()
    }

    /// A port, with its xbar's identity.
    fn place(&self, at: PortRef) -> Place {
        Place { at, tag: self.xbars.get(at.xbar as usize).and_then(|xbar| xbar.tag) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Xbar;

    #[test]
    fn what_cannot_be_believed_is_told_by_its_port() {
        let at = PortRef { xbar: 0, port: 4 };
        let map = Map {
            xbars: vec![Xbar { ports: 8, tag: Some(0xfeed), ports_known: true }],
            contested: vec![Contested { mac: Mac::NOBODY, at }],
            ..Map::default()
        };
        let told: Vec<_> = map.address_conflicts().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["no crossbar that can be believed, as it shows the tag of another, answers without end, or \
              what it says cannot be so: at port 4 of xbar 000000000000feed; it is left out of the map: see what is plugged in there"]
        );
    }

    #[test]
    fn conflicts_name_the_address_every_place_and_what_to_do() {
        let contested =
            |mac, xbar, port| Contested { mac: Mac::from_position(mac), at: PortRef { xbar, port } };
        let xbar = |tag| Xbar { ports: 8, tag, ports_known: true };
        let map = Map {
            xbars: vec![xbar(None), xbar(Some(0xfeed))],
            contested: vec![contested(3, 0, 4), contested(3, 1, 2), contested(7, 1, 5)],
            ..Map::default()
        };
        let told: Vec<_> = map.address_conflicts().iter().map(|c| (c.mac, c.to_string())).collect();
        assert_eq!(
            told,
            [
                (
                    Mac::from_position(3),
                    "two hosts have this address: at port 4 of xbar x1 and at port 2 of xbar \
                     000000000000feed; none of them is believed: give one another address"
                        .to_owned()
                ),
                (
                    Mac::from_position(7),
                    "another host has this address too; one is at port 5 of xbar 000000000000feed; \
                     none of them is believed: give one another address"
                        .to_owned()
                )
            ]
        );
    }
}
