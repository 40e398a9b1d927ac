//! The order that people expect of names: `leaf2` before `leaf10`.

use std::cmp::Ordering;

/// The place of each name in natural order; equal names stand in the order given.
pub(super) fn ranks(names: &[String]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_by(|&a, &b| compare(&names[a as usize], &names[b as usize]));
    let mut ranks = vec![0; names.len()];
    for (rank, &index) in (0..).zip(&order) {
        ranks[index as usize] = rank;
    }
    ranks
}

/// Compares names piece by piece: digits as numbers, all else as text.
fn compare(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, rest_a) = number(a);
                let (y, rest_b) = number(b);
                // A longer number without leading zeros is larger.
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x != y => return x.cmp(y),
            _ => (a, b) = (&a[1..], &b[1..]),
        }
    }
}

/// The digits that a text begins with, without leading zeros, and the rest.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    (&digits[zeros..], rest)
}

/// What all of several names begin with, up to the last letter or digit of it that ends a word; nothing if that is too
/// short to tell anything.
pub(super) fn common_name<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<String> {
    let first = names.next()?;
    let (mut common, mut count) = (first, 1);
    for name in names {
        count += 1;
        let same = common.char_indices().zip(name.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(common.len().min(name.len()), |((at, _), _)| at);
        common = common.get(..end)?;
    }
    // What ends within a word is no name: `rail1-leaf1` and `rail1-leaf2` have `rail1` in common.
    let end = common.rfind(['-', '_', '.', '/', ' ', ':'])?;
    let name = common[..end].trim();
    (count > 1 && name.len() > 1).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let names = ["leaf10", "leaf9", "leaf2-b", "leaf02-a", "spine1", "", "leaf"].map(str::to_owned);
        let ranks = ranks(&names);
        assert_eq!(ranks, [5, 4, 3, 2, 6, 0, 1]);
    }

    #[test]
    fn parts_are_called_what_their_xbars_begin_with() {
        let name = |names: &[&str]| common_name(names.iter().copied());
        assert_eq!(name(&["rail1-leaf1", "rail1-leaf2", "rail1-spine1"]).as_deref(), Some("rail1"));
        assert_eq!(name(&["leaf1", "leaf2"]), None);
        assert_eq!(name(&["Mäuse sw1", "Mäuse sw2"]).as_deref(), Some("Mäuse"));
        assert_eq!(name(&["ä", "ö"]), None);
        assert_eq!(name(&["alone-1"]), None);
    }
}
