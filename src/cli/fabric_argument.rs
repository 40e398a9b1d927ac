//! The argument `TOPOLOGY`.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use mapper_proto::map::Fabric;

use super::CliError;
use crate::formats;

/// A fabric on the command line: a file in any of the formats that are read, or a generator's
/// spec such as `clos:hosts=128,ports=16`.
///
/// Use it as the type of an argument with `value_name = "TOPOLOGY"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricArgument(String);

impl FabricArgument {
    /// Reads or generates the fabric.
    ///
    /// # Errors
    /// If the argument is neither a file nor a spec, or describes no fabric.
    pub fn load(&self) -> Result<Fabric, CliError> {
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
