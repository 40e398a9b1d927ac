//! What options ask for, and what is refused.

use mapper_fabric::generate;

use super::*;

fn change(fabric: &Fabric, cut: &[&str], remove: &[&str], add: &[&str]) -> Result<Change, ChangeError> {
    let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    Change::of_options(fabric, &owned(cut), &owned(remove), &owned(add))
}

#[test]
fn a_change_is_made_of_names_and_renumbers_what_stays() {
    let fabric = generate("ring:n=4,hosts=1").unwrap();
    let cable = fabric.map.cables[0];
    let (a, b) = (&fabric.xbars[cable.a.xbar as usize].name, &fabric.xbars[cable.b.xbar as usize].name);
    let end = format!("{a}:{}", cable.a.port);
    let cut = change(&fabric, &[&end], &[], &[]).unwrap();
    assert_eq!(cut.cables, BTreeSet::from([0]));
    let back = format!("{a}:{},{b}:{}", cable.a.port, cable.b.port);
    let mended = change(&fabric, &[&end], &[], &[&back]).unwrap().apply(&fabric);
    assert_eq!(mended.fabric, fabric, "what is cut and added again is as before");
    let removed = change(&fabric, &["h2"], &[a, "h3"], &[]).unwrap().apply(&fabric);
    assert_eq!((removed.fabric.map.xbars.len(), removed.fabric.map.cables.len()), (3, 2));
    assert_eq!(removed.xbars[0], None);
    assert_eq!(removed.fabric.xbars[0], fabric.xbars[1]);
    assert_eq!(removed.fabric.map.hosts.iter().filter(|host| host.at.is_some()).count(), 1);
    assert!(change(&fabric, &[], &[], &[]).unwrap().is_empty());
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let fabric = generate("ring:n=4,hosts=1").unwrap();
    let wrong = |cut: &[&str], remove: &[&str], add: &[&str]| {
        change(&fabric, cut, remove, add).unwrap_err().to_string()
    };
    let cable = fabric.map.cables[0];
    let name = &fabric.xbars[cable.a.xbar as usize].name;
    let end = format!("{name}:{}", cable.a.port);
    for (said, expected) in [
        (wrong(&["nobody:1"], &[], &[]), "nothing in the fabric is called `nobody`"),
        (wrong(&[name], &[], &[]), "is no port of an xbar"),
        (wrong(&[&format!("{name}:200")], &[], &[]), "no cable is in"),
        (wrong(&[&format!("{name}:255")], &[], &[]), "is no port of an xbar"),
        (wrong(&[], &["x9"], &[]), "--remove x9: nothing"),
        (wrong(&[], &[], &[&end]), "name both ends"),
        (wrong(&[], &[], &[&format!("h1,{end}")]), "a cable is in h1 already"),
        (wrong(&["h1"], &[], &[&format!("h1,{end}")]), "already; cut it first"),
        (wrong(&[], &[name], &[&format!("h1,{end}")]), "is removed"),
        (wrong(&["h1", "h2"], &[], &["h1,h2"]), "at least one end"),
        (wrong(&[&end], &[], &[&format!("{end},{end}")]), "both ends are "),
        (wrong(&["h1:200"], &[], &[]), "--cut h1:200: h1 is port 1 of its machine"),
        (wrong(&["h1:0"], &[], &[]), "h1 is port 1 of its machine"),
        (wrong(&["h1"], &[], &[&format!("h1,{name}:200")]), "is not there; the xbar has"),
    ] {
        assert!(said.contains(expected), "{said}");
    }
}
#[test]
fn ports_are_added_only_on_the_side_from_which_they_count() {
    let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
    let refusal =
        |fabric: &Fabric, add: &str| change(fabric, &["h1:1"], &[], &[add]).unwrap_err().to_string();
    let name = fabric.xbars[0].name.clone();
    let told = refusal(&fabric, &format!("{name}:0,h1"));
    assert!(told.ends_with("port 0 is not there; the ports of the xbar count from 1 to 4"), "{told}");
    assert!(change(&fabric, &["h1"], &[], &[&format!("{name}:1,h1:1")]).is_ok());
    for cable in &mut fabric.map.cables {
        (cable.a.port, cable.b.port) = (cable.a.port - 1, cable.b.port - 1);
    }
    fabric.map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(|at| at.port -= 1);
    let told = refusal(&fabric, &format!("{name}:4,h1"));
    assert!(told.ends_with("port 4 is not there; the ports of the xbar count from 0 to 3"), "{told}");
    assert!(change(&fabric, &["h1"], &[], &[&format!("{name}:0,h1")]).is_ok());
    // Nothing shows how ports count where neither the first nor the last is taken, but what is added does.
    let open = generate("torus:x=3,hosts=1,ports=8").unwrap();
    let name = &open.xbars[0].name;
    assert!(change(&open, &["h1"], &[], &[&format!("{name}:0,h1")]).is_ok());
    let told = refusal(&open, &format!("{name}:0,{name}:8"));
    assert!(told.contains("port 0 is not there"), "{told}");
}
