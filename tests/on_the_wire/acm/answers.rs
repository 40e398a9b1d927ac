//! What the service answers, as `ib_acme` understands it, also when maps change and agents are lost.

use std::io::{Read, Write};

use mapper_acm::fabric::{gid_of, lids};
use mapper_acm::wire::{EntryFlags, Reply};
use mapper_proto::Mac;
use serde_json::Value;

use super::machines::{Machines, field, question};
use crate::lab::wait_for;

#[test]
fn ib_acme_resolves_addresses_of_all_kinds_and_our_query_says_the_same() {
    let Some(machines) = Machines::start(&[]) else { return };
    let macs: Vec<Mac> = (0..3).map(|at| machines.mac(at)).collect();
    let mut sorted = macs.clone();
    sorted.sort_unstable();
    let lid = lids(sorted);
    let (gid, own_gid) = (gid_of(macs[1]).to_string(), gid_of(macs[0]).to_string());
    let (v6, own_v6) = (machines.v6(1), machines.v6(0));
    let (to, from) = (lid[&macs[1]].to_string(), lid[&macs[0]].to_string());
    for line in [
        "-f i -d 10.1.0.2".to_owned(),
        "-d 10.1.0.2".to_owned(),
        "-f i -s 10.1.0.1 -d 10.1.0.2".to_owned(),
        format!("-f i -d {v6}"),
        format!("-f i -s {own_v6} -d {v6}"),
        "-f n -d n2".to_owned(),
        "-f n -s n1 -d n2".to_owned(),
        "-f n -d n2 -c".to_owned(),
        "-f n -d n2 -C 3".to_owned(),
        format!("-f l -d {to}"),
        format!("-f l -s {from} -d {to}"),
        format!("-f g -d {gid}"),
        format!("-f g -s {own_gid} -d {gid}"),
        // A GID is an address of IPv6, too.
        format!("-f i -d {gid}"),
    ] {
        let printed = machines.both(&format!("{line} -v"));
        assert_eq!((field(&printed, "dgid"), field(&printed, "sgid")), (gid.as_str(), own_gid.as_str()));
        assert_eq!((field(&printed, "dlid"), field(&printed, "slid")), (to.as_str(), from.as_str()));
        assert_eq!(field(&printed, "sl"), "0");
        assert_eq!(
            (field(&printed, "mtu"), field(&printed, "rate"), field(&printed, "reversible")),
            ("3", "3", "1")
        );
        assert!(printed.contains("SA verification: success\n\nreturn status 0x0\n"), "{printed}");
    }
    // The source that the service chooses is of the destination's kind.
    for (line, source) in [("-f i -d 10.1.0.3", "10.1.0.1"), ("-f n -d n3", "n1"), ("-f i -d {v6}", &own_v6)]
    {
        let line = line.replace("{v6}", &v6);
        machines.wait_for_path(&line);
        assert_eq!(field(&machines.judge(&line).0, "Source"), source);
    }
    for (line, why) in [
        ("-f i -s 10.1.0.3 -d 10.1.0.2", "ib_acm_resolve_ip failed: Cannot assign requested address"),
        ("-f n -d n9 -c", "ib_acm_resolve_name failed: No data available"),
        ("-f l -d 49151", "ib_acm_resolve_path failed: Cannot assign requested address"),
        ("-f g -d fe80::9", "ib_acm_resolve_path failed: Cannot assign requested address"),
    ] {
        let (printed, status) = machines.judge(line);
        assert!(
            printed.contains(why) && printed.ends_with("return status 0xffffffff\n"),
            "{line}: {printed}"
        );
        assert_eq!(status, 255, "{line}");
        assert_eq!(machines.query(line), (printed, status), "{line}");
    }
    let report = wait_for("paths to both others", || {
        let (printed, status) = machines.query("-f n -d n[2-3] -v --format json");
        (status == 0).then(|| serde_json::from_str::<Value>(&printed).unwrap())
    });
    let resolved = &report["services"][0]["resolved"];
    assert_eq!(report["schema"], "mapper.acm-query/1");
    assert_eq!((&resolved[1]["destination"], &resolved[1]["verified"]), (&"n3".into(), &true.into()));
    assert_eq!(resolved[0]["path"]["mtu_bytes"], 1024);
}

