//! Asks one service all that the command line wants to know.

use std::net::{Ipv6Addr, ToSocketAddrs};

use mapper_acm::wire::{Address, COUNTERS, EndpointInfo, EntryFlags, PathRecord, Status};
use mapper_acm_client::blocking::Client;
use mapper_acm_client::{ClientError, Resolved, ServiceAddress};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::probe::{Probed, probe};
use super::{AddressFormat, Args, CounterChoice, address, expanded};

/// What one service answered.
#[derive(Debug, Serialize)]
pub(super) struct AskedService {
    /// The service, as it was named.
    pub(super) service: String,
    /// Why it could not be asked; `None` if it could.
    pub(super) error: Option<String>,
    /// The paths to all destinations.
    pub(super) resolved: Vec<ResolvedShown>,
    /// The counters that were asked for.
    pub(super) counters: Vec<CounterList>,
    /// The endpoints that were asked for.
    pub(super) endpoints: Vec<EndpointShown>,
    /// The number of an endpoint that was asked for and is not there.
    pub(super) missing_endpoint: Option<u8>,
    /// Why there are no counters; `None` if there are.
    pub(super) counters_error: Option<String>,
    #[serde(skip)]
    last_failed: bool,
}

impl AskedService {
    /// Whether the last question was answered.
    pub(super) const fn is_done(&self) -> bool {
        !self.last_failed
    }
}

/// What came of a destination.
#[derive(Debug, Serialize)]
pub struct ResolvedShown {
    /// The destination.
    pub(super) destination: String,
    /// The source that was named.
    pub(super) source: Option<String>,
    /// The source that the service chose.
    pub(super) chosen_source: Option<String>,
    /// The path.
    pub(super) path: Option<PathShown>,
    /// Why there is no path.
    pub(super) error: Option<String>,
    /// What was asked, as `ib_acme` calls it.
    #[serde(skip)]
    pub(super) call: &'static str,
    /// Whether the path is as map and routes in force have it; `None` if that was not asked.
    pub(super) verified: Option<bool>,
    /// Why the path is not as map and routes in force have it.
    pub(super) verify_error: Option<String>,
    /// What came of probes along the path; `None` if none were asked for.
    pub(super) probed: Option<Probed>,
}

/// A path record in words.
#[derive(Debug, Serialize)]
pub struct PathShown {
    pub(super) dgid: Ipv6Addr,
    pub(super) sgid: Ipv6Addr,
    pub(super) dlid: u16,
    pub(super) slid: u16,
    pub(super) flow_label: u32,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    pub(super) reversible: bool,
    pub(super) pkey: u16,
    pub(super) sl: u8,
    pub(super) mtu: u8,
    pub(super) mtu_bytes: Option<u32>,
    pub(super) rate: u8,
    pub(super) rate_mbps: Option<u32>,
    pub(super) packet_life_time: u8,
}

impl From<PathRecord> for PathShown {
    fn from(path: PathRecord) -> Self {
        Self {
            dgid: path.dgid,
            sgid: path.sgid,
            dlid: path.dlid,
            slid: path.slid,
            flow_label: path.flow_label,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            reversible: path.reversible,
            pkey: path.pkey,
            sl: path.sl,
            mtu: path.mtu.value,
            mtu_bytes: mapper_acm::codes::mtu_bytes(path.mtu.value),
            rate: path.rate.value,
            rate_mbps: mapper_acm::codes::rate_mbps(path.rate.value),
            packet_life_time: path.life_time.value,
        }
    }
}

/// What the counters are called in JSON, in the order of the message that carries them.
const COUNTER_NAMES: [&str; COUNTERS] = [
    "errors",
    "resolved",
    "no_data",
    "address_queries",
    "address_cache_hits",
    "route_queries",
    "route_cache_hits",
];

/// The counters of an endpoint, or of all.
#[derive(Debug)]
pub struct CounterList {
    /// The number of the endpoint; `None` for all together, or for one that was named by its address.
    pub(super) endpoint: Option<u8>,
    /// The counters in the order of the message that carries them.
    pub(super) values: [u64; COUNTERS],
}

impl Serialize for CounterList {
    /// An object with the endpoint, and each counter by its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(1 + COUNTERS))?;
        object.serialize_entry("endpoint", &self.endpoint)?;
        for (name, value) in COUNTER_NAMES.iter().zip(self.values) {
            object.serialize_entry(name, &value)?;
        }
        object.end()
    }
}

