//! Codes of MTUs and rates.

use mapper_proto::map::{LaneRate, LinkSpeed};

/// The codes of MTUs, 256 bytes to 4096.
pub const MTUS: [u8; 5] = [1, 2, 3, 4, 5];

/// The codes of rates, the slowest first.
pub const RATES: [u8; 22] = [2, 5, 3, 11, 6, 15, 19, 4, 7, 20, 12, 8, 9, 16, 13, 10, 14, 17, 18, 21, 22, 23];

/// How many Gb/s the codes stand for, in tenths, in the same order.
const TENTHS: [u32; 22] = [
    25, 50, 100, 140, 200, 250, 280, 300, 400, 500, 560, 600, 800, 1000, 1120, 1200, 1680, 2000, 3000, 4000,
    6000, 8000,
];

/// The code of a cable's rate: the fastest rate with a code that is not faster than the cable.
pub fn rate_of(speed: LinkSpeed) -> u8 {
    let lane = match speed.rate {
        LaneRate::Sdr => 25,
        LaneRate::Ddr => 50,
        LaneRate::Qdr | LaneRate::Fdr10 => 100,
        LaneRate::Fdr => 140,
        LaneRate::Edr => 250,
        LaneRate::Hdr => 500,
        LaneRate::Ndr => 1000,
        LaneRate::Xdr => 2000,
    };
    let tenths = lane * u32::from(speed.lanes);
    let known = TENTHS.iter().rposition(|&known| known <= tenths).unwrap_or_default();
    RATES[known]
}
