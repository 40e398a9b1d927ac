//! The state of a port.

use mapper_proto::map::{LaneRate, LinkSpeed};

use super::{DATA_BYTES, Data, put, u16_at, u32_at};

const LID_AT: usize = 16;
const CAPABILITIES_AT: usize = 20;
const WIDTH_ACTIVE_AT: usize = 31;
const STATE_AT: usize = 32;
const LMC_AT: usize = 34;
const SPEED_ACTIVE_AT: usize = 35;
const EXTENDED_SPEED_AT: usize = 62;

/// The capability of speeds beyond QDR.
const HAS_EXTENDED_SPEEDS: u32 = 1 << 14;
/// The lowest state of a port whose cable works (Initialize; Armed and Active follow).
const STATE_INITIALIZE: u8 = 2;
const STATE_DOWN: u8 = 1;

/// Codes of widths, and how many lanes each means.
const WIDTHS: [(u8, u8); 5] = [(1, 1), (2, 4), (4, 8), (8, 12), (16, 2)];
const SPEEDS: [(u8, LaneRate); 3] = [(1, LaneRate::Sdr), (2, LaneRate::Ddr), (4, LaneRate::Qdr)];
const EXTENDED_SPEEDS: [(u8, LaneRate); 4] =
    [(1, LaneRate::Fdr), (2, LaneRate::Edr), (4, LaneRate::Hdr), (8, LaneRate::Ndr)];

/// What the attribute PortInfo says of a port's cable and address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortInfo {
    /// The local identifier; `None` if the port was given none.
    pub lid: Option<u16>,
    /// LID mask control: the port has 2^lmc LIDs.
    pub lmc: u8,
    /// Whether there is a cable that works.
    pub is_up: bool,
    /// How fast the cable is; `None` if its codes have no meaning.
    pub speed: Option<LinkSpeed>,
}

impl PortInfo {
    /// Reads an answer. Any bytes are valid.
    pub fn parse(data: &Data) -> Self {
        let find =
            |list: &[(u8, LaneRate)], code| list.iter().find(|known| known.0 == code).map(|&(_, rate)| rate);
        let width = WIDTHS.iter().find(|known| known.0 == data[WIDTH_ACTIVE_AT]);
        let extended = u32_at(data, CAPABILITIES_AT) & HAS_EXTENDED_SPEEDS != 0;
        let rate = extended.then(|| find(&EXTENDED_SPEEDS, data[EXTENDED_SPEED_AT] >> 4)).flatten();
        let rate = rate.or_else(|| find(&SPEEDS, data[SPEED_ACTIVE_AT] >> 4));
        Self {
            lid: Some(u16_at(data, LID_AT)).filter(|&lid| lid != 0),
            lmc: data[LMC_AT] & 7,
            is_up: data[STATE_AT] & 0xF >= STATE_INITIALIZE,
            speed: width.zip(rate).map(|(&(_, lanes), rate)| LinkSpeed { lanes, rate }),
        }
    }

    /// The bytes of an answer that says this. Speeds for which the attribute has no code (FDR10, XDR) are
    /// left out.
    pub fn emit(&self) -> Data {
        let mut data = [0; DATA_BYTES];
        put(&mut data, LID_AT, &self.lid.unwrap_or(0).to_be_bytes());
        data[LMC_AT] = self.lmc & 7;
        data[STATE_AT] = if self.is_up { STATE_INITIALIZE } else { STATE_DOWN };
        let Some(LinkSpeed { lanes, rate }) = self.speed else { return data };
        data[WIDTH_ACTIVE_AT] = WIDTHS.iter().find(|known| known.1 == lanes).map_or(0, |known| known.0);
        let code =
            |list: &[(u8, LaneRate)]| list.iter().find(|known| known.1 == rate).map(|known| known.0 << 4);
        if let Some(code) = code(&EXTENDED_SPEEDS) {
            put(&mut data, CAPABILITIES_AT, &HAS_EXTENDED_SPEEDS.to_be_bytes());
            data[EXTENDED_SPEED_AT] = code;
        }
        data[SPEED_ACTIVE_AT] = code(&SPEEDS).unwrap_or(4 << 4);
        data
    }
}
