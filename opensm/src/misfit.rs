//! What keeps an answer from being taken by OpenSM, whoever wrote it.
//!
//! OpenSM indexes its own arrays by the ports, LIDs and levels that it is given, so nothing reaches it that does not fit
//! the subnet that it asked for. Whether tables are right, the proof has found already.

use mapper_routing::Tables;
use thiserror::Error;

use crate::reading::LAST_LID;
use crate::{Answer, Request};

/// Why an answer does not fit the request that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Misfit {
    /// Tables of other switches than were asked for, or in another order.
    #[error("has tables of {answered} switches, in place of the {asked} that were asked for")]
    Switches {
        /// How many tables there are; perhaps as many as switches, but of others.
        answered: usize,
        /// How many switches there are.
        asked: usize,
    },
    /// A port that a switch does not have.
    #[error(
        "sends LID {lid} to port {port} of the switch with GUID {guid:#018x}, whose ports are 1 to {ports}"
    )]
    Port {
        /// The switch.
        guid: u64,
        /// The LID.
        lid: usize,
        /// The port.
        port: u8,
        /// How many ports it has.
        ports: u8,
    },
    /// More LIDs than there are.
    #[error("has a table of {0} LIDs, and there are {LIDS}")]
    Lids(usize),
    /// More layers than service levels, or none.
    #[error("has {0} layers, and there are 16 service levels")]
    Layers(u8),
    /// Levels that are no pair's, or beyond the layers.
    #[error("has service levels that do not fit its switches and layers")]
    Levels,
}

/// LIDs that a table may have.
const LIDS: usize = LAST_LID as usize + 1;
/// Service levels.
const LEVELS: u8 = 16;

impl Answer {
    /// Checks that OpenSM can take it as an answer to this request.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self, request: &Request) -> Result<(), Misfit> {
        let (answered, asked) = (self.tables.len(), request.switches.len());
        let pairs = || self.tables.iter().zip(&request.switches);
        if answered != asked || pairs().any(|(table, switch)| table.guid != switch.guid) {
            return Err(Misfit::Switches { answered, asked });
        }
        for (table, switch) in pairs() {
            if table.ports.len() > LIDS {
                return Err(Misfit::Lids(table.ports.len()));
            }
            let beyond = |&port: &u8| port > switch.ports && port != Tables::NONE;
            if let Some(lid) = table.ports.iter().position(beyond) {
                let (guid, port, ports) = (table.guid, table.ports[lid], switch.ports);
                return Err(Misfit::Port { guid, lid, port, ports });
            }
        }
        if !(1..=LEVELS).contains(&self.layer_count) {
            return Err(Misfit::Layers(self.layer_count));
        }
        let is_switch = |&place: &u32| place == Self::NOWHERE || (place as usize) < asked;
        let fit = self.levels.is_empty() || self.levels.len() == asked * asked;
        if !fit || self.levels.iter().any(|&level| level >= LEVELS) || !self.places.iter().all(is_switch) {
            return Err(Misfit::Levels);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::answer;
    use crate::request::tests::ring;

    #[test]
    fn only_what_fits_the_subnet_is_taken() {
        let request = Request { options: "engines=lash".parse().unwrap(), ..ring(6) };
        let good = answer(&request).unwrap();
        good.check(&request).unwrap();
        let misfit = |change: fn(&mut Answer)| {
            let mut answer = good.clone();
            change(&mut answer);
            answer.check(&request).unwrap_err()
        };
        assert_eq!(misfit(|it| it.tables.truncate(5)), Misfit::Switches { answered: 5, asked: 6 });
        assert_eq!(misfit(|it| it.tables.swap(0, 1)), Misfit::Switches { answered: 6, asked: 6 });
        assert_eq!(
            misfit(|it| it.tables[2].ports[3] = 4),
            Misfit::Port { guid: 0x102, lid: 3, port: 4, ports: 3 }
        );
        assert_eq!(misfit(|it| it.tables[2].ports.resize(0xc001, 0)), Misfit::Lids(0xc001));
        assert_eq!(misfit(|it| it.layer_count = 17), Misfit::Layers(17));
        assert_eq!(misfit(|it| it.layer_count = 0), Misfit::Layers(0));
        assert_eq!(misfit(|it| it.levels.truncate(7)), Misfit::Levels);
        assert_eq!(misfit(|it| it.levels[7] = 16), Misfit::Levels);
        assert_eq!(misfit(|it| it.places[1] = 6), Misfit::Levels);
    }
}
