//! Why no engine serves a fabric, and what would help, in words.

use super::CliError;
use mapper_routing::Subnet;
use mapper_routing::engines::{Engine, NotRouted, Settings, Tried};

/// The error if no engine serves. It names for each engine why not; for a failed proof it names the pair or the
/// circle.
pub(super) fn why_refused(refused: &NotRouted, subnet: &Subnet, settings: &Settings) -> CliError {
    let updn_tried = refused.tried.iter().any(|tried| tried.engine == Engine::Updn);
    let each = |tried: &Tried| {
        // Advice to use updn does not help if updn was refused as well.
        let why = match updn_tried {
            true => tried.describe_without(Engine::Updn, subnet),
            false => tried.describe(subnet),
        };
        format!("{}: {why}", tried.engine)
    };
    let mut all: Vec<String> = refused.tried.iter().map(each).collect();
    // If hosts are too far apart, no other engine can help either.
    if !refused.tried.iter().any(|tried| tried.why_not.is_distance()) {
        all.extend(
            advised(refused, subnet, settings)
                .map(|engine| format!("{engine} needs no roots and no shape: try it")),
        );
    }
    format!("no engine serves this fabric: {}", all.join("\n  ")).into()
}

/// An engine for any fabric that may serve where others do not: lash, or nue if it is seen at once that lash does not
/// serve either. None if lash was tried: it says itself what would help.
fn advised(refused: &NotRouted, subnet: &Subnet, settings: &Settings) -> Option<Engine> {
    let is_tried = |engine: Engine| refused.tried.iter().any(|tried| tried.engine == engine);
    let may_serve = |engine: &Engine| !is_tried(*engine) && engine.check(subnet, settings).is_ok();
    if is_tried(Engine::Lash) { None } else { [Engine::Lash, Engine::Nue].into_iter().find(may_serve) }
}
