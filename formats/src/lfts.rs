//! Forwarding tables as OpenSM dumps them (`opensm-lfts.dump`) and loads them (`opensm -R file -U FILE`).
//!
//! A header a switch, a row a destination that it has an entry for, and the last LID again:
//!
//! ```text
//! Unicast lids [0-14] of switch Lid 2 guid 0x0200000000000001 ('leaf1'):
//! 0x0001 001 # Channel Adapter portguid 0x0000020000000002: 'h1'
//! 0x0002 000 # Switch portguid 0x0200000000000001: 'leaf1'
//! 14 lids dumped
//! ```
//!
//! A switch's own LID leads to its port 0. So ports count from 1, and those of a fabric that counts from 0
//! are moved, as in its ibnetdiscover file.
//!
//! Destinations are told by the GUID of their port first, and then by their LID: a fabric's LIDs may have
//! changed since the tables were made. The dump of ibroute (`dump_lfts.sh`) is read, too.

mod held;
mod notes;
mod read;
mod write;

pub use held::of_switches;
pub use read::read;
pub use write::Dump;

use mapper_proto::map::{Fabric, PortRef};
use thiserror::Error;

use super::port_shifts;
use mapper_routing::Tables;

/// Ports of a fabric that tables cannot name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{xbar} uses port 0 and port {last} of {ports}: it is not clear whether its ports count from 0 or from 1; \
     forwarding tables count from 1, so give it more ports in the fabric's file, or number them anew there"
)]
pub struct PortZero {
    xbar: String,
    last: u8,
    ports: u8,
}

/// How ports are numbered in dumps.
#[derive(Debug, Clone)]
struct PortNumbers {
    /// How far each xbar's ports move.
    shifts: Vec<i16>,
    /// The highest port of each xbar, as dumps number it.
    last: Vec<u8>,
}

impl PortNumbers {
    fn of(fabric: &Fabric) -> Result<Self, PortZero> {
        let shifts = port_shifts(fabric, 1);
        let mut last: Vec<u8> = fabric.map.xbars.iter().map(|xbar| xbar.ports).collect();
        let hosts = fabric.map.hosts.iter().filter_map(|host| host.at);
        let cabled = fabric.map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
        let mut uses_zero = None;
        for PortRef { xbar, port } in hosts.chain(cabled) {
            let xbar = xbar as usize;
            // A port 255 would be past the numbers that tables have: `Subnet` knows none.
            let number = u8::try_from(i16::from(port) + shifts[xbar]).unwrap_or(u8::MAX);
            if number == 0 {
                uses_zero = uses_zero.or(Some(xbar));
            }
            last[xbar] = last[xbar].max(number);
        }
        match uses_zero {
            None => Ok(Self { shifts, last }),
            Some(xbar) => Err(PortZero {
                xbar: fabric.xbars[xbar].name.clone(),
                last: last[xbar],
                ports: fabric.map.xbars[xbar].ports,
            }),
        }
    }

    /// The number of a port in a dump.
    fn written(&self, xbar: u32, port: u8) -> u8 {
        u8::try_from(i16::from(port) + self.shifts[xbar as usize]).unwrap_or(u8::MAX)
    }

    /// The port that has a number in a dump; [`Tables::NONE`] for numbers that are none here. `Err` if it is
    /// past the xbar's ports.
    fn read(&self, xbar: u32, number: u32) -> Result<u8, u8> {
        let last = self.last[xbar as usize];
        if number > last.into() {
            return Err(last);
        }
        let port = i64::from(number) - i64::from(self.shifts[xbar as usize]);
        Ok(u8::try_from(port).unwrap_or(Tables::NONE))
    }
}

#[cfg(test)]
mod tests;
