//! Reports what an engine computed.

use mapper_proto::map::Fabric;

use crate::cli::judgement::{ProofReport, QualityReport};
use mapper_routing::Subnet;
use mapper_routing::engines::{Answer, Settings};

/// What was proved of an answer.
pub(super) fn proof_of(answer: &Answer<'_>, subnet: &Subnet, fabric: &Fabric) -> ProofReport {
    match answer {
        Answer::Tables(selection) => ProofReport::of_tables(&selection.proof, subnet, fabric),
        Answer::SourceRoutes(selection) => {
            ProofReport::of_source_routes(&selection.proof, &subnet.topology, fabric)
        }
    }
}

/// The quality of an answer's routes.
pub(super) fn quality(answer: &Answer<'_>, subnet: &Subnet, settings: &Settings) -> QualityReport {
    match answer {
        Answer::Tables(selection) => QualityReport::of_selection(subnet, selection, settings.seed),
        Answer::SourceRoutes(selection) => QualityReport(Some(selection.quality.clone())),
    }
}
