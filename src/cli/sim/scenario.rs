//! What a scenario of the fault search was, and what came of it.

use std::time::Duration;

use mapper_fabric::wording::plural;
use mapper_sim::fabric::Xbars;
use mapper_sim::search::{Outcome, Scenario, Users};
use mapper_sim::setup::{AgentSetup, Setup, UserSetup};
use mapper_sim::world::KernelChoice;
use serde_json::json;

/// The report for programs.
pub(super) fn to_json(scenario: &Scenario, outcome: &Outcome) -> serde_json::Value {
    let (map, users) = (&scenario.fabric.map, outcome.users);
    json!({
        "schema": "mapper.sim-fault/1",
        "seed": scenario.setup.seed,
        "hosts": map.hosts.len(),
        "xbars": map.xbars.len(),
        "cables": map.cables.len(),
        "setup": scenario.setup,
        "faults": scenario.setup.faults.text.lines().collect::<Vec<_>>(),
        "healing_virtual_ms": ms(outcome.healing),
        "circle_virtual_ms": ms(outcome.circle),
        "revival_virtual_ms": ms(outcome.revival),
        "users": {
            "sent": users.sent,
            "lost": users.lost,
            "reordered": users.reordered,
            "by_kernel": users.by_kernel,
            "longest_gap_virtual_ms": ms(users.longest_gap),
        },
        "digest": format!("{:016x}", outcome.digest),
    })
}

/// What was drawn, for people.
pub(super) fn drawn(scenario: &Scenario) -> String {
    let (map, setup) = (&scenario.fabric.map, &scenario.setup);
    let (hosts, xbars) = (plural(map.hosts.len(), "host"), plural(map.xbars.len(), "xbar"));
    let cables = plural(map.cables.len(), "cable");
    let settings = settings(setup).join(", ");
    let faults: String = setup.faults.text.lines().map(|line| format!("fault         {line}\n")).collect();
    let kind = kind(setup.xbars);
    format!("fabric        {hosts}, {xbars}{kind}, {cables}\nsettings      {settings}\n{faults}")
}

/// What came of it, for people.
pub(super) fn came_of_it(scenario: &Scenario, outcome: &Outcome) -> String {
    let setup = &scenario.setup;
    let [healing_ms, circle_ms, revival_ms] = [outcome.healing, outcome.circle, outcome.revival].map(ms);
    format!(
        "agreed        {healing_ms:.3} ms of virtual time after healing\n\
         circles       for {circle_ms:.3} ms at most in routes of different maps, for {revival_ms:.3} ms where cables \
         revived\n\
         {}\
         seed          {}\n",
        sent(setup.users.as_ref(), &outcome.users),
        setup.seed,
    )
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const fn kind(xbars: Xbars) -> &'static str {
    match xbars {
        Xbars::AsDescribed => "",
        Xbars::Plain => " (plain)",
        Xbars::Tagged => " (tagged)",
        Xbars::Mixed => " (plain and tagged)",
    }
}

/// What became of users' frames, in a line, if users sent some.
fn sent(setup: Option<&UserSetup>, users: &Users) -> String {
    if setup.is_none() {
        return String::new();
    }
    let Users { sent, lost, reordered, by_kernel, longest_gap } = users;
    format!(
        "users         {} sent, {lost} lost, {reordered} behind later ones, {by_kernel} through kernels; the longest gap \
         behind a fault {:.3} ms\n",
        plural(*sent, "frame"),
        ms(*longest_gap),
    )
}

/// What hosts are set to, as far as scenarios differ in it.
fn settings(setup: &Setup) -> Vec<String> {
    let Setup { agents, routes, users, timing, .. } = setup;
    let mut said = vec![
        format!("all start within {:?}", setup.power_on_spread),
        format!("queues of {}", plural(timing.receive_queue, "frame")),
        format!("{} a destination", plural(routes.passes, "route")),
    ];
    said.extend(of_agents(agents));
    let switches = [
        (routes.non_clos, "up*/down* routes on a torus or a Clos too"),
        (setup.signed, "signed messages"),
        (setup.nodes, "hosts alone at their tagged xbars are nodes"),
    ];
    said.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, what)| what.to_owned()));
    if setup.kernels {
        let by = match setup.kernel_choice {
            KernelChoice::Auto => "segments where they know them",
            KernelChoice::Segments => "segments",
            KernelChoice::Routes => "destination",
            KernelChoice::Mixed => "destination at some hosts and segments at others",
        };
        said.push(format!("packets through kernels by {by}"));
    }
    said.extend(users.as_ref().map(of_users));
    said
}

fn of_agents(agents: &AgentSetup) -> Vec<String> {
    let mut said = vec![
        format!(
            "{} probes under way at most, each tried {} and waited for {:?}",
            agents.probe_window,
            plural(agents.probe_tries, "time"),
            agents.probe_timeout
        ),
        format!("at most {}", plural(agents.max_hops as u64, "hop")),
        format!("liveness {} times {:?}", agents.liveness_misses, agents.liveness_interval),
        format!("verify pause {:?}", agents.verify_pause),
        format!(
            "parents are asked every {:?} and left after {:?} of silence",
            agents.query_interval, agents.silence_limit
        ),
        format!("pieces of {} bytes, {} under way", agents.piece_bytes, agents.piece_window),
    ];
    if agents.map_incrementally {
        said.push("incremental mapping".to_owned());
    }
    if agents.pause {
        said.push("others pause while one maps".to_owned());
    }
    if !agents.xbar_check {
        said.push("no check of cables between xbars".to_owned());
    }
    said
}

fn of_users(users: &UserSetup) -> String {
    let broadcasts = if users.broadcasts { " and broadcasts" } else { "" };
    format!(
        "each host sends {} frames a second to {} in {}{broadcasts}",
        users.rate,
        plural(users.partners, "other"),
        plural(users.flows, "flow"),
    )
}
