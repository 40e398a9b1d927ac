//! What routes an engine gives a fabric, before or after a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::engines::best::{self, Watch};
use mapper_routing::engines::{self, Answer, Engine, NotRouted, Proof, Settings};
use mapper_routing::{
    Attachment, HostRoutes, Orientation, PairRoutes, Quality, RouteOptions, Subnet, TableRoutes, Tables,
    Topology,
};
use thiserror::Error;

use super::change::{Change, Changed};
use super::entries::ComparedTables;
use super::parting;

/// Why there is nothing to tell.
#[derive(Debug, Error)]
pub(crate) enum ConsequencesError {
    /// A cable or a host that the fabric does not have.
    #[error("the fabric has no {what} {number}; {}", numbers(*.count))]
    NoSuch { what: &'static str, number: u32, count: usize },
    /// The fabric cannot be routed at all, whatever the engine.
    #[error(transparent)]
    Subnet(#[from] mapper_routing::SubnetError),
}

/// Which numbers so many cables or hosts have, in words.
fn numbers(count: usize) -> String {
    match count.checked_sub(1) {
        None => "it has none".to_owned(),
        Some(last) => format!("they count from 0 to {last}"),
    }
}

/// What to route by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The best of all engines that is proved.
    Best,
    /// This engine.
    Engine(Engine),
}

/// Routes for a fabric, perhaps after a change.
#[derive(Debug)]
pub(crate) struct Routed {
    /// The engine that serves; the last that was asked if none does.
    pub(crate) engine: Option<Engine>,
    /// Why no engine serves; `None` if one does, with a proof.
    pub(crate) why_not: Option<String>,
    /// For each cable of the fabric before the change, and then of those that are added between xbars, how many routes go
    /// over it from its first end to its second, and back.
    pub(crate) loads: Vec<[f64; 2]>,
    /// Hosts that the change parts from most others that they were joined with, but those that are removed.
    pub(crate) cut_off: Vec<u32>,
    subnet: Subnet,
    tables: Option<Tables>,
    /// The effective bisection, if it was measured when the engine was chosen, or with source routes.
    bisection: Option<f64>,
    /// What [`Self::bisection`] measured.
    measured: OnceLock<Option<f64>>,
    seed: u64,
    /// The number of each xbar of the fabric before the change.
    xbars: Vec<Option<u32>>,
    /// The cable behind each port of an xbar, and whether the port is its second end.
    cables: BTreeMap<PortRef, (u32, bool)>,
}

/// A route: the ports by which it leaves each xbar.
pub(crate) type Hops = Vec<PortRef>;

impl Routed {
    /// Has an engine route a fabric without the cables `cuts`, which are counted as in its map.
    ///
    /// # Errors
    /// If there is no such cable, or no engine can route the fabric. An engine that cannot is no error: see
    /// [`Self::why_not`].
    pub(crate) fn new(
        fabric: &Fabric,
        engine: Engine,
        cuts: &BTreeSet<u32>,
    ) -> Result<Self, ConsequencesError> {
        let count = fabric.map.cables.len();
        if let Some(&number) = cuts.iter().find(|&&cut| cut as usize >= count) {
            return Err(ConsequencesError::NoSuch { what: "cable", number, count });
        }
        let change = Change { cables: cuts.clone(), ..Change::default() };
        Self::after(fabric, &change, By::Engine(engine), &Settings::default(), &())
    }

    /// Has a fabric routed after a change; before it if the change is empty.
    ///
    /// # Errors
    /// If no engine can route the fabric. An engine that cannot is no error: see [`Self::why_not`].
    pub(crate) fn after(
        fabric: &Fabric,
        change: &Change,
        by: By,
        settings: &Settings,
        watch: &impl Watch,
    ) -> Result<Self, ConsequencesError> {
        let Changed { fabric: after, xbars, cables: numbers } = change.apply(fabric);
        let subnet = Subnet::new(&after, None)?;
        let mut cables = BTreeMap::new();
        for (&number, cable) in numbers.iter().zip(&after.map.cables) {
            cables.insert(cable.b, (number, true));
            cables.insert(cable.a, (number, false));
        }
        let mut cut_off = match change.is_empty() {
            true => Vec::new(),
            false => parting::cut_off(&Subnet::new(fabric, None)?.topology, &subnet.topology),
        };
        cut_off.retain(|host| !change.hosts.contains(host));
        let mut routed = Self {
            engine: None,
            why_not: None,
            loads: vec![[0.0; 2]; fabric.map.cables.len() + change.added.len()],
            cut_off,
            subnet,
            tables: None,
            bisection: None,
            measured: OnceLock::new(),
            seed: settings.seed,
            xbars,
            cables,
        };
        routed.compute(by, settings, watch);
        Ok(routed)
    }

