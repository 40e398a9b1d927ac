//! What an earlier run left in the kernel, where this one does not use the kernel.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use mapper_fabric::wording::with_causes;
use mapper_fib::{Objects, Route};
use mapper_machine::kernel::{Kernel, KernelError, is_in_use};
use mapper_machine::sysctl::KeptSettings;
use tracing::{debug, info, warn};

/// Takes away all that a run left which crashed or kept its routes, and puts its settings back, as noted in the file `record`:
/// packets would go on by ways that nobody watches any more. Not while another daemon of this network namespace has the
/// kernel carry packets, as they may be its. What cannot be done is logged: this daemon works all the same.
pub(crate) fn take_away_what_is_left(record: &Path) {
    match is_in_use() {
        Ok(false) => {}
        Ok(true) => return debug!("another daemon has the kernel carry packets, so what is there stays"),
        Err(error) => {
            return debug!(%error, "whether a daemon uses the kernel is not known, so what is there stays");
        }
    }
    match take_objects_away() {
        Ok(0) => {}
        Ok(objects) => info!(objects, "took away what an earlier run had left in the kernel"),
        Err(error) => warn!("what an earlier run may have left in the kernel stays: {}", with_causes(&error)),
    }
    if record.exists() {
        let failed = match KeptSettings::open(record) {
            Ok(settings) => settings.restore(),
            Err(error) => vec![error],
        };
        failed.iter().for_each(|error| warn!("{}", with_causes(error)));
    }
}

/// Returns how many objects there were.
fn take_objects_away() -> Result<usize, KernelError> {
    let mut kernel = Kernel::open()?;
    let of_older = kernel.remove_what_older_versions_left();
    let there = kernel.dump()?;
    if there.is_empty() {
        return of_older;
    }
    let failed = kernel.remove_all_of_ours()?;
    // Outer headers came from the address that its routes had for packets of this machine.
    for own in sources(&there) {
        if let Err(error) = kernel.release_outer_source(own) {
            debug!("{}", with_causes(&error));
        }
    }
    match failed.into_iter().next() {
        Some((_, error)) => Err(error),
        None => of_older.map(|objects| objects + there.len()),
    }
}

/// The addresses of IPv6 that these routes have this machine's packets come from.
fn sources(objects: &Objects) -> BTreeSet<Ipv6Addr> {
    let sources = objects.routes.values().filter_map(|route| match route {
        Route::Group { source: Some(IpAddr::V6(source)), .. } => Some(*source),
        _ => None,
    });
    sources.collect()
}
