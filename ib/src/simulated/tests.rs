//! The fault search over some seeds, and what agents do for their master.
//!
//! `MAPPER_FAULT_SEEDS` says how many seeds are tried (100 by default), and `MAPPER_FAULT_FIRST` which is the first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::world::Noise;
use super::*;
use crate::mad::SmState;
use crate::manager::SubnetCount;
use crate::manager::tests::routes;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// What is wrong with a seed, if anything.
fn fault_of(seed: u64) -> Option<String> {
    let panic = match catch_unwind(AssertUnwindSafe(|| Scenario::draw(seed).run(&routes))) {
        Ok(outcome) => return outcome.err().map(|violation| violation.to_string()),
        Err(panic) => panic,
    };
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
}

#[test]
fn no_tables_in_switches_make_a_circle_and_all_heals_after_every_drawn_mix_of_faults() {
    let first = number("MAPPER_FAULT_FIRST", 1);
    let count = number("MAPPER_FAULT_SEEDS", 100);
    let next = AtomicU64::new(first);
    let search = || {
        let seeds = std::iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&seed| seed < first + count)
        });
        seeds.filter_map(|seed| Some((seed, fault_of(seed)?))).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let faults: Vec<(u64, String)> = std::thread::scope(|scope| {
        let searches: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        searches.into_iter().flat_map(|search| search.join().unwrap()).collect()
    });
    let told: Vec<String> = faults
        .iter()
        .map(|(seed, why)| {
            let why: String = why.chars().take(300).collect();
            format!("mapper sim --infiniband --fault-seed {seed}\n    {why}")
        })
        .collect();
    assert!(faults.is_empty(), "{} of {count} seeds fail; run again with\n{}", faults.len(), told.join("\n"));
}

#[test]
fn seeds_that_once_failed_hold() {
    // These seeds failed for one of the following reasons:
    // - Two masters that had been apart never heard of each other, as nothing told the lower one of the
    //   other.
    // - A master that had been cut off relied on what switches had held before, though another one had
    //   written to them meanwhile. So did a master to which another one handed the subnet.
    // - A switch that started again was given the LID of a host that was gone, and packets to that host went in a circle.
    // - The only manager was cut off, looked at no switch, and waited for ever for that look to end.
    // - A master was handed the subnet while it read tables, forgot those that it had read, and computed with the rest.
    // - The answer to a write was changed on the way and said that a port that was up was down, which was believed for good.
    // - Two managers that started together both wrote, as one heard nothing of the other's host, or of the port that leads
    //   there, in its only sweep.
    for seed in [28, 414, 1099, 1124, 1228, 1270, 1291, 1842, 2105, 4548, 7121, 7491, 9612, 15177] {
        assert_eq!(fault_of(seed), None, "seed {seed}");
    }
}

/// Two agents at a ring of six switches, all well.
fn two_agents() -> World<'static> {
    let mut world = World::new(Model::ring(6), &routes, &[(0, 2), (1, 1)], Noise::default(), 1);
    pass(&mut world, 20.0);
    world.check_shares().unwrap();
    world
}

fn pass(world: &mut World<'_>, seconds: f64) {
    world.run_until(world.now + Duration::from_secs_f64(seconds)).unwrap();
}

#[test]
fn an_agent_that_stands_by_looks_at_its_share_and_the_master_hears_what_changed() {
    let mut world = two_agents();
    let [master, standby] = &world.statuses()[..] else { panic!() };
    assert_eq!([master.share, master.others[0].share, standby.share], [3, 3, 3]);
    assert_eq!((standby.version, master.version), (master.version, master.version));
    for switch in 6..12 {
        // The switch sends no trap, so only a manager that looks at it sees the mark.
        let node = &mut world.model.nodes[switch];
        node.switch = node.switch.with(node.switch.linear_top(), true);
        let sweeps = world.statuses()[0].counts[SubnetCount::Sweeps];
        pass(&mut world, 2.5);
        assert!(
            world.statuses()[0].counts[SubnetCount::Sweeps] > sweeps,
            "the mark of switch {switch} was not seen"
        );
        pass(&mut world, 5.0);
    }
}

