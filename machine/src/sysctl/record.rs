//! What settings were before this program changed them, as a file.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Of, Setting, SettingFamily, SettingsError};
use crate::whole_file;

/// A setting that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) setting: Setting,
    pub(super) before: i32,
    pub(super) now: i32,
}

/// The file, whose format may grow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    changed: Vec<Line>,
}

/// A changed setting in the file. One of a machine has no `of`, one of an interface its number and name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    family: u8,
    of: Option<String>,
    interface: Option<u32>,
    key: String,
    before: i32,
    now: i32,
}

/// Reads the file; nothing was changed if there is none.
pub(super) fn read(path: &Path) -> Result<Vec<Changed>, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(unreadable)?,
    };
    let file: File = serde_json::from_str(&text).map_err(|error| unreadable(error.into()))?;
    let changed = file.changed.into_iter().map(changed).collect::<Option<_>>();
    changed.ok_or_else(|| unreadable(io::ErrorKind::InvalidData.into()))
}

/// Writes the file, or deletes it if nothing is changed any more.
pub(super) fn write(path: &Path, changed: &[Changed]) -> Result<(), SettingsError> {
    let written = if changed.is_empty() {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    } else {
        let file = File { changed: changed.iter().map(line).collect() };
        serde_json::to_string(&file).map_err(Into::into).and_then(|text| whole_file::replace(path, &text))
    };
    written.map_err(|source| SettingsError::Record { path: path.to_owned(), source })
}

fn line(changed: &Changed) -> Line {
    let Changed { setting, before, now } = changed;
    let (of, interface) = match &setting.of {
        Of::Machine => (None, None),
        Of::All => (Some("all".to_owned()), None),
        Of::Default => (Some("default".to_owned()), None),
        Of::Interface { index, name } => (Some(name.clone()), Some(*index)),
    };
    let family = match setting.family {
        SettingFamily::V4 => 4,
        SettingFamily::V6 => 6,
    };
    Line { family, of, interface, key: setting.key.clone(), before: *before, now: *now }
}

fn changed(line: Line) -> Option<Changed> {
    let Line { family, of, interface, key, before, now } = line;
    let family = match family {
        4 => SettingFamily::V4,
        6 => SettingFamily::V6,
        _ => return None,
    };
    let of = match (of, interface) {
        (None, None) => Of::Machine,
        (Some(name), Some(index)) => Of::Interface { index, name },
        (Some(word), None) if word == "all" => Of::All,
        (Some(word), None) if word == "default" => Of::Default,
        _ => return None,
    };
    // Words of the file become parts of a path, so they must not lead elsewhere.
    let is_word = |text: &str| !text.is_empty() && !text.contains('/') && text != "." && text != "..";
    let name_is_word = match &of {
        Of::Interface { name, .. } => is_word(name),
        Of::Machine | Of::All | Of::Default => true,
    };
    let setting = Setting { family, of, key };
    (is_word(&setting.key) && name_is_word).then_some(Changed { setting, before, now })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(of: Of) -> Changed {
        Changed { setting: Setting::new(SettingFamily::V6, of, "forwarding"), before: 0, now: 1 }
    }

    #[test]
    fn what_is_written_comes_back_and_nothing_is_left_when_nothing_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let interface = Of::Interface { index: 7, name: "eth0.5".to_owned() };
        let all = [Of::Machine, Of::All, Of::Default, interface].map(changed);
        write(&path, &all).unwrap();
        assert_eq!(read(&path).unwrap(), all);
        write(&path, &[]).unwrap();
        write(&path, &[]).unwrap();
        assert_eq!((path.exists(), read(&path).unwrap()), (false, Vec::new()));
    }

    #[test]
    fn what_is_no_record_is_refused_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let line = |of: &str, key: &str| {
            format!(
                r#"{{"changed":[{{"family":6,"of":"{of}","interface":1,"key":"{key}","before":0,"now":1}}]}}"#
            )
        };
        for text in
            [String::new(), "{}".to_owned(), line("..", "forwarding"), line("lo", "../../../kernel/x")]
        {
            std::fs::write(&path, &text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("settings.json"), "{text}: {error}");
        }
        std::fs::write(&path, line("lo", "forwarding")).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
    }
}
