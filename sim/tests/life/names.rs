//! Names and addresses of hosts reach all others.

use mapper_proto::agent::Purpose;
use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, ms};

const HOSTS: u32 = 1024;
/// The most frames of services that a host may send until all know all.
const MOST_FRAMES: u64 = 4 * HOSTS as u64;

/// A fabric of so many hosts, of which none has started.
fn fabric() -> Lab {
    Plan::new("clos:hosts=1024,ports=64", Xbars::Tagged).start()
}

/// How many frames of services a host has sent.
fn frames(lab: &Lab, host: u32) -> u64 {
    let sent = lab.world.status(host).unwrap().sent;
    sent.iter().filter(|(kind, ..)| *kind == Purpose::Service).map(|(.., sent)| sent).sum()
}

#[test]
fn a_thousand_hosts_know_each_other_by_name_within_two_seconds_for_a_few_frames_each() {
    let mut lab = fabric();
    lab.run_to(ms(2000));
    for host in 0..HOSTS {
        let directory = lab.world.directory(host).unwrap();
        assert_eq!(directory.hosts().count(), HOSTS as usize, "host {host}");
        // All that each would ask for is there before it asks, and costs far less than a question to each would.
        let sent = frames(&lab, host);
        assert!(sent < MOST_FRAMES, "host {host} sent {sent} frames");
        assert_eq!(lab.world.most_questions_queued(host), 0, "nobody has to ask");
    }
}
