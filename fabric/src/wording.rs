//! Numbers and names in sentences.

/// A number and what it counts: `1 xbar`, `2 xbars`.
pub fn plural(count: impl TryInto<u64>, what: &str) -> String {
    counted(count, what, &format!("{what}s"))
}

/// A number and what it counts, where an `s` is not all that changes.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

/// An error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The most names that a list for a person shows.
pub const SHOWN_NAMES: usize = 8;

/// The first [`SHOWN_NAMES`] of `count` names, and dots if there are more. `names` need not hold more than
/// are shown.
pub fn first_of<T: AsRef<str>>(names: &[T], count: usize) -> String {
    let shown: Vec<_> = names.iter().take(SHOWN_NAMES).map(T::as_ref).collect();
    let more = if shown.len() < count { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_from_many() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "hop")), ["0 hops", "1 hop", "2 hops"]);
        assert_eq!(first_of(&["a", "b"], 2), "a, b");
        assert_eq!(first_of(&["a"; 9], 9), "a, a, a, a, a, a, a, a, ..");
        assert_eq!([1, 2].map(|count| counted(count, "entry", "entries")), ["1 entry", "2 entries"]);
    }
}
