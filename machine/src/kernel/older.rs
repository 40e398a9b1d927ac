//! What versions of this program left that led IPv4 packets which are too long by a rule and a table of their own. None of
//! it is among the objects of today, so whoever compares these with what is there would never take it away.

use mapper_fib::Table;
use mapper_fib::object::PROTOCOL;

use super::{
    AF_INET, Kernel, KernelError, RTM_DELROUTE, RTM_DELRULE, RTM_GETROUTE, RTM_GETRULE, route, rule,
};
use crate::netlink::message::attributes;

impl Kernel {
    /// Takes away the rules of IPv4 that have our protocol number, and such routes of the table that they led to.
    /// A run of an older version that crashed leaves them. Returns how many there were.
    ///
    /// # Errors
    /// If the kernel does not answer, or keeps one of them.
    pub fn remove_what_older_versions_left(&mut self) -> Result<usize, KernelError> {
        let mut request = [0; rule::FIXED_BYTES];
        request[0] = AF_INET;
        let rules = self.ours(RTM_GETRULE, &request, |body| rule::protocol(body) == Some(PROTOCOL))?;
        for body in &rules {
            let (fixed, rest) = body.split_at(rule::FIXED_BYTES);
            // A rule is found by all that it says.
            self.remove(RTM_DELRULE, fixed, rest, "a rule of IPv4")?;
        }
        let is_old = |body: &[u8]| route::stands_in(body) == Some((PROTOCOL, Table::TooLong.number()));
        let routes = self.ours(RTM_GETROUTE, &route::fixed_of_all(AF_INET), is_old)?;
        for body in &routes {
            let (fixed, rest) = body.split_at(route::FIXED_BYTES);
            self.remove(RTM_DELROUTE, &route::fixed_to_remove_told(fixed), rest, "a route of IPv4")?;
        }
        Ok(rules.len() + routes.len())
    }

    /// The messages of a list that `is_ours` is true of.
    fn ours(
        &mut self,
        list: u16,
        request: &[u8],
        is_ours: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, KernelError> {
        let told = self.socket.dump(list, request, Vec::new, |found, message| {
            if is_ours(message.body) {
                found.push(message.body.to_vec());
            }
        });
        told.map_err(|source| KernelError::NoAnswer {
            doing: "reading what older versions left".to_owned(),
            source,
        })
    }

    fn remove(&mut self, kind: u16, fixed: &[u8], rest: &[u8], what: &str) -> Result<(), KernelError> {
        let removed = self.socket.carry_out(kind, 0, fixed, |inside| {
            attributes(rest).for_each(|(kind, value)| inside.put(kind, value));
        });
        removed.map_err(|source| KernelError::Refused {
            what: format!("to remove {what} that an older version left"),
            said: None,
            source,
        })
    }
}
