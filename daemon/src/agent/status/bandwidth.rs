//! How much the ways to another host carry, told from trains of packets: `mapper bandwidth` asks for it.
//!
//! A train is sent as fast as this host can. Where a cable or a crossbar is slower, it spreads the train's
//! packets apart, so how far apart they arrive tells what the slowest part of the way carries (Dovrolis,
//! Ramanathan, Moore: "Packet-Dispersion Techniques and a Capacity-Estimation Methodology", IEEE/ACM
//! Transactions on Networking, 2004). Packets that others send meanwhile spread a train further. The figure
//! is then nearer to the capacity that others leave.

use mapper_host::sounding::Back;
use serde::{Deserialize, Serialize};

use super::soundings::{SoundedHost, WayAsked, loss_of};

/// What the ways to a host carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bandwidths {
    /// The host.
    pub to: SoundedHost,
    /// Its ways.
    pub ways: Vec<WayBandwidth>,
}

/// What one way carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WayBandwidth {
    /// What its frames go by, as in [`TracedWay::by`](super::TracedWay::by).
    pub by: String,
    /// Whether users' packets may take it now.
    pub in_use: bool,
    /// The crossbars that it passes, and the ports that it leaves them by; up to the first at which it forks.
    pub via: Vec<String>,
    /// Where it forks, as in [`PingedWay::forks_at_crossbar`](super::PingedWay::forks_at_crossbar).
    #[serde(default)]
    pub forks_at_crossbar: Option<String>,
    /// How long a packet was: the longest that the way carries.
    pub packet_bytes: usize,
    /// How many packets were sent.
    pub sent: usize,
    /// How many came back.
    pub received: usize,
    /// The part of them that did not come back, from 0 to 1; `None` if none were sent.
    pub loss: Option<f64>,
    /// Why none were sent, in words, if that is so.
    #[serde(default)]
    pub why_not_asked: Option<String>,
    /// Whether only the way there was measured, by the clock of the host at its end. Otherwise the way there
    /// and back was measured, of which the slower direction counts.
    pub one_way: bool,
    /// The rate of the slowest train, in megabits a second; `None` if no train arrived that shows a rate.
    pub min_mbps: Option<f64>,
    /// The median of the rates of all trains, in megabits a second.
    pub median_mbps: Option<f64>,
    /// The rate of the fastest train, in megabits a second.
    pub max_mbps: Option<f64>,
}

/// What came of trains of so many packets along a way.
pub(super) fn of_way(way: &WayAsked, packets: &[Option<Back>], train: usize) -> WayBandwidth {
    let (sent, received) = (packets.len(), packets.iter().flatten().count());
    let one_way = received > 0 && packets.iter().flatten().all(|back| back.arrived_ns.is_some());
    let moment =
        |back: &Back| if one_way { back.arrived_ns } else { u64::try_from(back.took.as_nanos()).ok() };
    let trains = packets.chunks(train.max(1));
    let mut mbps: Vec<f64> = trains
        .filter_map(|train| {
            let moments: Vec<u64> = train.iter().flatten().filter_map(moment).collect();
            rate_mbps(&moments, way.longest_bytes)
        })
        .collect();
    mbps.sort_unstable_by(f64::total_cmp);
    let (loss, why_not_asked) = loss_of(sent, received);
    WayBandwidth {
        by: way.by.to_owned(),
        in_use: way.in_use,
        via: way.via(),
        forks_at_crossbar: way.fork(),
        packet_bytes: way.longest_bytes,
        sent,
        received,
        loss,
        why_not_asked,
        one_way,
        min_mbps: mbps.first().copied(),
        // Of an even number of rates it is the lower of the two in the middle.
        median_mbps: mbps.get(mbps.len().saturating_sub(1) / 2).copied(),
        max_mbps: mbps.last().copied(),
    }
}

/// How fast packets of a train arrived at these moments, in nanoseconds. `None` for less than two, and for a train that
/// arrived at one moment, as far as the clock tells.
fn rate_mbps(moments: &[u64], packet_bytes: usize) -> Option<f64> {
    let span_ns = moments.iter().max()? - moments.iter().min()?;
    if span_ns == 0 {
        return None;
    }
    // The first packet only begins the train.
    let bits = (moments.len() - 1) as f64 * packet_bytes as f64 * 8.0;
    // The rate is rounded to a tenth, which is as exact as it can be.
    Some((bits * 1000.0 / span_ns as f64 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn back(took_us: u64, arrived_us: Option<u64>) -> Option<Back> {
        Some(Back {
            took: Duration::from_micros(took_us),
            arrived_ns: arrived_us.map(|us| us * 1000),
            ended_at: None,
        })
    }

    fn way() -> WayAsked {
        WayAsked { by: "srv6", in_use: true, hops: Vec::new(), longest_bytes: 1250, forks_at: None }
    }

    #[test]
    fn packets_that_arrive_ten_microseconds_apart_are_a_gigabit_a_second() {
        let train = [100, 110, 120, 130].map(|us| back(5000, Some(us)));
        let slower = [200, 220, 240, 260].map(|us| back(9000, Some(us)));
        let found = of_way(&way(), &[train, slower, train].concat(), 4);
        assert_eq!(
            (found.min_mbps, found.median_mbps, found.max_mbps),
            (Some(500.0), Some(1000.0), Some(1000.0))
        );
        assert_eq!((found.one_way, found.sent, found.received, found.loss), (true, 12, 12, Some(0.0)));
    }

    #[test]
    fn of_a_host_that_does_not_tell_when_they_arrived_the_way_back_counts_too() {
        let train = [back(100, None), back(120, None), None, back(160, Some(7))];
        let found = of_way(&way(), &train, 4);
        // Three of four packets came back within sixty microseconds: two of them behind the first.
        assert_eq!((found.one_way, found.received, found.median_mbps), (false, 3, Some(333.3)));
        assert_eq!(found.loss, Some(0.25));
    }

    #[test]
    fn what_tells_nothing_has_no_figure() {
        for train in [vec![None; 4], vec![back(5, Some(9)), None], vec![back(5, Some(9)); 3], Vec::new()] {
            let found = of_way(&way(), &train, 4);
            assert_eq!((found.min_mbps, found.median_mbps, found.max_mbps), (None, None, None), "{train:?}");
        }
    }
}
