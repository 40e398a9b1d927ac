//! What engines answer to the page: routes, loads, and what follows if cables are cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use mapper_routing::engines::Engine;
use mapper_routing::tables::SlotEnd;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::answers::{NoAnswer, bad, busy, gone};
use super::turns::{Turn, Turns};
use crate::consequences::Routed;
use crate::view::feed::Feed;

/// The most requests that wait while an engine computes.
const MOST_WAITING: usize = 16;
/// The most routings that are kept.
const MOST_ROUTINGS: usize = 3;
/// The engines that are tried in turn where the chosen one does not serve what cut cables leave: the simplest first.
const FALLBACKS: [Engine; 3] = [Engine::Updn, Engine::Dfsssp, Engine::Nue];
/// The most routes between two hosts that are told.
const MOST_ROUTES: usize = 64;
/// The most entries of a table that are told.
const MOST_ENTRIES: usize = 400;

/// Which routing is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoutingAsked {
    scene: u64,
    engine: String,
    cuts: BTreeSet<u32>,
}

impl RoutingAsked {
    /// The same before anything is cut.
    fn whole(&self) -> Self {
        Self { cuts: BTreeSet::new(), ..self.clone() }
    }
}

/// Which routes are wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoutesAsked {
    scene: u64,
    engine: String,
    cuts: BTreeSet<u32>,
    from: u32,
    to: Option<u32>,
}

/// Of which xbar the entries are wanted that cut cables change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntriesAsked {
    scene: u64,
    engine: String,
    cuts: BTreeSet<u32>,
    xbar: u32,
}

/// Routings that were computed last.
type Kept = VecDeque<(RoutingAsked, Arc<Routed>)>;

/// Has engines compute, one at a time, and keeps what they computed last.
pub(super) struct Engines {
    feed: Arc<Feed>,
    /// One engine computes at a time.
    turns: Turns,
    waiting: Arc<Semaphore>,
    kept: Mutex<Kept>,
}

impl Engines {
    pub(super) fn new(feed: Arc<Feed>) -> Self {
        Self {
            feed,
            turns: Turns::new(),
            waiting: Arc::new(Semaphore::new(MOST_WAITING)),
            kept: Mutex::default(),
        }
    }

    /// The loads of an engine; if cables are cut also bisection, who is cut off, and how many entries of each table change.
    pub(super) async fn routing(&self, asked: RoutingAsked) -> Result<Value, NoAnswer> {
        let routed = self.routed(&asked).await?;
        let tenths = |load: f64| (load * 10.0).round() / 10.0;
        let mut answer = json!({
            "engine": asked.engine,
            "why_not": routed.why_not,
            "loads": routed.loads.iter().flatten().map(|&load| tenths(load)).collect::<Vec<_>>(),
            "most": tenths(routed.most()),
            "cut_off": routed.cut_off,
        });
        if !asked.cuts.is_empty() {
            let whole = self.routed(&asked.whole()).await?;
            let by_xbar = routed.changed_by_xbar(&whole);
            answer["changed"] = json!(by_xbar.as_ref().map(|counts| counts.iter().sum::<usize>()));
            answer["entries"] = json!(whole.entry_count());
            answer["tables"] = tables(by_xbar);
            answer["bisection"] =
                json!([self.bisection(whole).await?, self.bisection(Arc::clone(&routed)).await?]);
            answer["fallback"] = json!(self.fallback(&asked, &routed).await?);
        }
        Ok(answer)
    }

    /// Which engine serves what is left where the one that was asked for does not.
    async fn fallback(&self, asked: &RoutingAsked, routed: &Routed) -> Result<Option<String>, NoAnswer> {
        if routed.why_not.is_none() {
            return Ok(None);
        }
        for engine in
            FALLBACKS.map(|engine| engine.name().to_owned()).into_iter().filter(|it| *it != asked.engine)
        {
            let other = self.routed(&RoutingAsked { engine: engine.clone(), ..asked.clone() }).await?;
            if other.why_not.is_none() {
                return Ok(Some(engine));
            }
        }
        Ok(None)
    }

