use mapper_proto::map::Fabric;

use super::*;
use crate::fabric::Xbars;
use mapper_fabric::generate;

fn fabric() -> Fabric {
    let mut fabric = generate("ring:n=3,hosts=1,ports=8").unwrap();
    fabric.hosts[1].name = "a b:1".to_owned();
    fabric.xbars[0].name = "leaf".to_owned();
    fabric
}

fn parse(text: &str) -> Result<FaultPlan, FaultError> {
    let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
    FaultPlan::parse("file", text, &plant)
}

fn one(line: &str) -> Timed {
    parse(line).unwrap().timed[0]
}

#[test]
fn reads_every_fault() {
    let end = |node, port| PlantPort { node, port };
    let leaf = |port| end(PlantNode::Xbar(0), port);
    assert_eq!(one("at 500ms cut leaf:2").fault, Fault::Cut(leaf(2)));
    assert_eq!(one("at 500ms cut leaf:2").at, Instant::from_nanos(500_000_000));
    assert_eq!(one("at 1.5us mend h1").fault, Fault::Mend(end(PlantNode::Host(0), 0)));
    assert_eq!(one("at 0s silence \"a b:1\"").fault, Fault::Silence(end(PlantNode::Host(1), 0)));
    assert_eq!(
        one("at 1s move h1 to leaf:8").fault,
        Fault::Move { from: end(PlantNode::Host(0), 0), to: leaf(8) }
    );
    assert_eq!(one("  at 1s kill h3 # why").fault, Fault::Kill(2));
    assert_eq!(one("at 1s twin h3 of h1").fault, Fault::Twin { host: 2, of: 0 });
    assert_eq!(one("at 1s untwin h3").fault, Fault::Untwin(2));
    let lossy = Fault::Lossy { at: end(PlantNode::Host(1), 0), rate: 0.2 };
    assert_eq!(one("at 1s lossy \"a b:1\" 20%").fault, lossy);
    assert_eq!(one("at 1s off leaf").fault, Fault::Off(0));
    assert_eq!(one("at 1s lose 17").fault, Fault::Lose(17));
    assert_eq!(one("at 1s lose-tries 17").fault, Fault::LoseTries(17));
    assert_eq!(one("at 1s rekey h3").fault, Fault::Rekey(2));
    assert_eq!(one("at 1s mtu h1 9000").fault, Fault::Mtu { host: 0, bytes: 9000 });
    assert_eq!(one("at 1s level h1 0").fault, Fault::Level { host: 0, level: 0 });
    assert_eq!(one("at 1s passes h1 16").fault, Fault::Passes { host: 0, passes: 16 });
    assert_eq!(one("at 1s rename h3 7").fault, Fault::Rename { host: 2, number: 7 });
    assert_eq!(one("at 1s readdress h3 7").fault, Fault::Readdress { host: 2, number: 7 });
    for text in [
        "non-clos true",
        "max-hops 23",
        "start-delay-ms 0",
        "probe-tries 5",
        "query-interval-ms 200",
        "verify-pause-ms 100",
        "piece-bytes 256",
        "liveness-interval-ms 50",
        "liveness-misses 2",
    ] {
        let Fault::Set { host: 2, setting } = one(&format!("at 1s set h3 {text}")).fault else {
            panic!("{text}");
        };
        assert_eq!(setting.to_string(), text);
    }
    assert_eq!(one("at 1s heal").fault, Fault::Heal);
    assert_eq!(one("at 1s loss 2%").fault, Fault::Loss(0.02));
}

#[test]
fn the_language_for_people_is_the_one_that_is_read() {
    let plant = Plant::new(&generate("clos:hosts=128,ports=16").unwrap(), Xbars::AsDescribed, 1).unwrap();
    let (_, instructions) = crate::faults::LANGUAGE.split_once("\n\n").unwrap();
    let plan = FaultPlan::parse("language", instructions, &plant).unwrap();
    assert_eq!((plan.timed.len(), plan.random.len()), (37, 1));
    for kind in RandomKind::ALL {
        assert!(instructions.contains(&format!(" {}", kind.word())), "{kind:?}");
    }
}

