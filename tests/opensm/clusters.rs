//! Tests that an agent brings up a cluster with service adapters on all switches.

use mapper_formats as formats;

use crate::managed::{all_trace, bring_up, links, prove_tables};
use crate::peers::{Simulation, are_there};

#[test]
fn an_agent_brings_a_cluster_up_with_service_adapters_on_all_switches() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("cluster:leaves=6,spines=4,hosts=40,service=every,missing=2").unwrap();
    let simulation = Simulation::with_console(&fabric);
    bring_up(&simulation, &[]);
    assert_eq!(links(&simulation).1, 0);
    assert!(all_trace(&simulation));
    prove_tables(&simulation);
    // Ports and switches answer by LID what they were told.
    let found = simulation.found();
    let (host, xbar) = (found.hosts[1].lid.unwrap().to_string(), found.xbars[0].lid.unwrap().to_string());
    let ask = |what: &str, lid: &str, port: &[&str]| {
        let answer = simulation.run("smpquery", &[&["-t", "5000", what, lid], port].concat());
        String::from_utf8_lossy(&answer.stdout).into_owned()
    };
    let port = ask("portinfo", &host, &["1"]);
    assert!(port.contains("LinkState:.......................Active"), "{port}");
    assert!(ask("switchinfo", &xbar, &[]).contains("StateChange:.....................0"));
    assert!(ask("nodedesc", &host, &[]).contains(&found.hosts[1].description));
}
