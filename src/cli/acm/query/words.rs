//! Answers in the words of `ib_acme`, so that what reads its output reads this.

use std::fmt::Write as _;

use super::ask::{AskedService, EndpointShown, PathShown, ResolvedShown};
use super::probe::Probed;
use super::{Args, CounterChoice};

/// What the counters are called.
const COUNTERS: [&str; 7] = [
    "Error Count",
    "Resolve Count",
    "No Data",
    "Addr Query Count",
    "Addr Cache Count",
    "Route Query Count",
    "Route Cache Count",
];

/// Which heads of tables were printed already, as each is printed once for all services.
#[derive(Debug, Default)]
pub(super) struct Labels {
    counters: bool,
    endpoints: bool,
}

/// What one service answered.
pub(super) fn of_service(args: &Args, asked: &AskedService, labels: &mut Labels) -> String {
    let mut text = String::new();
    // To write to a string does not fail.
    let _infallible = write(args, asked, labels, &mut text);
    text
}

fn write(args: &Args, asked: &AskedService, labels: &mut Labels, text: &mut String) -> std::fmt::Result {
    let service = &asked.service;
    if let Some(error) = &asked.error {
        return writeln!(text, "{service},unable to contact service: {error}");
    }
    if args.destination.is_some() {
        writeln!(text, "Service: {service}")?;
        for resolved in &asked.resolved {
            write_resolved(resolved, args.repetitions <= 1, text)?;
        }
    }
    if let Some(error) = &asked.counters_error {
        if args.counters == Some(CounterChoice::OfSource) {
            writeln!(text, "ib_acm_query_perf failed: {error}")?;
        }
        writeln!(text, "{service}: Failed to query perf data: {error}")?;
    }
    for list in &asked.counters {
        let values = list.values;
        if args.counters == Some(CounterChoice::Column) {
            writeln!(text, "{service}")?;
            for (name, value) in COUNTERS.iter().zip(values) {
                writeln!(text, "{name} : {value}")?;
            }
            continue;
        }
        if !std::mem::replace(&mut labels.counters, true) {
            writeln!(text, "svc,{}", COUNTERS.join(","))?;
        }
        writeln!(text, "{service},{}", values.map(|value| value.to_string()).join(","))?;
    }
    for EndpointShown { endpoint, guid, port, pkey, provider, addresses } in &asked.endpoints {
        if !std::mem::replace(&mut labels.endpoints, true) {
            writeln!(text, "svc,guid,port,pkey,ep_index,prov,addr_0,addresses")?;
        }
        let addresses: String = addresses.iter().map(|it| format!(",{}", it.escape_debug())).collect();
        let provider = provider.escape_debug();
        writeln!(text, "{service},{guid},{port},{pkey:#06x},{endpoint},{provider}{addresses}")?;
    }
    if let Some(endpoint) = asked.missing_endpoint {
        writeln!(text, " Endpoint {endpoint} is not available")?;
    }
    Ok(())
}

fn write_resolved(resolved: &ResolvedShown, tells_source: bool, text: &mut String) -> std::fmt::Result {
    let ResolvedShown {
        destination,
        source,
        chosen_source,
        path,
        error,
        call,
        verified,
        verify_error,
        probed,
    } = resolved;
    writeln!(text, "Destination: {destination}")?;
    if let Some(source) = source.as_ref().or(chosen_source.as_ref().filter(|_| tells_source)) {
        // A name came from another machine, and may contain what a terminal obeys.
        writeln!(text, "Source: {}", source.escape_debug())?;
    }
    if let Some(error) = error {
        writeln!(text, "ib_acm_resolve_{call} failed: {error}")?;
    }
    if let Some(path) = path {
        write_path(path, text)?;
    }
    match (verified, verify_error) {
        (Some(true), _) => writeln!(text, "SA verification: success")?,
        (Some(false), error) => {
            writeln!(text, "SA verification: failed {}", error.as_deref().unwrap_or_default())?;
        }
        (None, _) => {}
    }
    if let Some(Probed { reached, stopped_at, verdict }) = probed {
        let stopped_at = stopped_at.as_ref().map(|at| format!(", stopped at {}", at.escape_debug()));
        let outcome = if *reached { "success" } else { "failed" };
        writeln!(text, "Probe: {outcome}{} ({verdict})", stopped_at.unwrap_or_default())?;
    }
    writeln!(text)
}

fn write_path(path: &PathShown, text: &mut String) -> std::fmt::Result {
    writeln!(text, "Path information")?;
    writeln!(text, "  dgid: {}\n  sgid: {}", path.dgid, path.sgid)?;
    writeln!(text, "  dlid: {}\n  slid: {}", path.dlid, path.slid)?;
    writeln!(text, "  flow label: {:#x}\n  hop limit: {}", path.flow_label, path.hop_limit)?;
    writeln!(text, "  tclass: {}\n  reversible: {}", path.traffic_class, u8::from(path.reversible))?;
    writeln!(text, "  pkey: {:#x}\n  sl: {}", path.pkey, path.sl)?;
    writeln!(text, "  mtu: {}\n  rate: {}", path.mtu, path.rate)?;
    writeln!(text, "  packet lifetime: {}", path.packet_life_time)
}