    /// The routes between two hosts, or all of one.
    pub(super) async fn routes(&self, asked: RoutesAsked) -> Result<Value, NoAnswer> {
        let RoutesAsked { scene, engine, cuts, from, to } = asked;
        let engine_name = engine.clone();
        let routed = self.routed(&RoutingAsked { scene, engine, cuts }).await?;
        let routes = routed.routes(from, to).map_err(|error| bad(&error.to_string()))?;
        let mut cables: BTreeMap<u32, u32> = BTreeMap::new();
        let mut reached = BTreeSet::new();
        for (to, hops) in &routes {
            reached.insert(*to);
            hops.iter()
                .filter_map(|&hop| routed.cable(hop))
                .for_each(|cable| *cables.entry(cable).or_default() += 1);
        }
        let hops = |hops: &[mapper_proto::map::PortRef]| {
            hops.iter().map(|hop| (hop.xbar, hop.port)).collect::<Vec<_>>()
        };
        let told = if to.is_some() { &routes[..routes.len().min(MOST_ROUTES)] } else { &[] };
        Ok(json!({
            "engine": engine_name,
            "routes": told.iter().map(|(_, route)| hops(route)).collect::<Vec<_>>(),
            "cables": cables.into_iter().collect::<Vec<_>>(),
            "reached": reached.len(),
        }))
    }

    /// The entries of an xbar's table that cut cables change.
    pub(super) async fn entries(&self, asked: EntriesAsked) -> Result<Value, NoAnswer> {
        let EntriesAsked { scene, engine, cuts, xbar } = asked;
        let asked = RoutingAsked { scene, engine, cuts };
        let (routed, whole) = (self.routed(&asked).await?, self.routed(&asked.whole()).await?);
        let to = |end: SlotEnd| match end {
            SlotEnd::Host { host, path } => json!({ "host": host, "path": path }),
            SlotEnd::Xbar(xbar) => json!({ "xbar": xbar }),
        };
        let entries = routed.changed_of(&whole, xbar, MOST_ENTRIES);
        let entries: Vec<_> =
            entries.iter().map(|it| json!({ "to": to(it.to), "was": it.was, "now": it.now })).collect();
        Ok(json!({ "xbar": xbar, "entries": entries }))
    }

    /// What an engine makes of a fabric: what is kept, or what it computes when its turn comes.
    async fn routed(&self, asked: &RoutingAsked) -> Result<Arc<Routed>, NoAnswer> {
        let Some(told) = self.feed.scene(asked.scene) else { return Err(gone(asked.scene)) };
        let engine: Engine = asked.engine.parse().map_err(|error| bad(&format!("{error}")))?;
        let turn = self.turn().await?;
        let kept =
            |kept: &Kept| kept.iter().find(|(of, _)| of == asked).map(|(_, routed)| Arc::clone(routed));
        if let Some(routed) = kept(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(routed);
        }
        let cuts = asked.cuts.clone();
        let computed = turn.work(move || Routed::new(&told.fabric, engine, &cuts)).await?;
        let routed = Arc::new(computed.map_err(|error| bad(&error.to_string()))?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((asked.clone(), Arc::clone(&routed)));
        while kept.len() > MOST_ROUTINGS {
            // The routing of the whole fabric is kept longest, as all others are compared with it.
            let first_cut =
                kept.iter().position(|(of, _)| !of.cuts.is_empty()).filter(|&at| at + 1 < kept.len());
            kept.remove(first_cut.unwrap_or(0));
        }
        Ok(routed)
    }

    /// The effective bisection of a routing, which is measured when its turn comes, unless it was before.
    async fn bisection(&self, routed: Arc<Routed>) -> Result<Option<f64>, NoAnswer> {
        let turn = self.turn().await?;
        turn.work(move || routed.bisection()).await
    }

    /// Waits for its turn.
    async fn turn(&self) -> Result<Turn, NoAnswer> {
        let Ok(_waits) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Err(busy("too many ask for routes at once; try again"));
        };
        self.turns.next().await
    }
}

/// The tables that change: each xbar with how many of its entries do, the most first.
fn tables(by_xbar: Option<Vec<usize>>) -> Value {
    let mut tables: Vec<(usize, usize)> =
        by_xbar.unwrap_or_default().into_iter().enumerate().filter(|&(_, count)| count > 0).collect();
    tables.sort_by_key(|&(xbar, count)| (std::cmp::Reverse(count), xbar));
    json!(tables)
}
