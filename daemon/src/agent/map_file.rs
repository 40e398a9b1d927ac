//! The map as a file that others may read at any time.

use std::io;
use std::path::Path;

use mapper_proto::map::Map;

use mapper_formats::json::{NamesByAddress, map_to_json};
use mapper_machine::whole_file;

/// Writes the map as `mapper.map/1`, with the names that are known. Whoever reads the file meanwhile sees the
/// whole old map or the whole new one.
///
/// # Errors
/// If the file cannot be replaced, or the temporary file beside it cannot be written.
pub(crate) fn write(path: &Path, map: &Map, names: &NamesByAddress) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(&map_to_json(map, names))?;
    text.push('\n');
    whole_file::replace(path, &text)
}

/// Checks whether maps can be stored in this file, so that a daemon can say so before it has the first map.
///
/// # Errors
/// If they cannot be stored.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    whole_file::check(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_replaced_at_once_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map.json");
        std::fs::write(&path, "old").unwrap();
        write(&path, &Map::default(), &NamesByAddress::default()).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(json["schema"], "mapper.map/1");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_map_that_cannot_be_written_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("map.json");
        std::fs::create_dir(&taken).unwrap();
        assert!(write(&taken, &Map::default(), &NamesByAddress::default()).is_err());
        assert!(check(&taken).is_err());
        assert!(check(Path::new("/nonexistent/map.json")).is_err());
        check(&dir.path().join("new.json")).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(
            write(Path::new("/nonexistent/map.json"), &Map::default(), &NamesByAddress::default()).is_err()
        );
    }
}
