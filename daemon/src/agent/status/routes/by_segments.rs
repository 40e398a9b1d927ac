//! The segments by which this machine's kernel sends, as they are told.

use mapper_formats::json::Names;
use serde::{Deserialize, Serialize};

use mapper_host::kernel_path::CarriedRoute;

/// A list of segments by which the kernel sends packets to a host. A host may have several.
///
/// It is what the kernel was told to hold, and what its tables are held against at each recheck; it is not read back when
/// somebody asks. Ways that were set aside, as no agent answers across them, are among them while packets take them, though
/// no route of the table has their segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BySegments {
    /// The host's address.
    pub to: String,
    /// What the host is called.
    pub name: String,
    /// The port of this machine that packets leave by, which is 0 where an agent is alone.
    pub port: u8,
    /// The segments of packets of IPv4, the first one first. Those of IPv6 end with another element and lead the same way.
    pub segments: Vec<String>,
    /// How many packets the kernel has sent by them since it began to, as far as it counts.
    pub packets: u64,
}

/// The segments of all routes that have some.
pub(super) fn told(carried: &[CarriedRoute], names: &Names) -> Vec<BySegments> {
    let with_segments = carried.iter().filter(|it| !it.segments.is_empty());
    let told = with_segments.map(|CarriedRoute { to, port, segments, packets, .. }| BySegments {
        to: to.to_string(),
        name: names.of_host(*to).map_or_else(|| to.to_string(), str::to_owned),
        port: *port,
        segments: segments.iter().map(ToString::to_string).collect(),
        packets: *packets,
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;
    use mapper_proto::wire::Route;

    use super::*;

    #[test]
    fn all_segments_are_told_and_nothing_that_goes_by_the_destination() {
        let route = |port, segments: &[&str]| CarriedRoute {
            to: Mac::from_position(2),
            route: Route::default(),
            segments: segments.iter().map(|segment| segment.parse().unwrap()).collect(),
            port,
            packets: 7,
        };
        let told = told(&[route(1, &["fcbb:bb00:f101:3:fff4::"]), route(2, &[])], &Names::default());
        let expected = BySegments {
            to: "02:00:00:00:00:02".to_owned(),
            name: "02:00:00:00:00:02".to_owned(),
            port: 1,
            segments: vec!["fcbb:bb00:f101:3:fff4::".to_owned()],
            packets: 7,
        };
        assert_eq!(told, [expected]);
    }
}
