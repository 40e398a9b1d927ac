//! Into how many parts a fabric falls.

use mapper_proto::map::Fabric;

use crate::parts::Parts;

/// How many parts a fabric has that no cable joins. Each host without a cable is a part.
pub fn parts(fabric: &Fabric) -> usize {
    let map = &fabric.map;
    let mut parts = Parts::new(map.xbars.len());
    let joins = map.cables.iter().filter_map(|cable| parts.join(cable.a.xbar, cable.b.xbar)).count();
    map.xbars.len() - joins + fabric.isolated().len() + usize::from(fabric.face_to_face().is_some())
}

#[cfg(test)]
mod tests {
    use crate::generate;

    use super::*;

    #[test]
    fn a_tree_has_one_part() {
        let clos = generate("clos:hosts=1024,ports=16").unwrap();
        assert_eq!(parts(&clos), 1);
    }

    #[test]
    fn cut_fabrics_have_parts() {
        let mut ring = generate("ring:n=4").unwrap();
        ring.map.cables.truncate(2);
        ring.map.hosts[3].at = None;
        assert_eq!(parts(&ring), 3, "three xbars in a row, one alone, one host alone");
        ring.map.xbars.clear();
        ring.map.cables.clear();
        ring.map.hosts.truncate(2);
        ring.map.hosts.iter_mut().for_each(|host| host.at = None);
        assert_eq!(parts(&ring), 1, "a cable between two hosts");
        ring.hosts[1].uncabled = true;
        assert_eq!((parts(&ring), ring.isolated()), (2, vec![0, 1]), "two hosts and no cable");
    }
}
