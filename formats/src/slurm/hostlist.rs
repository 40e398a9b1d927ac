//! Names and lists of them, as Slurm's files have them.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::machine::Natural;

/// A name without what has a meaning in Slurm's files.
pub(super) fn clean(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    if name.is_empty() { "_".to_owned() } else { name.chars().map(allowed).collect() }
}

/// The most digits of a number in brackets.
const MOST_DIGITS: usize = 9;

/// Names as Slurm shortens them: `n[1-3,7]`, and `n[08-12]` where numbers are padded.
pub(super) fn hostlist(names: &BTreeSet<String>) -> String {
    let split =
        |name: &str| name.len() - name.bytes().rev().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
    let padded: BTreeSet<(&str, usize)> = names
        .iter()
        .map(|name| name.split_at(split(name)))
        .filter(|(_, digits)| digits.len() > 1 && digits.starts_with('0'))
        .map(|(prefix, digits)| (prefix, digits.len()))
        .collect();
    let mut all: BTreeMap<(&str, usize), BTreeSet<u32>> = BTreeMap::new();
    let mut plain = Vec::new();
    for name in names {
        let (prefix, digits) = name.split_at(split(name));
        match digits.parse::<u32>() {
            Ok(number) if !prefix.ends_with(|c: char| c.is_ascii_digit()) => {
                let width = if padded.contains(&(prefix, digits.len())) { digits.len() } else { 0 };
                all.entry((prefix, width)).or_default().insert(number);
            }
            _ => plain.push(name.clone()),
        }
    }
    let mut said: Vec<String> =
        all.iter().map(|(&(prefix, width), numbers)| ranges(prefix, width, numbers)).collect();
    said.append(&mut plain);
    said.sort_by_cached_key(|name| (Natural::of(name), name.clone()));
    said.join(",")
}

/// Numbers behind a prefix, in at least `width` digits.
fn ranges(prefix: &str, width: usize, numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    if let [(one, other)] = ranges[..]
        && one == other
    {
        return format!("{prefix}{one:0width$}");
    }
    let range = |&(first, last): &(u32, u32)| match first == last {
        true => format!("{first:0width$}"),
        false => format!("{first:0width$}-{last:0width$}"),
    };
    format!("{prefix}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The names that a list stands for.
    pub(in crate::slurm) fn expand(list: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut depth = 0;
        let parts = list.split(|c: char| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ',' && depth == 0
        });
        for part in parts.filter(|part| !part.is_empty()) {
            let Some((prefix, rest)) = part.split_once('[') else {
                names.insert(part.to_owned());
                continue;
            };
            for range in rest.trim_end_matches(']').split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let width = first.len();
                for number in first.parse::<u32>().unwrap()..=last.parse().unwrap() {
                    names.insert(format!("{prefix}{number:0width$}"));
                }
            }
        }
        names
    }

    proptest! {
        #[test]
        fn a_list_stands_for_the_names_that_it_is_of(
            names in prop::collection::btree_set("[a-c]{0,2}[0-9]{1,3}|[a-c]{1,2}|a-0[0-9]{9}", 1..30)
        ) {
            prop_assert_eq!(expand(&hostlist(&names)), names);
        }
    }
}
