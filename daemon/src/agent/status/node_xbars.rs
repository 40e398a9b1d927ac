//! What people call the xbars of a map.

use mapper_proto::Mac;
use mapper_proto::map::Map;

use mapper_proto::crossbar_tag;

/// For each xbar of a map the host that it is called by: the one whose node it is, or else the only one that is cabled to it.
pub fn naming_hosts(map: &Map) -> Vec<Option<Mac>> {
    let mut hosts = vec![Vec::new(); map.xbars.len()];
    for host in &map.hosts {
        if let Some(hosts) = host.at.and_then(|at| hosts.get_mut(at.xbar as usize)) {
            hosts.push(host.mac);
        }
    }
    let tags = map.xbars.iter().map(|xbar| xbar.tag);
    tags.zip(hosts).map(|(tag, hosts)| crossbar_tag::naming_host(tag, hosts)).collect()
}

/// An xbar in words: by its tag, or else by its number in the map, after the name of the host that it is called by, if that is
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
    fn an_xbar_is_called_by_the_host_whose_node_it_is_or_by_its_only_one() {
        let mut map = mapper_fabric::generate("ring:n=3,hosts=1").unwrap().map;
        let [a, b, c] = [0, 1, 2].map(|host| Some(map.hosts[host].mac));
        assert_eq!(naming_hosts(&map), [a, b, c], "each alone at a crossbar of its own");
        map.hosts[1].at = map.hosts[0].at;
        assert_eq!(naming_hosts(&map), [None, None, c]);
        crate::agent::crossbar_tag::make_nodes(&mut map);
        assert_eq!(naming_hosts(&map), [a, None, c], "a host is cabled to the node of another");
    }

    #[test]
    fn an_xbar_is_called_by_its_host_and_its_tag() {
        assert_eq!(xbar_in_words(3, None, None), "xbar number 3 of the map");
        assert_eq!(xbar_in_words(3, Some("0x0a"), None), "xbar 0x0a");
        assert_eq!(xbar_in_words(3, Some("0x0a"), Some("n\u{1b}")), "the xbar of n\\u{1b} (0x0a)");
    }
}
