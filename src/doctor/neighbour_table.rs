//! Whether the kernel's tables of neighbours have room for all hosts of the fabric.

use mapper_daemon::agent::status::Board;
use mapper_fabric::wording::plural;

use super::Check;

/// How many entries the tables of IPv4 and IPv6 may have each, by their names in `/proc/sys/net`. Only the machine itself
/// shows that, no namespace of a container does.
pub(super) fn limits() -> Vec<(&'static str, u64)> {
    let limit = |family: &'static str| {
        let text =
            std::fs::read_to_string(format!("/proc/sys/net/{family}/neigh/default/gc_thresh3")).ok()?;
        Some((family, text.trim().parse().ok()?))
    };
    ["ipv4", "ipv6"].into_iter().filter_map(limit).collect()
}

/// Warns if a table has no room for an entry for each host of the fabric, and as many for all others: in a full table
/// nobody is found any more, and only the kernel's log tells why.
pub(super) fn check(board: &Board, limits: &[(&str, u64)]) -> Option<Check> {
    let hosts = board.hosts as u64;
    let full = limits.iter().filter(|(_, limit)| board.tap.is_some() && 2 * hosts > *limit);
    let commands: Vec<_> = full
        .map(|(family, _)| {
            let setting = |which: u8, entries: u64| {
                format!("`sysctl -w net.{family}.neigh.default.gc_thresh{which}={entries}`")
            };
            [setting(3, 4 * hosts), setting(2, 2 * hosts)].join(", ")
        })
        .collect();
    let what = || {
        let fewest = limits.iter().map(|(_, limit)| *limit).min().unwrap_or_default();
        format!(
            "the kernel keeps at most {fewest} neighbours, for a fabric of {} and all other networks",
            plural(board.hosts, "host")
        )
    };
    (!commands.is_empty()).then(|| Check::warning("neighbours", what(), commands.join(", ")))
}

#[cfg(test)]
mod tests {
    use mapper_daemon::agent::status::Tap;

    use super::*;

    #[test]
    fn a_table_with_too_little_room_for_a_fabric_with_ip_is_warned_of() {
        let board = |hosts: usize, tap: Option<Tap>| Board { hosts, tap, ..Board::silent(0, String::new()) };
        let tap = || Some(Tap::default());
        let limits = [("ipv4", 1024), ("ipv6", 4096)];
        assert!(check(&board(512, tap()), &limits).is_none());
        assert!(check(&board(10_000, None), &limits).is_none(), "no IP goes over the fabric");
        assert!(check(&board(10_000, tap()), &[]).is_none(), "the limits are not to be seen here");
        let warning = check(&board(1000, tap()), &limits).unwrap();
        assert!(warning.what.contains("at most 1024 neighbours, for a fabric of 1000 hosts"), "{warning:?}");
        assert_eq!(
            warning.fix.unwrap(),
            "`sysctl -w net.ipv4.neigh.default.gc_thresh3=4000`, `sysctl -w net.ipv4.neigh.default.gc_thresh2=2000`"
        );
    }
}
