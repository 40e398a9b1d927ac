//! Numbers and names in sentences.

/// A number and what it counts: `1 xbar`, `2 xbars`.
pub(crate) fn plural(count: impl TryInto<u64>, what: &str) -> String {
    counted(count, what, &format!("{what}s"))
}

/// A number and what it counts, where an `s` is not all that changes.
pub(crate) fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A node as a person finds it: by its name, and by its description if that says more.
pub(crate) fn node(name: &str, description: &str) -> String {
    let description: String = description.trim().chars().filter(|c| !c.is_control()).collect();
    if description.is_empty() || description == name {
        name.to_owned()
    } else {
        format!("{name} ('{description}')")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_from_many() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "hop")), ["0 hops", "1 hop", "2 hops"]);
        assert_eq!([1, 2].map(|count| counted(count, "entry", "entries")), ["1 entry", "2 entries"]);
    }

    #[test]
    fn a_description_is_told_if_it_says_more() {
        assert_eq!(node("leaf1", "leaf1"), "leaf1");
        assert_eq!(node("S-0002c9", " rack\u{1b} 4 "), "S-0002c9 ('rack 4')");
    }
}
