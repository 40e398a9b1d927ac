//! The agents of this machine: the maps that they hold, and how the hosts in them are.

mod moment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    self as agent_status, AgentRequest, Board, MAX_ROUTES_BYTES, MapVersionDto, RoutesInForce, naming_hosts,
    units,
};
use mapper_formats as formats;
use mapper_machine::status::{Question, StatusSocketError};
use mapper_proto::Mac;
use mapper_proto::map::{Cable, Fabric, PortRef};

use super::asking::{ask, at_once};
use super::file::changes;
use super::gone::with_gone;
use super::past;
use super::traffic::Traffic;
use crate::view::feed::Feed;

/// How often the agents are asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long an agent may take to send its map.
const MAP_PATIENCE: Duration = Duration::from_secs(10);

/// The maps that the agents of a machine hold, joined to one fabric, and who holds which.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Known {
    /// All maps beside each other, each once.
    pub(crate) fabric: Fabric,
    /// The fabric of all maps, and behind it what agents have seen and the maps lack.
    shown: Fabric,
    maps: Vec<HeldMap>,
}

/// One of these maps.
#[derive(Debug, Clone, PartialEq)]
struct HeldMap {
    version: String,
    /// The places of its first host, xbar and cable in the fabric.
    first: [usize; 3],
    /// What the ids of its xbars begin with in the fabric.
    prefix: String,
}

/// What the boards of a machine say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Boards {
    /// All boards, by unit.
    pub(crate) boards: Vec<Board>,
    /// What keeps boards from being asked, in words.
    pub(crate) why_not: Option<String>,
}

/// Asks all agents of a run directory for their boards.
pub(crate) fn boards(run_dir: &Path) -> Boards {
    let found = match units(run_dir) {
        Ok(units) => units,
        Err(error) => return Boards { boards: Vec::new(), why_not: Some(error.to_string()) },
    };
    let deadline = Instant::now() + PATIENCE;
    let asked: Vec<_> = found.into_iter().map(|unit| (unit, agent_status::ask(run_dir, unit))).collect();
    let answer = |(unit, question): (u8, Result<Option<Question<Board>>, StatusSocketError>)| {
        let answer = question.and_then(|question| question.map(|it| it.answer(deadline)).transpose());
        match answer {
            Ok(answer) => answer,
            Err(error) => Some(Board::silent(unit, error.to_string())),
        }
    };
    let boards: Vec<Board> = asked.into_iter().filter_map(answer).collect();
    let none = "no agent of this machine has a status socket in";
    let why_not =
        boards.is_empty().then(|| format!("{none} {}; `mapper doctor` says why", run_dir.display()));
    Boards { boards, why_not }
}

/// Calls each xbar by the host whose node it is, or else by the only one there: agents give xbars numbers only, which are others in each
/// map.
pub(super) fn name_xbars(fabric: &mut Fabric) {
    let naming = naming_hosts(&fabric.map);
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let names: BTreeMap<_, _> = hosts.map(|(host, label)| (host.mac, label.name.clone())).collect();
    for (node, label) in naming.into_iter().zip(&mut fabric.xbars) {
        let Some((mac, name)) = node.and_then(|mac| names.get_key_value(&mac)) else { continue };
        if *name != mac.to_string() && label.description.is_empty() {
            label.description = format!("xbar of {name}");
        }
    }
}

/// The versions of the maps that boards hold, each once, with a unit that holds it.
fn versions(boards: &[Board]) -> Vec<(String, u8)> {
    let mut all: BTreeMap<String, u8> = BTreeMap::new();
    for board in boards {
        if let Some(version) = &board.map_version {
            all.entry(version.to_string()).or_insert(board.unit);
        }
    }
    all.into_iter().collect()
}

impl Known {
    /// Asks agents for the maps that their boards name. A map that is not to be had, as a new one comes at this moment, is left
    /// out until the next time.
    pub(crate) fn ask(run_dir: &Path, boards: &[Board]) -> Self {
        let mut known = Self::default();
        let deadline = Instant::now() + MAP_PATIENCE;
        let versions = versions(boards);
        let request = AgentRequest::Routes;
        let told = at_once(&versions, |(_, unit)| {
            ask::<RoutesInForce>(run_dir, *unit, &request, (deadline, MAX_ROUTES_BYTES))
        });
        for ((version, unit), routes) in versions.iter().zip(told) {
            let Some(routes) = routes else { continue };
            let held = routes.map_version.as_ref().map(MapVersionDto::to_string);
            let Some(map) = routes.map.filter(|_| held.as_ref() == Some(version)) else { continue };
            let Ok(text) = serde_json::to_string(&map) else { continue };
            if let Ok(fabric) = formats::parse("the agent's map", &text) {
                known.add(version.clone(), fabric, (versions.len() > 1).then_some(*unit));
            }
        }
        known
    }

