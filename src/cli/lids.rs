//! The options about hosts' and switches' LIDs, and the subnet that they make of a fabric.

use mapper_proto::map::Fabric;

use super::CliError;
use super::fabric_argument::FabricArgument;
use mapper_routing::Subnet;
use mapper_routing::tables::MAX_LMC;

/// Options about LIDs.
#[derive(Debug, clap::Args)]
pub(super) struct LidOptions {
    /// Hosts have 2^LMC addresses [default: what TOPOLOGY says, if it says the same of all hosts].
    #[arg(long, short_alias = 'l', value_name = "LMC",
          value_parser = clap::value_parser!(u8).range(..=i64::from(MAX_LMC)))]
    pub(super) lmc: Option<u8>,
    /// Give all hosts and switches LIDs anew, from 1 on, whatever LIDs TOPOLOGY has. Tables that were in force
    /// are balanced anew, too.
    #[arg(long, alias = "reassign_lids", short_alias = 'r')]
    pub(super) reassign_lids: bool,
}

impl LidOptions {
    /// Reads the fabric, without its LIDs if they are given anew.
    ///
    /// # Errors
    /// If the argument is neither a file nor a spec, or describes no fabric.
    pub(super) fn load(&self, argument: &FabricArgument) -> Result<Fabric, CliError> {
        let mut fabric = argument.load()?;
        if self.reassign_lids {
            fabric.forget_lids();
        }
        Ok(fabric)
    }

    /// What engines see of the fabric.
    ///
    /// # Errors
    /// If no tables can be made for it: two of its nodes have one LID, say.
    pub(super) fn subnet(&self, fabric: &Fabric) -> Result<Subnet, CliError> {
        Ok(Subnet::new(fabric, self.lmc.or_else(|| lmc_of(fabric)))?)
    }

    /// What a user should know of the LIDs.
    pub(super) fn note(&self) -> Option<String> {
        let note = "--reassign-lids: hosts and switches have LIDs from 1 on here, not those of TOPOLOGY";
        self.reassign_lids.then(|| note.to_owned())
    }
}

/// The LID mask control of the cabled hosts in a fabric's file, if it is the same for all.
fn lmc_of(fabric: &Fabric) -> Option<u8> {
    let cabled = fabric.map.hosts.iter().zip(&fabric.hosts).filter(|(host, _)| host.at.is_some());
    let mut all = cabled.map(|(_, label)| label.lmc);
    let first = all.next()?;
    all.all(|lmc| lmc == first).then_some(first)
}
