//! The file of `addr_preload acm_hosts`: whose GID belongs to a name or an address. A line is `name-or-IP GID`.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::{BadLine, address, lines, quoted};
use crate::wire::Address;

/// The most lines of such a file.
const MOST: usize = 1 << 20;

/// Reads the file. Names are as [`Address::into_key`] writes them; of a name that stands twice the last line counts.
///
/// # Errors
/// If a line is none of its kind.
pub fn parse(text: &str) -> Result<BTreeMap<Address, Ipv6Addr>, BadLine> {
    let mut all = BTreeMap::new();
    for (line, words) in lines(text) {
        let [name, gid] = words[..] else {
            return Err(BadLine::new(
                line,
                format!("expected `name-or-address GID`, found {} words", words.len()),
            ));
        };
        let gid = gid.parse().map_err(|_| {
            BadLine::new(line, format!("{} is no GID, which is written as an address of IPv6", quoted(gid)))
        })?;
        if all.len() == MOST {
            return Err(BadLine::new(line, format!("more than {MOST} names")));
        }
        all.insert(address(name).into_key(), gid);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_have_gids() {
        let all = parse("# hosts\nNode1 fe80::1\n10.0.0.2 fe80::2 # second\nfd00::3 fe80::3\n").unwrap();
        let shown: Vec<_> = all.iter().map(|(name, gid)| format!("{name} {gid}")).collect();
        assert_eq!(shown, ["node1 fe80::1", "10.0.0.2 fe80::2", "fd00::3 fe80::3"]);
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said("a\n"), "line 1: expected `name-or-address GID`, found 1 words");
        assert!(said("\na 1.2.3.4").starts_with("line 2: `1.2.3.4` is no GID"));
    }
}
