//! How fast a cable is.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How fast a cable is, as InfiniBand tools write it: `4xQDR` is four lanes, each of the rate QDR.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkSpeed {
    /// How many lanes: 1, 2, 4, 8 or 12.
    pub lanes: u8,
    /// The rate of each lane.
    pub rate: LaneRate,
}

/// The rates of a lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "InfiniBand's names, single, double, quadruple data rate and so on, say it")]
pub enum LaneRate {
    Sdr,
    Ddr,
    Qdr,
    Fdr10,
    Fdr,
    Edr,
    Hdr,
    Ndr,
    Xdr,
}

/// A text that is no speed of a cable.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{0}` is no speed of a cable; expected lanes and rate, such as 4xQDR")]
pub struct ParseLinkSpeedError(String);

impl LaneRate {
    /// All of them, the slowest first.
    pub const ALL: [Self; 9] =
        [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr10, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr, Self::Xdr];

    /// InfiniBand's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr10 => "FDR10",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
            Self::Hdr => "HDR",
            Self::Ndr => "NDR",
            Self::Xdr => "XDR",
        }
    }

    /// What a lane signals, in Gb/s, as tools print it: `2.5` for SDR.
    pub const fn signalled_gbps(self) -> &'static str {
        match self {
            Self::Sdr => "2.5",
            Self::Ddr => "5",
            Self::Qdr => "10",
            Self::Fdr10 => "10.3125",
            Self::Fdr => "14",
            Self::Edr => "25",
            Self::Hdr => "50",
            Self::Ndr => "100",
            Self::Xdr => "200",
        }
    }

    /// What a lane carries of data once its line code is taken off, in Mb/s.
    pub const fn data_mbps(self) -> u32 {
        match self {
            Self::Sdr => 2_000,
            Self::Ddr => 4_000,
            Self::Qdr => 8_000,
            Self::Fdr10 => 10_000,
            Self::Fdr => 13_636,
            Self::Edr => 25_000,
            Self::Hdr => 50_000,
            Self::Ndr => 100_000,
            Self::Xdr => 200_000,
        }
    }

    /// What a lane counts for in the rate of a path, in Mb/s: what it signals, rounded as InfiniBand's codes for rates are, of
    /// which there is one for 4xQDR that says 40 Gb/s.
    pub const fn path_mbps(self) -> u32 {
        match self {
            Self::Sdr => 2_500,
            Self::Ddr => 5_000,
            Self::Qdr | Self::Fdr10 => 10_000,
            Self::Fdr => 14_000,
            Self::Edr => 25_000,
            Self::Hdr => 50_000,
            Self::Ndr => 100_000,
            Self::Xdr => 200_000,
        }
    }

    /// The rate of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| rate.name().eq_ignore_ascii_case(name))
    }

    /// The rate that a lane signals, in Gb/s as tools print it.
    pub fn of_signalled_gbps(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| rate.signalled_gbps() == text)
    }
}

impl LinkSpeed {
    /// The numbers of lanes that there are.
    pub const LANES: [u8; 5] = [1, 2, 4, 8, 12];

    /// The speed of so many lanes (`4`, with or without an `x` behind it), if there is such a cable.
    pub fn of_lanes(lanes: &str, rate: LaneRate) -> Option<Self> {
        let lanes = lanes.strip_suffix(['x', 'X']).unwrap_or(lanes).parse().ok()?;
        Self::LANES.contains(&lanes).then_some(Self { lanes, rate })
    }

    /// The rate of a path along the cable, in Mb/s, as InfiniBand's codes for rates say it.
    pub fn path_mbps(self) -> u32 {
        u32::from(self.lanes) * self.rate.path_mbps()
    }

    /// What the cable carries of data each way, in Mb/s.
    pub fn data_mbps(self) -> u32 {
        u32::from(self.lanes) * self.rate.data_mbps()
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.lanes, self.rate.name())
    }
}

impl FromStr for LinkSpeed {
    type Err = ParseLinkSpeedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(['x', 'X']);
        parts
            .and_then(|(lanes, rate)| Self::of_lanes(lanes, LaneRate::of_name(rate)?))
            .ok_or_else(|| ParseLinkSpeedError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_speed_is_read_as_it_is_written() {
        for (lanes, rate) in LinkSpeed::LANES.into_iter().flat_map(|lanes| LaneRate::ALL.map(|r| (lanes, r)))
        {
            let speed = LinkSpeed { lanes, rate };
            assert_eq!(speed.to_string().parse(), Ok(speed));
            assert_eq!(LaneRate::of_signalled_gbps(rate.signalled_gbps()), Some(rate));
        }
    }

    #[test]
    fn what_is_no_speed_is_refused() {
        for text in ["", "x", "4x", "3xQDR", "4x???", "QDR", "4096xSDR"] {
            assert!(text.parse::<LinkSpeed>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cable_carries_what_its_lanes_carry() {
        let mbps = |text: &str| text.parse::<LinkSpeed>().unwrap().data_mbps();
        assert_eq!((mbps("4xQDR"), mbps("4xHDR"), mbps("2xHDR")), (32_000, 200_000, 100_000));
        let of_path = |text: &str| text.parse::<LinkSpeed>().unwrap().path_mbps();
        assert_eq!((of_path("4xQDR"), of_path("1xSDR"), of_path("4xFDR")), (40_000, 2_500, 56_000));
    }
}
