//! What ports are called, and which numbers they have.

/// The number at the end of a name, and what stands before it.
pub(super) fn numbered(name: &str) -> Option<(&str, u64)> {
    let front = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((front, name[front.len()..].parse().ok()?))
}

/// The number of a port that says no more than a number: `7`, `Port 7`, `P7`.
pub(super) fn plain_number(name: &str) -> Option<u64> {
    let (front, number) = numbered(name)?;
    matches!(front.trim().to_ascii_lowercase().as_str(), "" | "port" | "p").then_some(number)
}

/// Whether a port is named as one of an adapter: `mlx5_0`, `HCA-1`, `ib0`, `ibp3s0f0`.
pub(super) fn is_adapter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let begins = ["mlx", "hca", "hfi", "ibp", "ibs", "qib", "bnxt", "cxi", "irdma"];
    let is_ib = name
        .strip_prefix("ib")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()) && !rest.is_empty());
    is_ib || begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether the name of a device says that it is a crossbar.
pub(super) fn is_name_of_xbar(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    let is_word =
        words.any(|word| matches!(word, "switch" | "leaf" | "spine" | "core" | "tor" | "sw" | "xbar"));
    // The names of NDT end with IB and a number.
    let front = name.trim_end_matches(|c: char| c.is_ascii_digit());
    is_word || front.len() < name.len() && front.ends_with("ib") && front.len() > 2
}
