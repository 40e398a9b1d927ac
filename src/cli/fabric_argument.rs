//! The argument `TOPOLOGY`.

use std::convert::Infallible;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

use mapper_formats as formats;
use mapper_proto::map::Fabric;

use super::CliError;

/// What a fabric may be on the command line.
pub(super) const FORMS: &str = "an ibnetdiscover, ibsim, OpenSM .lst, ibutils .topo, GM .map or mapper.map/1 file, a CSV of cables, or a spec";
/// The help of an argument that is the fabric which a command reads.
pub(super) const READ: &str = "The fabric: an ibnetdiscover, ibsim, OpenSM .lst, ibutils .topo, GM .map or mapper.map/1 file, a CSV of cables, or a spec";

/// A fabric on the command line: a file in any of the formats that are read, or a generator's
/// spec such as `clos:hosts=128,ports=16`.
///
/// Use it as the type of an argument with `value_name = "TOPOLOGY"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricArgument(String);

impl FabricArgument {
    /// Reads or generates the fabric. Standard error says whether anything of a file was left out.
    ///
    /// # Errors
    /// If the argument is neither a file nor a spec, or describes no fabric.
    pub fn load(&self) -> Result<Fabric, CliError> {
        let fabric = self.load_in_silence()?;
        self.tell_left_out(&fabric);
        Ok(fabric)
    }

    /// Reads or generates a plan of a fabric that is known: where a list of cables does not say which devices are
    /// crossbars, the fabric does. Standard error says whether anything of a file was left out.
    ///
    /// # Errors
    /// If the argument is neither a file nor a spec, or describes no fabric.
    pub fn load_as_plan_of(&self, found: &Fabric) -> Result<Fabric, CliError> {
        let fabric = formats::resolve_plan(&self.0, Some(found))?;
        self.tell_left_out(&fabric);
        Ok(fabric)
    }

    fn tell_left_out(&self, fabric: &Fabric) {
        if let Some(first) = fabric.left_out.first() {
            let more = match fabric.left_out.len() {
                1 => String::new(),
                count => format!(" (the first of {count})"),
            };
            let show = format!("`mapper topology show {self}` tells all");
            // Whoever closed standard error wants no notes.
            let _ = writeln!(std::io::stderr(), "mapper: {self}: left out, {first}{more}; {show}");
        }
    }

    /// The path that the argument is, if it is a file's.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// What people call the fabric: the file without its folders, or the spec.
    pub fn title(&self) -> String {
        let file = Path::new(&self.0).file_name().filter(|_| !mapper_fabric::is_spec(&self.0));
        file.map_or_else(|| self.0.clone(), |file| file.to_string_lossy().into_owned())
    }

    /// Reads or generates the fabric, for a caller that tells what was left out.
    ///
    /// # Errors
    /// If the argument is neither a file nor a spec, or describes no fabric.
    pub fn load_in_silence(&self) -> Result<Fabric, CliError> {
        Ok(formats::resolve(&self.0)?)
    }
}

impl FromStr for FabricArgument {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for FabricArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
