//! Tests of processes that are killed, and start again.

use crate::can_carry_ip;
use crate::lab::Lab;

/// Kills nodes of a ring of four hosts one after the other, and starts each again. The other hosts must
/// continue without the victim and the host that is lost with it, and must take them in again.
fn survives_the_death_of(lab: &Lab, victims: &[&str]) {
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    for victim in victims {
        let host = victim.replace("xbar", "h");
        lab.run(&["kill", victim]);
        lab.wait_until(&format!("the others without {victim}"), |boards| {
            let others = boards.iter().filter(|board| {
                board["mac"].is_string() && board["mac"] != format!("02:00:00:00:00:0{}", &host[1..])
            });
            others.filter(|board| board["network_configured"] == true && board["hosts"] == 3).count() == 3
        });
        lab.wait_for_pings(&format!("the others reach each other without {victim}"), &[&host]);
        lab.run(&["restart", victim]);
        lab.wait_for_network(&format!("the ring with {victim} again"), 4, 4);
        lab.wait_for_pings(&format!("all reach each other with {victim} again"), &[]);
    }
}

#[test]
fn the_others_go_on_when_an_agent_the_global_mapper_or_an_xbar_is_killed() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &[]);
    survives_the_death_of(&lab, &["h2", "h4", "xbar1", "xbar4"]);
}

#[test]
fn the_others_go_on_when_a_node_or_that_of_the_global_mapper_is_killed() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes"]);
    survives_the_death_of(&lab, &["h2", "h4"]);
}
