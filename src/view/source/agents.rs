//! The agents of this machine: the maps that they hold, and how the hosts in them are.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    AgentRequest, Board, MAX_ROUTES_BYTES, MapVersionDto, RoutesInForce, ask, naming_hosts,
    requests_socket_path, units,
};
use mapper_fabric::wording::plural;
use mapper_formats as formats;
use mapper_machine::status::{self, StatusSocketError};
use mapper_proto::map::{Cable, Fabric, PortRef};
use mapper_proto::wire::AgentState;

use super::file::changes;
use super::gone::with_gone;
use super::past;
use super::traffic::Traffic;
use crate::view::feed::{CableState, Feed, HostState, Moment};

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
    let asked: Vec<_> = found.into_iter().map(|unit| (unit, ask(run_dir, unit))).collect();
    let answer = |(unit, question): (u8, Result<Option<status::Question<Board>>, StatusSocketError>)| {
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
        for (version, unit) in &versions {
            let question = status::ask::<RoutesInForce>(requests_socket_path(run_dir, *unit));
            let question = question
                .and_then(|question| question.map(|it| it.request(&AgentRequest::Routes)).transpose());
            let Ok(Some(question)) = question else { continue };
            let Ok(routes) = question.answer_json(deadline, MAX_ROUTES_BYTES, "routes") else { continue };
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
        let HeldMap { first: [_, first, _], prefix, .. } = &self.maps[at];
        let end = self.maps.get(at + 1).map_or(self.fabric.xbars.len(), |next| next.first[1]);
        let labels = (0..).zip(&self.fabric.xbars).take(end).skip(*first);
        Some(
            labels
                .filter_map(|(xbar, label)| Some((label.name.strip_prefix(prefix.as_str())?, xbar)))
                .collect(),
        )
    }

    /// How the fabric is, as boards say.
    pub(crate) fn moment(&self, boards: &Boards, what: String) -> Moment {
        let (map, shown) = (&self.fabric.map, &self.shown.map);
        let mut moment = Moment {
            what,
            hosts: vec![HostState::Unknown; map.hosts.len()],
            cables: vec![CableState::Whole; map.cables.len()],
            troubles: boards.why_not.iter().cloned().collect(),
            ..Moment::default()
        };
        let by_mac: BTreeMap<String, usize> =
            map.hosts.iter().enumerate().map(|(at, host)| (host.mac.to_string(), at)).collect();
        let mut complete = 0;
        for board in &boards.boards {
            complete += usize::from(board.network_configured);
            self.add_board(&mut moment, board, &by_mac);
        }
        moment.hosts.resize(shown.hosts.len().max(map.hosts.len()), HostState::Missing);
        moment.cables.resize(shown.cables.len().max(map.cables.len()), CableState::Missing);
        let missing: usize = moment.hosts.iter().filter(|&&state| state == HostState::Silent).count();
        moment.says = match (boards.boards.len(), missing) {
            (0, _) => "no agent answers".to_owned(),
            (all, 0) if complete == all => "fully configured".to_owned(),
            (_, 0) => "not fully configured".to_owned(),
            (_, missing) => format!("{} silent", plural(missing, "host")),
        };
        moment
    }

    fn add_board(&self, moment: &mut Moment, board: &Board, by_mac: &BTreeMap<String, usize>) {
        let unit = board.unit;
        if let Some(why) = &board.no_answer {
            moment.troubles.push(format!("unit {unit} does not answer: {why}"));
            return;
        }
        let own = match board.state.known() {
            Some(AgentState::Configured) => HostState::Configured,
            Some(AgentState::Isolated) => HostState::Isolated,
            Some(
                AgentState::Starting
                | AgentState::Mapping
                | AgentState::Passive
                | AgentState::Fetching
                | AgentState::Routing,
            )
            | None => HostState::AtWork,
        };
        // Who is configured hears of all others that are not, as far as they are in its part of the checks.
        let version = board.map_version.as_ref().map(MapVersionDto::to_string);
        let at = self.maps.iter().position(|map| Some(&map.version) == version.as_ref());
        if let Some(at) = at.filter(|_| board.network_configured) {
            let first = self.maps[at].first[0];
            let end = self.maps.get(at + 1).map_or(moment.hosts.len(), |next| next.first[0]);
            moment.hosts[first..end].iter_mut().for_each(|state| *state = HostState::Configured);
        }
        if let Some(&at) = board.mac.as_ref().and_then(|mac| by_mac.get(mac)) {
            moment.hosts[at] = own;
        }
        for host in &board.unreachable {
            if let Some(&at) = by_mac.get(&host.mac) {
                moment.hosts[at] = HostState::Silent;
            }
            moment.reasons.insert(host.mac.clone(), host.why.clone());
            moment.troubles.push(format!("{}: {}", board.called(&host.mac), host.why));
        }
        for cable in &board.dead_cables {
            let xbar = cable.tag.as_ref().and_then(|tag| self.xbar_of_tag(tag));
            if let Some(place) = xbar.and_then(|xbar| self.cable_at(PortRef { xbar, port: cable.port })) {
                moment.cables[place] = CableState::Dead;
            }
            moment.troubles.push(format!("the cable at {} is dead: {}", board.end_of_dead(cable), cable.why));
        }
        for cable in board.narrow_cables.iter().flat_map(|cable| &cable.ends) {
            let xbar = by_mac.get(&cable.host).and_then(|&at| self.fabric.map.hosts[at].at).map(|at| at.xbar);
            let end = xbar.zip(cable.port).map(|(xbar, port)| PortRef { xbar, port });
            if let Some(place) = end.and_then(|end| self.cable_at(end)) {
                moment.cables[place] = CableState::Narrow;
            }
        }
        moment.troubles.extend(board.gone_hosts.iter().map(|mac| format!("{} is gone", board.called(mac))));
        moment.troubles.extend(board.gone_cable_ends().map(|[a, b]| format!("the cable {a} - {b} is gone")));
        if let Some(plan) = &board.plan {
            let unreadable =
                plan.failure.iter().map(|why| format!("unit {unit}: the plan cannot be used: {why}"));
            moment.troubles.extend(unreadable);
            let advice = plan.differences.iter();
            moment
                .troubles
                .extend(advice.map(|it| format!("not as planned: {} ({})", it.advice, it.severity)));
        }
        moment.troubles.extend(board.warnings.iter().map(|warning| format!("unit {unit}: {warning}")));
        moment
            .troubles
            .extend(board.routing_failure.iter().map(|why| format!("unit {unit}: routing failed: {why}")));
    }

    /// The xbar of a tag in hexadecimal digits.
    pub(super) fn xbar_of_tag(&self, tag: &str) -> Option<u32> {
        let tag = u64::from_str_radix(tag.trim_start_matches("0x"), 16).ok();
        let found = self.fabric.map.xbars.iter().position(|xbar| tag.is_some() && xbar.tag == tag)?;
        Some(found as u32)
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