#[test]
fn a_fault_is_described_as_it_is_read() {
    let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
    for line in [
        "cut leaf:2",
        "silence \"a b:1\"",
        "lossy leaf:2 20%",
        "move \"a b:1\" to leaf:8",
        "kill \"a b:1\"",
        "lose 17",
        "lose-tries 17",
        "rekey h1",
        "mtu h3 1500",
        "level h3 0",
        "passes h3 1",
        "firewall h3",
        "firewall-v4 h3",
    ] {
        assert_eq!(one(&format!("at 1s {line}")).fault.describe(&plant), line);
    }
}

#[test]
fn noise_begins_and_ends() {
    let plan = parse("loss 1% from 1s until 2s\njitter 5us\n").unwrap();
    let faults: Vec<_> =
        plan.timed.iter().map(|timed| (timed.at.as_nanos() / 1_000_000, timed.fault)).collect();
    let jitter = Fault::Jitter(Duration::from_micros(5));
    assert_eq!(faults, [(1000, Fault::Loss(0.01)), (2000, Fault::Loss(0.0)), (0, jitter)]);
}

#[test]
fn random_faults_are_drawn_alike_and_mended() {
    let plan =
        parse("random 10 cut between 1s and 2s mend-after 500ms\nrandom 1 swap between 0s and 0s").unwrap();
    let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
    let drawn = plan.draw(&plant, 4);
    assert_eq!(drawn, plan.draw(&plant, 4));
    assert_ne!(drawn, plan.draw(&plant, 5));
    assert_eq!(drawn.len(), 21);
    assert!(drawn.is_sorted_by_key(|timed| timed.at));
    assert_eq!(drawn.iter().filter(|timed| matches!(timed.fault, Fault::Mend(_))).count(), 10);
}

#[test]
fn errors_name_file_line_and_what_was_expected() {
    for (line, why) in [
        ("kill h1", "expected `at`"),
        ("at soon kill h1", "`soon` is no time"),
        ("at -1s kill h1", "`-1s` is no time"),
        ("at 1s", "the line ends where a fault was expected"),
        ("at 1s kill leaf", "`leaf` is an xbar"),
        ("at 1s kill h9", "no host `h9`"),
        ("at 1s cut leaf:9", "no port 9"),
        ("at 1s cut leaf:x", "`x` is no port number"),
        ("at 1s cut nowhere:1", "no node `nowhere`"),
        ("at 1s kill h1 h3", "`h3` is one word too many"),
        ("at 1s move h1 leaf:8", "expected `to`"),
        ("at 1s kill \"h1", "does not end"),
        ("at 1s lose 0", "the first has number 1"),
        ("at 1s lose h1", "`h1` is no number of a frame"),
        ("at 1s level h1 256", "`256` is no level"),
        ("at 1s passes h1 0", "expected 1 to 64"),
        ("at 1s set h1 level 1", "`level` is no setting that can be changed so"),
        ("at 1s set h1 max-hops 24", "`24` is no value of max-hops; expected 1 to 23"),
        ("at 1s set h1 non-clos", "the line ends where its value was expected"),
        ("at 1s twin h1 h3", "expected `of`"),
        ("loss 101%", "`101%` is no rate"),
        ("loss 1% until 1s from 2s", "ends before it begins"),
        ("random 2 heal between 1s and 2s", "no fault that can be drawn"),
        ("random 2 cut between 2s and 1s", "before the first"),
        ("random 4000000000 cut between 0s and 1s", "at most 100000"),
        ("random 50001 cut between 0s and 1s mend-after 1s", "100002 faults"),
        ("at 1e18s heal", "no time"),
    ] {
        let error = parse(&format!("# first\n{line}\n")).unwrap_err().to_string();
        assert!(error.starts_with("file:2: ") && error.contains(why), "{line}: {error}");
    }
}

#[test]
fn nodes_are_named_by_their_descriptions_too() {
    let mut fabric = fabric();
    fabric.xbars[1].description = "spine one".to_owned();
    fabric.hosts[0].description = "leaf".to_owned();
    let plant = Plant::new(&fabric, Xbars::AsDescribed, 1).unwrap();
    let first = |text: &str| FaultPlan::parse("file", text, &plant).map(|plan| plan.timed[0].fault);
    let spine = Fault::Cut(PlantPort { node: PlantNode::Xbar(1), port: 2 });
    assert_eq!(first("at 1s cut \"spine one\":2"), Ok(spine));
    // An id names the node that has it, even if another node is called so.
    assert_eq!(first("at 1s cut leaf:2"), Ok(Fault::Cut(PlantPort { node: PlantNode::Xbar(0), port: 2 })));
}
