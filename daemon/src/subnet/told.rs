//! What the manager tells, as lines of the log.

use mapper_ib::manager::Event;
use tracing::{debug, error, info, warn};

/// Logs an event.
pub(super) fn log(event: &Event) {
    match event {
        Event::Up { failed, switches, adapters, engine, blocks, sent, took, is_news } => {
            let took_ms = (took.as_secs_f64() * 1e4).round() / 10.0;
            if *failed > 0 {
                warn!(failed, "some ports are not as they should be, and are tried again");
            }
            if *is_news {
                info!(switches, adapters, engine, blocks, sent, took_ms, "the subnet is up");
            } else {
                debug!(switches, adapters, engine, blocks, sent, took_ms, "the subnet is as it was");
            }
        }
        Event::Groups { groups, parts } => info!(groups, parts, "trees of multicast groups are in force"),
        Event::Lids => {}
        Event::Master => info!("this agent is the subnet's master now"),
        Event::StandsBy { other, priority } => {
            info!(
                manager = format!("{other:#018x}"),
                priority, "another manager is there: this agent stands by"
            );
        }
        Event::MasterGone { other } => {
            warn!(manager = format!("{other:#018x}"), "the other manager is gone, or gave up");
        }
        Event::HandedOver { to } => info!(manager = format!("{to:#018x}"), "the subnet is handed over"),
        Event::SecondMaster { other, priority } => warn!(
            manager = format!("{other:#018x}"),
            priority, "another manager is master as well, and ranks lower: it should give way"
        ),
        Event::ShareReturned { agent, switches } => warn!(
            agent = format!("{agent:#018x}"),
            switches,
            "an agent that stands by did not report on its share of the switches: the master looks at them"
        ),
        Event::Problem(problem) | Event::WrongKey(problem) => warn!("{problem}"),
        Event::NoRoutes(why) => error!("no tables: {why}"),
        Event::Trap { number, issuer } => info!(number, lid = issuer, "a trap"),
    }
}
