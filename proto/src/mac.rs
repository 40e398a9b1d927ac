//! The 48-bit address of a host's interface.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The 48-bit address of a host's interface: unique in a fabric, and the tie-break of the election.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address that no host has: all zeros.
    pub const NOBODY: Self = Self([0; 6]);

    /// The address whose 48 bits are the low 48 bits of `value`.
    pub const fn from_u64(value: u64) -> Self {
        let b = value.to_be_bytes();
        Self([b[2], b[3], b[4], b[5], b[6], b[7]])
    }

    /// The address as a number.
    pub const fn to_u64(self) -> u64 {
        let m = self.0;
        u64::from_be_bytes([0, 0, m[0], m[1], m[2], m[3], m[4], m[5]])
    }

    /// The locally administered address `02:00:00:xx:xx:xx` of the host at `position`.
    pub const fn from_position(position: u32) -> Self {
        Self::from_u64(0x0200_0000_0000 | (position as u64 & 0x00ff_ffff))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.0;
        write!(f, "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", m[0], m[1], m[2], m[3], m[4], m[5])
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a MAC address; expected six pairs of hexadecimal digits, aa:bb:cc:dd:ee:ff")]
pub struct ParseMacError(String);

impl FromStr for Mac {
    type Err = ParseMacError;

    /// Reads `aa:bb:cc:dd:ee:ff`, the same with `-`, or twelve hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMacError(text.to_owned());
        let digits: String = text.chars().filter(|c| !matches!(c, ':' | '-')).collect();
        let separators = text.len() - digits.len();
        let regular =
            separators == 0 || (separators == 5 && text.split([':', '-']).all(|pair| pair.len() == 2));
        if !regular || digits.len() != 12 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        u64::from_str_radix(&digits, 16).map(Self::from_u64).map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let mac: Mac = "02:00:00:00:01:ff".parse().unwrap();
        assert_eq!(mac, Mac::from_position(0x1ff));
        assert_eq!(mac.to_string(), "02:00:00:00:01:ff");
        assert_eq!("0200000001ff".parse(), Ok(mac));
        assert_eq!("02-00-00-00-01-FF".parse(), Ok(mac));
    }

    #[test]
    fn refuses_what_is_no_address() {
        for bad in ["", "02:00:00:00:01", "02:00:00:00:01:fg", "0:2:00:00:00:01:ff0", "+20000000001"] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}
