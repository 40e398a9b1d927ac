//! Keeps settings as they are needed, and puts back what was there before.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::needs::{Before, Wanted};
use super::record::{self, Changed};
use super::{ForwardingNeeds, Of, Setting, SettingsError};
use crate::link::interface::Interface;

/// Settings of the kernel that are kept as they are needed.
///
/// What was there before stands in a file, written before anything is changed. So a run that comes after a crash
/// takes over without a moment in which packets are dropped, and the last one puts back what was there before the
/// first. A setting that somebody changed in between is theirs, and stays as it is.
#[derive(Debug)]
pub struct KeptSettings {
    path: PathBuf,
    changed: Vec<Changed>,
    wanted: Vec<Wanted>,
}

/// A setting that somebody changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The setting.
    pub setting: Setting,
    /// What it is now; `None` if it is gone, as with its interface.
    pub is: Option<i32>,
    /// What is needed.
    pub needed: i32,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, is, needed } = self;
        match is {
            Some(is) => write!(f, "{setting} was set to {is}, and forwarding needs {needed}"),
            None => write!(f, "{setting} is gone, and forwarding needs {needed}"),
        }
    }
}

impl Before for KeptSettings {
    fn before(&self, setting: &Setting) -> Result<Option<i32>, SettingsError> {
        match self.changed.iter().find(|changed| changed.setting.is_same(setting)) {
            Some(changed) => Ok(Some(changed.before)),
            None => setting.read(),
        }
    }
}

impl KeptSettings {
    /// Begins, with what an earlier run noted in the file at `path`, if it did not come to its end.
    ///
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn open(path: &Path) -> Result<Self, SettingsError> {
        Ok(Self { path: path.to_owned(), changed: record::read(path)?, wanted: Vec::new() })
    }

    /// Sets what is needed, and puts back what an earlier call set and is needed no longer. Returns what did not
    /// succeed; all else did. Call again when ports come or go, and after [`Self::drifts`].
    pub fn keep(&mut self, needs: &ForwardingNeeds) -> Vec<SettingsError> {
        match self.try_keep(needs) {
            Ok(failed) => failed,
            Err(error) => vec![error],
        }
    }

    fn try_keep(&mut self, needs: &ForwardingNeeds) -> Result<Vec<SettingsError>, SettingsError> {
        let interfaces = interfaces()?;
        self.changed.retain_mut(|changed| changed.setting.follow(&interfaces));
        let wanted = needs.wanted(&interfaces, self)?;
        let is_wanted =
            |changed: &Changed| wanted.iter().any(|wanted| wanted.setting.is_same(&changed.setting));
        let (kept, dropped) = std::mem::take(&mut self.changed).into_iter().partition(is_wanted);
        self.changed = kept;
        let mut failed = put_back(&dropped);
        self.note(&wanted, &mut failed);
        // Only what is noted may be changed. What was put back is put back once more if this fails and the file
        // has it still, which changes nothing.
        record::write(&self.path, &self.changed)?;
        for wanted in &wanted {
            failed.extend(set(wanted).err());
        }
        self.wanted = wanted;
        Ok(failed)
    }

    /// Takes in what will be changed.
    fn note(&mut self, wanted: &[Wanted], failed: &mut Vec<SettingsError>) {
        for Wanted { setting, value, is_held } in wanted {
            if let Some(changed) = self.changed.iter_mut().find(|changed| changed.setting.is_same(setting)) {
                changed.now = *value;
                continue;
            }
            match setting.read() {
                Ok(Some(before)) if before != *value || *is_held => {
                    self.changed.push(Changed { setting: setting.clone(), before, now: *value });
                }
                Ok(_) => {}
                Err(error) => failed.push(error),
            }
        }
    }

    /// What somebody changed since the last call of [`Self::keep`], of all that it wanted.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn drifts(&self) -> Result<Vec<Drift>, SettingsError> {
        let interfaces = interfaces()?;
        let mut drifts = Vec::new();
        for Wanted { setting, value, .. } in &self.wanted {
            let mut setting = setting.clone();
            let is = if setting.follow(&interfaces) { setting.read()? } else { None };
            if is != Some(*value) {
                drifts.push(Drift { setting, is, needed: *value });
            }
        }
        Ok(drifts)
    }

    /// Puts back what was there before, and deletes the file. Returns what could not be put back.
    pub fn restore(mut self) -> Vec<SettingsError> {
        let mut failed = Vec::new();
        match interfaces() {
            Ok(interfaces) => self.changed.retain_mut(|changed| changed.setting.follow(&interfaces)),
            Err(error) => failed.push(error),
        }
        failed.extend(put_back(&self.changed));
        failed.extend(record::write(&self.path, &[]).err());
        failed
    }
}

/// Sets a setting, if it is another.
fn set(wanted: &Wanted) -> Result<(), SettingsError> {
    let Wanted { setting, value, .. } = wanted;
    if setting.read()? == Some(*value) { Ok(()) } else { setting.write(*value) }
}

/// Puts settings back that are as they were set. Those of all interfaces come first, and then those of interfaces
/// that come later, as either changes those of single ones by the way.
fn put_back(changed: &[Changed]) -> Vec<SettingsError> {
    let mut failed = Vec::new();
    let mut ours = Vec::new();
    for changed in changed {
        match changed.setting.read() {
            Ok(Some(value)) if value == changed.now => ours.push(changed),
            Ok(_) => {}
            Err(error) => failed.push(error),
        }
    }
    ours.sort_by_key(|changed| match changed.setting.of {
        Of::All => 0,
        Of::Default => 1,
        Of::Machine | Of::Interface { .. } => 2,
    });
    for changed in ours {
        failed.extend(changed.setting.write(changed.before).err());
    }
    failed
}

/// The numbers and names of all interfaces.
fn interfaces() -> Result<BTreeMap<u32, String>, SettingsError> {
    let all = Interface::all().map_err(SettingsError::Interfaces)?;
    Ok(all.into_iter().map(|interface| (interface.index, interface.name)).collect())
}

impl Setting {
    /// Whether two are the same setting, by whatever name an interface has.
    fn is_same(&self, other: &Self) -> bool {
        let of = match (&self.of, &other.of) {
            (Of::Interface { index: own, .. }, Of::Interface { index: other, .. }) => own == other,
            (own, other) => own == other,
        };
        of && self.family == other.family && self.key == other.key
    }

    /// Takes the name that its interface has now. Returns whether it is there.
    fn follow(&mut self, interfaces: &BTreeMap<u32, String>) -> bool {
        match &mut self.of {
            Of::Machine | Of::All | Of::Default => true,
            Of::Interface { index, name } => match interfaces.get(index) {
                Some(now) => {
                    name.clone_from(now);
                    true
                }
                None => false,
            },
        }
    }
}
