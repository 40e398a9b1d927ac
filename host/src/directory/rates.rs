//! How fast a host's interfaces are, as its record says.
//!
//! Nobody finds out by probes how fast a cable is, but each host knows how fast its own interfaces are. A record has them as
//! runs of ports that are alike: each is the last port of the run (1 byte) and the rate in units of 100 Mb/s (2).

/// The most runs of ports. If a host has more, the last of them make one run, which counts as fast as the
/// slowest of its ports.
const MOST_RUNS: usize = 6;
/// The unit of rates in a record, in Mb/s.
const UNIT_MBPS: u32 = 100;
/// The port number of the interface of an agent without a crossbar, as ports are numbered from 1.
const ALONE: u8 = 0;

/// How fast a host's interfaces are: those of a node by the numbers of its ports.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PortRates(Vec<(u8, u16)>);

impl PortRates {
    /// The rates of these interfaces, in Mb/s, each with the number of its port, which is 0 for an agent
    /// without a crossbar. Rates are rounded down, so that none promises more than there is.
    pub fn new(rates: impl IntoIterator<Item = (u8, u32)>) -> Self {
        let units = |mbps: u32| u16::try_from(mbps / UNIT_MBPS).unwrap_or(u16::MAX);
        let mut all: Vec<(u8, u16)> = rates.into_iter().map(|(port, mbps)| (port, units(mbps))).collect();
        all.retain(|&(_, units)| units > 0);
        all.sort_unstable();
        let mut runs: Vec<(u8, u16)> = Vec::new();
        for (port, units) in all {
            match runs.last_mut() {
                Some(run) if run.0 != ALONE && run.1 == units => run.0 = port,
                _ => runs.push((port, units)),
            }
        }
        let rest = runs.split_off(runs.len().min(MOST_RUNS));
        if let (Some(&(port, _)), Some(last)) = (rest.last(), runs.last_mut()) {
            let slowest = rest.iter().map(|&(_, units)| units).min().unwrap_or(last.1);
            *last = (port, last.1.min(slowest));
        }
        Self(runs)
    }

    /// How fast the interface is, in Mb/s, if the host is an agent without a crossbar and says so.
    pub fn of_interface(&self) -> Option<u32> {
        self.0.iter().find(|&&(port, _)| port == ALONE).map(|&(_, units)| u32::from(units) * UNIT_MBPS)
    }

    /// How fast this port is, in Mb/s, if the host is a node and says so.
    pub fn of_port(&self, port: u8) -> Option<u32> {
        let run = self.0.iter().find(|&&(last, _)| last != ALONE && last >= port);
        run.map(|&(_, units)| u32::from(units) * UNIT_MBPS)
    }

    /// How fast the fastest interface is, in Mb/s, if the host says so.
    pub fn fastest(&self) -> Option<u32> {
        self.0.iter().map(|&(_, units)| u32::from(units) * UNIT_MBPS).max()
    }

    /// Whether the host says nothing of how fast its interfaces are.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        // There are at most six.
        bytes.push(self.0.len() as u8);
        for (port, units) in &self.0 {
            bytes.push(*port);
            bytes.extend(units.to_be_bytes());
        }
    }

    /// Reads rates off the beginning of `bytes`. `None` if no host would write them so.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (&count, rest) = bytes.split_first()?;
        let (runs, rest) = rest.split_at_checked(usize::from(count) * 3)?;
        *bytes = rest;
        let runs =
            runs.as_chunks::<3>().0.iter().map(|&[port, high, low]| (port, u16::from_be_bytes([high, low])));
        let runs: Vec<(u8, u16)> = runs.collect();
        let is_sound = runs.len() <= MOST_RUNS
            && runs.is_sorted_by(|one, other| one.0 < other.0)
            && runs.iter().all(|&(_, units)| units > 0);
        is_sound.then_some(Self(runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_its_rate_and_none_more_than_there_is() {
        let rates = PortRates::new([(1, 25_000), (2, 25_000), (4, 1_000), (3, 10)]);
        assert_eq!(rates.0, [(2, 250), (4, 10)]);
        assert_eq!(
            [1, 2, 4, 5].map(|port| rates.of_port(port)),
            [Some(25_000), Some(25_000), Some(1_000), None]
        );
        assert_eq!(rates.of_interface(), None);
        let alone = PortRates::new([(0, 100_000)]);
        assert_eq!((alone.of_interface(), alone.of_port(1)), (Some(100_000), None));
        let many = PortRates::new((1..=20).map(|port| (port, 100 * (30 - u32::from(port)))));
        assert_eq!((many.0.len(), many.of_port(3), many.of_port(6)), (MOST_RUNS, Some(2_700), Some(1_000)));
        assert_eq!(many.of_port(20), Some(1_000));
    }

    #[test]
    fn what_no_host_would_write_is_refused() {
        let read = |bytes: &[u8]| PortRates::read(&mut &bytes[..]);
        assert_eq!(read(&[1, 0, 0, 250]), Some(PortRates(vec![(0, 250)])));
        for bad in [&[][..], &[1, 0, 0], &[1, 1, 0, 0], &[2, 2, 0, 1, 2, 0, 2], &[7; 22]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
