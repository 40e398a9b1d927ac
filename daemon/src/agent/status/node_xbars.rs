//! Which xbars are nodes' own, and what people call these.

use mapper_proto::Mac;
use mapper_proto::map::Map;

/// The only host of each xbar of a map, as that of a node; `None` for an xbar that has no host or several.
pub fn only_hosts(map: &Map) -> Vec<Option<Mac>> {
    let mut hosts: Vec<(usize, Option<Mac>)> = vec![(0, None); map.xbars.len()];
    for host in &map.hosts {
        if let Some((count, first)) = host.at.and_then(|at| hosts.get_mut(at.xbar as usize)) {
            *count += 1;
            first.get_or_insert(host.mac);
        }
    }
    hosts.into_iter().map(|(count, first)| first.filter(|_| count == 1)).collect()
}

/// An xbar in words: by its tag, or else by its number in the map, after the name of its only host if that is known. Two hosts
/// may have one name, so the tag is said in any case.
pub fn xbar_in_words(xbar: u32, tag: Option<&str>, host_name: Option<&str>) -> String {
    let known_by = tag.map_or_else(|| format!("number {xbar} of the map"), str::to_owned);
    match host_name {
        // The name came from another machine, and may contain control sequences for a terminal.
        Some(name) => format!("the xbar of {} ({known_by})", name.escape_debug()),
        None => format!("xbar {known_by}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xbar_with_one_host_is_that_hosts() {
        let mut map = mapper_fabric::generate("ring:n=3,hosts=1").unwrap().map;
        map.hosts[1].at = map.hosts[0].at;
        let only = only_hosts(&map);
        let at = |host: usize| only[map.hosts[host].at.unwrap().xbar as usize];
        assert_eq!((at(0), at(2)), (None, Some(map.hosts[2].mac)));
        assert_eq!(only.iter().flatten().count(), 1, "the xbar that the host has left has none");
    }

    #[test]
    fn an_xbar_is_called_by_its_host_and_its_tag() {
        assert_eq!(xbar_in_words(3, None, None), "xbar number 3 of the map");
        assert_eq!(xbar_in_words(3, Some("0x0a"), None), "xbar 0x0a");
        assert_eq!(xbar_in_words(3, Some("0x0a"), Some("n\u{1b}")), "the xbar of n\\u{1b} (0x0a)");
    }
}
