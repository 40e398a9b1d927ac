//! Which engine serves a subnet, and what an administrator is told of it.

use mapper_fabric::wording::plural;
use mapper_routing::engines::{
    Engine, NotRouted, Proof, Refusal, Selection, Setting, Settings, TooManyLayers, Tried, WhyNotServed,
    best, select,
};
use mapper_routing::{Subnet, Tables};

use crate::{Asker, Options, Request};

/// A subnet to choose an engine for.
pub(crate) struct Choosing<'a> {
    pub(crate) request: &'a Request,
    pub(crate) subnet: &'a Subnet,
    /// The tables that switches hold, unless they hold none.
    pub(crate) in_force: Option<&'a Tables>,
}

/// An engine's proved tables.
pub(crate) struct Served {
    pub(crate) selection: Selection,
    /// Why this engine serves, a line each.
    pub(crate) why: Vec<String>,
}

impl Choosing<'_> {
    /// The engine that served at the last sweep is kept as long as its bisection is at least this part of the best.
    const KEPT_SHARE: f64 = 0.95;

    /// Has the wanted engines compute tables.
    ///
    /// # Errors
    /// If none of them serves.
    pub(crate) fn serve(&self) -> Result<Served, NotRouted> {
        let settings = self.settings();
        let (selection, mut why) = match self.request.options.engines() {
            None => self.kept(&settings).map_or_else(|| self.best(&settings), Ok)?,
            Some(engines) => {
                let selection = self.by(&engines, &settings)?;
                let others = selection.tried.iter().map(|tried| why_not(tried, self.request, self.subnet));
                let why = others.collect();
                (selection, why)
            }
        };
        let engine = selection.engine;
        why.extend(engine.without_effect(&self.set_by_the_administrator(&settings)));
        let of_engine = format!("{engine}: ");
        let notes = selection.routing.notes.iter();
        // Some notes name their engine by themselves.
        why.extend(notes.map(|note| format!("{of_engine}{}", note.strip_prefix(&of_engine).unwrap_or(note))));
        why.push(self.served(&selection));
        Ok(Served { selection, why })
    }

    /// The settings of the engines, without the tables in force.
    fn settings(&self) -> Settings {
        let options = &self.request.options;
        let roots = options.roots.iter().filter_map(|&root| self.subnet.xbar_by_guid(root));
        let roots: Vec<u32> = roots.collect();
        Settings {
            reassign: options.reassign,
            roots: Some(roots).filter(|roots| !roots.is_empty()),
            max_layers: Some(options.layers(self.request.lanes)),
            ..Settings::default()
        }
    }

    /// The settings without the limit on layers, if the switches' lanes alone set it.
    fn set_by_the_administrator(&self, settings: &Settings) -> Settings {
        let max_layers = settings.max_layers.filter(|_| self.request.options.limits_layers());
        Settings { max_layers, ..settings.clone() }
    }

    /// The first of some engines that serves. What is right of the tables in force stays, if the engine can keep it.
    fn by(&self, engines: &[Engine], settings: &Settings) -> Result<Selection, NotRouted> {
        let settings = Settings { previous: self.in_force.cloned(), ..settings.clone() };
        select(self.subnet, engines, &settings, Proof::Required)
    }

    /// The engine that served at the last sweep, if hosts wait for tables and it can serve again.
    fn kept(&self, settings: &Settings) -> Option<(Selection, Vec<String>)> {
        let serving = self.request.serving.as_ref().filter(|_| self.request.is_urgent)?;
        let engine: Engine = serving.parse().ok()?;
        let selection = self.by(&[engine], settings).ok()?;
        Some((selection, vec![format!("{engine} stays, as hosts wait; others are tried when they do not")]))
    }

    /// The best of all engines, or the one that served last if it is hardly worse.
    ///
    /// Engines are compared as they would route the subnet anew. So which engine serves does not depend on the tables
    /// in force, of which only some engines can keep entries.
    fn best(&self, settings: &Settings) -> Result<(Selection, Vec<String>), NotRouted> {
        let best = best::choose(self.subnet, settings, &())?;
        let bisection = best.effective_bisection(self.subnet, settings.seed);
        let others: Vec<(Engine, f64)> = best
            .tried
            .iter()
            .filter_map(|tried| Some((tried.engine, tried.why_not.effective_bisection()?)))
            .collect();
        let kept = others.iter().copied().find(|&(engine, other)| {
            self.request.serving.as_deref() == Some(engine.name()) && other >= Self::KEPT_SHARE * bisection
        });
        let why = why_best(best.engine, bisection, kept, &others);
        let engine = kept.map_or(best.engine, |(engine, _)| engine);
        let keeps_entries = self.in_force.is_some() && engine.obeys(settings).contains(&Setting::Previous);
        if engine == best.engine && !keeps_entries {
            return Ok((best, vec![why]));
        }
        // An engine whose tables were proved a moment ago may still fail with the entries that it is to keep.
        let selection = self.by(&[engine], settings).unwrap_or(best);
        Ok((selection, vec![why]))
    }

    fn served(&self, selection: &Selection) -> String {
        let layers = plural(selection.routing.layers.count, "layer");
        let changed = self.in_force.map_or_else(String::new, |before| {
            let changed = self.subnet.changed_entries(&selection.routing.tables, before);
            format!("; {changed} entries differ from those in force")
        });
        format!("{} serves, {layers}: {}{changed}", selection.engine, selection.proof.summary())
    }
}

/// Why an engine is the one of all that serves.
fn why_best(best: Engine, bisection: f64, kept: Option<(Engine, f64)>, others: &[(Engine, f64)]) -> String {
    let of = others.len() + 1;
    match kept {
        Some((engine, other)) => format!(
            "{engine} stays, whose effective bisection is {other:.3}; the best of {of} that are proved, {best}, would \
             give {bisection:.3}"
        ),
        None => format!("{best} has the best effective bisection of {of} that are proved, {bisection:.3}"),
    }
}

