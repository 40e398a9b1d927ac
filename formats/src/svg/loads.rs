//! Plots of loads: how many routes cross each channel, tier by tier.

use std::fmt::Write;

use super::{COLOURS, GAP, Picture, escaped, letters};
use mapper_routing::{TierHeading, Topology, group_by_tier};

/// Width and height of what a panel shows, without its labels.
const PLOT: (i64, i64) = (280, 160);
/// Room for labels: left of a plot, above, below.
const LEFT: i64 = 64;
const ABOVE: i64 = 40;
const BELOW: i64 = 36;
/// Most points of a curve: more cannot be told apart.
const MOST_POINTS: usize = 280;

/// The loads of the channels between two tiers, the largest first.
struct Panel {
    from: u32,
    to: u32,
    loads: Vec<f64>,
}

impl Panel {
    fn heading(&self) -> TierHeading {
        match self.from.cmp(&self.to) {
            std::cmp::Ordering::Less => TierHeading::Up,
            std::cmp::Ordering::Equal => TierHeading::Level,
            std::cmp::Ordering::Greater => TierHeading::Down,
        }
    }
}

/// A plot of the loads of channels, given by channel: a panel for each pair of tiers and direction, the
/// channels side by side from the busiest to the idlest. All panels have one scale, so that they can be
/// compared. `title` stands above.
pub fn plot_loads(topology: &Topology, loads: &[f64], title: &str) -> String {
    let mut panels: Vec<Panel> = group_by_tier(topology, loads)
        .into_iter()
        .map(|((from, to), mut loads)| {
            loads.sort_by(|a, b| b.total_cmp(a));
            Panel { from, to, loads }
        })
        .collect();
    // Tiers stand above each other, the hosts' at the bottom as in drawings of fabrics, and up stands left of
    // down.
    panels.sort_by_key(|panel| (std::cmp::Reverse(panel.from.max(panel.to)), panel.heading()));
    let scale = Scale::up_to(loads.iter().copied().fold(0.0, f64::max));
    super::document(&picture(&panels, &scale, title), "")
}

fn picture(panels: &[Panel], scale: &Scale, title: &str) -> Picture {
    let (step_x, step_y) = (LEFT + PLOT.0 + GAP, ABOVE + PLOT.1 + BELOW);
    let top = 2 * GAP;
    let mut boxes = format!(
        "<text x=\"{GAP}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
        GAP + 6,
        escaped(title)
    );
    if panels.is_empty() {
        let _ = writeln!(boxes, "<text x=\"{GAP}\" y=\"{}\">no cable between xbars</text>", top + GAP);
    }
    let (mut row, mut column, mut columns) = (0, 0, 1);
    for (place, panel) in panels.iter().enumerate() {
        let above = place.checked_sub(1).map(|before| panels[before].from.max(panels[before].to));
        if above.is_some_and(|above| above != panel.from.max(panel.to)) {
            (row, column) = (row + 1, 0);
        }
        boxes += &draw(panel, scale, GAP + LEFT + column * step_x, top + ABOVE + row * step_y);
        column += 1;
        columns = columns.max(column);
    }
    Picture {
        width: (GAP + columns * step_x).max(2 * GAP + letters(title) * 14 / 11),
        height: top + (row + 1) * step_y + GAP,
        cables: String::new(),
        boxes,
    }
}

