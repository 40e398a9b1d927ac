//! The quality of routes as JSON and as text.

use std::fmt::Write as _;

use serde_json::{Value, json};

use mapper_fabric::wording::plural;
use mapper_routing::{Quality, TierLoads};

/// The measures of `mapper.route/1`, and over how much they were taken.
pub(in crate::cli) fn json(quality: &Quality) -> Value {
    let tiers: Vec<Value> = quality.tiers.iter().map(tier_json).collect();
    json!({
        "edge_forwarding_index": quality.edge_forwarding_index,
        "effective_bisection": quality.effective_bisection,
        "effective_bisection_error": quality.effective_bisection_error,
        "service_adapters": quality.service_adapters,
        "effective_bisection_of_others": quality.effective_bisection_of_others,
        "effective_bisection_of_hosts": quality.effective_bisection_of_hosts,
        "congestion_a2a": quality.congestion_a2a,
        "congestion_random_permutation": quality.congestion_random_permutation,
        "congestion_shift": quality.congestion_shift,
        "samples": quality.samples,
        "shifts": quality.shifts,
        "all_shifts": quality.all_shifts,
        "unroutable": quality.unroutable,
        "tiers": tiers,
    })
}

fn tier_json(tier: &TierLoads) -> Value {
    json!({
        "from": tier.from_tier,
        "to": tier.to_tier,
        "direction": tier.heading().name(),
        "channels": tier.channels,
        "min": tier.min,
        "mean": tier.mean,
        "max": tier.max,
        "histogram": tier.histogram,
    })
}

/// Lines for a person.
pub(in crate::cli) fn text(quality: &Quality) -> String {
    let mut text = format!(
        "quality    {} over the busiest channel; effective bisection {:.3} +- {:.3}\n           \
         flows on a channel at worst: all-to-all {}, random permutations {:.1} in the mean, shifts {}{}\n",
        routes(quality.edge_forwarding_index),
        quality.effective_bisection,
        quality.effective_bisection_error,
        quality.congestion_a2a,
        quality.congestion_random_permutation,
        quality.congestion_shift,
        looked_at(quality),
    );
    if quality.unroutable > 0 {
        // Writing to a String never fails.
        let left_out = plural(quality.unroutable, "pair");
        let _infallible = writeln!(text, "           {left_out} without a route left out, each way counted");
    }
    if quality.service_adapters > 0 {
        let _infallible = writeln!(
            text,
            "           {} above the leaves counted; what joins other hosts gets {:.3} of a cable",
            plural(quality.service_adapters, "service adapter"),
            quality.effective_bisection_of_others
        );
    }
    if let Some(bisection) = quality.effective_bisection_of_hosts {
        let _infallible = writeln!(
            text,
            "           hosts alone, as service adapters hardly send: effective bisection {bisection:.3}"
        );
    }
    for tier in &quality.tiers {
        let _infallible = writeln!(text, "           {tier}");
    }
    text
}

/// A remark on how many shifts were looked at; empty if it was all.
fn looked_at(quality: &Quality) -> String {
    if quality.shifts == quality.all_shifts {
        return String::new();
    }
    format!(" (of {}, {} looked at)", quality.all_shifts, quality.shifts)
}

/// A load and its unit.
fn routes(load: f64) -> String {
    format!("{} route{}", number(load), if load == 1.0 { "" } else { "s" })
}

/// A load as text, without a fraction if it is a whole number.
pub(in crate::cli) fn number(load: f64) -> String {
    if load.fract() == 0.0 { format!("{load:.0}") } else { format!("{load:.1}") }
}
