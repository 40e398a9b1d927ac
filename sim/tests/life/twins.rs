//! Two hosts with one address: both are named, neither is believed, and all others work. When one
//! of them goes, or gets an address of its own, all are configured again without a restart.

use mapper_proto::agent::Status;
use mapper_proto::map::MapVersion;
use mapper_proto::wire::AgentState;
use mapper_sim::fabric::Xbars;
use mapper_sim::search::Scenario;

use crate::keys::ring;
use crate::lab::{Lab, Plan, exploration, ms};

/// Four xbars in a ring (ports 1 and 2), two hosts each (3 and 4): h1 and h2 on xbar1, and so on.
const RING: &str = "ring:n=4,hosts=2,ports=8";

/// How many maps twins may cost in ten seconds once all have settled.
const MOST_IDLE_MAPS: usize = 0;

fn lines(lab: &Lab, status: &Status) -> Vec<String> {
    let own = (0..lab.world.plant().hosts() as u32).find(|&host| lab.world.mac(host) == status.rank.mac);
    assert!(own.is_some());
    status.unreachable.iter().map(|host| format!("{}: {}", host.mac, host.why)).collect()
}

/// Fails unless `a` and `b`, which have one address and are in one part, both know it and stay out of the
/// map, and all others work and say what is wrong. Returns the version of the others' map.
#[track_caller]
fn twins_are_named_and_not_believed(lab: &mut Lab, a: &str, b: &str, at_ms: u64) -> MapVersion {
    let version = lab.agree_at(ms(at_ms));
    let mac = lab.world.mac(lab.host(a));
    assert_eq!(mac, lab.world.mac(lab.host(b)));
    for name in [a, b] {
        let status = lab.status(name);
        assert_eq!((status.state, status.version), (AgentState::Isolated, MapVersion::NONE), "{name}");
        assert!(!status.network_complete);
        assert_eq!(status.conflicts.len(), 1, "{name} does not know");
        assert_eq!(status.unreachable[0].mac, mac);
        assert!(status.unreachable[0].why.contains("give one"), "{:?}", lines(lab, &status));
        assert!(lab.world.table(lab.host(name)).is_none(), "{name} still uses its routes");
    }
    for status in lab.statuses().into_iter().filter(|status| status.rank.mac != mac) {
        let [conflict] = &status.conflicts[..] else {
            panic!("{} does not say what is wrong: {status:?}", status.rank.mac);
        };
        assert_eq!((conflict.mac, conflict.places.len()), (mac, 2));
        assert!(
            lines(lab, &status).iter().any(|line| line.contains("two hosts have this address: at port "))
        );
        assert!(!status.network_complete, "the network is not fully configured");
    }
    let holders = lab.statuses().into_iter().filter(|status| status.version == version);
    assert_eq!(holders.count(), lab.statuses().len() - 2);
    assert!(!lab.shows_address(mac), "a twin is in a map");
    version
}

#[track_caller]
fn come_and_go(kinds: Xbars, incremental: bool, a: &str, b: &str, levels: fn(u32) -> u8) {
    let plan = Plan::new(RING, kinds).levels(levels);
    come_and_go_in(plan.agents(|settings| settings.map_incrementally = incremental), a, b);
}

/// `a` takes the address of `b` at 2 s, and has its own again at 20 s.
#[track_caller]
fn come_and_go_in(plan: Plan, a: &str, b: &str) {
    let kinds = plan.kinds;
    let mut lab = plan.faults(&format!("at 2s twin {a} of {b}\nat 20s untwin {a}\n")).start();
    lab.agree_at(ms(1999));
    let version = twins_are_named_and_not_believed(&mut lab, a, b, 10_000);
    let before = exploration(&lab.world.totals().sent);
    assert_eq!(twins_are_named_and_not_believed(&mut lab, a, b, 19_999), version, "{kinds:?} {a} {b}");
    assert_eq!(lab.count("mapping", ms(10_000)), MOST_IDLE_MAPS, "{kinds:?} {a} {b}");
    assert_eq!(exploration(&lab.world.totals().sent), before);
    lab.agree_at(ms(30_000));
    all_is_well(&lab);
}

