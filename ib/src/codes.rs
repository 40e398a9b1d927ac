//! The codes that InfiniBand has for MTUs and rates (volume 1, 15.2.5.16, as rdma-core has them).

use mapper_proto::map::LinkSpeed;

/// Codes of MTUs, each with how many bytes it means, by rising size.
const MTUS: [(u8, u32); 5] = [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)];

/// Codes of rates, each with the rate in Mb/s that its name says, by rising rate.
const RATES: [(u8, u32); 23] = [
    (2, 2_500),
    (5, 5_000),
    (3, 10_000),
    (11, 14_000),
    (6, 20_000),
    (15, 25_000),
    (19, 28_000),
    (4, 30_000),
    (7, 40_000),
    (20, 50_000),
    (12, 56_000),
    (8, 60_000),
    (9, 80_000),
    (16, 100_000),
    (13, 112_000),
    (10, 120_000),
    (14, 168_000),
    (17, 200_000),
    (18, 300_000),
    (21, 400_000),
    (22, 600_000),
    (23, 800_000),
    (24, 1_200_000),
];

/// All codes of MTUs, by rising size.
pub const MTU_CODES: [u8; MTUS.len()] = codes_of(&MTUS);

/// All codes of rates, by rising rate.
pub const RATE_CODES: [u8; RATES.len()] = codes_of(&RATES);

const fn codes_of<const N: usize>(table: &[(u8, u32); N]) -> [u8; N] {
    let mut codes = [0; N];
    let mut at = 0;
    while at < N {
        codes[at] = table[at].0;
        at += 1;
    }
    codes
}

/// The code of the greatest MTU of InfiniBand's that is at most `bytes`; below 256 it is that of 256.
pub fn mtu_code(bytes: u32) -> u8 {
    greatest(&MTUS, bytes)
}

/// How many bytes a code means, if it is one.
pub fn mtu_bytes(code: u8) -> Option<u32> {
    MTUS.iter().find(|&&(known, _)| known == code).map(|&(_, bytes)| bytes)
}

/// The code of the greatest rate that is at most `mbps`; below 2.5 Gb/s it is that of 2.5 Gb/s, the least.
pub fn rate_code(mbps: u32) -> u8 {
    greatest(&RATES, mbps)
}

/// How many Mb/s a code means, if it is one.
pub fn rate_mbps(code: u8) -> Option<u32> {
    RATES.iter().find(|&&(known, _)| known == code).map(|&(_, mbps)| mbps)
}

/// The code of a cable's rate: that of the greatest rate at which paths along it can be used.
pub fn rate_code_of(speed: LinkSpeed) -> u8 {
    rate_code(speed.path_mbps())
}

fn greatest(table: &[(u8, u32)], value: u32) -> u8 {
    let fitting = table.iter().rev().find(|&&(_, meant)| meant <= value);
    fitting.or(table.first()).map_or(0, |&(code, _)| code)
}

#[cfg(test)]
mod tests {
    use mapper_proto::map::LaneRate;

    use super::*;

    #[test]
    fn a_code_never_promises_more_than_there_is() {
        let mtus = [(100, 1), (256, 1), (1_499, 3), (2_048, 4), (9_000, 5)];
        assert!(mtus.iter().all(|&(bytes, code)| mtu_code(bytes) == code));
        let rates = [(1_000, 2), (10_000, 3), (39_999, 4), (40_000, 7), (50_000, 20), (100_000, 16)];
        let faster = [(399_999, 18), (400_000, 21), (1_000_000, 23), (2_000_000, 24)];
        assert!(rates.iter().chain(&faster).all(|&(mbps, code)| rate_code(mbps) == code));
        assert!(MTUS.iter().all(|&(code, bytes)| mtu_bytes(code) == Some(bytes) && mtu_code(bytes) == code));
        assert!(RATES.iter().all(|&(code, mbps)| rate_mbps(code) == Some(mbps) && rate_code(mbps) == code));
        assert!(
            RATES.is_sorted_by_key(|&(_, mbps)| mbps) && mtu_bytes(6).is_none() && rate_mbps(1).is_none()
        );
    }

    #[test]
    fn rates_have_the_codes_of_their_speeds() {
        let rate = |lanes, rate| rate_code_of(LinkSpeed { lanes, rate });
        assert_eq!([1, 4, 8, 12].map(|lanes| rate(lanes, LaneRate::Sdr)), [2, 3, 6, 4]);
        assert_eq!([1, 2, 4, 8, 12].map(|lanes| rate(lanes, LaneRate::Edr)), [15, 20, 16, 17, 18]);
        assert_eq!([1, 2, 4, 8, 12].map(|lanes| rate(lanes, LaneRate::Fdr)), [11, 19, 12, 13, 14]);
        assert_eq!(rate(4, LaneRate::Hdr), 17);
        assert_eq!([4, 8, 12].map(|lanes| rate(lanes, LaneRate::Xdr)), [23, 24, 24], "none is faster");
    }

    #[test]
    fn scales_have_all_codes_the_slowest_first() {
        assert_eq!(MTU_CODES, [1, 2, 3, 4, 5]);
        assert_eq!((RATE_CODES[0], RATE_CODES[22]), (2, 24));
    }
}