#[test]
fn ib_acme_reads_counters_and_endpoints() {
    let Some(machines) = Machines::start(&[]) else { return };
    machines.judge("-f i -s 10.1.0.1 -d 10.1.0.2");
    machines.judge("-f i -s 10.1.0.1 -d 10.1.0.2");
    for line in [
        "-P",
        "-P col",
        "-P 1",
        "-P all",
        "-P s -s 10.1.0.1",
        "-P s -s 10.9.9.9",
        "-P 9",
        "-e",
        "-e 1",
        "-e 2",
    ] {
        // An address that comes in between is told to one of them alone.
        wait_for(&format!("the same answer to both for {line}"), || {
            let judged = machines.judge(line);
            assert_eq!(judged.1, 0, "{line}: {}", judged.0);
            (machines.query(line) == judged).then_some(())
        });
    }
    let (printed, _) = machines.judge("-P");
    let [head, row, "return status 0x0"] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}")
    };
    assert!(
        head.starts_with(
            "svc,Error Count,Resolve Count,No Data,Addr Query Count,Addr Cache Count,Route Query"
        )
    );
    let counts: Vec<u64> = row.split(',').skip(1).map(|count| count.parse().unwrap()).collect();
    assert!(counts[1] >= 2 && counts[4] >= 1 && counts[6] >= 1 && counts.len() == 7, "{row}");
    let (by_address, _) = machines.judge("-P s -s 10.1.0.1");
    assert_eq!(by_address, machines.judge("-P 1").0);
    assert!(machines.judge("-P 9").0.contains("Failed to query perf data: Cannot assign requested address"));
    let (printed, _) = machines.judge("-e");
    let guid = format!("{:#018x}", mapper_acm::fabric::guid_of(machines.mac(0)));
    let socket = machines.socket();
    let line = format!("{},{guid},1,0xffff,1,mapper,n1,10.1.0.1,{}\n", socket.display(), machines.v6(0));
    assert!(printed.contains(&line), "{printed}");
    assert!(machines.judge("-e 2").0.starts_with(" Endpoint 2 is not available"));
}

#[test]
fn a_new_map_changes_what_is_answered_and_a_lost_agent_nothing() {
    let Some(mut machines) = Machines::start(&["--timeout-ms", "60000"]) else { return };
    // While agents find out which cable is dead there may be no route for a moment, which is answered, too.
    let hops = |machines: &Machines| {
        let (printed, status) = machines.judge("-f n -d n2");
        if status == 0 { field(&printed, "hop limit").to_owned() } else { String::new() }
    };
    wait_for("the short way at first", || (hops(&machines) == "2").then_some(()));
    // The cable from n1 to n2 fails, so the way leads over n3.
    machines.ring.machines[0].ip("link set e1 down");
    wait_for("the way around", || (hops(&machines) == "3").then_some(()));
    machines.ring.machines[0].ip("link set e1 up");
    wait_for("the short way", || (hops(&machines) == "2").then_some(()));
    // While the agent is gone nothing is known for sure, so a question waits until it is back.
    machines.nodes.remove(0).end();
    wait_for("the service misses the agent", || (machines.judge("-f n -d n2 -c").1 != 0).then_some(()));
    let mut waiting = machines.connect();
    waiting.write_all(&question("n3", EntryFlags::default()).to_bytes(7).unwrap()).unwrap();
    machines.nodes.insert(0, machines.ring.start(0, &["--address", "10.1.0.1/24"]));
    let mut reply = [0; 160];
    waiting.read_exact(&mut reply).unwrap();
    let (header, reply) = Reply::parse(&reply).unwrap();
    assert!(header.tid == 7 && matches!(reply, Reply::Path { .. }), "{reply:?}");
    // A host that has left is not answered from memory.
    machines.nodes.pop().unwrap().end();
    wait_for("n3 is forgotten, and n2 is not", || {
        // A question without -c waits until the new map is there.
        let n2 = machines.judge("-f n -d n2").1;
        (n2 == 0 && machines.judge("-f n -d n3 -c").1 == 255).then_some(())
    });
    machines.wait_for_path("-f n -d n2");
}
