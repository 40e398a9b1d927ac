//! `ibacm_addr.cfg`: names of this machine's ports. A line is `name device port pkey`.

use super::{BadLine, address, lines, quoted};
use crate::fabric::DEFAULT_PKEY;
use crate::wire::Address;

/// The most lines of such a file: a machine has a few ports.
const MOST: usize = 4096;

/// A name or an address of a port of this machine, in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEndpoint {
    /// The name or the address.
    pub address: Address,
    /// The device: the interface that an agent is at.
    pub device: String,
    /// The number of the port.
    pub port: u8,
    /// The partition.
    pub pkey: u16,
}

/// Reads the file.
///
/// # Errors
/// If a line is none of its kind.
pub fn parse(text: &str) -> Result<Vec<NamedEndpoint>, BadLine> {
    let mut all = Vec::new();
    for (line, words) in lines(text) {
        let [name, device, port, pkey] = words[..] else {
            return Err(BadLine::new(
                line,
                format!("expected `name device port pkey`, found {} words", words.len()),
            ));
        };
        let port = port.parse().ok().filter(|&port| port > 0);
        let port = port.ok_or_else(|| {
            BadLine::new(line, format!("port {} is no number from 1 to 255", quoted(words[2])))
        })?;
        if all.len() == MOST {
            return Err(BadLine::new(line, format!("more than {MOST} addresses, which no machine has")));
        }
        all.push(NamedEndpoint {
            address: address(name),
            device: device.to_owned(),
            port,
            pkey: partition(pkey).ok_or_else(|| {
                let what =
                    format!("pkey {} is neither `default` nor up to four hexadecimal digits", quoted(pkey));
                BadLine::new(line, what)
            })?,
        });
    }
    Ok(all)
}

/// A partition, as `default` or in hexadecimal digits.
fn partition(word: &str) -> Option<u16> {
    if word.eq_ignore_ascii_case("default") {
        return Some(DEFAULT_PKEY);
    }
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    u16::from_str_radix(digits, 16).ok().filter(|&pkey| pkey != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_names_a_port() {
        let text =
            "# comment\n\nnode31 eth0 1 default\nnode31-1 eth0 2 0x00FF # more\n10.0.0.1 eth1 1 8001\n";
        let all = parse(text).unwrap();
        let shown: Vec<_> = all.iter().map(|it| (it.address.to_string(), it.port, it.pkey)).collect();
        let [a, b, c] = ["node31", "node31-1", "10.0.0.1"].map(str::to_owned);
        assert_eq!(shown, [(a, 1, 0xffff), (b, 2, 0xff), (c, 1, 0x8001)]);
        assert!(matches!(all[2].address, Address::V4(_)) && all[2].device == "eth1");
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, said) in [
            ("a b 1", "line 1: expected `name device port pkey`, found 3 words"),
            ("\na b 0 default", "line 2: port `0` is no number from 1 to 255"),
            ("a b 1 x\u{1b}", "line 1: pkey `x\u{fffd}` is neither"),
            ("a b 1 0", "line 1: pkey `0` is neither"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let error = parse(&"a b 1 default\n".repeat(MOST + 1)).unwrap_err();
        assert_eq!(error.line, MOST + 1);
    }
}
