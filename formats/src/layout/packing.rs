//! Parts beside each other on one sheet.

use super::part::Placed;
use super::{Frame, GAP, Layout, Point, Rect, Shape, Sizes};

/// Room within a part's frame, and for its title above.
const MARGIN: i64 = 24;
const TITLE: i64 = 28;

/// Puts parts on a sheet: from the left to the right in lines, the largest first. `parts` have what they are called, and
/// the numbers of their xbars.
pub(super) fn pack(parts: Vec<(Placed, Option<String>, Vec<u32>)>, xbars: usize, sizes: &Sizes) -> Layout {
    let mut layout =
        Layout { boxes: vec![Rect::default(); xbars], tiers: vec![0; xbars], ..Layout::default() };
    let framed = parts.iter().filter(|(part, ..)| part.shape != Shape::Single).count() > 1;
    let extents: Vec<(Point, Point)> = parts.iter().map(|(part, ..)| extent(part, sizes)).collect();
    let target = width_of_sheet(&extents, framed);
    let (mut x, mut y, mut line_height) = (0, 0, 0);
    let mut number = 0;
    for ((part, name, members), (corner, end)) in parts.into_iter().zip(extents) {
        let is_framed = framed && part.shape != Shape::Single;
        let (margin, title) = if is_framed { (MARGIN, TITLE) } else { (0, 0) };
        let size = (end.0 - corner.0 + 2 * margin, end.1 - corner.1 + 2 * margin + title);
        if x > 0 && x + size.0 > target {
            (x, y, line_height) = (0, y + line_height + 2 * GAP, 0);
        }
        let by = (x + margin - corner.0, y + margin + title - corner.1);
        if is_framed {
            number += 1;
            let title = name.unwrap_or_else(|| format!("part {number}"));
            layout.frames.push(Frame { rect: Rect { at: (x, y), size }, title });
        }
        layout
            .frames
            .extend(part.frames.into_iter().map(|frame| Frame { rect: frame.rect.moved(by), ..frame }));
        for ((xbar, rect), tier) in members.into_iter().zip(part.boxes).zip(part.tiers) {
            layout.boxes[xbar as usize] = rect.moved(by);
            layout.tiers[xbar as usize] = tier;
        }
        layout.shapes.push(part.shape);
        layout.size = (layout.size.0.max(x + size.0), layout.size.1.max(y + size.1));
        x += size.0 + 2 * GAP;
        line_height = line_height.max(size.1);
    }
    layout
}

/// The upper left and the lower right corner of a part.
fn extent(part: &Placed, sizes: &Sizes) -> (Point, Point) {
    let rects = || part.boxes.iter().chain(part.frames.iter().map(|frame| &frame.rect));
    let least = |of: fn(&Rect) -> i64| rects().map(of).min().unwrap_or(0);
    let most = |of: fn(&Rect) -> i64| rects().map(of).max().unwrap_or(0);
    let corner = (least(|rect| rect.at.0), least(|rect| rect.at.1));
    (corner, (most(|rect| rect.end().0), most(|rect| rect.end().1) + sizes.below))
}

/// How wide a sheet is that has room for all parts and is about half as wide again as high: no narrower than the widest part.
fn width_of_sheet(extents: &[(Point, Point)], framed: bool) -> i64 {
    let spare = 2 * GAP + if framed { 2 * MARGIN } else { 0 };
    let sizes = || extents.iter().map(|(corner, end)| (end.0 - corner.0 + spare, end.1 - corner.1 + spare));
    let area: i64 = sizes().map(|(width, height)| width * height).sum();
    let widest = sizes().map(|(width, _)| width).max().unwrap_or(0);
    // What is as wide as a page of paper or a screen, more or less.
    widest.max(((area as f64) * 1.6).sqrt() as i64)
}
