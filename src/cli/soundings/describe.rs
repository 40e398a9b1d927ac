//! What was measured, for a person.

use mapper_proto::quote::visible;

use mapper_daemon::agent::status::{
    Bandwidths, Pinged, PingedWay, SoundedHost, Traced, TracedHop, TracedWay, WayBandwidth,
};

/// What a way goes by, in words.
fn by(by: &str) -> &str {
    match by {
        "agents" => "the agents' frames",
        "srv6" => "segments through kernels",
        "routes" => "routes of the kernels",
        other => other,
    }
}

fn title(unit: u8, SoundedHost { mac, name }: &SoundedHost) -> String {
    // The name came from another machine.
    match name == mac {
        true => format!("{mac} (unit {unit})\n"),
        false => format!("{} {mac} (unit {unit})\n", visible(name)),
    }
}

fn use_of(in_use: bool) -> &'static str {
    if in_use { "" } else { ", not in use" }
}

/// Each way with its hops, a line a hop.
pub(super) fn traced(unit: u8, Traced { to, ways }: &Traced) -> String {
    let mut text = title(unit, to);
    for (nth, TracedWay { by: kind, in_use, hops, verdict, forks_at, .. }) in ways.iter().enumerate() {
        text.push_str(&format!("  way {} by {}{}\n", nth + 1, by(kind), use_of(*in_use)));
        for (at, TracedHop { name, leaves_by, sent, received, rtt_ms, .. }) in hops.iter().enumerate() {
            let result = match (rtt_ms, sent) {
                (Some(ms), _) if received < sent => format!("{ms:.3} ms, {received} of {sent}"),
                (Some(ms), _) => format!("{ms:.3} ms"),
                (None, 0) if at == 0 && hops.len() > 1 => "here".to_owned(),
                (None, 0) => "not asked".to_owned(),
                (None, _) => "no answer".to_owned(),
            };
            let port = leaves_by.as_ref().map(|port| format!(", {}", visible(port))).unwrap_or_default();
            text.push_str(&format!("  {:>4}  {}{port}: {result}\n", at + 1, visible(name)));
        }
        if let Some(fork) = forks_at.and_then(|at| hops.get(at)) {
            let name = visible(&fork.name);
            text.push_str(&format!(
                "        from {name} on there are others as near, which other packets may take\n"
            ));
        }
        text.push_str(&format!("        {}\n", visible(verdict)));
    }
    text
}

/// Each way in two lines.
pub(super) fn pinged(unit: u8, Pinged { to, ways }: &Pinged) -> String {
    let mut text = title(unit, to);
    for (nth, way) in ways.iter().enumerate() {
        let PingedWay {
            by: kind,
            in_use,
            via,
            forks_at_crossbar,
            sent,
            received,
            loss,
            why_not_asked,
            min_ms,
            median_ms,
            max_ms,
        } = way;
        text.push_str(&way_line(nth, kind, *in_use, (via, forks_at_crossbar.as_deref())));
        let lost = lost(*loss);
        let result = match (min_ms, median_ms, max_ms, why_not_asked) {
            (Some(min), Some(median), Some(max), _) => format!(
                "{received} of {sent} back, {lost}; min {min:.3}, median {median:.3}, max {max:.3} ms"
            ),
            (.., Some(why)) => cannot_be_asked(why),
            _ => format!("{received} of {sent} back, {lost}"),
        };
        text.push_str(&format!("        {result}\n"));
    }
    text
}

/// The part of what was sent that did not come back.
fn lost(loss: Option<f64>) -> String {
    loss.map_or_else(|| "nothing sent".to_owned(), |loss| format!("{:.1}% lost", 100.0 * loss))
}

fn cannot_be_asked(why: &str) -> String {
    format!("it cannot be asked: {}", visible(why))
}

/// A way, with the ports that it leaves crossbars by, and the crossbar at which it forks.
fn way_line(nth: usize, kind: &str, in_use: bool, (via, fork): (&[String], Option<&str>)) -> String {
    let fork = fork.map(|crossbar| {
        let crossbar = visible(crossbar);
        format!("{crossbar}, from where there are several ways as near, which kernels choose from")
    });
    let via: Vec<_> = via.iter().map(|hop| visible(hop)).chain(fork).collect();
    let via = if via.is_empty() { "the cable".to_owned() } else { via.join("; ") };
    format!("  way {} by {}{}: {via}\n", nth + 1, by(kind), use_of(in_use))
}