/// Why none of the engines that were tried serves, a line each.
pub(crate) fn why_none(tried: &[Tried], request: &Request, subnet: &Subnet) -> Vec<String> {
    tried.iter().map(|tried| why_not(tried, request, subnet)).collect()
}

/// Why an engine does not serve, by the names of the nodes, and which setting of OpenSM would help.
fn why_not(tried: &Tried, request: &Request, subnet: &Subnet) -> String {
    let why = match &tried.why_not {
        WhyNotServed::Refused(Refusal::TooManyLayers(layers)) => too_many(layers, request),
        _ => tried.describe(subnet),
    };
    format!("{} does not serve: {why}", tried.engine)
}

fn too_many(layers: &TooManyLayers, request: &Request) -> String {
    let TooManyLayers { needed, left, instead, .. } = *layers;
    let most = usize::from(Options::MAX_LAYERS);
    let more = if needed > most {
        String::new()
    } else if needed > usize::from(request.lanes) {
        let lanes = plural(request.lanes, "lane");
        match request.asker {
            Asker::Opensm => format!("OpenSM may use {lanes}: set qos TRUE, and max_op_vls to as many, or "),
            Asker::Agent => format!("cables between switches have {lanes}; "),
        }
    } else {
        format!("allow more by max-layers={needed}, or ")
    };
    format!("it would serve in {}, and {left} may be used; {more}try {instead}", plural(needed, "layer"))
}

#[cfg(test)]
mod tests {
    use crate::request::tests::ring;
    use crate::{Answer, Request, answer};

    fn request(options: &str) -> Request {
        Request { options: options.parse().unwrap(), ..ring(6) }
    }

    /// The request of the next sweep, when switches hold these tables.
    fn next(mut request: Request, answer: &Answer) -> Request {
        for (switch, table) in request.switches.iter_mut().zip(&answer.tables) {
            switch.in_force.clone_from(&table.ports);
        }
        Request { serving: Some(answer.engine.clone()), ..request }
    }

    #[test]
    fn the_best_is_one_layer_unless_more_are_allowed() {
        let one = answer(&request("")).unwrap();
        assert_eq!((one.layer_count, one.levels.len()), (1, 0));
        let said = one.said.join("\n");
        assert!(said.contains("has the best effective bisection of"), "{said}");
        let more = answer(&request("max-layers=4")).unwrap();
        assert!((2..=4).contains(&more.layer_count), "{:?}", more.said);
    }

    #[test]
    fn the_same_subnet_gets_the_same_tables_again() {
        for options in ["", "max-layers=4", "engines=dnup", "engines=nue", "engines=torus"] {
            let first = answer(&request(options)).unwrap();
            let second = answer(&next(request(options), &first)).unwrap();
            assert_eq!(first.tables, second.tables, "{options}");
            assert_eq!(first.levels, second.levels, "{options}");
            let said = second.said.join("\n");
            assert!(said.contains("; 0 entries differ from those in force"), "{said}");
        }
    }

    #[test]
    fn the_engine_that_served_stays_unless_another_is_far_better() {
        let best = answer(&request("")).unwrap();
        let named = |engine: &str| Request { serving: Some(engine.to_owned()), ..request("") };
        for engine in ["dnup", "nue", "updn", "dor"] {
            let after = answer(&named(engine)).unwrap();
            let said = after.said.join("\n");
            let stays = said.contains(&format!("{engine} stays, whose effective bisection is "));
            assert!(after.engine == if stays { engine } else { &best.engine }, "{said}");
        }
        assert!(answer(&named("nue")).unwrap().engine == "nue", "no worse than the best on a ring");
    }

    #[test]
    fn layers_that_are_missing_say_which_setting_of_opensm_gives_them() {
        let said = |options: &str, lanes| {
            let request = Request { lanes, ..request(options) };
            answer(&request).unwrap_err().said.join("\n")
        };
        let without_qos = said("engines=lash", 1);
        assert!(
            without_qos.contains("lash does not serve: it would serve in 2 layers, and 1 may be used; OpenSM may use 1 lane: set qos TRUE"),
            "{without_qos}"
        );
        let limited = said("engines=lash;max-layers=1", 8);
        assert!(limited.contains("allow more by max-layers=2, or try"), "{limited}");
    }

    #[test]
    fn settings_that_have_no_effect_are_told() {
        let said = |options: &str| answer(&request(options)).unwrap().said.join("\n");
        let roots = said("engines=nue;roots=0x100");
        assert!(roots.contains("roots: no effect on nue"), "{roots}");
        let limit = said("engines=dnup;max-layers=2");
        assert!(limit.contains("a limit on layers: no effect on dnup"), "{limit}");
        let none = said("engines=dnup");
        assert!(!none.contains("no effect"), "the lanes limit layers, and nobody set them for it: {none}");
    }

    #[test]
    fn while_hosts_wait_the_engine_that_served_is_asked_first() {
        let urgent =
            |engine: &str| Request { serving: Some(engine.to_owned()), is_urgent: true, ..request("") };
        let kept = answer(&urgent("dnup")).unwrap();
        assert_eq!(kept.engine, "dnup");
        assert!(kept.said[0].starts_with("dnup stays, as hosts wait"), "{:?}", kept.said);
        // An engine that cannot route a ring is not kept, and neither is a name that no engine has.
        for other in ["ftree", "none such"] {
            assert!(answer(&urgent(other)).unwrap().said[0].contains("has the best effective bisection"));
        }
    }
}