#[track_caller]
fn all_is_well(lab: &Lab) {
    for status in lab.statuses() {
        let well = status.network_complete && status.unreachable.is_empty() && status.conflicts.is_empty();
        assert!(well, "{status:?}");
    }
}

#[track_caller]
fn on_all_kinds(a: &str, b: &str, levels: fn(u32) -> u8) {
    for kinds in [Xbars::Plain, Xbars::Tagged, Xbars::Mixed] {
        come_and_go(kinds, false, a, b, levels);
    }
    come_and_go(Xbars::Plain, true, a, b, levels);
}

#[test]
fn twins_on_one_xbar() {
    on_all_kinds("h3", "h4", |_| 1);
}

#[test]
fn twins_on_two_xbars() {
    on_all_kinds("h3", "h5", |_| 1);
    on_all_kinds("h6", "h1", |_| 1);
}

#[test]
fn twins_that_would_be_the_global_mapper() {
    on_all_kinds("h1", "h8", |_| 1);
    on_all_kinds("h7", "h8", |_| 1);
    // The twins have one address and two levels, which are both above those of all others.
    on_all_kinds("h2", "h8", |host| 1 + u8::from(host == 1 || host == 7) + u8::from(host == 7));
}

#[test]
fn a_twin_that_never_maps() {
    on_all_kinds("h3", "h8", |host| u8::from(host != 2));
    on_all_kinds("h3", "h5", |host| u8::from(host != 2 && host != 4));
}

#[test]
fn twins_with_keys() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for (a, b) in [("h3", "h4"), ("h3", "h5"), ("h1", "h8")] {
            let plan = Plan::new(RING, kinds).agents(|settings| settings.keys = Some(ring(0xaa, 1)));
            come_and_go_in(plan, a, b);
        }
    }
}

#[test]
fn twins_from_the_beginning() {
    for kinds in [Xbars::Plain, Xbars::Tagged, Xbars::Mixed] {
        for (a, b) in [("h1", "h8"), ("h3", "h4"), ("h2", "h5")] {
            let faults = format!("at 0ms twin {a} of {b}\nat 15s kill {a}\n");
            let mut lab = Plan::new(RING, kinds).faults(&faults).start();
            twins_are_named_and_not_believed(&mut lab, a, b, 8000);
            let version = twins_are_named_and_not_believed(&mut lab, a, b, 14_999);
            assert_eq!(lab.count("mapping", ms(8000)), 0);
            assert_ne!(lab.agree_at(ms(25_000)), version, "{b} is back without a restart");
            all_is_well(&lab);
        }
    }
}

#[test]
fn twins_with_nobody_else() {
    for xbars in [true, false] {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            let mut plan = Plan::new("ring:n=3,hosts=1,ports=8", kinds);
            plan.fabric.map.hosts.truncate(2);
            if !xbars {
                plan.fabric.map.xbars.clear();
                plan.fabric.map.cables.clear();
                plan.fabric.map.hosts.iter_mut().for_each(|host| host.at = None);
            }
            let faults = "at 2s twin h1 of h2\nat 12s untwin h1\nat 22s twin h2 of h1\nat 32s kill h2\n";
            let mut lab = plan.faults(faults).start();
            lab.agree_at(ms(1999));
            for at_ms in [11_999, 31_999] {
                lab.run_to(ms(at_ms));
                for name in ["h1", "h2"] {
                    let status = lab.status(name);
                    assert_eq!(
                        (status.state, status.conflicts.len()),
                        (AgentState::Isolated, 1),
                        "{status:?}"
                    );
                    assert!(lines(&lab, &status)[0].contains("give one"));
                }
            }
            let mapped = lab.count("mapping", ms(26_000));
            assert_eq!(mapped, 0, "twins do not map as long as there are two");
            lab.run_to(ms(40_000));
            let status = lab.status("h1");
            assert_eq!((status.state, status.conflicts.len()), (AgentState::Isolated, 0));
            assert_eq!(status.hosts, 1, "the twin that is left is alone");
        }
    }
    let mut plan = Plan::new(RING, Xbars::Plain).faults("at 2s twin h1 of h2\nat 12s untwin h1\n");
    plan.fabric.map.hosts.truncate(2);
    let mut lab = plan.start();
    lab.agree_at(ms(1999));
    lab.agree_at(ms(20_000));
    all_is_well(&lab);
}

