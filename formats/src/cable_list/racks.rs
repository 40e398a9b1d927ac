//! The racks that nodes stand in, where names tell them.
//!
//! In many halls a node is called by its rack and its number there: `a07n12`, `rack3-node4`, `r2c5-leaf1`. A name tells a rack if
//! something with a number stands before its last number, and that is a word for a rack or at most two letters: `rail1-leaf2` and
//! `pod3-spine1` tell none.

use std::collections::BTreeSet;

use mapper_fabric::machine;
use mapper_proto::map::Fabric;

/// Words for racks. Single letters and pairs of them are taken for racks, too.
const WORDS: [&str; 4] = ["rack", "cabinet", "cab", "bay"];
/// The most letters of a rack that is no such word.
const FEW_LETTERS: usize = 2;

/// A rack: what stands before its number, as a row, and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rack {
    row: String,
    number: u32,
}

/// The racks of hosts and xbars, as far as names tell them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Racks {
    pub(super) hosts: Vec<Option<Rack>>,
    pub(super) xbars: Vec<Option<Rack>>,
}

impl Rack {
    fn of(name: &str) -> Option<Self> {
        let before_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if before_number.len() == name.len() {
            return None;
        }
        // What is between both numbers is what the node is, as `n` or `-leaf`.
        let rack = before_number.trim_end_matches(|c: char| !c.is_ascii_digit());
        let row = rack.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = rack[row.len()..].parse().ok()?;
        let letters = row.chars().rev().take_while(char::is_ascii_alphabetic).count();
        let word = row[row.len() - letters..].to_ascii_lowercase();
        let is_rack = WORDS.contains(&word.as_str()) || (1..=FEW_LETTERS).contains(&letters);
        is_rack.then(|| Self { row: row.to_ascii_lowercase(), number })
    }

    /// The class of a cable between two racks, of those that are about as long.
    pub(super) fn class(&self, other: &Self) -> String {
        if self.row != other.row {
            return "between rows".to_owned();
        }
        match self.number.abs_diff(other.number) {
            0 => "within a rack".to_owned(),
            1 => "1 rack apart".to_owned(),
            2 => "2 racks apart".to_owned(),
            more => {
                let most = more.next_power_of_two();
                format!("{} to {most} racks apart", most / 2 + 1)
            }
        }
    }
}

impl Racks {
    /// The racks of a fabric; none unless names really tell them: most hosts and some xbars must be in one, in some the same, and
    /// there must be several.
    pub(super) fn of(fabric: &Fabric) -> Self {
        let hosts: Vec<Option<Rack>> =
            fabric.hosts.iter().map(|label| Rack::of(&machine::interface(label).machine)).collect();
        let xbars: Vec<Option<Rack>> =
            fabric.xbars.iter().map(|label| Rack::of(&machine::xbar(label))).collect();
        let of_hosts: BTreeSet<&Rack> = hosts.iter().flatten().collect();
        let is_told = 2 * hosts.iter().flatten().count() > hosts.len()
            && of_hosts.len() > 1
            && xbars.iter().flatten().any(|rack| of_hosts.contains(rack));
        if is_told {
            return Self { hosts, xbars };
        }
        Self { hosts: vec![None; fabric.hosts.len()], xbars: vec![None; fabric.xbars.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_are_told_by_names_that_begin_with_them() {
        let rack = |name: &str| Rack::of(name).map(|rack| (rack.row, rack.number));
        for (name, row, number) in [
            ("a07n12", "a", 7),
            ("Rack3-node4", "rack", 3),
            ("r2c5-leaf1", "r2c", 5),
            ("dc1-b12-u03", "dc1-b", 12),
            ("cab4_sw1", "cab", 4),
        ] {
            assert_eq!(rack(name), Some((row.to_owned(), number)), "{name}");
        }
        for name in
            ["h12", "leaf3", "rail1-leaf2", "pod3-spine1", "group2-xbar7", "7", "", "node", "a99999999999n1"]
        {
            assert_eq!(rack(name), None, "{name}");
        }
    }

    #[test]
    fn cables_about_as_long_have_one_class() {
        let rack = |row: &str, number| Rack { row: row.to_owned(), number };
        let class = |number| rack("a", 1).class(&rack("a", number));
        assert_eq!(class(1), "within a rack");
        assert_eq!([class(2), class(3)], ["1 rack apart", "2 racks apart"]);
        assert_eq!([class(4), class(5)], ["3 to 4 racks apart", "3 to 4 racks apart"]);
        assert_eq!([class(6), class(9)], ["5 to 8 racks apart", "5 to 8 racks apart"]);
        assert_eq!(rack("a", 1).class(&rack("b", 1)), "between rows");
    }
}
