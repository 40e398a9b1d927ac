//! What engines of shortest routes and dmodc keep of tables that were in force.

use super::*;
use mapper_proto::map::PortRef;

const KEEPING: [Engine; 4] = [Engine::Sssp, Engine::Dfsssp, Engine::Lash, Engine::Dmodc];

/// Whether all was routed anew, which a note says.
fn is_anew(routing: &Routing) -> bool {
    routing.notes.iter().any(|note| note.contains("all is routed anew"))
}

/// What an engine computes when tables were in force.
fn after(engine: Engine, subnet: &Subnet, previous: &Tables) -> Result<Selection, NotRouted> {
    let settings = Settings { previous: Some(previous.clone()), ..Settings::default() };
    select(subnet, &[engine], &settings, Proof::Required)
}

#[test]
fn a_fabric_that_did_not_change_keeps_all_entries() {
    let mut served = 0;
    for spec in [
        "xgft:h=3;m=4,4,6;w=1,4,4",
        "cluster:leaves=12,spines=8,hosts=132,missing=3,cables=2,service=every",
        "torus:x=5,y=5,hosts=2",
        "random:xbars=12,ports=12,hosts=30,links=24,seed=2",
    ] {
        let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
        for engine in KEEPING {
            let Ok(before) = select(&subnet, &[engine], &Settings::default(), Proof::Required) else {
                continue;
            };
            let again = after(engine, &subnet, &before.routing.tables).unwrap();
            assert!(again.routing.tables == before.routing.tables, "{engine} on {spec}");
            served += 1;
        }
    }
    assert!(served >= 10, "{served}");
}

/// The tables of an engine that has none to load, or why it has none.
fn anew(engine: Engine, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    engine.compute(subnet, &Settings { previous: None, ..settings.clone() })
}

#[test]
fn previous_tables_of_another_size_are_left_out_which_a_note_tells() {
    let told = "the previous tables have 4 xbars and 7 destinations";
    for spec in ["xgft:h=2;m=4,4;w=1,2", "torus:x=4,y=4,hosts=2"] {
        let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
        let previous = Some(Tables::empty(4, 7));
        let of_fabric = Settings { previous, ..Settings::default() };
        let of_opensm = Settings { balance: Balance::Opensm, ..of_fabric.clone() };
        for (engine, settings) in
            Engine::ALL.into_iter().flat_map(|one| [(one, &of_fabric), (one, &of_opensm)])
        {
            let Ok(before) = anew(engine, &subnet, settings) else { continue };
            let after = engine.compute(&subnet, settings).unwrap();
            assert!(after.tables == before.tables && after.layers == before.layers, "{engine} on {spec}");
            let is_told = after.notes.iter().any(|note| note.starts_with(told));
            assert_eq!(is_told, engine.obeys(settings).contains(&Setting::Previous), "{engine} on {spec}");
            let again = engine.compute(&subnet, &Settings { reassign: true, ..settings.clone() }).unwrap();
            assert!(!again.notes.iter().any(|note| note.starts_with(told)), "{engine} on {spec}");
        }
        let refused = Engine::File.compute(&subnet, &of_fabric).unwrap_err().why.to_string();
        assert!(refused.starts_with("the tables are of 4 xbars and 7 destinations"), "{refused}");
        let best = best::choose(&subnet, &of_fabric, &()).unwrap();
        assert!(best.routing.notes.iter().any(|note| note.starts_with(told)), "{:?}", best.routing.notes);
    }
}

#[test]
fn what_needs_more_layers_than_may_be_used_is_not_kept_and_that_is_told() {
    // Shortest routes round a ring of five need two layers.
    let subnet = Subnet::new(&generate("torus:x=5,y=5,hosts=2").unwrap(), None).unwrap();
    let sssp = Engine::Sssp.compute(&subnet, &Settings::default()).unwrap().tables;
    let settings = Settings { previous: Some(sssp), ..Settings::default() };
    assert!(is_anew(&Engine::Sssp.compute(&subnet, &settings).unwrap()));
    let kept = Engine::Dfsssp.compute(&subnet, &settings).unwrap();
    assert!(!is_anew(&kept) && kept.layers.count > 1);
}

