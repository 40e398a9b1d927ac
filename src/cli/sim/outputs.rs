//! The files that `mapper sim` writes.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use mapper_formats::json::{NamesByAddress, map_to_json};
use mapper_formats::routes::{file_name, table_to_json};
use mapper_proto::map::Fabric;
use mapper_sim::world::World;

use crate::cli::{CliError, output};

/// Makes the folder for routes, and checks before a long run that files can be made in it.
pub(super) fn check_routes_dir(dir: &Path) -> Result<(), CliError> {
    let checked = fs::create_dir_all(dir).and_then(|()| check_folder(dir, "routes"));
    checked.map_err(|error| failure(dir, &error))
}

/// Makes a file in a folder and removes it again.
fn check_folder(folder: &Path, name: &str) -> io::Result<()> {
    let probe = folder.join(format!(".{name}.{}.check", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&probe)?;
    fs::remove_file(&probe)
}

fn failure(path: &Path, error: &io::Error) -> CliError {
    format!("cannot write {}: {error}", path.display()).into()
}

/// Writes the map of the largest part.
pub(super) fn write_map(world: &mut World, fabric: &Fabric, path: &Path) -> Result<(), CliError> {
    let leader = world.verdict().leaders.first().map(|leader| leader.host);
    let map = leader.and_then(|host| world.map(host)).ok_or("no map to write: not all are configured")?;
    let json = serde_json::to_string_pretty(&map_to_json(&map, &NamesByAddress::of(fabric)))?;
    output::write_file(path, &(json + "\n"))
}

/// Writes the routes of every host that has a table.
pub(super) fn write_routes(world: &World, fabric: &Fabric, dir: &Path) -> Result<(), CliError> {
    let names = NamesByAddress::of(fabric);
    // Hosts of one part have the same map, so its names are looked up only once.
    let mut labelled: Option<Fabric> = None;
    for host in 0..world.plant().hosts() as u32 {
        let Some(table) = world.table(host) else { continue };
        let labelled = match labelled.take() {
            Some(known) if known.map.version == table.version() => labelled.insert(known),
            _ => labelled.insert(names.label(table.basis().map())),
        };
        let json = table_to_json(labelled, table.basis().topology(), table.whole())?;
        let path = dir.join(file_name(world.mac(host)));
        let text = serde_json::to_string(&json)? + "\n";
        fs::write(&path, text).map_err(|error| failure(&path, &error))?;
    }
    Ok(())
}
