//! `mapper.routes/1` files, read.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::{Element, Route};

use super::{ObjectDiffersJson, RouteJson, RoutesJson, SCHEMA, SegmentsDifferJson};
use crate::blocks::quoted;
use crate::{FormatError, Malformed, read_bounded};
use mapper_routing::tables::Layers;
use mapper_routing::{Topology, turns};

/// The routes of a host, in the numbers of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRoutes {
    /// The host.
    pub from: u32,
    /// Its routes, in the order of the file.
    pub routes: Vec<ListedRoute>,
    /// Routes that no frame can take as they are written. They are not among the others.
    pub faults: Vec<RouteFault>,
    /// The ports by which the kernel of its machine has packets leave by their destination alone, by destination.
    pub by_destination: BTreeMap<u32, Vec<u8>>,
    /// By which segments that kernel sends, in the order of the file.
    pub by_segments: Vec<ListedSegments>,
    /// Where that is otherwise than the kernel was told.
    pub segments_differ: Vec<ListedDifference>,
    /// What else the kernel holds otherwise than it was told.
    pub objects_differ: Vec<ObjectDiffersJson>,
    /// Why it was not held against what the kernel was told, in words.
    pub segments_not_compared: Option<String>,
    /// How many routes lead to hosts that the fabric does not have. They are passed over.
    pub strangers: u64,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRoute {
    /// Where it is said to lead.
    pub to: u32,
    /// The layer that it travels in.
    pub layer: u8,
    /// The ports to leave by.
    pub hops: Vec<PortRef>,
}

/// Segments by which a kernel sends. Whether they are a route is not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSegments {
    /// Where they are said to lead.
    pub to: u32,
    /// The port of the machine that packets are said to leave by.
    pub port: u8,
    /// The segments, the first one first.
    pub segments: Vec<Ipv6Addr>,
}

/// Segments by which a kernel sends though it was not told to, or does not though it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDifference {
    /// The segments.
    pub segments: ListedSegments,
    /// Whether the kernel holds them.
    pub is_held: bool,
}

/// A route that is well written, and that no frame can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteFault {
    /// Where it is said to lead.
    pub to: u32,
    /// What is wrong with it.
    pub why: FaultKind,
}

/// Why no frame can take a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// It passes an xbar that the fabric does not have: its name, in quotes.
    UnknownXbar(String),
    /// Its bytes, in quotes, lead another way than its hops.
    OtherBytes(String),
}

/// What a route of a file comes to.
enum Entry {
    Route(ListedRoute),
    Fault(RouteFault),
}

/// Reads routes of one fabric.
#[derive(Debug)]
pub struct RouteReader<'a> {
    topology: &'a Topology,
    hosts: BTreeMap<Mac, u32>,
    xbars: BTreeMap<&'a str, u32>,
}

impl<'a> RouteReader<'a> {
    /// For a topology, which must be of this fabric.
    pub fn new(fabric: &'a Fabric, topology: &'a Topology) -> Self {
        Self {
            topology,
            hosts: (0..).zip(&fabric.map.hosts).map(|(index, host)| (host.mac, index)).collect(),
            xbars: (0..).zip(&fabric.xbars).map(|(index, xbar)| (xbar.name.as_str(), index)).collect(),
        }
    }

    /// Reads a host's file; nothing if the fabric does not have that host. Whether the routes lead anywhere
    /// is not looked at; but they must name xbars of the fabric, and where they follow cables, the bytes
    /// that travel must say the same as the ports.
    ///
    /// # Errors
    /// If the file cannot be read, is malformed, or names layers that are not there; the error names the
    /// entry.
    pub fn read(&self, path: &Path) -> Result<Option<ListedRoutes>, FormatError> {
        let bytes = read_bounded(path)?;
        self.parse(&bytes).map_err(|wrong| wrong.in_file(&path.display().to_string()))
    }

