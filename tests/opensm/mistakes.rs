//! Tests of what an administrator of InfiniBand can do wrong: the wrong port, files that are of no use, a port that has an agent
//! already, a network that goes away.

use std::process::{Command, Stdio};

use mapper_formats as formats;

use crate::managed::{Running, links, wait_for};
use crate::peers::{Simulation, are_there, text};

/// An agent at a port, with a run directory of its own.
fn agent(simulation: &Simulation, port: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
    let run = simulation.file("other-run");
    command
        .args(["agent", "--interface", port, "--run-dir", text(&run)])
        .args(more)
        .env("IBSIM_SOCKNAME", simulation.socket())
        .stdout(Stdio::null());
    command
}

/// What an agent says that is refused.
fn refusal(simulation: &Simulation, port: &str, more: &[&str]) -> String {
    let output = agent(simulation, port, more).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_agent_that_cannot_serve_a_port_says_why_and_what_to_do() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("clos:hosts=8,ports=4").unwrap());
    let told = refusal(&simulation, "mlx5_0", &[]);
    assert!(told.contains("a port of InfiniBand goes by its device in /dev/infiniband, as umad0"), "{told}");
    let told = refusal(&simulation, "ibsim:nobody", &[]);
    assert!(told.contains("lets nobody in at `nobody`"), "{told}");
    let lids = simulation.file("other-lids");
    std::fs::write(&lids, [0xFF, 0x30]).unwrap();
    let told = refusal(&simulation, "ibsim:h1", &["--lid-file", text(&lids)]);
    assert!(told.contains("is no text, and so no file of LIDs; correct it, or take it away"), "{told}");
}

#[test]
fn an_agent_whose_file_of_lids_cannot_be_written_says_so_and_serves() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("clos:hosts=8,ports=4").unwrap());
    // Nobody can make a file there, not even root.
    let more = ["--map-once", "--lid-file", "/proc/self/lids/file"];
    let output = agent(&simulation, "ibsim:h1", &more).stderr(Stdio::piped()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("the LIDs cannot be kept for the next start"), "{told}");
}

#[test]
fn a_second_agent_at_a_port_is_refused_and_names_the_first() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("clos:hosts=8,ports=4").unwrap());
    let _first = Running::agent(&simulation, "h1", &[]);
    wait_for("the first has the subnet up", || links(&simulation) == (32, 0));
    let told = refusal(&simulation, "ibsim:h1", &[]);
    assert!(told.contains("ibsim:h1` already has an agent"), "{told}");
}

#[test]
fn an_agent_ends_and_says_so_when_its_simulator_goes_away() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("clos:hosts=8,ports=4").unwrap());
    let mut agent = agent(&simulation, "ibsim:h1", &["--watch-interval-ms", "300"]);
    let running = agent.stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the subnet is up", || links(&simulation) == (32, 0));
    drop(simulation);
    let output = running.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("ibsim:h1 is gone"), "{told}");
}
