//! Which xbars are nodes' own, and what people call these.

use mapper_proto::Mac;
use mapper_proto::map::Map;

use crate::agent::crossbar_tag;

/// For each xbar of a map the host whose node it is; `None` for an xbar that is no node's.
pub fn node_hosts(map: &Map) -> Vec<Option<Mac>> {
    let mut hosts = vec![None; map.xbars.len()];
    for host in &map.hosts {
        let Some(xbar) = host.at.map(|at| at.xbar as usize) else { continue };
        let tag = map.xbars.get(xbar).and_then(|xbar| xbar.tag);
        if tag.is_some_and(|tag| crossbar_tag::is_of(tag, host.mac)) {
            hosts[xbar] = Some(host.mac);
        }
    }
    hosts
}

/// An xbar in words: by its tag, or else by its number in the map, after the name of the host whose node it is, if that is
/// known. Two hosts may have one name, so the tag is said in any case.
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
    fn an_xbar_is_a_nodes_if_its_tag_says_so_and_not_if_it_has_one_host() {
        let mut map = mapper_fabric::generate("ring:n=3,hosts=1").unwrap().map;
        assert_eq!(node_hosts(&map), [None; 3], "three hosts, each alone at a tagged xbar");
        crossbar_tag::make_nodes(&mut map);
        let [a, b, c] = [0, 1, 2].map(|host| Some(map.hosts[host].mac));
        assert_eq!(node_hosts(&map), [a, b, c]);
        map.hosts[1].at = map.hosts[0].at;
        assert_eq!(node_hosts(&map), [a, None, c], "a host is cabled to the node of another");
        map.xbars[2].tag = None;
        assert_eq!(node_hosts(&map), [a, None, None]);
    }

    #[test]
    fn an_xbar_is_called_by_its_host_and_its_tag() {
        assert_eq!(xbar_in_words(3, None, None), "xbar number 3 of the map");
        assert_eq!(xbar_in_words(3, Some("0x0a"), None), "xbar 0x0a");
        assert_eq!(xbar_in_words(3, Some("0x0a"), Some("n\u{1b}")), "the xbar of n\\u{1b} (0x0a)");
    }
}