    /// The fabric after a change, as [`Self::after`] routes it, or routed by the best engine where `by` does not serve. It
    /// says, too, why that engine does not.
    ///
    /// # Errors
    /// If the changed fabric cannot be routed at all, as for [`Self::after`].
    pub(crate) fn after_or_best(
        fabric: &Fabric,
        change: &Change,
        by: By,
        settings: &Settings,
        watch: &impl Watch,
    ) -> Result<(Self, Option<String>), ConsequencesError> {
        let routed = Self::after(fabric, change, by, settings, watch)?;
        let why_not = routed.why_not.clone();
        match (&why_not, by) {
            (Some(_), By::Engine(_)) => {
                Ok((Self::after(fabric, change, By::Best, settings, watch)?, why_not))
            }
            _ => Ok((routed, why_not)),
        }
    }

    fn compute(&mut self, by: By, settings: &Settings, watch: &impl Watch) {
        let answer = match by {
            By::Best => best::choose(&self.subnet, settings, watch)
                .map(|selection| Answer::Tables(Box::new(selection))),
            By::Engine(engine) => engines::answer(&self.subnet, &[engine], settings, Proof::Required),
        };
        let (engine, tables, loads, bisection) = match answer {
            Ok(Answer::Tables(selection)) => {
                let loads = TableRoutes::new(&self.subnet, &selection.routing.tables).census().loads.clone();
                let bisection = selection.bisection.map(|bisection| bisection.mean);
                (selection.engine, Some(selection.routing.tables), loads, bisection)
            }
            Ok(Answer::SourceRoutes(selection)) => {
                let bisection = selection.quality.effective_bisection;
                (selection.engine, None, selection.quality.loads, Some(bisection))
            }
            Err(refused) => {
                self.engine = match by {
                    By::Best => None,
                    By::Engine(engine) => Some(engine),
                };
                self.why_not = Some(why(&refused, &self.subnet));
                return;
            }
        };
        self.engine = Some(engine);
        self.tables = tables;
        self.bisection = bisection;
        for (channel, load) in (0..).zip(loads) {
            if let Some(&(cable, is_back)) = self.cables.get(&self.subnet.topology.tail(channel)) {
                self.loads[cable as usize][usize::from(is_back)] = load;
            }
        }
    }

    /// The engine that serves; `None` if none does.
    pub(crate) fn serving(&self) -> Option<Engine> {
        self.engine.filter(|_| self.why_not.is_none())
    }

    /// How many entries the tables have; `None` if there are none.
    pub(crate) fn entry_count(&self) -> Option<usize> {
        self.tables.as_ref().map(Tables::entry_count)
    }

    /// The fabric's topology, after the change.
    pub(crate) fn topology(&self) -> &Topology {
        &self.subnet.topology
    }

    /// The effective bisection bandwidth of all pairs of hosts that have a route; `None` if no engine serves, or no two
    /// hosts are joined. It is measured once. See [`Quality::effective_bisection`].
    pub(crate) fn bisection(&self) -> Option<f64> {
        *self.measured.get_or_init(|| self.measure())
    }

    fn measure(&self) -> Option<f64> {
        if !self.subnet.topology.joins_hosts() {
            return None;
        }
        let tables = self.tables.as_ref();
        let measured = |tables: &Tables| {
            // The tables are proved, so no route is longer than there are xbars.
            let routes = TableRoutes::proved(&self.subnet, tables, self.subnet.topology.xbar_count());
            Quality::bisection(&routes, self.seed)
        };
        self.bisection.or_else(|| tables.map(measured))
    }

    /// The routes over the busiest cable, one way.
    pub(crate) fn most(&self) -> f64 {
        self.loads.iter().flatten().copied().fold(0.0, f64::max)
    }

    /// The tables before a change and after it; `None` if either has none.
    pub(super) fn tables_with<'a>(&'a self, before: &'a Self) -> Option<ComparedTables<'a>> {
        Some(ComparedTables {
            then: before.tables.as_ref()?,
            now: self.tables.as_ref()?,
            slots_then: &before.subnet.destinations,
            slots_now: &self.subnet.destinations,
            xbars: &self.xbars,
        })
    }

    /// The routes from one host to another; from `from` to every other host if `to` is `None`, one after the other.
    ///
    /// # Errors
    /// If there is no such host.
    pub(crate) fn routes(&self, from: u32, to: Option<u32>) -> Result<Vec<(u32, Hops)>, ConsequencesError> {
        let hosts = self.subnet.topology.host_count() as u32;
        if let Some(number) = [Some(from), to].into_iter().flatten().find(|&host| host >= hosts) {
            return Err(ConsequencesError::NoSuch { what: "host", number, count: hosts as usize });
        }
        if self.why_not.is_some() {
            return Ok(Vec::new());
        }
        let all = to.map_or(0..hosts, |to| to..to + 1).filter(|&to| to != from);
        Ok(match &self.tables {
            Some(tables) => self.table_routes(tables, from, all),
            None => self.source_routes(from, all),
        })
    }