/// Hops from each xbar to one of them, found by going over all cables again and again until no xbar gets
/// nearer.
fn hops_to(subnet: &Subnet, end: u32) -> Vec<u32> {
    let topology = &subnet.topology;
    let mut hops = vec![u32::MAX; topology.xbar_count()];
    hops[end as usize] = 0;
    loop {
        let before = hops.clone();
        for channel in (0..topology.channel_count() as u32).filter(|&channel| !topology.is_dead(channel)) {
            let (tail, head) = (topology.tail(channel).xbar as usize, topology.head(channel).xbar as usize);
            hops[tail] = hops[tail].min(hops[head].saturating_add(1));
        }
        if hops == before {
            return hops;
        }
    }
}

/// How many entries that lead along a shortest way have changed. Those for xbars' own addresses count only
/// with `own`.
fn lost(subnet: &Subnet, before: &Tables, now: &Tables, own: bool) -> usize {
    let topology = &subnet.topology;
    let mut lost = 0;
    for end in 0..topology.xbar_count() as u32 {
        let hops = hops_to(subnet, end);
        let slots =
            if own { subnet.destinations.slots_of(end) } else { subnet.destinations.host_slots_of(end) };
        for slot in slots {
            for xbar in 0..topology.xbar_count() as u32 {
                let port = before.port(xbar, slot);
                let leads_on = match topology.far(PortRef { xbar, port }) {
                    crate::Far::Channel(channel) => {
                        !topology.is_dead(channel)
                            && hops[topology.head(channel).xbar as usize] < hops[xbar as usize]
                    }
                    _ => false,
                };
                lost += usize::from(leads_on && now.port(xbar, slot) != port);
            }
        }
    }
    lost
}

/// A fabric without some of its cables.
fn without_cables(fabric: &Fabric, cut: &[usize]) -> Fabric {
    let mut fabric = fabric.clone();
    for cable in cut {
        let cables = fabric.map.cables.len();
        if cables > 0 {
            fabric.map.cables.remove(cable % cables);
        }
    }
    fabric
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every entry that still leads along a shortest way when cables are gone stays, unless a note says that
    /// all is routed anew.
    #[test]
    fn entries_that_still_lead_on_stay(
        seed: u64, cut in proptest::collection::vec(any::<usize>(), 0..4),
        by in proptest::sample::select(vec![Engine::Sssp, Engine::Minhop, Engine::Nue]),
    ) {
        let whole = Fabric { map: random(seed), ..Fabric::default() };
        let subnet = Subnet::new(&whole, None).unwrap();
        let Ok(before) = by.compute(&subnet, &Settings::default()) else { return Ok(()) };
        let subnet = Subnet::new(&without_cables(&whole, &cut), None).unwrap();
        for engine in [Engine::Sssp, Engine::Dfsssp, Engine::Lash] {
            let Ok(served) = after(engine, &subnet, &before.tables) else { continue };
            if !is_anew(&served.routing) {
                prop_assert_eq!(lost(&subnet, &before.tables, &served.routing.tables, true), 0, "{}", engine);
            }
        }
    }

    /// In a tree of two tiers the shortest ways between hosts are those up and then down, of which dmodc keeps what it can.
    #[test]
    fn dmodc_keeps_what_still_leads_on(cut in proptest::collection::vec(any::<usize>(), 0..12)) {
        for spec in ["cluster:leaves=8,spines=6,hosts=80,cables=2", "xgft:h=2;m=6,6;w=1,6"] {
            let whole = generate(spec).unwrap();
            let subnet = Subnet::new(&whole, None).unwrap();
            let before = Engine::Updn.compute(&subnet, &Settings::default()).unwrap().tables;
            let subnet = Subnet::new(&without_cables(&whole, &cut), None).unwrap();
            let Ok(served) = after(Engine::Dmodc, &subnet, &before) else { continue };
            prop_assert_eq!(lost(&subnet, &before, &served.routing.tables, false), 0, "{}", spec);
        }
    }
}
