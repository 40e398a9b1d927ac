//! Recognition of shapes about which a user states something.

use super::*;

#[test]
fn what_is_stated_must_fit_what_is_found() {
    let problem = |spec: &str, statement: TorusStatement| {
        recognise(&topology(&map(spec)), &statement)
            .map_or_else(|error| error.to_string(), |_| "good".to_owned())
    };
    let datelines = |list: &[u8]| TorusStatement { datelines: Some(list.to_vec()), ..Default::default() };
    assert_eq!(problem("torus:x=4,y=3", datelines(&[3, 0])), "good");
    assert_eq!(problem("mesh:x=4,y=3", datelines(&[0, 0])), "good", "0 keeps the place of a line");
    let written_at = [("datelines", "t.toml:3".to_owned())].into();
    assert_eq!(
        problem("mesh:x=4,y=3", TorusStatement { written_at, ..datelines(&[0, 1]) }),
        "t.toml:3: `datelines`: 1 is stated for y, but y is a line, and a line has no dateline; give 0 there"
    );
    assert_eq!(
        problem("torus:x=4,y=3", datelines(&[4, 0])),
        "`datelines`: there is no coordinate 4 where the size is 4; expected 0 to 3"
    );
    assert_eq!(
        problem("torus:x=4,y=3", datelines(&[1, 1, 1])),
        "`datelines`: it has 3 entries, but the fabric is 4 (ring) x 3 (ring): one for each dimension"
    );
    let regions = TorusStatement { regions: Some(vec![2]), ..Default::default() };
    assert!(problem("torus:x=4,y=3", regions).starts_with("`regions`: it has 1 entry"));
    let small = TorusStatement { sizes: Some(vec![3, 3]), ..Default::default() };
    assert_eq!(
        problem("torus:x=4,y=3", small),
        "the sizes that are stated make 9 places, and there are 12 xbars; each needs one"
    );
}

#[test]
fn a_statement_wins() {
    let square = map("ring:n=4");
    let stated = |statement: TorusStatement| recognise(&topology(&square), &statement);
    let sizes = |sizes: &[u8]| TorusStatement { sizes: Some(sizes.to_vec()), ..TorusStatement::default() };
    assert_eq!(stated(sizes(&[2, 2])).unwrap().dimensions(), [LINE(2); 2]);
    assert_eq!(stated(sizes(&[4])).unwrap().dimensions(), [RING(4)]);
    let grid = stated(TorusStatement { origin: Some(2), ..sizes(&[4]) }).unwrap();
    assert_eq!(grid.coordinates(2), [0; 3]);
    assert_eq!(stated(sizes(&[3])), Err(NoTorus::Places { places: 3, xbars: 4 }));
    let line = TorusStatement { rings: Some(vec![false]), ..sizes(&[4]) };
    assert!(matches!(stated(line), Err(NoTorus::Chord { .. })), "a ring has a cable too many for a line");
    let far = TorusStatement { origin: Some(9), ..TorusStatement::default() };
    assert_eq!(stated(far), Err(NoTorus::NoOrigin { origin: 9, xbars: 4 }));
    let inside = TorusStatement { origin: Some(1), ..TorusStatement::default() };
    let error = recognise(&topology(&map("mesh:x=4,y=2")), &inside).unwrap_err();
    assert!(matches!(error, NoTorus::OriginInLine { origin: 1, dimension: 0, .. }), "{error}");
}

#[test]
fn stated_ports_lead_where_they_are_stated_to() {
    // The dimension that the generator calls x is stated as y, and counted down.
    let torus = topology(&map("torus:x=5,y=5,z=3"));
    let ports = [3, 4, 2, 1, 5, 6].map(|port| PortSet::from_iter([port]));
    let statement = TorusStatement { ports, ..TorusStatement::default() };
    let grid = recognise(&torus, &statement).unwrap();
    assert_eq!(grid.coordinates(1), [0, 4, 0], "{:?}", grid.dimensions());
    assert_eq!(grid.coordinates(5), [1, 0, 0]);
    for xbar in 0..75 {
        for (i, ports) in statement.ports.iter().enumerate() {
            let way = Sense::BOTH[i % 2];
            for &channel in grid.channels(xbar, i / 2, way) {
                assert!(ports.contains(torus.tail(channel).port));
            }
        }
    }
    let ports = [1, 2, 3, 4, 5, 7].map(|port| PortSet::from_iter([port]));
    assert!(recognise(&torus, &TorusStatement { ports, ..statement.clone() }).is_ok(), "6 may lead anywhere");
    let ports = [1, 3, 2, 4, 5, 6].map(|port| PortSet::from_iter([port]));
    let error = recognise(&torus, &TorusStatement { ports, ..statement }).unwrap_err();
    assert!(matches!(error, NoTorus::Directions { .. }), "{error}");
}
