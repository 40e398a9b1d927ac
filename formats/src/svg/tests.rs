//! What every drawing keeps to, whatever the fabric.

use mapper_fabric::generate;

use super::*;

type Point = (f64, f64);

/// A box: its xbar's name, its upper left corner, its lower right corner.
struct Xbar {
    name: String,
    from: Point,
    to: Point,
}

/// The value of an attribute of an element.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
    rest.split_once('"').unwrap().0
}

fn number(element: &str, name: &str) -> f64 {
    attribute(element, name).parse().unwrap()
}

fn boxes(svg: &str) -> Vec<Xbar> {
    let groups = svg.split("<g><title>").skip(1);
    let xbar = |group: &str| {
        let rect = group.split("<rect").nth(1).unwrap();
        let from = (number(rect, "x"), number(rect, "y"));
        let to = (from.0 + number(rect, "width"), from.1 + number(rect, "height"));
        Xbar { name: group.split(':').next().unwrap().to_owned(), from, to }
    };
    groups.map(xbar).collect()
}

/// Points along a path of lines and curves.
fn along(path: &str) -> Vec<Point> {
    let mut words = path.split(' ');
    let mut points: Vec<Point> = Vec::new();
    let mut command = "M";
    let mut pending: Vec<Point> = Vec::new();
    while let Some(word) = words.next() {
        if ["M", "L", "Q", "C"].contains(&word) {
            command = word;
            continue;
        }
        pending.push((word.parse().unwrap(), words.next().unwrap().parse().unwrap()));
        let needed = match command {
            "Q" => 2,
            "C" => 3,
            _ => 1,
        };
        if pending.len() < needed {
            continue;
        }
        let Some(&last) = points.last() else {
            points.append(&mut pending);
            continue;
        };
        let mut control = vec![last];
        control.append(&mut pending);
        for step in 1..=400 {
            // This is de Casteljau's construction: the ways between control points are halved again and
            // again.
            let part = f64::from(step) / 400.0;
            let mut level = control.clone();
            while level.len() > 1 {
                let between = |pair: &[Point]| {
                    (pair[0].0 + (pair[1].0 - pair[0].0) * part, pair[0].1 + (pair[1].1 - pair[0].1) * part)
                };
                level = level.windows(2).map(between).collect();
            }
            points.push(level[0]);
        }
    }
    points
}

/// Fails unless all cables are within the page and behind no box but those that they join.
fn check(name: &str, fabric: &Fabric) {
    let svg = write(fabric);
    let (width, height) = (number(&svg, "width"), number(&svg, "height"));
    let boxes = boxes(&svg);
    assert_eq!(boxes.len(), fabric.map.xbars.len(), "{name}");
    for xbar in &boxes {
        assert!(xbar.from.0 >= 0.0 && xbar.from.1 >= 0.0, "{name}: {} is cut off", xbar.name);
        assert!(xbar.to.0 <= width && xbar.to.1 <= height, "{name}: {} is cut off", xbar.name);
    }
    let cables: Vec<&str> = svg.lines().filter(|line| line.contains("</title></path>")).collect();
    assert_eq!(cables.len(), fabric.map.cables.len(), "{name}");
    for cable in cables {
        let title = cable.split("<title>").nth(1).unwrap().split('<').next().unwrap();
        let ends: Vec<&str> = title.split(" - ").map(|end| end.rsplit_once(':').unwrap().0).collect();
        for (x, y) in along(attribute(cable, "d")) {
            assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{name}: {title} is cut off");
            let behind = boxes.iter().find(|xbar| {
                xbar.from.0 < x
                    && x < xbar.to.0
                    && xbar.from.1 < y
                    && y < xbar.to.1
                    && !ends.contains(&&*xbar.name)
            });
            assert!(behind.is_none(), "{name}: {title} runs behind {}", behind.unwrap().name);
        }
    }
}

#[test]
fn no_cable_is_cut_off_or_runs_behind_a_box() {
    for spec in [
        "torus:x=4,y=3,z=3,hosts=1",
        "torus:x=3,y=2,hosts=2",
        "torus:x=6,y=5,hosts=8",
        "torus:x=2,y=2,z=2,hosts=1",
        "mesh:x=4,y=3,z=2,hosts=1",
        "ring:n=5",
        "ring:n=24",
        "hypercube:d=5,hosts=1",
        "random:xbars=24,ports=12,hosts=40,links=60,seed=3",
        "clos:hosts=32,ports=8",
        "xgft:h=3;m=3,3,3;w=1,2,2",
        "now",
    ] {
        check(spec, &generate(spec).unwrap());
    }
}

#[test]
fn boxes_have_the_names_that_people_know() {
    let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
    fabric.xbars[0].description = "rack 4 <top>\u{1b}".to_owned();
    fabric.hosts[0].description = "login".to_owned();
    let svg = write(&fabric);
    assert!(svg.contains(">rack 4 &lt;top&gt;\u{fffd}</text>") && svg.contains(">login<"), "{svg}");
    assert!(svg.contains("<title>rack 4 &lt;top&gt;\u{fffd} (leaf1): 4 ports"), "{svg}");
    assert!(!svg.contains(">leaf1</text>") && !svg.contains('\u{1b}'), "{svg}");
}

#[test]
fn a_real_cluster_is_one_sheet_with_its_rails_and_what_is_uneven() {
    let spec = "cluster:leaves=24,spines=16,hosts=542,service=every,missing=5,cables=2,uneven=9,storage=2,isolated=3,rails=2";
    let fabric = generate(spec).unwrap();
    let svg = write(&fabric);
    let (width, height) = (number(&svg, "width"), number(&svg, "height"));
    assert!(width < 2.0 * height && height < 2.0 * width, "it fits a sheet: {width} x {height}");
    assert!(svg.contains(">rail1</text>") && svg.contains(">rail2</text>"));
    assert!(svg.contains("Each line stands for 2 cables, but where a number stands on it."));
    // Nine pairs of each rail have one cable, and two switches for storage have one to each of two spines.
    assert_eq!(svg.matches("<circle").count(), 2 * (9 + 4));
    let lines = svg.lines().filter(|line| line.contains("</title></path>")).count();
    assert_eq!(lines, 2 * (24 * 16 - 5 + 4), "a line for each pair");
    assert_eq!(boxes(&svg).len(), 2 * (24 + 16 + 2));
    assert!(svg.contains("3 hosts without a cable"));
}

#[test]
fn groups_and_large_grids_are_folded_and_nothing_is_cut_off() {
    for spec in ["dragonfly:a=4,p=2,h=2", "torus:x=6,y=5,hosts=16", "clos:hosts=1024,ports=16"] {
        let svg = write(&generate(spec).unwrap());
        let (width, height) = (number(&svg, "width"), number(&svg, "height"));
        for line in svg.lines().filter(|line| line.contains("</title></path>")) {
            // The drawing is moved off the border by what these points lack.
            for (x, y) in along(attribute(line, "d")) {
                assert!((-30.0..=width).contains(&x) && (-50.0..=height).contains(&y), "{spec}: {line}");
            }
        }
    }
}
