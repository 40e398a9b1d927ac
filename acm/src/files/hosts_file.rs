//! The file of `addr_preload acm_hosts`: whose GID belongs to a name or an address. A line is `name-or-IP GID`.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::{BadLine, address, lines, quoted};
use crate::wire::Address;

/// The most lines of such a file.
const MOST: usize = 1 << 20;

/// The GIDs that a file tells of names and addresses. A name with several is nobody's, as nobody knows which of them is meant.
pub type Gids = BTreeMap<Address, Vec<Ipv6Addr>>;

/// Reads the file. Names are as [`Address::into_key`] writes them, and have the GIDs of all their lines, each once.
///
/// # Errors
/// If a line is none of its kind.
pub fn parse(text: &str) -> Result<Gids, BadLine> {
    let mut all = Gids::new();
    let mut count = 0;
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
        if count == MOST {
            return Err(BadLine::new(line, format!("more than {MOST} GIDs")));
        }
        let gids = all.entry(address(name).into_key()).or_default();
        if !gids.contains(&gid) {
            gids.push(gid);
            count += 1;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_have_gids() {
        let text = "# hosts\nNode1 fe80::1\n10.0.0.2 fe80::2 # second\nfd00::3 fe80::3\nnode1 fe80::4\nnode1 fe80::1\n";
        let all = parse(text).unwrap();
        let shown: Vec<_> = all.iter().map(|(name, gids)| format!("{name} {gids:?}")).collect();
        assert_eq!(shown, ["node1 [fe80::1, fe80::4]", "10.0.0.2 [fe80::2]", "fd00::3 [fe80::3]"]);
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said("a\n"), "line 1: expected `name-or-address GID`, found 1 words");
        assert!(said("\na 1.2.3.4").starts_with("line 2: `1.2.3.4` is no GID"));
    }
}
