//! The busiest cables: by the routes of an engine, by the routes in force, and by what goes over them.

use std::collections::BTreeSet;

use mapper_fabric::names::Names;
use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::engines::Settings;
use serde_json::{Value, json};

use super::screen::Width;
use crate::cli::engine_names::WantedEngine;
use crate::consequences::{By, Change, Routed};
use crate::view::feed::{CableState, Moment};
use crate::view::source::traffic::Traffic;

/// How many cables are listed.
const MOST_LISTED: usize = 6;
/// The width of a cable's name, and of the longest bar.
const NAME_WIDTH: usize = 38;
const BAR_WIDTH: usize = 16;

/// What is known of the loads of cables.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// The heading, which says what loads these are.
    heading: String,
    /// The name of the engine; `None` if they are of the routes in force.
    engine: Option<&'static str>,
    /// Why there are no loads.
    why_not: Option<String>,
    /// By cable, the busiest first: routes there and back, and bits a second there and back where they are counted.
    busiest: Vec<Load>,
    /// The fabric that the loads are of, and its cables that are not whole and so are left out.
    of: Option<(Fabric, BTreeSet<u32>)>,
}

/// The load of a cable.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load {
    cable: u32,
    routes: [f64; 2],
    bits: Option<[f64; 2]>,
}

impl Loads {
    /// Computes the loads of an engine over the cables that are whole, if others are than before.
    pub(super) fn follow(&mut self, engine: Option<WantedEngine>, fabric: &Fabric, moment: &Moment) {
        let states = (0..fabric.map.cables.len() as u32).zip(&moment.cables);
        let is_off = |state: CableState| matches!(state, CableState::Dead | CableState::Missing);
        let cuts: BTreeSet<u32> =
            states.filter(|(_, state)| is_off(**state)).map(|(cable, _)| cable).collect();
        if self.of.as_ref().is_some_and(|(of, off)| of == fabric && *off == cuts) {
            return;
        }
        let by = match engine {
            Some(WantedEngine::Engine(engine)) => By::Engine(engine),
            Some(WantedEngine::Best) | None => By::Best,
        };
        let change = Change { cables: cuts.clone(), ..Change::default() };
        *self = Self::default();
        match Routed::after(fabric, &change, by, &Settings::default(), &()) {
            Ok(routed) => {
                let name = routed.engine.map(mapper_routing::engines::Engine::name);
                self.engine = name;
                self.heading =
                    format!("Busiest cables, by routes of {} there and back", name.unwrap_or("an engine"));
                self.why_not = routed.why_not;
                let loads = (0..).zip(&routed.loads);
                self.busiest = loads.map(|(cable, &routes)| Load { cable, routes, bits: None }).collect();
            }
            Err(error) => self.why_not = Some(error.to_string()),
        }
        self.sort();
        self.of = Some((fabric.clone(), cuts));
    }

    /// Takes the routes in force, and what goes over cables.
    pub(super) fn take(&mut self, traffic: &Traffic) {
        *self = Self {
            heading: "Busiest cables, by routes in force there and back".to_owned(),
            ..Self::default()
        };
        let (force, flows) = (&traffic.in_force.loads, &traffic.flows.cables);
        let all: BTreeSet<u32> = force.keys().chain(flows.keys()).copied().collect();
        let load = |cable: u32| Load {
            cable,
            routes: force.get(&cable).map_or([0.0; 2], |it| it.map(f64::from)),
            bits: flows.get(&cable).map(|flow| flow.bits),
        };
        self.busiest = all.into_iter().map(load).collect();
        self.sort();
    }

    /// The busiest first: by what goes over them where that is counted, then by routes.
    fn sort(&mut self) {
        let most = |[one, other]: [f64; 2]| one.max(other);
        self.busiest.retain(|load| most(load.routes) > 0.0 || load.bits.is_some_and(|bits| most(bits) > 0.0));
        let key = |load: &Load| (load.bits.map_or(0.0, most), most(load.routes));
        self.busiest.sort_by(|one, other| {
            let ((bits, routes), (other_bits, other_routes)) = (key(one), key(other));
            other_bits
                .total_cmp(&bits)
                .then(other_routes.total_cmp(&routes))
                .then(one.cable.cmp(&other.cable))
        });
    }

