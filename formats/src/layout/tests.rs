//! What every layout keeps to, whatever the fabric.

use mapper_fabric::generate;

use super::*;

fn layout(spec: &str) -> Layout {
    let fabric = generate(spec).unwrap();
    let sizes = Sizes { boxes: vec![(96, 44); fabric.map.xbars.len()], below: 0, most_in_line: 32 };
    Layout::of(&fabric, &Names::of(&fabric), &sizes)
}

const SPECS: [&str; 16] = [
    "clos:hosts=128,ports=16",
    "clos:hosts=1024,ports=16",
    "cluster:leaves=24,spines=16,hosts=542,service=every,missing=5,cables=2,uneven=9,storage=2,isolated=3,rails=2",
    "xgft:h=3;m=3,3,3;w=1,2,2",
    "xgft:h=4;m=2,3,2,3;w=1,2,2,2",
    "torus:x=4,y=3,z=3,hosts=1",
    "torus:x=6,y=5,z=5,hosts=16",
    "torus:x=3,y=2,hosts=2",
    "mesh:x=4,y=3,z=2,hosts=1",
    "ring:n=5",
    "ring:n=24",
    "dragonfly:a=8,p=4,h=4",
    "hypercube:d=5,hosts=1",
    "hypercube:d=7,hosts=1",
    "random:xbars=24,ports=12,hosts=40,links=60,seed=3",
    "now",
];

#[test]
fn no_two_boxes_overlap_and_all_are_on_the_sheet() {
    for spec in SPECS {
        let layout = layout(spec);
        for (xbar, one) in layout.boxes.iter().enumerate() {
            let (end, size) = (one.end(), layout.size);
            assert!(one.at.0 >= 0 && one.at.1 >= 0 && end.0 <= size.0 && end.1 <= size.1, "{spec}: {xbar}");
            for other in &layout.boxes[..xbar] {
                let apart = one.at.0 >= other.end().0
                    || other.at.0 >= end.0
                    || one.at.1 >= other.end().1
                    || other.at.1 >= end.1;
                assert!(apart, "{spec}: xbar {xbar} {one:?} lies upon {other:?}");
            }
        }
    }
}

#[test]
fn the_same_fabric_has_the_same_layout() {
    for spec in SPECS {
        assert_eq!(layout(spec), layout(spec), "{spec}");
    }
}

#[test]
fn every_cable_is_in_one_bundle() {
    for spec in SPECS {
        let cables = generate(spec).unwrap().map.cables;
        let mut seen: Vec<u32> = layout(spec).bundles.iter().flat_map(|it| it.cables.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..cables.len() as u32).collect::<Vec<_>>(), "{spec}");
    }
}

#[test]
fn trees_stand_in_rows_with_the_leaves_at_the_bottom() {
    let layout = layout("clos:hosts=1024,ports=16");
    assert!(matches!(layout.shapes[..], [Shape::Rows { lines: true, .. }]), "{:?}", layout.shapes);
    for (one, tier) in layout.boxes.iter().zip(&layout.tiers) {
        for (other, other_tier) in layout.boxes.iter().zip(&layout.tiers) {
            assert!(tier <= other_tier || one.at.1 < other.at.1, "a higher tier stands higher");
        }
    }
    let (width, height) = layout.size;
    assert!(width < 4 * height && height < 2 * width, "it fits a screen: {:?}", layout.size);
}

#[test]
fn rails_stand_beside_each_other_with_their_names() {
    let layout = layout("cluster:leaves=24,spines=16,hosts=542,service=every,missing=5,cables=2,rails=2");
    let titles: Vec<&str> = layout.frames.iter().map(|frame| frame.title.as_str()).collect();
    assert_eq!(titles, ["rail1", "rail2"]);
    let inside = |frame: &Frame, at: Rect| {
        frame.rect.at.0 <= at.at.0 && at.end().0 <= frame.rect.end().0 && at.end().1 <= frame.rect.end().1
    };
    let within =
        |range: std::ops::Range<usize>, frame| layout.boxes[range].iter().all(|&at| inside(frame, at));
    assert!(within(0..40, &layout.frames[0]) && within(40..80, &layout.frames[1]));
}

#[test]
fn shapes_are_recognised() {
    assert!(matches!(layout("ring:n=24").shapes[..], [Shape::Circle(_)]));
    assert!(matches!(layout("torus:x=6,y=5,hosts=16").shapes[..], [Shape::Grid(_)]));
    assert!(matches!(layout("torus:x=6,y=5,z=5,hosts=1").shapes[..], [Shape::Grid(_)]));
    assert!(matches!(layout("dragonfly:a=8,p=4,h=4").shapes[..], [Shape::Groups]));
    assert!(matches!(layout("hypercube:d=7,hosts=1").shapes[..], [Shape::Rows { .. }]));
    let dragonfly = layout("dragonfly:a=8,p=4,h=4");
    assert_eq!(dragonfly.frames.len(), 33, "a frame for each group");
}

#[test]
fn what_is_no_sound_map_is_laid_out_all_the_same() {
    let mut fabric = generate("ring:n=4").unwrap();
    fabric.map.cables.push(fabric.map.cables[0]);
    let sizes = Sizes { boxes: vec![(96, 44); 4], below: 0, most_in_line: 32 };
    let layout = Layout::of(&fabric, &Names::of(&fabric), &sizes);
    assert_eq!(layout.bundles.iter().map(|it| it.cables.len()).max(), Some(2));
    let nothing = Layout::of(
        &Fabric::default(),
        &Names::default(),
        &Sizes { boxes: vec![], below: 0, most_in_line: 1 },
    );
    assert_eq!(nothing, Layout::default());
}
