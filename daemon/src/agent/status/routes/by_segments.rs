//! The segments by which this machine's kernel sends, as they are told.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use mapper_fabric::wording::with_causes;
use mapper_fib::segments::{Element, way};
use mapper_formats::json::NamesByAddress;
use mapper_formats::routes::{DifferenceJson, ObjectDiffersJson};
use mapper_host::kernel_path::{self, CarriedRoute, Difference, HeldSegments, ObjectDiffers, SegmentsTold};
use mapper_machine::kernel::object_name;
use mapper_proto::Mac;
use serde::{Deserialize, Serialize};

use crate::xbar::forwarding::ReadBack;

/// A list of segments by which the kernel sends packets to a host. A host may have several.
///
/// It is what was read back from the kernel when somebody asked, or what the kernel was told to hold if it did not answer.
/// Ways that were set aside, as no agent answers across them, are among them while packets take them, though no route of the
/// table has their segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BySegments {
    /// The host's address.
    pub to: String,
    /// What the host is called.
    pub name: String,
    /// The port of this machine that packets leave by, which is 0 where an agent is alone.
    pub port: u8,
    /// The segments of packets of IPv4, the first one first. Those of IPv6 end with another element, and are told where no
    /// packets of IPv4 are sent the same way.
    pub segments: Vec<String>,
    /// How many packets the kernel has sent by them since it began to, as far as it counts.
    pub packets: u64,
}

/// Segments by which the kernel sends packets to a host though it was not told to, or does not though it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsDiffer {
    /// The host's address.
    pub to: String,
    /// What the host is called.
    pub name: String,
    /// The addresses of IP whose packets that is about.
    pub addresses: Vec<String>,
    /// The port of this machine that packets leave by, or were to leave by.
    pub port: u8,
    /// The segments, the first one first.
    pub segments: Vec<String>,
    /// Whether the kernel holds them and was not told; if not, it was told and does not hold them.
    pub held: bool,
}

/// The kernel, which is to be read back, and what it was told.
#[derive(Debug)]
pub(crate) struct KernelAsked {
    pub(crate) told: SegmentsTold,
    pub(crate) read_back: ReadBack,
}

/// What is told of segments, and of what was read back with them.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) by_segments: Vec<BySegments>,
    pub(super) differ: Vec<SegmentsDiffer>,
    pub(super) objects_differ: Vec<ObjectDiffersJson>,
    pub(super) not_compared: Option<String>,
}

/// Reads the kernel, and waits for it. `carried` are the routes that it was told.
pub(super) fn answer(
    kernel: Option<&KernelAsked>,
    carried: &[CarriedRoute],
    names: &NamesByAddress,
) -> Answer {
    let by_segments = told(carried, names);
    let Some(KernelAsked { told, read_back }) = kernel else {
        return Answer { by_segments, ..Answer::default() };
    };
    match read_back.read() {
        Ok(found) => {
            let (differ, objects_differ) = match found.not_comparable {
                Some(_) => (Vec::new(), Vec::new()),
                None => (told.differences(&found.there), told.objects_that_differ(&found.there)),
            };
            Answer {
                by_segments: read(&told.held(&found.there), &by_segments, names),
                differ: differ.into_iter().map(|it| SegmentsDiffer::of(it, names)).collect(),
                objects_differ: objects_differ.iter().map(object_differs).collect(),
                not_compared: found.not_comparable.map(str::to_owned),
            }
        }
        Err(error) => {
            let why = format!(
                "the kernel could not be read, so its segments are told as they were told to it: {}",
                with_causes(&error)
            );
            Answer { by_segments, not_compared: Some(why), ..Answer::default() }
        }
    }
}

/// The segments of all routes that have some.
fn told(carried: &[CarriedRoute], names: &NamesByAddress) -> Vec<BySegments> {
    let with_segments = carried.iter().filter(|it| !it.segments.is_empty());
    let told = with_segments.map(|CarriedRoute { to, port, segments, packets, .. }| BySegments {
        to: to.to_string(),
        name: called(*to, names),
        port: *port,
        segments: in_words(segments),
        packets: *packets,
    });
    told.collect()
}