/// Each way in two lines.
pub(super) fn bandwidths(unit: u8, Bandwidths { to, ways }: &Bandwidths) -> String {
    let mut text = title(unit, to);
    for (nth, way) in ways.iter().enumerate() {
        let WayBandwidth {
            by: kind,
            in_use,
            via,
            forks_at_crossbar,
            packet_bytes,
            sent,
            received,
            loss,
            why_not_asked,
            one_way,
            ..
        } = way;
        text.push_str(&way_line(nth, kind, *in_use, (via, forks_at_crossbar.as_deref())));
        let came = format!("{received} of {sent} packets of {packet_bytes} bytes, {}", lost(*loss));
        let direction = if *one_way { "there" } else { "there and back" };
        let result = match (way.min_mbps, way.median_mbps, way.max_mbps, why_not_asked) {
            (Some(min), Some(median), Some(max), _) => {
                format!("{median:.1} Mb/s {direction} (from {min:.1} to {max:.1}); {came}")
            }
            (.., Some(why)) => cannot_be_asked(why),
            _ => format!("no train told how fast it was; {came}"),
        };
        text.push_str(&format!("        {result}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> SoundedHost {
        SoundedHost { mac: "02:00:00:00:00:01".to_owned(), name: "node3\u{1b}".to_owned() }
    }

    #[test]
    fn a_trace_has_a_line_a_hop_and_says_what_it_means() {
        let hop = |name: &str, port: Option<&str>, sent, received| TracedHop {
            name: name.to_owned(),
            leaves_by: port.map(str::to_owned),
            sent,
            received,
            rtt_ms: (received > 0).then_some(0.25),
            answered_by: None,
        };
        let hops = vec![
            hop("crossbar of node1", Some("port 1 (eth1)"), 0, 0),
            hop("crossbar of node2", Some("port 2"), 3, 2),
            hop("node3", None, 3, 0),
        ];
        let way = TracedWay {
            by: "srv6".to_owned(),
            in_use: false,
            hops,
            stops_at: Some(2),
            verdict: "node3 is the first that does not answer".to_owned(),
            forks_at: Some(1),
        };
        let expected = "node3\u{fffd} 02:00:00:00:00:01 (unit 0)\n  way 1 by segments through kernels, not in use\n     \
                        1  crossbar of node1, port 1 (eth1): here\n     2  crossbar of node2, port 2: 0.250 ms, 2 of 3\n     \
                        3  node3: no answer\n        \
                        from crossbar of node2 on there are others as near, which other packets may take\n        \
                        node3 is the first that does not answer\n";
        assert_eq!(traced(0, &Traced { to: host(), ways: vec![way] }), expected);
    }

    #[test]
    fn round_trips_are_told_in_numbers() {
        let way = PingedWay {
            by: "agents".to_owned(),
            in_use: true,
            via: vec!["crossbar of node1, port 1".to_owned()],
            forks_at_crossbar: None,
            sent: 4,
            received: 3,
            loss: Some(0.25),
            why_not_asked: None,
            min_ms: Some(0.1),
            median_ms: Some(0.2),
            max_ms: Some(1.5),
        };
        let expected = "node3\u{fffd} 02:00:00:00:00:01 (unit 1)\n  way 1 by the agents' frames: crossbar of node1, port 1\n        \
                        3 of 4 back, 25.0% lost; min 0.100, median 0.200, max 1.500 ms\n";
        assert_eq!(pinged(1, &Pinged { to: host(), ways: vec![way.clone()] }), expected);
        let fork = Some("crossbar of node2".to_owned());
        let unasked = way.clone();
        let forked = PingedWay { by: "routes".to_owned(), forks_at_crossbar: fork, ..way };
        let told = pinged(1, &Pinged { to: host(), ways: vec![forked] });
        let expected = "by routes of the kernels: crossbar of node1, port 1; crossbar of node2, from where there are several \
                        ways as near, which kernels choose from\n";
        assert!(told.contains(expected), "{told}");
        let why_not_asked = Some("no address".to_owned());
        let silent = PingedWay { sent: 0, received: 0, loss: None, why_not_asked, min_ms: None, ..unasked };
        let told = pinged(1, &Pinged { to: host(), ways: vec![silent] });
        assert!(told.ends_with("        it cannot be asked: no address\n"), "{told}");
    }

    #[test]
    fn what_a_way_carries_is_told_with_the_packets_that_told_it() {
        let way = WayBandwidth {
            by: "srv6".to_owned(),
            in_use: true,
            via: Vec::new(),
            forks_at_crossbar: None,
            packet_bytes: 1460,
            sent: 500,
            received: 495,
            loss: Some(0.01),
            why_not_asked: None,
            one_way: true,
            min_mbps: Some(900.0),
            median_mbps: Some(940.25),
            max_mbps: Some(999.0),
        };
        let silent =
            WayBandwidth { received: 0, loss: Some(1.0), median_mbps: None, one_way: false, ..way.clone() };
        let expected = "node3\u{fffd} 02:00:00:00:00:01 (unit 0)\n  way 1 by segments through kernels: the cable\n        \
                        940.2 Mb/s there (from 900.0 to 999.0); 495 of 500 packets of 1460 bytes, 1.0% lost\n  \
                        way 2 by segments through kernels: the cable\n        \
                        no train told how fast it was; 0 of 500 packets of 1460 bytes, 100.0% lost\n";
        assert_eq!(bandwidths(0, &Bandwidths { to: host(), ways: vec![way, silent] }), expected);
    }
}