    fn parse(&self, bytes: &[u8]) -> Result<Option<ListedRoutes>, Malformed> {
        let json: RoutesJson = serde_json::from_slice(bytes).map_err(|error| {
            let Malformed { place, problem } = Malformed::json(&error);
            Malformed::within(place, format!("{problem}; expected a {SCHEMA} object"))
        })?;
        if json.schema != SCHEMA {
            let problem = format!("the schema is `{}`; expected {SCHEMA}", json.schema);
            return Err(Malformed::within("schema", problem));
        }
        let from = self.host(&json.host).map_err(|problem| Malformed::within("host", problem))?;
        let Some(from) = from else { return Ok(None) };
        let mut strangers = 0;
        let read = entries(
            &json.routes,
            |nth, route| format!("routes[{nth}] to {}", route.to),
            |route| self.route(from, route),
            &mut strangers,
        )?;
        let (mut routes, mut faults) = (Vec::with_capacity(read.len()), Vec::new());
        for entry in read {
            match entry {
                Entry::Route(route) => routes.push(route),
                Entry::Fault(fault) => faults.push(fault),
            }
        }
        let destinations = entries(
            &json.by_destination,
            |nth, _| format!("by_destination[{nth}]"),
            |entry| Ok(self.host(&entry.to)?.map(|to| (to, &entry.ports))),
            &mut strangers,
        )?;
        let mut by_destination: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (to, ports) in destinations {
            by_destination.entry(to).or_default().extend(ports);
        }
        let by_segments = entries(
            &json.by_segments,
            |nth, _| format!("by_segments[{nth}]"),
            |entry| self.segments(&entry.to, entry.port, &entry.segments),
            &mut strangers,
        )?;
        let differs = |entry: &SegmentsDifferJson| {
            let segments = self.segments(&entry.to, entry.port, &entry.segments)?;
            Ok(segments.map(|segments| ListedDifference { segments, is_held: entry.held }))
        };
        let place = |nth, _: &_| format!("segments_differ[{nth}]");
        let segments_differ = entries(&json.segments_differ, place, differs, &mut strangers)?;
        Ok(Some(ListedRoutes {
            from,
            routes,
            faults,
            by_destination,
            by_segments,
            segments_differ,
            objects_differ: json.objects_differ,
            segments_not_compared: json.segments_not_compared,
            strangers,
        }))
    }

    /// Segments; nothing if the fabric does not have the host that they are for.
    fn segments(&self, to: &str, port: u8, segments: &[String]) -> Result<Option<ListedSegments>, String> {
        let to = self.host(to)?;
        let address = |text: &String| {
            text.parse().map_err(|_| format!("{} is no address of IPv6", quoted(text.as_bytes())))
        };
        let segments = segments.iter().map(address).collect::<Result<Vec<Ipv6Addr>, _>>()?;
        Ok(to.map(|to| ListedSegments { to, port, segments }))
    }

    /// The host with this address, if the fabric has it.
    fn host(&self, text: &str) -> Result<Option<u32>, String> {
        let mac: Mac = text.parse().map_err(|_| format!("`{text}` is no address of a host"))?;
        Ok(self.hosts.get(&mac).copied())
    }

