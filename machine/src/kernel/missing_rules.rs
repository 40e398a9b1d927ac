//! Rules of routing that each machine begins with, and that somebody took away.

use super::foreign::no_answer;
use super::{AF_INET, AF_INET6, Kernel, KernelError, RTM_GETRULE, rule};
use crate::netlink::message::{attributes, u32_at};

/// A rule that each machine begins with, and that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingRule {
    /// The version of IP: 4 or 6.
    pub version: u8,
    /// The name of the table that it leads to: `local`, by which a machine knows its own addresses, or `main`.
    pub table: &'static str,
    /// Its priority.
    priority: u32,
}

impl MissingRule {
    /// The command that puts it back.
    pub fn command(&self) -> String {
        let Self { version, table, priority } = self;
        format!("ip -{version} rule add priority {priority} lookup {table}")
    }
}

impl Kernel {
    /// Which of the rules are gone that each machine begins with. Without them it knows none of its addresses, or no route.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn missing_rules(&mut self) -> Result<Vec<MissingRule>, KernelError> {
        /// The tables that a machine begins with, by number and name, and the priorities of the rules that lead there.
        const TABLES: [(u32, &str, u32); 2] = [(255, "local", 0), (254, "main", 32766)];
        let mut missing = Vec::new();
        for (version, family) in [(4, AF_INET), (6, AF_INET6)] {
            let asked = rule::fixed_of_all(family);
            let tables = self.socket.dump(RTM_GETRULE, &asked, Vec::new, |tables: &mut Vec<u32>, message| {
                tables.extend(table_of_rule(message.body));
            });
            let tables = match tables {
                Ok(tables) => tables,
                // A kernel without rules of this version looks its packets up in these tables all the same.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT)) => {
                    continue;
                }
                Err(source) => return Err(no_answer("reading rules", source)),
            };
            let gone = TABLES.iter().filter(|(number, ..)| !tables.contains(number));
            missing.extend(gone.map(|&(_, table, priority)| MissingRule { version, table, priority }));
        }
        Ok(missing)
    }
}

/// The number of the table that a rule leads to.
fn table_of_rule(body: &[u8]) -> Option<u32> {
    let told = attributes(body.get(rule::FIXED_BYTES..)?).find(|(kind, _)| *kind == rule::FRA_TABLE);
    told.map_or_else(|| body.get(4).copied().map(u32::from), |(_, value)| u32_at(value, 0))
}
