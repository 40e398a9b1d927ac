//! Why maps were given up and made, counted by kind.

use mapper_proto::Tally;
use mapper_proto::agent::{Cause, CauseKind};
use serde::{Deserialize, Serialize};

/// How often one kind of cause ended a map or led to a new mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CauseCounters {
    /// The name of the kind: [`CauseKind::name`].
    pub cause: String,
    /// How many maps it ended.
    pub maps_ended: u64,
    /// How many mappings this agent began because of it.
    pub mappings: u64,
}

/// Causes since the start of the daemon.
#[derive(Debug, Default)]
pub struct Causes {
    maps_ended: Tally<CauseKind>,
    mappings: Tally<CauseKind>,
}

impl Causes {
    /// Counts a map that was given up because of this.
    pub fn map_ended(&mut self, cause: &Cause) {
        self.maps_ended.count(cause.kind());
    }

    /// Counts a mapping that began because of this.
    pub fn mapping_began(&mut self, cause: &Cause) {
        self.mappings.count(cause.kind());
    }

    /// The counters of all kinds of causes that there were, in the order of their names.
    pub fn counters(&self) -> Vec<CauseCounters> {
        let both = self.maps_ended.iter().map(|(kind, name, maps_ended)| CauseCounters {
            cause: name.to_owned(),
            maps_ended,
            mappings: self.mappings[kind],
        });
        let mut counters: Vec<_> = both.filter(|both| both.maps_ended + both.mappings > 0).collect();
        counters.sort_unstable_by(|one, other| one.cause.cmp(&other.cause));
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::Mac;
    use mapper_proto::agent::CableCause;

    #[test]
    fn causes_of_a_kind_are_counted_together() {
        let mut causes = Causes::default();
        let silent = |last| Cause::HostSilent { mac: Mac([2, 0, 0, 0, 0, last]) };
        causes.map_ended(&silent(1));
        causes.map_ended(&silent(2));
        causes.mapping_began(&silent(3));
        causes.map_ended(&Cause::XbarReplaced { found: 0xaaaa, expected: 3 });
        causes.mapping_began(&Cause::Start);
        let found = Box::new(Cause::CableSilent);
        causes.map_ended(&Cause::DoubtConfirmed { doubt: CableCause::Silence, found });
        let expected =
            [("cable_silent", 1, 0), ("host_silent", 2, 1), ("start", 0, 1), ("xbar_replaced", 1, 0)];
        let counters = causes.counters();
        let found: Vec<_> = counters.iter().map(|c| (c.cause.as_str(), c.maps_ended, c.mappings)).collect();
        assert_eq!(found, expected);
    }
}