/// An endpoint in words.
#[derive(Debug, Serialize)]
pub struct EndpointShown {
    pub(super) endpoint: u8,
    pub(super) guid: String,
    pub(super) port: u8,
    pub(super) pkey: u16,
    pub(super) provider: String,
    pub(super) addresses: Vec<String>,
}

impl EndpointShown {
    fn new(endpoint: u8, info: EndpointInfo) -> Self {
        let EndpointInfo { guid, port, ports: _, pkey, provider, addresses } = info;
        Self { endpoint, guid: format!("{guid:#018x}"), port, pkey, provider, addresses }
    }
}

/// Asks a service all that the command line wants to know.
pub(super) fn ask(args: &Args, service: &ServiceAddress, name: &str) -> AskedService {
    let mut asked = AskedService {
        service: name.to_owned(),
        error: None,
        resolved: Vec::new(),
        counters: Vec::new(),
        endpoints: Vec::new(),
        missing_endpoint: None,
        counters_error: None,
        last_failed: false,
    };
    let mut client = match Client::connect(service) {
        Ok(client) => client,
        Err(error) => {
            asked.last_failed = true;
            asked.error = Some(in_words(&error));
            return asked;
        }
    };
    if let Some(destinations) = &args.destination {
        let sources: Vec<Option<String>> = match &args.source {
            Some(sources) => expanded(sources).into_iter().map(Some).collect(),
            None => vec![None],
        };
        for destination in expanded(destinations) {
            for source in &sources {
                let resolved = resolve(&mut client, args, &destination, source.as_deref());
                let is_cut_off = resolved.probed.as_ref().is_some_and(|probed| !probed.reached);
                asked.last_failed = resolved.error.is_some() || resolved.verify_error.is_some() || is_cut_off;
                asked.resolved.push(resolved);
            }
        }
    }
    if let Some(choice) = args.counters
        && let Err(error) = counters(&mut client, args, choice, &mut asked.counters)
    {
        asked.counters_error = Some(in_words(&error));
    }
    if let Some(endpoint) = args.endpoints {
        asked.missing_endpoint = endpoints(&mut client, endpoint, &mut asked.endpoints);
    }
    asked
}

