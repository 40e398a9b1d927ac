//! What a host runs, by name or number.

use std::str::FromStr;

use mapper_proto::map::host_type;

/// What a host runs, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostType(u8);

impl HostType {
    /// The number of the type.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// What this number stands for: a name that can be read back, or the number.
    pub fn name(number: u8) -> String {
        let name = match number {
            host_type::GM => "gm",
            host_type::XM => "xm",
            host_type::MX => "mx",
            host_type::ETHERNET => "ethernet",
            host_type::INFINIBAND => "infiniband",
            number => return number.to_string(),
        };
        name.to_owned()
    }
}

impl FromStr for HostType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            match text {
                "gm" => host_type::GM,
                "xm" => host_type::XM,
                "mx" => host_type::MX,
                "ethernet" => host_type::ETHERNET,
                "infiniband" => host_type::INFINIBAND,
                number => number.parse().ok().filter(|&number| number != host_type::PHANTOM).ok_or(
                    "expected gm, xm, mx, ethernet, infiniband, or another type's number from 1 to 255",
                )?,
            };
        Ok(Self(number))
    }
}
