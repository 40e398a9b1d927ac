//! A fabric as the page draws it.

use std::collections::BTreeMap;

use mapper_fabric::names::Names;
use mapper_proto::map::{Fabric, PortRef};
use serde::Serialize;

use crate::layout::{CELL, CELLS_IN_LINE, GAP, Layout, MARGIN, NAME_HEIGHT, Sizes};

/// The name of the schema.
pub(super) const SCHEMA: &str = "mapper.scene/1";

/// A fabric, where it stands, and how it is.
///
/// What there are thousands of is told in columns, a list for each property, which takes half of the bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Scene {
    schema: &'static str,
    /// What the fabric is called: the file, the spec or the machine that it comes from.
    pub title: String,
    /// Width and height of the layout.
    size: (i64, i64),
    cells: Cells,
    xbars: XbarColumns,
    hosts: HostColumns,
    cables: CableColumns,
    bundles: BundleColumns,
    frames: Vec<(i64, i64, i64, i64, String)>,
    /// What a file said that the fabric does not hold.
    left_out: Vec<String>,
}

/// How hosts stand in their xbar's box.
#[derive(Debug, Clone, Serialize)]
struct Cells {
    width: i64,
    height: i64,
    in_line: usize,
    top: i64,
    left: i64,
}

#[derive(Debug, Clone, Default, Serialize)]
struct XbarColumns {
    name: Vec<String>,
    /// The id in the file, where the name is another.
    id: BTreeMap<u32, String>,
    x: Vec<i64>,
    y: Vec<i64>,
    w: Vec<i64>,
    h: Vec<i64>,
    tier: Vec<u32>,
    ports: Vec<u8>,
    tag: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct HostColumns {
    name: Vec<String>,
    mac: Vec<String>,
    /// The xbar, or -1 for a host that is cabled to none.
    xbar: Vec<i64>,
    port: Vec<u8>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct CableColumns {
    a: Vec<u32>,
    a_port: Vec<u8>,
    b: Vec<u32>,
    b_port: Vec<u8>,
    bundle: Vec<u32>,
    /// How fast cables are, where that is known.
    speed: BTreeMap<u32, String>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct BundleColumns {
    a: Vec<u32>,
    b: Vec<u32>,
    bend: Vec<i64>,
}

impl Scene {
    /// A fabric with its layout.
    pub fn new(fabric: &Fabric, title: String) -> Self {
        let names = Names::of(fabric);
        let sizes = Sizes::folded(fabric);
        let layout = Layout::of(fabric, &names, &sizes);
        let frame = |frame: &crate::layout::Frame| {
            let (at, size) = (frame.rect.at, frame.rect.size);
            (at.0, at.1, size.0, size.1, frame.title.clone())
        };
        Self {
            schema: SCHEMA,
            title,
            size: (layout.size.0.max(4 * GAP), layout.size.1.max(4 * GAP)),
            cells: Cells {
                width: CELL.0,
                height: CELL.1,
                in_line: CELLS_IN_LINE,
                top: NAME_HEIGHT,
                left: MARGIN,
            },
            xbars: XbarColumns::new(fabric, &names, &layout),
            hosts: HostColumns::new(fabric, names.hosts),
            cables: CableColumns::new(fabric, &layout),
            bundles: BundleColumns {
                a: layout.bundles.iter().map(|bundle| bundle.a).collect(),
                b: layout.bundles.iter().map(|bundle| bundle.b).collect(),
                bend: layout.bundles.iter().map(|bundle| bundle.bend).collect(),
            },
            frames: layout.frames.iter().map(frame).collect(),
            left_out: fabric.left_out.clone(),
        }
    }
}

impl XbarColumns {
    fn new(fabric: &Fabric, names: &Names, layout: &Layout) -> Self {
        let rects = &layout.boxes;
        let ids = (0..).zip(&fabric.xbars).zip(&names.xbars);
        let tags = fabric.map.xbars.iter().map(|xbar| xbar.tag.map(|tag| format!("{tag:#018x}")));
        Self {
            name: names.xbars.clone(),
            id: ids
                .filter(|((_, label), name)| label.name != **name)
                .map(|((xbar, label), _)| (xbar, label.name.clone()))
                .collect(),
            x: rects.iter().map(|rect| rect.at.0).collect(),
            y: rects.iter().map(|rect| rect.at.1).collect(),
            w: rects.iter().map(|rect| rect.size.0).collect(),
            h: rects.iter().map(|rect| rect.size.1).collect(),
            tier: layout.tiers.clone(),
            ports: fabric.map.xbars.iter().map(|xbar| xbar.ports).collect(),
            tag: tags.collect(),
        }
    }
}

impl HostColumns {
    fn new(fabric: &Fabric, name: Vec<String>) -> Self {
        let hosts = &fabric.map.hosts;
        Self {
            name,
            mac: hosts.iter().map(|host| host.mac.to_string()).collect(),
            xbar: hosts.iter().map(|host| host.at.map_or(-1, |at| i64::from(at.xbar))).collect(),
            port: hosts.iter().map(|host| host.at.map_or(0, |at| at.port)).collect(),
        }
    }
}

impl CableColumns {
    fn new(fabric: &Fabric, layout: &Layout) -> Self {
        let cables = &fabric.map.cables;
        let mut bundle = vec![0; cables.len()];
        for (number, one) in (0..).zip(&layout.bundles) {
            one.cables.iter().for_each(|&cable| bundle[cable as usize] = number);
        }
        let column = |of: fn(&mapper_proto::map::Cable) -> PortRef| cables.iter().map(of);
        let speeds = (0..)
            .zip(cables)
            .filter_map(|(number, cable)| Some((number, fabric.link_speeds.get(&cable.a)?.to_string())));
        Self {
            a: column(|cable| cable.a).map(|end| end.xbar).collect(),
            a_port: column(|cable| cable.a).map(|end| end.port).collect(),
            b: column(|cable| cable.b).map(|end| end.xbar).collect(),
            b_port: column(|cable| cable.b).map(|end| end.port).collect(),
            bundle,
            speed: speeds.collect(),
        }
    }
}
