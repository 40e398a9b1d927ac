//! Queues of ports in which the frames of agents wait behind users' packets.
//!
//! The mapper's frames have a priority of their own, and checks of paths are frames like others. In a queue that knows no
//! classes they wait as long as all else does; where that is longer than a path may be silent, live cables are taken for dead.

use mapper_machine::link::interface::Interface;
use serde::Deserialize;

use crate::doctor::{Check, repair::output_of};

/// The kinds of queues that know neither priorities nor flows, as tc(8) calls them. All others do, or are short enough.
const WITHOUT_CLASSES: [&str; 6] = ["bfifo", "gred", "pfifo", "pfifo_head_drop", "red", "tbf"];

/// A queue, as `tc -j qdisc show` tells it.
#[derive(Debug, Deserialize)]
struct Queue {
    kind: String,
    handle: String,
    /// The class of another queue that it stands in; none for the port's own.
    parent: Option<String>,
}

/// Names the queue of a port in which agents' frames wait behind users' packets. Nothing is said where tc(8) is missing.
pub(super) fn check(port: &Interface) -> Option<Check> {
    let output = output_of("tc", &["-j", "qdisc", "show", "dev", &port.name])?.ok()?;
    let shown = output.status.success().then_some(output.stdout)?;
    judge(&port.name, &shown)
}

fn judge(name: &str, shown: &[u8]) -> Option<Check> {
    let queues: Vec<Queue> = serde_json::from_slice(shown).ok()?;
    let stands_in = |inner: &Queue, outer: &Queue| {
        inner.parent.as_ref().and_then(|parent| parent.split(':').next()) == outer.handle.split(':').next()
    };
    let is_without = |queue: &&Queue| WITHOUT_CLASSES.contains(&&*queue.kind);
    let outermost = queues.iter().find(|queue| queue.parent.is_none()).filter(is_without)?;
    // If a queue contains another, packets wait in the inner one.
    let within = queues.iter().find(|inner| stands_in(inner, outermost));
    let queue = within.map_or(Some(outermost), |inner| Some(inner).filter(is_without))?;
    let Queue { kind, handle, parent } = queue;
    let place = match (&**kind, parent) {
        // A queue that limits the rate goes on to do so with another one within.
        ("tbf", _) => format!("add dev {name} parent {handle}1"),
        (_, Some(parent)) => format!("replace dev {name} parent {parent}"),
        (_, None) => format!("replace dev {name} root"),
    };
    let what = format!(
        "in its queue ({kind}) agents' frames wait behind users' packets, so that under load cables may be held for dead"
    );
    Some(Check::warning("queue", what, format!("`tc qdisc {place} pfifo_fast`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(shown: &str) -> Option<String> {
        judge("eth1", shown.as_bytes())?.fix
    }

    #[test]
    fn queues_that_know_no_classes_are_named_with_what_takes_their_place() {
        let limit = r#"{"kind":"tbf","handle":"1:","root":true,"refcnt":3,"options":{"rate":6250000}}"#;
        let within = |kind: &str| format!(r#"[{limit},{{"kind":"{kind}","handle":"8002:","parent":"1:1"}}]"#);
        for (shown, place) in [
            (format!("[{limit}]"), "add dev eth1 parent 1:1"),
            (within("bfifo"), "replace dev eth1 parent 1:1"),
            (r#"[{"kind":"pfifo","handle":"8001:","root":true}]"#.to_owned(), "replace dev eth1 root"),
        ] {
            assert_eq!(fix(&shown), Some(format!("`tc qdisc {place} pfifo_fast`")), "{shown}");
        }
        for shown in [
            r#"[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{}}]"#,
            r#"[{"kind":"mq","handle":"0:","root":true},{"kind":"fq_codel","handle":"0:","parent":":1"},
                {"kind":"clsact","handle":"ffff:","parent":"ffff:fff1"}]"#,
            &within("pfifo_fast"),
            r#"[{"kind":"prio","handle":"1:","root":true},{"kind":"pfifo","handle":"2:","parent":"1:1"}]"#,
            "[]",
            "no JSON",
        ] {
            assert_eq!(fix(shown), None, "{shown}");
        }
    }
}