/// The segments that were read back, those of both kinds of packets together. `told` has the packets that were counted.
fn read(held: &[HeldSegments], told: &[BySegments], names: &NamesByAddress) -> Vec<BySegments> {
    type Way = Result<Vec<Element>, Vec<Ipv6Addr>>;
    let way_of = |segments: &[Ipv6Addr]| -> Way { way(segments).ok_or_else(|| segments.to_vec()) };
    let mut counted: BTreeMap<(&str, u8, Way), u64> = BTreeMap::new();
    for it in told {
        let segments: Vec<Ipv6Addr> = it.segments.iter().filter_map(|it| it.parse().ok()).collect();
        *counted.entry((&it.to, it.port, way_of(&segments))).or_default() += it.packets;
    }
    // Of one way, the segments of packets of IPv4 come first.
    let mut ways: BTreeMap<(Mac, u8, Way), &HeldSegments> = BTreeMap::new();
    for it in held {
        ways.entry((it.to, it.port, way_of(&it.segments))).or_insert(it);
    }
    let read = ways.into_iter().map(|((to, port, way), held)| {
        let (name, to) = (called(to, names), to.to_string());
        let packets = counted.get(&(to.as_str(), port, way)).copied().unwrap_or_default();
        BySegments { name, port, segments: in_words(&held.segments), packets, to }
    });
    read.collect()
}

impl SegmentsDiffer {
    fn of(differ: kernel_path::SegmentsDiffer, names: &NamesByAddress) -> Self {
        let kernel_path::SegmentsDiffer { segments, is_held } = differ;
        let HeldSegments { to, addresses, port, segments } = segments;
        Self {
            to: to.to_string(),
            name: called(to, names),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            port,
            segments: in_words(&segments),
            held: is_held,
        }
    }
}

fn object_differs(ObjectDiffers { change, how }: &ObjectDiffers) -> ObjectDiffersJson {
    let how = match how {
        Difference::Missing => DifferenceJson::Missing,
        Difference::Other => DifferenceJson::Other,
        Difference::Extra => DifferenceJson::Extra,
    };
    ObjectDiffersJson { object: object_name(change), how }
}

fn called(host: Mac, names: &NamesByAddress) -> String {
    names.of_host(host).map_or_else(|| host.to_string(), str::to_owned)
}

fn in_words(segments: &[Ipv6Addr]) -> Vec<String> {
    segments.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
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
        let told = told(&[route(1, &["fcbb:bb00:f101:3:fff4::"]), route(2, &[])], &NamesByAddress::default());
        let expected = BySegments {
            to: "02:00:00:00:00:02".to_owned(),
            name: "02:00:00:00:00:02".to_owned(),
            port: 1,
            segments: vec!["fcbb:bb00:f101:3:fff4::".to_owned()],
            packets: 7,
        };
        assert_eq!(told, [expected]);
    }

    #[test]
    fn segments_of_both_kinds_of_packets_are_one_entry_with_the_packets_of_their_way() {
        let held = |port, segment: &str| HeldSegments {
            to: Mac::from_position(2),
            addresses: Vec::new(),
            port,
            segments: vec![segment.parse().unwrap()],
        };
        let carried = CarriedRoute {
            to: Mac::from_position(2),
            route: Route::default(),
            segments: vec!["fcbb:bb00:f101:3:fff4::".parse().unwrap()],
            port: 1,
            packets: 7,
        };
        let told = told(&[carried], &NamesByAddress::default());
        let all = [
            held(1, "fcbb:bb00:f101:3:fff4::"),
            held(1, "fcbb:bb00:f101:3:fff6::"),
            held(2, "fcbb:bb00:f102:2:3:fff6::"),
            held(2, "fd00::1"),
        ];
        let shown: Vec<_> = read(&all, &told, &NamesByAddress::default())
            .into_iter()
            .map(|it| (it.port, it.segments.join(" "), it.packets))
            .collect();
        let expected = [
            (1, "fcbb:bb00:f101:3:fff4::".to_owned(), 7),
            (2, "fcbb:bb00:f102:2:3:fff6::".to_owned(), 0),
            (2, "fd00::1".to_owned(), 0),
        ];
        assert_eq!(shown, expected);
    }
}