    /// Puts a map beside those that are there. Where there are several, `unit` makes the ids of xbars different.
    pub(super) fn add(&mut self, version: String, fabric: Fabric, unit: Option<u8>) {
        let all = &mut self.fabric;
        let first = [all.map.hosts.len(), all.map.xbars.len(), all.map.cables.len()];
        let moved = |at: PortRef| PortRef { xbar: at.xbar + first[1] as u32, port: at.port };
        all.map.hosts.extend(fabric.map.hosts.into_iter().map(|mut host| {
            host.at = host.at.map(moved);
            host
        }));
        all.map.xbars.extend(fabric.map.xbars);
        all.map
            .cables
            .extend(fabric.map.cables.iter().map(|cable| Cable::new(moved(cable.a), moved(cable.b))));
        let prefix = unit.map(|unit| format!("unit{unit}-")).unwrap_or_default();
        let prefixed = |name: String| format!("{prefix}{name}");
        all.hosts.extend(fabric.hosts.into_iter().map(|mut label| {
            label.name = prefixed(label.name);
            label
        }));
        all.xbars.extend(fabric.xbars.into_iter().map(|mut label| {
            label.name = prefixed(label.name);
            label
        }));
        all.link_speeds.extend(fabric.link_speeds.into_iter().map(|(at, speed)| (moved(at), speed)));
        self.maps.push(HeldMap { version, first, prefix });
    }

    fn is_of(&self, boards: &[Board]) -> bool {
        self.maps.iter().map(|map| &map.version).eq(versions(boards).iter().map(|(version, _)| version))
    }

    /// The xbars of the map of this version, by their ids in that map.
    pub(super) fn xbars_of(&self, version: &str) -> Option<BTreeMap<&str, u32>> {
        let at = self.maps.iter().position(|map| map.version == version)?;
        let (xbars, prefix) = (self.xbars_in(at), &self.maps[at].prefix);
        let labels = (0..).zip(&self.fabric.xbars).take(xbars.end).skip(xbars.start);
        Some(
            labels
                .filter_map(|(xbar, label)| Some((label.name.strip_prefix(prefix.as_str())?, xbar)))
                .collect(),
        )
    }

    /// The map that a board holds; `None` if it holds none, or one that is not here.
    fn map_of(&self, board: &Board) -> Option<usize> {
        let version = board.map_version.as_ref().map(MapVersionDto::to_string)?;
        self.maps.iter().position(|map| map.version == version)
    }

    /// The hosts of one of the maps.
    fn hosts_in(&self, map: usize) -> Range<usize> {
        let end = self.maps.get(map + 1).map_or(self.fabric.map.hosts.len(), |next| next.first[0]);
        self.maps[map].first[0]..end
    }

    /// The xbars of one of the maps.
    fn xbars_in(&self, map: usize) -> Range<usize> {
        let end = self.maps.get(map + 1).map_or(self.fabric.map.xbars.len(), |next| next.first[1]);
        self.maps[map].first[1]..end
    }

    /// The hosts that a board speaks of: those of its own map, as other maps may have the same. While its map is not here they are
    /// those of all maps, but for addresses that several hosts have, since nobody knows which of them is meant.
    pub(super) fn hosts_known_to(&self, board: &Board) -> BTreeMap<Mac, usize> {
        let hosts = &self.fabric.map.hosts;
        let told_of = self.map_of(board).map_or(0..hosts.len(), |map| self.hosts_in(map));
        let mut places: BTreeMap<Mac, Option<usize>> = BTreeMap::new();
        for host in told_of {
            places.entry(hosts[host].mac).and_modify(|place| *place = None).or_insert(Some(host));
        }
        places.into_iter().filter_map(|(mac, place)| Some((mac, place?))).collect()
    }

    /// The xbar of a tag in hexadecimal digits, in any of the maps.
    pub(super) fn xbar_of_tag(&self, tag: &str) -> Option<u32> {
        self.xbar_among(0..self.fabric.map.xbars.len(), tag)
    }

