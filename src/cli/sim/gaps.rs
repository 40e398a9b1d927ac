//! A plot of users' losses: when pairs of hosts lost all frames, and which faults struck.

use std::fmt::Write;

use mapper_proto::Instant;
use mapper_sim::world::{PairGap, TrafficReport};

/// Width and height of each of the two plots, and the room around them.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
const BETWEEN: f64 = 60.0;
/// Room for the list of faults.
const LINE: f64 = 16.0;
/// Most gaps that are drawn one by one, the longest of all.
const MOST_DRAWN: usize = 2000;
/// Most faults that are numbered and listed.
const MOST_FAULTS: usize = 40;
/// How much of the time before the first fault is shown, as a part of what follows.
const BEFORE: f64 = 0.05;

/// The plot of a run that ended at `end`: above each gap as a line, the earliest at the top; below how many pairs were without frames
/// at each moment. Faults are numbered.
pub(super) fn plot(traffic: &TrafficReport, end: Instant) -> String {
    let scale = Scale::of(traffic, end);
    let listed = traffic.faults.len().min(MOST_FAULTS);
    let height = TOP + 2.0 * HEIGHT + BETWEEN + 40.0 + LINE * listed as f64;
    let width = LEFT + WIDTH + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{} of {} frames lost; the longest gap of a pair {:.1} ms</text>\n",
        traffic.lost,
        traffic.sent,
        traffic.longest_gap.as_secs_f64() * 1e3,
    );
    svg += &lines(&traffic.gaps, &scale);
    svg += &counts(&traffic.gaps, &scale);
    svg += &faults(traffic, &scale);
    svg + "</svg>\n"
}

/// From milliseconds to places on the drawing.
struct Scale {
    from_ms: f64,
    to_ms: f64,
}

impl Scale {
    fn of(traffic: &TrafficReport, end: Instant) -> Self {
        let to_ms = end.as_millis_f64();
        let starts =
            traffic.faults.iter().map(|fault| fault.at).chain(traffic.gaps.iter().map(|gap| gap.from));
        let first_ms = starts.map(Instant::as_millis_f64).fold(to_ms, f64::min);
        let from_ms = (first_ms - BEFORE * (to_ms - first_ms)).max(0.0);
        Self { from_ms, to_ms: if to_ms > from_ms { to_ms } else { from_ms + 1.0 } }
    }

    fn x(&self, at: Instant) -> f64 {
        LEFT + WIDTH * ((at.as_millis_f64() - self.from_ms) / (self.to_ms - self.from_ms)).clamp(0.0, 1.0)
    }
}

/// Each gap as a line.
fn lines(gaps: &[PairGap], scale: &Scale) -> String {
    let mut drawn = gaps.to_vec();
    drawn.sort_by_key(|gap| (std::cmp::Reverse(gap.to.since(gap.from)), gap.from));
    drawn.truncate(MOST_DRAWN);
    drawn.sort_by_key(|gap| (gap.from, gap.to));
    let step = (HEIGHT / drawn.len().max(1) as f64).min(6.0);
    let title = match gaps.len() {
        0 => "no pair of hosts lost all frames".to_owned(),
        all if all > drawn.len() => {
            format!("the {} longest of {all} gaps, each of a pair of hosts", drawn.len())
        }
        all => format!("{all} gaps, each of a pair of hosts"),
    };
    let mut svg = frame(TOP, &title, scale);
    for (row, gap) in drawn.iter().enumerate() {
        let (from, y) = (scale.x(gap.from), TOP + step * (row as f64 + 0.5));
        // A gap that is too short to be seen is a dot.
        let to = scale.x(gap.to).max(from + 1.0);
        let ms = gap.to.since(gap.from).as_secs_f64() * 1e3;
        let _infallible = writeln!(
            svg,
            "<path d=\"M {from:.1} {y:.1} H {to:.1}\" stroke=\"#0072b2\" stroke-width=\"{:.2}\"><title>from {:.1} ms: {ms:.1} ms\
             </title></path>",
            (step * 0.7).max(0.3),
            gap.from.as_millis_f64(),
        );
    }
    svg
}