fn counters(
    client: &mut Client,
    args: &Args,
    choice: CounterChoice,
    all: &mut Vec<CounterList>,
) -> Result<(), ClientError> {
    match choice {
        CounterChoice::Row | CounterChoice::Column => {
            all.push(CounterList { endpoint: None, values: client.counters(0)? });
        }
        CounterChoice::Of(endpoint) => {
            all.push(CounterList { endpoint: Some(endpoint), values: client.counters(endpoint)? });
        }
        CounterChoice::OfSource => {
            let source = address(args.source.as_deref().unwrap_or_default());
            all.push(CounterList { endpoint: None, values: client.counters_of(source)? });
        }
        CounterChoice::Each => {
            for endpoint in 1..=u8::MAX {
                match client.counters(endpoint) {
                    Ok(values) => all.push(CounterList { endpoint: Some(endpoint), values }),
                    // Endpoints are numbered without gaps, so there are no more.
                    Err(ClientError::Refused(_)) => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// Asks for an endpoint, or for all if it is 0. Returns the number of one that is not there.
fn endpoints(client: &mut Client, endpoint: u8, all: &mut Vec<EndpointShown>) -> Option<u8> {
    let wanted = if endpoint == 0 { 1..=u8::MAX } else { endpoint..=endpoint };
    for number in wanted {
        match client.endpoint(number) {
            Ok(info) => all.push(EndpointShown::new(number, info)),
            Err(_) => return (endpoint != 0).then_some(number),
        }
    }
    None
}

/// What a destination is, and what it is called.
enum Destination {
    Address(Address),
    Lid(u16),
    Gid(Ipv6Addr),
}

/// What a destination or source stands for, or why it stands for nothing.
fn destination(format: AddressFormat, text: &str) -> Result<Destination, String> {
    let ip = || text.parse::<std::net::IpAddr>();
    match format {
        AddressFormat::Ip => {
            ip().map(|ip| Destination::Address(ip.into())).map_err(|_| format!("{text} is no address of IP"))
        }
        AddressFormat::Name => Ok(Destination::Address(Address::Name(text.to_owned()))),
        AddressFormat::Lid => text.parse().map(Destination::Lid).map_err(|_| format!("{text} is no LID")),
        AddressFormat::Gid => text.parse().map(Destination::Gid).map_err(|_| format!("{text} is no GID")),
        AddressFormat::Unspecified => {
            if let Ok(ip) = ip() {
                return Ok(Destination::Address(ip.into()));
            }
            if let Ok(lid) = text.parse() {
                return Ok(Destination::Lid(lid));
            }
            // A name that the machine can tell the address of is asked for by that.
            let told = (text, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
            Ok(Destination::Address(told.map_or_else(|| Address::Name(text.to_owned()), |it| it.ip().into())))
        }
    }
}

fn resolve(client: &mut Client, args: &Args, to: &str, source: Option<&str>) -> ResolvedShown {
    let call = match args.address_format {
        AddressFormat::Name => "name",
        AddressFormat::Lid | AddressFormat::Gid => "path",
        AddressFormat::Ip | AddressFormat::Unspecified => "ip",
    };
    let mut shown = ResolvedShown {
        destination: to.to_owned(),
        source: source.map(str::to_owned),
        chosen_source: None,
        path: None,
        error: None,
        call,
        verified: None,
        verify_error: None,
        probed: None,
    };
    match ask_path(client, args, to, source) {
        Ok(Resolved { path, source }) => {
            shown.chosen_source = source.map(|source| source.to_string());
            if args.verify {
                let verified = client.resolve_path(path, EntryFlags::VERIFY);
                shown.verified = Some(verified.is_ok());
                shown.verify_error = verified.err().map(|error| in_words(&error));
            }
            if args.probe {
                let run_dir = args.run_dir.clone().unwrap_or_else(mapper_machine::options::default_run_dir);
                shown.probed = Some(probe(&run_dir, &path));
            }
            shown.path = Some(path.into());
        }
        Err(error) => shown.error = Some(error),
    }
    shown
}

fn ask_path(client: &mut Client, args: &Args, to: &str, source: Option<&str>) -> Result<Resolved, String> {
    let flags = if args.cached_only { EntryFlags::NO_DELAY } else { EntryFlags::default() };
    let wanted = destination(args.address_format, to)?;
    let mut answer = None;
    for _ in 0..args.repetitions.max(1) {
        let resolved = match &wanted {
            Destination::Address(to) => client.resolve(source.map(address), to.clone(), flags),
            Destination::Lid(lid) => {
                let slid = source.map_or(Ok(0), str::parse).map_err(|_| "the source is no LID".to_owned())?;
                along(client, PathRecord { dlid: *lid, slid, ..PathRecord::default() }, flags)
            }
            Destination::Gid(gid) => {
                let unspecified = Ok(Ipv6Addr::UNSPECIFIED);
                let sgid = source.map_or(unspecified, str::parse);
                let sgid = sgid.map_err(|_| "the source is no GID".to_owned())?;
                along(client, PathRecord { dgid: *gid, sgid, ..PathRecord::default() }, flags)
            }
        };
        answer = Some(resolved.map_err(|error| in_words(&error))?);
    }
    answer.ok_or_else(|| "nothing was asked".to_owned())
}

fn along(client: &mut Client, path: PathRecord, flags: EntryFlags) -> Result<Resolved, ClientError> {
    let wanted = PathRecord { paths: 1, ..path };
    client.resolve_path(wanted, flags).map(|path| Resolved { path, source: None })
}

/// An error as `ib_acme` words it where it has words, and more where it has none.
fn in_words(error: &ClientError) -> String {
    let errno = |number: i32| {
        let text = std::io::Error::from_raw_os_error(number).to_string();
        text.split(" (os error").next().unwrap_or_default().to_owned()
    };
    match error {
        ClientError::Refused(status) => match *status {
            Status::NO_MEMORY => errno(libc::ENOMEM),
            Status::NO_DATA => errno(libc::ENODATA),
            Status::NOT_CONNECTED => errno(libc::ENOTCONN),
            Status::TIMED_OUT => errno(libc::ETIMEDOUT),
            Status::SOURCE_ADDRESS | Status::DESTINATION_ADDRESS => errno(libc::EADDRNOTAVAIL),
            _ => errno(libc::EINVAL),
        },
        ClientError::Unreachable { source, .. } => {
            source.raw_os_error().map_or_else(|| source.to_string(), errno)
        }
        other => other.to_string(),
    }
}