#[test]
fn a_host_that_restarts_is_no_conflict() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for host in ["h1", "h8"] {
            // The first two restarts come in the midst of a mapping.
            let faults = format!("at 5ms restart {host}\nat 14ms restart {host}\nat 3s restart {host}\n");
            let mut lab = Plan::new(RING, kinds).faults(&faults).start();
            lab.agree_at(ms(8000));
            assert_eq!(lab.count("contested", ms(0)), 0, "{kinds:?} {host}");
            all_is_well(&lab);
        }
    }
}

#[test]
fn a_host_that_moves_is_no_conflict() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut lab = Plan::new(RING, kinds).faults("at 2s move xbar2:3 to xbar4:8").start();
        lab.agree_at(ms(8000));
        assert_eq!(lab.count("contested", ms(0)), 0);
        all_is_well(&lab);
    }
}

#[test]
fn three_hosts_with_one_address() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let faults = "at 2s twin h2 of h8\nat 2s twin h5 of h8\nat 12s untwin h2\nat 22s untwin h5\n";
        let mut lab = Plan::new(RING, kinds).faults(faults).start();
        lab.agree_at(ms(11_999));
        assert_eq!(lab.status("h1").conflicts[0].places.len(), 3);
        lab.agree_at(ms(21_999));
        assert_eq!(lab.status("h1").conflicts[0].places.len(), 2);
        lab.agree_at(ms(32_000));
        all_is_well(&lab);
    }
}

#[test]
fn a_host_that_gave_an_address_back_is_left_alone_by_those_who_share_it() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let faults = "at 2s twin h2 of h8\nat 7s twin h5 of h8\nat 12s untwin h2\n";
        let mut lab = Plan::new(RING, kinds).faults(faults).start();
        for at_ms in (12_100..17_000).step_by(100) {
            lab.run_to(ms(at_ms));
            // They ask each other twice a second, and still know the way to where it had their address.
            assert_eq!(lab.status("h2").state, AgentState::Configured, "{kinds:?} at {at_ms} ms");
        }
    }
}

#[test]
fn a_twin_whose_cable_is_cut_lets_the_other_come_back() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for (a, b) in [("h3", "h8"), ("h3", "h5")] {
            let faults = format!("at 2s twin {a} of {b}\nat 12s cut {a}\nat 22s mend {a}\n");
            let mut lab = Plan::new(RING, kinds).faults(&faults).start();
            twins_are_named_and_not_believed(&mut lab, a, b, 11_999);
            lab.agree_at(ms(21_999));
            assert_eq!(lab.status(b).state, AgentState::Configured);
            twins_are_named_and_not_believed(&mut lab, a, b, 32_000);
        }
    }
}

/// The scenario of this seed, in which two hosts have the addresses of others for a while. The healing at the end of its
/// faults puts that right, too.
fn drawn_with_twins(seed: u64) -> Scenario {
    let mut scenario = Scenario::draw(seed);
    let healed_ms = scenario.healed_at.since(ms(0)).as_millis();
    let twins = format!("random 2 twin between 0ms and {healed_ms}ms mend-after 1500ms\n");
    scenario.setup.faults.text.insert_str(0, &twins);
    scenario
}

#[test]
fn drawn_faults_with_twins_heal() {
    let fault_of = |seed| drawn_with_twins(seed).run(None).err();
    let failed: Vec<_> =
        (1..=60).filter_map(|seed| Some(format!("seed {seed}: {}", fault_of(seed)?))).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