    fn table_routes(&self, tables: &Tables, from: u32, to: impl Iterator<Item = u32>) -> Vec<(u32, Hops)> {
        let topology = &self.subnet.topology;
        // The tables are proved, so no route is longer than there are xbars.
        let routes = TableRoutes::proved(&self.subnet, tables, topology.xbar_count());
        let mut found = Vec::new();
        for to in to {
            let slots = self.subnet.destinations.slots_of_host(to).len() as u32;
            for draw in 0..slots {
                let mut channels = Vec::new();
                if routes.draw(from, to, draw, &mut channels) {
                    let mut hops: Hops = channels.iter().map(|&channel| topology.tail(channel)).collect();
                    if let Attachment::Port(at) = topology.attachment(to) {
                        hops.push(at);
                    }
                    found.push((to, hops));
                }
            }
        }
        found
    }

    fn source_routes(&self, from: u32, to: impl Iterator<Item = u32>) -> Vec<(u32, Hops)> {
        let topology = &self.subnet.topology;
        let orientation = Orientation::new(topology, false);
        let Ok(table) = HostRoutes::compute(topology, &orientation, from, &RouteOptions::default()) else {
            return Vec::new();
        };
        to.flat_map(|to| table.routes_to(topology, to).map(move |hops| (to, hops)).collect::<Vec<_>>())
            .collect()
    }

    /// The cable that a hop leaves by; `None` for the last hop, to a host.
    pub(crate) fn cable(&self, hop: PortRef) -> Option<u32> {
        self.cables.get(&hop).map(|&(cable, _)| cable)
    }
}

/// Why no engine serves, in the names of the fabric.
fn why(refused: &NotRouted, subnet: &Subnet) -> String {
    let mut all = refused.tried.iter().map(|tried| (tried.engine, tried.describe(subnet)));
    match &refused.tried[..] {
        [_] => all.next().map(|(_, why)| why).unwrap_or_default(),
        _ => all.map(|(engine, why)| format!("{engine}: {why}")).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn a_cut_moves_routes_to_other_cables_and_the_last_cut_parts_hosts() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let whole = Routed::new(&fabric, Engine::Minhop, &BTreeSet::new()).unwrap();
        assert!(whole.why_not.is_none() && whole.cut_off.is_empty());
        assert!(whole.loads.iter().flatten().all(|&load| load > 0.0), "{:?}", whole.loads);
        let of_first: Vec<u32> = (0..)
            .zip(&fabric.map.cables)
            .filter(|(_, cable)| cable.a.xbar == 0)
            .map(|(number, _)| number)
            .collect();
        let one = Routed::new(&fabric, Engine::Minhop, &BTreeSet::from([of_first[0]])).unwrap();
        assert_eq!(one.loads[of_first[0] as usize], [0.0; 2]);
        assert!(one.most() > whole.most() && one.cut_off.is_empty());
        assert!(one.changed_entries(&whole).unwrap() > 0);
        let all = Routed::new(&fabric, Engine::Minhop, &of_first.iter().copied().collect()).unwrap();
        assert_eq!(all.cut_off, [0, 1], "the hosts of the first leaf");
        let refusal = |fabric: &Fabric, cut: u32| {
            Routed::new(fabric, Engine::Minhop, &BTreeSet::from([cut])).unwrap_err().to_string()
        };
        assert_eq!(refusal(&fabric, 999), "the fabric has no cable 999; they count from 0 to 7");
        let one_xbar = generate("clos:hosts=4,ports=4").unwrap();
        assert_eq!(refusal(&one_xbar, 0), "the fabric has no cable 0; it has none");
    }

    #[test]
    fn routes_leave_by_the_ports_of_the_way_and_end_at_the_host() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        for engine in [Engine::Minhop, Engine::Dispersive] {
            let routed = Routed::new(&fabric, engine, &BTreeSet::new()).unwrap();
            let routes = routed.routes(0, Some(7)).unwrap();
            assert!(!routes.is_empty(), "{engine}");
            for (to, hops) in &routes {
                assert_eq!(
                    (*to, hops.len(), hops.last()),
                    (7, 3, fabric.map.hosts[7].at.as_ref()),
                    "{engine}"
                );
                assert!(routed.cable(hops[0]).is_some() && routed.cable(hops[2]).is_none());
            }
            assert!(routed.routes(0, None).unwrap().len() >= 7, "{engine}");
            assert!(routed.routes(0, Some(8)).is_err());
        }
    }
}
