//! `mapper route --cache`: reads and writes the unicast cache as a file.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Instant;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use crate::cli::{CliError, output};
use mapper_routing::cache::{CacheFileError, UnicastCache};
use mapper_routing::engines::{Answer, Engine, Proof, Selection, Settings};
use mapper_routing::{ProofRules, Subnet, prove_tables};

/// What the first line of a cache begins with, whatever its version.
const KIND: &str = "mapper.unicast-cache/";

/// Refuses a file that is neither empty nor a unicast cache of some version, as it would be replaced.
///
/// # Errors
/// If it is something else, or cannot be read.
pub(super) fn refuse_foreign(path: &Path) -> Result<(), CliError> {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(KIND.len() as u64).read_to_end(&mut beginning));
    let file = path.display();
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("--cache: cannot read {file}: {error}").into()),
        Ok(_) if beginning.is_empty() || beginning == KIND.as_bytes() => Ok(()),
        Ok(_) => Err(format!(
            "--cache: {file} is no unicast cache, and stays as it is; name another file, or remove this one"
        )
        .into()),
    }
}

/// Whether the cache was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CacheUse {
    /// The tables are from the cache.
    Used,
    /// The tables were computed.
    Unused {
        /// Why the cache was not used.
        why_not: String,
    },
}

/// A fabric, and the engines and settings by which it is to be routed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) subnet: &'a Subnet,
    pub(super) engines: &'a [Engine],
    pub(super) settings: &'a Settings,
}

impl CacheUse {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Used => json!({ "used": true, "why_not": null }),
            Self::Unused { why_not } => json!({ "used": false, "why_not": why_not }),
        }
    }

    /// A line for a person.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Used => "cache      used: nothing was computed\n".to_owned(),
            Self::Unused { why_not } => format!("cache      not used: {why_not}\n"),
        }
    }
}

impl<'a> Request<'a> {
    /// The tables of the cache in this file, if they still fit the fabric and pass the proof; otherwise the
    /// reason why they are not used. A damaged file is no failure, as it is written anew.
    pub(super) fn reuse(self, path: &Path, needed: Proof) -> Result<Answer<'a>, String> {
        let cache = match UnicastCache::read(path) {
            Ok(Some(cache)) => cache,
            Ok(None) => return Err("there is no file yet".to_owned()),
            Err(CacheFileError::Unreadable(error)) => return Err(format!("it cannot be read: {error}")),
            Err(error) => return Err(error.to_string()),
        };
        let started = Instant::now();
        let reused = cache.reuse(self.fabric, self.subnet, self.engines, self.settings);
        let reused = reused.map_err(|why_not| why_not.to_string())?;
        let compute_ms = started.elapsed().as_secs_f64() * 1e3;
        let Settings { max_hops, xbar_destinations, .. } = *self.settings;
        let rules = ProofRules { max_hops, xbar_destinations };
        let routing = reused.routing;
        let proof = prove_tables(self.subnet, &routing.tables, &routing.layers, &rules);
        if needed == Proof::Required && !proof.holds() {
            let what = proof.describe_failure(self.subnet).unwrap_or_default();
            return Err(format!("its tables fail the proof: {what}"));
        }
        let engine = reused.engine;
        let (tried, bisection) = (Vec::new(), None);
        Ok(Answer::Tables(Box::new(Selection { engine, tried, routing, proof, compute_ms, bisection })))
    }

    /// Writes what was computed to the cache's file. Source routes are not cached.
    pub(super) fn write_cache(self, path: &Path, answer: &Answer<'_>) -> Result<(), CliError> {
        let Answer::Tables(selection) = answer else { return Ok(()) };
        let Selection { engine, routing, .. } = &**selection;
        let Self { fabric, subnet, engines, settings } = self;
        let cache = UnicastCache::new(fabric, subnet, engines, settings, *engine, routing);
        output::stream_file(path, |out| cache.write_to(out))
    }
}