    /// The xbar of this tag in a board's own map; while that is not here, in any.
    fn xbar_known_to(&self, board: &Board, tag: &str) -> Option<u32> {
        let told_of = self.map_of(board).map_or(0..self.fabric.map.xbars.len(), |map| self.xbars_in(map));
        self.xbar_among(told_of, tag)
    }

    fn xbar_among(&self, mut xbars: Range<usize>, tag: &str) -> Option<u32> {
        let tag = u64::from_str_radix(tag.trim_start_matches("0x"), 16).ok()?;
        xbars.find(|&xbar| self.fabric.map.xbars[xbar].tag == Some(tag)).map(|xbar| xbar as u32)
    }

    fn cable_at(&self, end: PortRef) -> Option<usize> {
        self.fabric.map.cables.iter().position(|cable| cable.a == end || cable.b == end)
    }

    /// Asks for the maps that boards name, if they are others than these, and says what is another in them. While a new map is on
    /// its way, the last one is kept.
    pub(crate) fn renew(&mut self, run_dir: &Path, boards: &[Board]) -> Option<String> {
        if boards.is_empty() || self.is_of(boards) {
            return None;
        }
        let next = Self::ask(run_dir, boards);
        if next.maps.is_empty() || (&next.maps, &next.fabric) == (&self.maps, &self.fabric) {
            return None;
        }
        let versions: Vec<&str> = next.maps.iter().map(|map| map.version.as_str()).collect();
        let what = match self.maps.is_empty() {
            true => format!("map {}", versions.join(", ")),
            // Agents know why a map was made; one that is older than its log is told by what is another in it.
            false => past::of_versions(&past::maps(run_dir, boards), &versions).unwrap_or_else(|| {
                format!("map {}: {}", versions.join(", "), changes(&self.fabric, &next.fabric))
            }),
        };
        let shown = std::mem::take(&mut self.shown);
        *self = Self { shown, ..next };
        Some(what)
    }

    /// The fabric, and behind it what is gone; see [`Self::show_gone`].
    pub(crate) fn shown(&self) -> &Fabric {
        &self.shown
    }

    /// Puts back what boards call gone. Says whether the picture is another.
    pub(crate) fn show_gone(&mut self, boards: &[Board]) -> bool {
        let mut shown = with_gone(&self.fabric, &self.shown, boards);
        name_xbars(&mut shown);
        let is_another = shown != self.shown;
        self.shown = shown;
        is_another
    }
}

/// The maps that the agents of a run directory hold now, beside each other.
///
/// # Errors
/// If there is none, in words.
pub(crate) fn live_fabric(run_dir: &Path) -> Result<Fabric, String> {
    let boards = boards(run_dir);
    let mut known = Known::default();
    known.renew(run_dir, &boards.boards);
    match (known.maps.is_empty(), boards.why_not) {
        (false, _) => Ok(known.fabric),
        (true, Some(why_not)) => Err(why_not),
        (true, None) => Err("no agent of this machine has a map; `mapper board-info` says why".to_owned()),
    }
}

/// Tells what the agents of a run directory hold, for ever.
pub(crate) fn follow(feed: &Feed, run_dir: &Path, title: &str) {
    let mut known = Known::default();
    let mut traffic = Traffic::default();
    feed.tell_fabric(Fabric::default(), title.to_owned());
    loop {
        let boards = boards(run_dir);
        let is_first = known.maps.is_empty();
        let what = known.renew(run_dir, &boards.boards);
        if is_first && what.is_some() {
            for (unit, event) in past::maps(run_dir, &boards.boards) {
                let recall = past::recall(run_dir, unit, event.unix_ms, &known.fabric);
                feed.tell_past(&past::moment(&event), title.to_owned(), recall);
            }
        }
        if known.show_gone(&boards.boards) || what.is_some() {
            let versions = known.maps.iter().map(|map| map.version.clone()).collect();
            let recall = past::recall_of_versions(run_dir, versions, &known.fabric);
            feed.tell_fabric_with(known.fabric.clone(), &known.shown, title.to_owned(), recall);
        }
        let what = what.unwrap_or_default();
        feed.tell(known.moment(&boards, what));
        if let Some(traffic) = traffic.renew(run_dir, &known, &boards.boards) {
            feed.tell_traffic(traffic);
        }
        std::thread::sleep(ASK_EVERY);
    }
}
