//! Reports what an engine computed.

use mapper_proto::map::Fabric;
use rayon::prelude::*;

use super::judgement::{ProofReport, QualityReport};
use mapper_fabric::wording::plural;
use mapper_routing::engines::{Answer, Settings, Tried, WhyNotServed};
use mapper_routing::tables::SlotEnd;
use mapper_routing::{Subnet, Tables, TablesProof};

/// What was proved of an answer.
pub(super) fn proof_of(answer: &Answer<'_>, subnet: &Subnet, fabric: &Fabric) -> ProofReport {
    match answer {
        Answer::Tables(selection) => ProofReport::of_tables(&selection.proof, subnet, fabric),
        Answer::SourceRoutes(selection) => {
            ProofReport::of_source_routes(&selection.proof, &subnet.topology, fabric)
        }
    }
}

/// Why an engine did not serve, by the names of the fabric.
pub(in crate::cli) fn why_not(tried: &Tried, subnet: &Subnet) -> String {
    let failed = match &tried.why_not {
        WhyNotServed::Unproved(proof) => what_fails(proof, subnet),
        _ => None,
    };
    failed.unwrap_or_else(|| tried.why_not.to_string())
}

/// The first violation of a proof that fails, by the names of the fabric, and how many more there are.
pub(super) fn what_fails(proof: &TablesProof, subnet: &Subnet) -> Option<String> {
    let first = proof.violations.first()?;
    let (told, first) = (first.count(), first.describe(subnet));
    Some(match proof.violation_count.saturating_sub(told) {
        0 => first,
        more => format!("{first} ({})", plural(more, "more violation")),
    })
}

/// How many entries differ between two tables of a subnet. An entry that only one of them has counts too. An
/// xbar's entry for itself does not count, as frames for it have arrived there.
pub(super) fn changed_entries(subnet: &Subnet, tables: &Tables, previous: &Tables) -> u64 {
    let differ = |slot: u32| {
        let own = subnet.destinations.end(slot);
        let pairs = (0..).zip(tables.of_slot(slot).iter().zip(previous.of_slot(slot)));
        pairs.filter(|&(xbar, (one, other))| one != other && own != SlotEnd::Xbar(xbar)).count() as u64
    };
    (0..tables.slot_count() as u32).into_par_iter().map(differ).sum()
}

/// The quality of an answer's routes.
pub(super) fn quality(answer: &Answer<'_>, subnet: &Subnet, settings: &Settings) -> QualityReport {
    match answer {
        Answer::Tables(selection) => {
            QualityReport::of_tables(subnet, &selection.routing.tables, settings.seed)
        }
        Answer::SourceRoutes(selection) => QualityReport(Some(selection.quality.clone())),
    }
}