/// A panel whose plot has this upper left corner.
fn draw(panel: &Panel, scale: &Scale, left: i64, top: i64) -> String {
    let (right, bottom) = (left + PLOT.0, top + PLOT.1);
    let mean = panel.loads.iter().sum::<f64>() / panel.loads.len().max(1) as f64;
    let (most, least) = (panel.loads.first().copied(), panel.loads.last().copied());
    let mut text = format!(
        "<g><text x=\"{left}\" y=\"{}\" font-weight=\"bold\">tier {} to tier {} ({})</text>\n\
         <text x=\"{left}\" y=\"{}\">most {}, mean {mean:.1}, least {}</text>\n\
         <rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#8a969e\" \
         stroke-width=\"0.5\"/>\n",
        top - 20,
        panel.from,
        panel.to,
        panel.heading().name(),
        top - 6,
        label(most.unwrap_or_default()),
        label(least.unwrap_or_default()),
        PLOT.0,
        PLOT.1,
    );
    for tick in 0..=scale.ticks {
        let y = bottom - scale.height(f64::from(tick) * scale.step);
        let _ = writeln!(
            text,
            "<path d=\"M {left} {y} H {right}\" stroke=\"#8a969e\" stroke-width=\"0.5\" \
             stroke-opacity=\"0.5\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            left - 6,
            y + 4,
            label(f64::from(tick) * scale.step)
        );
    }
    let colour = COLOURS[panel.from.min(panel.to) as usize % COLOURS.len()];
    let _ = writeln!(
        text,
        "<path d=\"{}\" fill=\"{colour}\" stroke=\"#33414b\"/>",
        area(&panel.loads, scale, left, bottom)
    );
    let mean_y = bottom - scale.height(mean);
    let _ = writeln!(
        text,
        "<path d=\"M {left} {mean_y} H {right}\" stroke=\"#33414b\" stroke-dasharray=\"4 3\"/>"
    );
    let (x, y) = (i64::midpoint(left, right), bottom + 16);
    let _ = writeln!(
        text,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{} channels, the busiest first</text>\n\
         <text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">routes</text></g>",
        panel.loads.len(),
        left - LEFT + 8,
        i64::midpoint(top, bottom)
    );
    text
}

/// The outline of sorted loads: a step each, or as many as can be told apart, each as high as its busiest
/// channel.
fn area(loads: &[f64], scale: &Scale, left: i64, bottom: i64) -> String {
    let points = loads.len().min(MOST_POINTS);
    let mut path = format!("M {left} {bottom}");
    let mut last = bottom;
    for point in 0..points {
        // The loads fall, so the first of those that share a point is the largest.
        let y = bottom - scale.height(loads[point * loads.len() / points]);
        if y != last {
            let _ = write!(path, " H {} V {y}", left + PLOT.0 * point as i64 / points as i64);
            last = y;
        }
    }
    path + &format!(" H {} V {bottom} Z", left + PLOT.0)
}

/// A vertical scale in round steps.
struct Scale {
    step: f64,
    ticks: u32,
}

impl Scale {
    /// Four to ten steps of 1, 2 or 5 times a power of ten.
    fn up_to(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let power = 10_f64.powf((most / 10.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| most / step <= 6.0).unwrap_or(10.0 * power);
        Self { step, ticks: (most / step).ceil() as u32 }
    }

    /// How high a load stands above the bottom.
    fn height(&self, load: f64) -> i64 {
        (load / (self.step * f64::from(self.ticks)) * PLOT.1 as f64).round() as i64
    }
}

/// A number without needless digits.
fn label(number: f64) -> String {
    let rounded = format!("{number:.1}");
    rounded.strip_suffix(".0").map_or_else(|| rounded.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;

    #[test]
    fn a_tree_has_a_panel_for_each_tier_and_direction() {
        let topology = Topology::from_map(&generate("clos:hosts=128,ports=8").unwrap().map).unwrap();
        let loads: Vec<f64> = (0..topology.channel_count()).map(|channel| channel as f64).collect();
        let svg = plot_loads(&topology, &loads, "a < b");
        for title in ["tier 2 to tier 1 (down)", "tier 1 to tier 2 (up)", "tier 0 to tier 1 (up)", "a &lt; b"]
        {
            assert!(svg.contains(title), "{title}: {svg}");
        }
        assert!(svg.contains(&format!(">most {}, mean ", topology.channel_count() - 1)), "{svg}");
        assert_eq!(svg, plot_loads(&topology, &loads, "a < b"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn nothing_to_show_is_shown() {
        let topology = Topology::from_map(&generate("ring:n=3").unwrap().map).unwrap();
        assert!(plot_loads(&topology, &[0.0; 6], "").contains("most 0, mean 0.0, least 0"));
        let mut alone = generate("ring:n=3").unwrap().map;
        alone.cables.clear();
        let topology = Topology::from_map(&alone).unwrap();
        assert!(plot_loads(&topology, &[], "").contains("no cable between xbars"));
    }

    #[test]
    fn scales_have_round_steps() {
        for (most, step, ticks) in [(3.0, 0.5, 6), (10.0, 2.0, 5), (39744.0, 10_000.0, 4), (0.0, 0.2, 5)] {
            let scale = Scale::up_to(most);
            assert!((scale.step - step).abs() < 1e-9, "{most}: {}", scale.step);
            assert_eq!(scale.ticks, ticks, "{most}");
        }
    }
}