    /// A route; nothing if it leads to a host that the fabric does not have.
    fn route(&self, from: u32, json: &RouteJson) -> Result<Option<Entry>, String> {
        let to = self.host(&json.to)?;
        if json.layer >= Layers::MAX {
            return Err(format!("layer {}; expected one from 0 to {}", json.layer, Layers::MAX - 1));
        }
        let bytes =
            unhex(&json.bytes).ok_or_else(|| format!("`{}` are no bytes in hexadecimal", json.bytes))?;
        let (route, length) = Route::parse(&bytes).map_err(|error| error.to_string())?;
        if length != bytes.len() {
            return Err(format!("byte {length} of `{}` begins no route element", json.bytes));
        }
        let Some(to) = to else { return Ok(None) };
        let fault = |why: FaultKind| Ok(Some(Entry::Fault(RouteFault { to, why })));
        let hop = |(name, port): &(String, u8)| {
            let xbar = self.xbars.get(name.as_str()).copied();
            xbar.map(|xbar| PortRef { xbar, port: *port }).ok_or_else(|| quoted(name.as_bytes()))
        };
        let hops = match json.hops.iter().map(hop).collect::<Result<Vec<_>, _>>() {
            Ok(hops) => hops,
            Err(unknown) => return fault(FaultKind::UnknownXbar(unknown)),
        };
        // Hops that follow no cable are found by the proof, and told there.
        if let Ok(turns) = turns(self.topology, from, &hops) {
            let says = |element: Element, (arrival, out): (PortRef, u8)| match element {
                Element::Relative(delta) => i16::from(arrival.port) + i16::from(delta) == i16::from(out),
                Element::Absolute(port) => port == out && self.topology.is_tagged(arrival.xbar),
                Element::Identify => false,
            };
            let elements: Vec<Element> = route.elements().collect();
            let same = elements.len() == turns.len();
            if !same || !elements.into_iter().zip(turns).all(|(element, turn)| says(element, turn)) {
                return fault(FaultKind::OtherBytes(quoted(json.bytes.as_bytes())));
            }
        }
        Ok(Some(Entry::Route(ListedRoute { to, layer: json.layer, hops })))
    }
}