/// How many pairs are in a gap, moment by moment.
fn counts(gaps: &[PairGap], scale: &Scale) -> String {
    let mut changes: Vec<(Instant, i64)> =
        gaps.iter().flat_map(|gap| [(gap.from, 1), (gap.to, -1)]).collect();
    changes.sort_unstable();
    let mut count = 0;
    let steps: Vec<(Instant, i64)> = changes
        .into_iter()
        .map(|(at, by)| {
            count += by;
            (at, count)
        })
        .collect();
    let most = steps.iter().map(|&(_, count)| count).max().unwrap_or_default();
    let (top, bottom) = (TOP + HEIGHT + BETWEEN, TOP + 2.0 * HEIGHT + BETWEEN);
    let mut svg = frame(top, &format!("pairs of hosts that lose all frames: {most} at once at most"), scale);
    let mut path = format!("M {LEFT} {bottom}");
    for (at, count) in steps {
        let y = bottom - HEIGHT * count as f64 / most.max(1) as f64;
        let _infallible = write!(path, " H {:.1} V {y:.1}", scale.x(at));
    }
    let _infallible =
        writeln!(svg, "<path d=\"{path} V {bottom} Z\" fill=\"#e69f00\" fill-opacity=\"0.6\"/>");
    let _infallible =
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most}</text>", LEFT - 6.0, top + 8.0);
    svg
}

/// The frame of a plot, with its title and the times at its ends.
fn frame(top: f64, title: &str, scale: &Scale) -> String {
    let (bottom, right) = (top + HEIGHT, LEFT + WIDTH);
    format!(
        "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#8a969e\"/>\n\
         <text x=\"{LEFT}\" y=\"{}\">{title}</text>\n\
         <text x=\"{LEFT}\" y=\"{}\">{:.0} ms</text><text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{:.0} ms</text>\n",
        top - 6.0,
        bottom + 14.0,
        scale.from_ms,
        bottom + 14.0,
        scale.to_ms,
    )
}

/// Faults as numbered lines through both plots, and what each was below.
fn faults(traffic: &TrafficReport, scale: &Scale) -> String {
    let bottom = TOP + 2.0 * HEIGHT + BETWEEN;
    let mut svg = String::new();
    for (number, fault) in (1..).zip(traffic.faults.iter().take(MOST_FAULTS)) {
        let x = scale.x(fault.at);
        let y = bottom + 24.0 + LINE * f64::from(number);
        let what = fault.what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let gap_ms = fault.longest_gap.as_secs_f64() * 1e3;
        let _infallible = writeln!(
            svg,
            "<path d=\"M {x:.1} {TOP} V {bottom}\" stroke=\"#d55e00\" stroke-dasharray=\"4 3\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"#d55e00\">{number}</text>\n\
             <text x=\"{LEFT}\" y=\"{y}\">{number}: {what} at {:.1} ms; {} pairs lost frames, for {gap_ms:.1} ms at most</text>",
            x + 3.0,
            TOP + 12.0,
            fault.at.as_millis_f64(),
            fault.pairs,
        );
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_is_drawn_and_what_is_lost_at_once_is_counted() {
        let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let gap = |from, to| PairGap { from: ms(from), to: ms(to) };
        let traffic = TrafficReport {
            gaps: vec![gap(100, 120), gap(110, 130), gap(200, 210)],
            sent: 9,
            lost: 3,
            ..TrafficReport::default()
        };
        let svg = plot(&traffic, ms(300));
        assert_eq!(svg.matches("<title>from ").count(), 3);
        assert!(svg.contains("3 of 9 frames lost") && svg.contains(": 2 at once at most"), "{svg}");
        let none = plot(&TrafficReport::default(), ms(300));
        assert!(none.contains("no pair of hosts lost all frames") && none.contains(": 0 at once"), "{none}");
    }
}
