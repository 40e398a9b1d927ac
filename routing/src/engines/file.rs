//! The engine `file`: tables that somebody else made.
//!
//! They are served as they are. What is wrong with them is the proof's to find, as with any engine's.

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Routing, Setting, Settings};
use crate::Subnet;
use mapper_fabric::wording::plural;

/// Tables from a file.
pub(super) struct File;

impl Algorithm for File {
    fn name(&self) -> &'static str {
        "file"
    }

    fn summary(&self) -> &'static str {
        "the tables of --lfts-file"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::File]
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        compute(subnet, settings)
    }
}

/// The tables of [`Settings::file`].
///
/// # Errors
/// If there are none, or they are of another subnet.
fn compute(subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    let refuse = |why: String| Err(EngineError::refuse(Engine::File, why));
    let Some(tables) = &settings.file else {
        return refuse("no tables were given to load; name a dump of tables (--lfts-file)".to_owned());
    };
    let (xbars, slots) = (subnet.topology.xbar_count(), subnet.destinations.slot_count());
    if tables.xbar_count() != xbars || (xbars > 0 && tables.slot_count() != slots) {
        return refuse(format!(
            "the tables are of {} and {}, but the fabric has {xbars} and {slots}",
            plural(tables.xbar_count(), "xbar"),
            plural(tables.slot_count(), "destination")
        ));
    }
    Ok(Routing::in_one_layer(tables.clone()))
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use crate::Tables;

    #[test]
    fn tables_are_served_as_they_are_or_refused() {
        let subnet = Subnet::new(&generate("ring:n=3,hosts=1").unwrap(), None).unwrap();
        let compute = |file| compute(&subnet, &Settings { file, ..Settings::default() });
        let mut tables = Tables::empty(3, 6);
        tables.set_port(1, 2, 7);
        assert_eq!(compute(Some(tables.clone())).unwrap().tables, tables);
        assert!(compute(None).unwrap_err().why.starts_with("no tables were given"));
        let why = compute(Some(Tables::empty(3, 5))).unwrap_err().why;
        assert_eq!(why, "the tables are of 3 xbars and 5 destinations, but the fabric has 3 and 6");
    }
}