/// What the entries of a list come to. Those that lead to hosts that the fabric does not have are counted among `strangers`
/// and passed over. `place` is what errors call an entry.
fn entries<'j, J, T>(
    list: &'j [J],
    place: impl Fn(usize, &J) -> String,
    read: impl Fn(&'j J) -> Result<Option<T>, String>,
    strangers: &mut u64,
) -> Result<Vec<T>, Malformed> {
    let mut found = Vec::with_capacity(list.len());
    for (nth, entry) in list.iter().enumerate() {
        match read(entry).map_err(|problem| Malformed::within(place(nth, entry), problem))? {
            Some(entry) => found.push(entry),
            None => *strangers += 1,
        }
    }
    Ok(found)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits.chunks(2).map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use crate::routes::{ByDestinationJson, BySegmentsJson, DifferenceJson};

    #[test]
    fn routes_are_read_as_they_were_written_and_refused_if_not() {
        let fabric = generate("ring:n=3,hosts=1").unwrap();
        let topology = Topology::from_map(&fabric.map).unwrap();
        let hops = [PortRef { xbar: 0, port: 1 }, PortRef { xbar: 1, port: 3 }];
        let route = RouteJson::new(&fabric, &topology, (0, 1), 2, &hops).unwrap();
        let json = RoutesJson::new(&topology, 0, vec![route]);
        let reader = RouteReader::new(&fabric, &topology);
        let parse = |json: &RoutesJson| {
            let parsed = reader.parse(&serde_json::to_vec(json).unwrap());
            parsed.map_err(|Malformed { place, problem }| format!("{place}: {problem}"))
        };
        let routes = vec![ListedRoute { to: 1, layer: 2, hops: hops.to_vec() }];
        let mut listed = ListedRoutes {
            from: 0,
            routes,
            faults: Vec::new(),
            by_destination: BTreeMap::new(),
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
            strangers: 0,
        };
        assert_eq!(parse(&json), Ok(Some(listed.clone())));
        let by_destination = |to: &str| vec![ByDestinationJson { to: to.to_owned(), ports: vec![1, 2] }];
        let with = RoutesJson { by_destination: by_destination("02:00:00:00:00:02"), ..json.clone() };
        listed.by_destination.insert(1, vec![1, 2]);
        assert_eq!(parse(&with), Ok(Some(listed.clone())));
        let with = RoutesJson { by_destination: by_destination("h2"), ..json.clone() };
        assert_eq!(parse(&with).unwrap_err(), "by_destination[0]: `h2` is no address of a host");
        let by_segments = |to: &str, segment: &str| RoutesJson {
            by_segments: vec![BySegmentsJson {
                to: to.to_owned(),
                port: 1,
                segments: vec![segment.to_owned()],
            }],
            ..json.clone()
        };
        let segment = "fcbb:bb00:f101:3:fff4::";
        listed.by_destination.clear();
        listed.by_segments =
            vec![ListedSegments { to: 1, port: 1, segments: vec![segment.parse().unwrap()] }];
        assert_eq!(parse(&by_segments("02:00:00:00:00:02", segment)), Ok(Some(listed.clone())));
        let differ = |to: &str| SegmentsDifferJson {
            to: to.to_owned(),
            port: 1,
            segments: vec![segment.to_owned()],
            held: true,
        };
        let mut with = by_segments("02:00:00:00:00:02", segment);
        with.segments_differ = vec![differ("02:00:00:00:00:02"), differ("02:00:00:00:00:09")];
        let object = ObjectDiffersJson { object: "rule".to_owned(), how: DifferenceJson::Missing };
        with.objects_differ = vec![object.clone()];
        listed.objects_differ = vec![object];
        with.segments_not_compared = Some("why".to_owned());
        listed.segments_differ =
            vec![ListedDifference { segments: listed.by_segments[0].clone(), is_held: true }];
        listed.segments_not_compared = Some("why".to_owned());
        listed.strangers = 1;
        assert_eq!(parse(&with), Ok(Some(listed)));
        let error = parse(&by_segments("02:00:00:00:00:02", "f101")).unwrap_err();
        assert_eq!(error, "by_segments[0]: `f101` is no address of IPv6");
        assert_eq!(
            parse(&by_segments("02:00:00:00:00:09", segment)).unwrap().map(|listed| listed.strangers),
            Some(1)
        );

        let broken = |change: &dyn Fn(&mut RoutesJson)| {
            let mut json = json.clone();
            change(&mut json);
            parse(&json).unwrap_err()
        };
        assert_eq!(broken(&|json| json.schema.clear()), "schema: the schema is ``; expected mapper.routes/1");
        assert_eq!(broken(&|json| json.host = "h1".to_owned()), "host: `h1` is no address of a host");
        let entry = "routes[0] to 02:00:00:00:00:02: ";
        assert_eq!(
            broken(&|json| json.routes[0].layer = 16),
            format!("{entry}layer 16; expected one from 0 to 15")
        );
        for bytes in ["8", "zz", "00", "f0", "8182ff"] {
            let error = broken(&|json| json.routes[0].bytes = bytes.to_owned());
            assert!(error.starts_with(entry), "{error}");
        }
        let error = reader.parse(b"{\"schema\": \"mapper.routes/1\",\n 1}").unwrap_err();
        assert_eq!(
            (error.place.as_str(), error.problem.as_str()),
            ("2, column 2", "key must be a string; expected a mapper.routes/1 object")
        );

        let changed = |change: &dyn Fn(&mut RoutesJson)| {
            let mut json = json.clone();
            change(&mut json);
            parse(&json).unwrap()
        };
        let fault = |why| vec![RouteFault { to: 1, why }];
        let listed = changed(&|json| json.routes[0].hops[1].0 = "x".to_owned()).unwrap();
        assert_eq!(
            (listed.faults, listed.routes.len()),
            (fault(FaultKind::UnknownXbar("`x`".to_owned())), 0)
        );
        let listed = changed(&|json| json.routes[0].hops[1].1 = 2).unwrap();
        let bytes = format!("`{}`", json.routes[0].bytes);
        assert_eq!((listed.faults, listed.routes.len()), (fault(FaultKind::OtherBytes(bytes)), 0));
        let listed = changed(&|json| json.routes[0].to = "02:00:00:00:00:09".to_owned()).unwrap();
        assert_eq!((listed.strangers, listed.routes.len()), (1, 0));
        assert_eq!(changed(&|json| json.host = "02:00:00:00:00:09".to_owned()), None);
    }
}
