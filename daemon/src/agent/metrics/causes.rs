//! Why maps were given up and made, counted by kind.

use std::collections::BTreeMap;

use mapper_proto::agent::Cause;
use serde::{Deserialize, Serialize};

/// How often one kind of cause ended a map or led to a new mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CauseCounters {
    /// The name of the kind: [`Cause::name`].
    pub cause: String,
    /// How many maps it ended.
    pub maps_ended: u64,
    /// How many mappings this agent began because of it.
    pub mappings: u64,
}

/// Causes since the start of the daemon. Their number is bounded, whatever comes from the wire: there are at
/// most as many as [`Cause`] has names.
#[derive(Debug, Default)]
pub struct Causes {
    kinds: BTreeMap<&'static str, CauseCounters>,
}

impl Causes {
    /// Counts a map that was given up because of this.
    pub fn map_ended(&mut self, cause: &Cause) {
        self.entry(cause).maps_ended += 1;
    }

    /// Counts a mapping that began because of this.
    pub fn mapping_began(&mut self, cause: &Cause) {
        self.entry(cause).mappings += 1;
    }

    /// The counters of all kinds of causes, in the order of their names.
    pub fn counters(&self) -> Vec<CauseCounters> {
        self.kinds.values().cloned().collect()
    }

    fn entry(&mut self, cause: &Cause) -> &mut CauseCounters {
        let name = cause.name();
        let fresh = || CauseCounters { cause: name.to_owned(), ..CauseCounters::default() };
        self.kinds.entry(name).or_insert_with(fresh)
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
