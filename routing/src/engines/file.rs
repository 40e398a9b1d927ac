//! The engine `file`: tables that somebody else made.
//!
//! They are served as they are. It is for the proof to find what is wrong with them, as with tables of any
//! engine. If no tables are given, those that were in force are served.

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, in_force};
use crate::{Subnet, Tables};
use mapper_fabric::wording::plural;
use thiserror::Error;

/// Tables from a file.
pub(super) struct File;

impl Algorithm for File {
    fn name(&self) -> &'static str {
        "file"
    }

    fn summary(&self) -> &'static str {
        "the tables of --lfts-file, or else those of --previous"
    }

    fn obeys(&self, settings: &Settings) -> &'static [Setting] {
        if settings.file.is_some() { &[Setting::File] } else { &[Setting::File, Setting::Previous] }
    }

    fn check(&self, subnet: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        given(subnet, settings).map(|_| ()).map_err(Refusal::own)
    }

    /// # Errors
    /// If there are no tables to load, or they are of another subnet.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        let tables =
            given(subnet, settings).map_err(|why| EngineError::refuse(Engine::File, Refusal::own(why)))?;
        Ok(Routing::in_one_layer(tables.clone()))
    }
}

/// Why given tables are not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum FileRefusal {
    #[error("no tables were given to load; name a dump of tables (--lfts-file, or --previous)")]
    NoTables,
    /// They are of another fabric. The numbers are those of its xbars and destinations, and of those of this
    /// fabric.
    #[error("the tables are of {} and {}, but the fabric has {} and {}",
            plural(tables.0, "xbar"), plural(tables.1, "destination"), fabric.0, fabric.1)]
    OtherSize { tables: (usize, usize), fabric: (usize, usize) },
}

/// The tables of [`Settings::file`], or of [`Settings::previous`] unless all is to be balanced anew.
///
/// # Errors
/// If there are none, or they are of another subnet.
fn given<'a>(subnet: &Subnet, settings: &'a Settings) -> Result<&'a Tables, FileRefusal> {
    let tables =
        settings.file.as_ref().or_else(|| in_force::tables(settings)).ok_or(FileRefusal::NoTables)?;
    let (xbars, slots) = (subnet.topology.xbar_count(), subnet.destinations.slot_count());
    if tables.xbar_count() != xbars || (xbars > 0 && tables.slot_count() != slots) {
        let of = (tables.xbar_count(), tables.slot_count());
        return Err(FileRefusal::OtherSize { tables: of, fabric: (xbars, slots) });
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn tables_are_served_as_they_are_or_refused() {
        let subnet = Subnet::new(&generate("ring:n=3,hosts=1").unwrap(), None).unwrap();
        let compute = |file| Engine::File.compute(&subnet, &Settings { file, ..Settings::default() });
        let mut tables = Tables::empty(3, 6);
        tables.set_port(1, 2, 7);
        assert_eq!(compute(Some(tables.clone())).unwrap().tables, tables);
        let kept = Settings { previous: Some(tables.clone()), ..Settings::default() };
        assert_eq!(Engine::File.compute(&subnet, &kept).unwrap().tables, tables);
        let anew = Settings { reassign: true, ..kept };
        assert!(
            Engine::File
                .compute(&subnet, &anew)
                .unwrap_err()
                .why
                .to_string()
                .starts_with("no tables were given")
        );
        assert!(compute(None).unwrap_err().why.to_string().starts_with("no tables were given"));
        let why = compute(Some(Tables::empty(3, 5))).unwrap_err().why.to_string();
        assert_eq!(why, "the tables are of 3 xbars and 5 destinations, but the fabric has 3 and 6");
    }
}