    /// Lines of this width; none if there is nothing to tell.
    pub(super) fn lines(&self, fabric: &Fabric, names: &Names, width: Width) -> Vec<String> {
        if let Some(why_not) = &self.why_not {
            return vec![format!("No loads: {}: {why_not}", self.engine.unwrap_or("no engine serves"))];
        }
        let most = self.busiest.iter().flat_map(|load| load.routes).fold(1.0, f64::max);
        let name_of = |load: &Load| {
            let cable = fabric.map.cables.get(load.cable as usize)?;
            Some(width.cut(&names.cable([cable.a, cable.b]), NAME_WIDTH))
        };
        let listed = || self.busiest.iter().take(MOST_LISTED);
        let longest = listed().filter_map(name_of).map(|name| name.chars().count()).max();
        let columns = longest.unwrap_or_default().max(NAME_WIDTH);
        let line = |load: &Load| {
            let name = name_of(load)?;
            let [there, back] = load.routes;
            let rest = match load.bits {
                Some(bits) => format!("{:>9} {:>9}", rate(bits[0]), rate(bits[1])),
                None => "#".repeat((there.max(back) / most * BAR_WIDTH as f64).ceil() as usize),
            };
            Some(format!("  {name:<columns$} {there:>8.0} {back:>8.0}  {rest}"))
        };
        let lines: Vec<String> = listed().filter_map(line).collect();
        let heading = (!lines.is_empty()).then(|| self.heading.clone());
        heading.into_iter().chain(lines).collect()
    }

    /// What [`Self::lines`] says, as JSON.
    pub(super) fn json(&self, fabric: &Fabric) -> Value {
        let end = |at: PortRef| format!("{}:{}", fabric.xbars[at.xbar as usize].name, at.port);
        let load = |load: &Load| {
            let cable = fabric.map.cables.get(load.cable as usize)?;
            Some(
                json!({ "cable": [end(cable.a), end(cable.b)], "routes": load.routes, "bits_per_s": load.bits }),
            )
        };
        json!({
            "engine": self.engine,
            "why_not": self.why_not,
            "busiest": self.busiest.iter().take(MOST_LISTED).filter_map(load).collect::<Vec<_>>(),
        })
    }
}

/// Bits a second, in few letters.
fn rate(bits: f64) -> String {
    let units = ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"];
    let (mut bits, mut unit) = (bits, 0);
    while bits >= 999.5 && unit + 1 < units.len() {
        bits /= 1000.0;
        unit += 1;
    }
    format!("{bits:.0} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_routing::engines::Engine;

    use super::*;
    use crate::view::source::traffic::Flow;

    #[test]
    fn the_busiest_cables_come_first_and_dead_ones_carry_nothing() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let names = Names::of(&fabric);
        let mut moment =
            Moment { cables: vec![CableState::Whole; fabric.map.cables.len()], ..Moment::default() };
        moment.cables[0] = CableState::Dead;
        let mut loads = Loads::default();
        loads.follow(Some(WantedEngine::Engine(Engine::Minhop)), &fabric, &moment);
        let lines = loads.lines(&fabric, &names, Width::Terminal);
        assert_eq!(lines.len(), 1 + MOST_LISTED, "{lines:?}");
        assert!(
            lines[0].contains("routes of minhop") && lines[1].ends_with(&"#".repeat(BAR_WIDTH)),
            "{lines:?}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= super::super::screen::COLUMNS), "{lines:?}");
        let cut = fabric.map.cables[0];
        assert!(!lines.iter().any(|line| line.contains(&names.cable([cut.a, cut.b]))), "{lines:?}");
        assert_eq!(loads.json(&fabric)["engine"], "minhop");
        let torus = generate("torus:x=6,y=6,hosts=1").unwrap();
        loads.follow(Some(WantedEngine::Engine(Engine::Minhop)), &torus, &Moment::default());
        let lines = loads.lines(&torus, &Names::of(&torus), Width::Terminal);
        assert!(lines[0].starts_with("No loads: minhop: "), "{lines:?}");
    }

    #[test]
    fn long_names_keep_their_ports_where_no_terminal_cuts_them() {
        let mut fabric = generate("ring:n=4").unwrap();
        fabric.xbars.iter_mut().enumerate().for_each(|(nth, xbar)| {
            xbar.description = format!("{}{nth}", "s".repeat(50));
        });
        let names = Names::of(&fabric);
        let mut traffic = Traffic::default();
        traffic.in_force.loads.extend([(0, [9, 1])]);
        let mut loads = Loads::default();
        loads.take(&traffic);
        let cable = fabric.map.cables[0];
        let whole = names.cable([cable.a, cable.b]);
        assert!(whole.chars().count() > NAME_WIDTH, "{whole}");
        let shown = |width| loads.lines(&fabric, &names, width)[1].contains(&whole);
        assert_eq!((shown(Width::Any), shown(Width::Terminal)), (true, false));
    }

    #[test]
    fn what_goes_over_cables_ranks_before_the_routes_in_force() {
        let fabric = generate("ring:n=4").unwrap();
        let mut traffic = Traffic::default();
        traffic.in_force.loads.extend([(0, [9, 1]), (1, [2, 3])]);
        traffic.flows.cables.insert(1, Flow { bits: [1_500_000.0, 20.0], ..Flow::default() });
        let mut loads = Loads::default();
        loads.take(&traffic);
        let lines = loads.lines(&fabric, &Names::of(&fabric), Width::Terminal);
        assert!(lines[1].contains("2 Mb/s") && lines[1].contains("20 b/s"), "{lines:?}");
        assert!(lines[2].contains("       9        1"), "{lines:?}");
    }
}