#[test]
fn a_share_whose_agent_hears_nothing_returns_to_the_master_and_the_table_that_lacks_it_is_written_again() {
    let mut world = two_agents();
    // The entry to the second agent is taken out of the table of the first one's switch.
    let lid = world.model.nodes[1].ports[&1].lid();
    let before = std::mem::replace(&mut world.model.nodes[6].table[usize::from(lid)], 0xFF);
    pass(&mut world, 10.0);
    assert_eq!(world.statuses()[0].counts[SubnetCount::SharesReturned], 1);
    assert_eq!(world.model.nodes[6].table[usize::from(lid)], before);
    pass(&mut world, 10.0);
    world.check_well().unwrap();
    world.check_shares().unwrap();
}

#[test]
fn a_switch_that_an_agent_does_not_reach_by_lid_has_all_tables_read_and_the_wrong_one_written_again() {
    let mut world = two_agents();
    // This is on the way from the second agent's switch to the one behind it. The master reaches that switch
    // another way.
    let lid = world.model.nodes[8].ports[&0].lid();
    let before = std::mem::replace(&mut world.model.nodes[7].table[usize::from(lid)], 0xFF);
    // With each look shares move on by one switch.
    pass(&mut world, 20.0);
    assert_eq!(world.model.nodes[7].table[usize::from(lid)], before);
    world.check_well().unwrap();
    assert_eq!(world.statuses()[0].counts[SubnetCount::SharesReturned], 0);
}

#[test]
fn an_agent_that_starts_later_asks_for_a_share_and_one_that_is_killed_gets_none() {
    let mut world = two_agents();
    world.strike(Fault::Kill(1));
    pass(&mut world, 20.0);
    let alone = &world.statuses()[0];
    assert_eq!((alone.share, alone.others.len()), (6, 0));
    world.strike(Fault::Start(1));
    pass(&mut world, 10.0);
    world.check_shares().unwrap();
    assert_eq!(world.statuses()[1].share, 3);
}

/// How long managers that hear each other again take until there is one master and everything is as it wants
/// it. That is a look at switches, which shows that a manager was silent, two explorations, a retry for a
/// command that is lost, and a second for packets under way.
const AGREED: f64 = 6.0;

#[test]
fn managers_that_heard_nothing_of_each_other_at_their_start_have_one_master_soon_after_they_do() {
    let first = number("MAPPER_FAULT_FIRST", 1);
    for seed in first..first + number("MAPPER_FAULT_SEEDS", 100) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (model, hosts, _) = draw::draw_model(&mut rng);
        let count = rng.random_range(2..4).min(hosts.len());
        let managers: Vec<_> = hosts[..count].iter().map(|&host| (host, rng.random_range(1..4))).collect();
        let fault = |is_so| match seed % 2 {
            0 => Fault::Apart(is_so),
            _ => Fault::Deaf(seed as usize / 2 % count, is_so),
        };
        let lasting = rng.random_range(0.0..20.0);
        let mut world = World::new(model, &routes, &managers, Noise::default(), seed);
        world.strike(fault(true));
        let told = world.run_until(world.now + Duration::from_secs_f64(lasting)).and_then(|()| {
            if seed % 2 == 0 && lasting > 2.0 {
                let masters = world.statuses().iter().filter(|status| status.role == SmState::Master).count();
                assert_eq!(
                    masters, count,
                    "seed {seed}: a manager that hears of no other makes itself master"
                );
            }
            world.strike(fault(false));
            world.run_until(world.now + Duration::from_secs_f64(AGREED))?;
            world.check_well()
        });
        assert_eq!(told, Ok(()), "seed {seed}: {} for {lasting} s", fault(true));
    }
}
