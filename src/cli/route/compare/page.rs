//! Engines side by side, as a page in one file: what each makes of the fabric, and how it loads the cables.

use std::fmt::Write as _;

use super::{Comparison, HEADINGS, LEGEND, Row};

/// How many bars a histogram has, and how wide and high it is.
const BARS: usize = 30;
const SIZE: (usize, usize) = (360, 150);
/// Room for numbers beneath and beside the bars.
const BELOW: usize = 34;
const LEFT: usize = 46;

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #17202a; --back: #fff; --faint: #5c6773; --edge: #c9d0d8; --bar: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --back: #11161c; --faint: #98a4b0; --edge: #35404b; --bar: #56b4e9; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 24px; color: var(--ink); background: var(--back); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 10px; border-bottom: 1px solid var(--edge); }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: 20px; margin-top: 24px; }
h2 { font-size: 16px; margin: 0; }
p { margin: 2px 0 8px; color: var(--faint); white-space: pre-line; overflow-wrap: anywhere; }
svg text { fill: var(--faint); font-size: 11px; }
svg rect { fill: var(--bar); }
svg path { stroke: var(--edge); }
";

/// The page. All histograms have the same bars and one height, so that they can be compared.
pub(super) fn page(comparison: &Comparison, title: &str) -> String {
    let title = escaped(title);
    let (xbars, hosts) = (comparison.xbars, comparison.hosts);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} – engines</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Engines on {title}</h1>\n\
         <p>{hosts} hosts, {xbars} crossbars</p>\n<table>\n"
    );
    let cells = |tag: &str, cells: &[String; 10]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    text += &cells("th", &HEADINGS.map(str::to_owned));
    comparison.rows.iter().for_each(|row| text += &cells("td", &row.cells()));
    // Writing to a String never fails.
    let _infallible = writeln!(text, "</table>\n<p>{}</p>\n<main>", escaped(LEGEND));
    let histograms: Vec<Option<[usize; BARS]>> = comparison
        .rows
        .iter()
        .map(|row| loads(row).map(|loads| histogram(loads, most(comparison))))
        .collect();
    let highest = histograms.iter().flatten().flatten().copied().max().unwrap_or(1).max(1);
    for (row, histogram) in comparison.rows.iter().zip(&histograms) {
        let _infallible = writeln!(text, "<section><h2>{}</h2>", escaped(row.engine.name()));
        if let Some(why_not) = &row.why_not {
            let _infallible = writeln!(text, "<p>would not serve: {}</p>", escaped(why_not));
        }
        if let Some(bars) = histogram {
            text += &drawn(bars, highest, most(comparison));
        }
        text += "</section>\n";
    }
    text + "</main>\n</body>\n</html>\n"
}

fn loads(row: &Row) -> Option<&[f64]> {
    row.computed.as_ref().map(|computed| computed.quality.loads.as_slice())
}

/// The highest load that any engine puts on a channel.
fn most(comparison: &Comparison) -> f64 {
    comparison.rows.iter().filter_map(loads).flatten().copied().fold(1.0, f64::max)
}

/// How many channels have loads in each of the equal parts from none to `most`.
fn histogram(loads: &[f64], most: f64) -> [usize; BARS] {
    let mut bars = [0; BARS];
    for load in loads {
        bars[((load / most * BARS as f64) as usize).min(BARS - 1)] += 1;
    }
    bars
}

fn drawn(bars: &[usize; BARS], highest: usize, most: f64) -> String {
    let (width, height) = SIZE;
    let bar = width / BARS;
    let mut text = format!(
        "<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"Channels by their load\">\n\
         <path d=\"M {LEFT} 10 V {bottom} H {}\" fill=\"none\"/>\n",
        LEFT + width + 10,
        height + BELOW + 10,
        LEFT + width + 10,
        LEFT + width,
        bottom = height + 10,
    );
    for (at, &count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
        // A single channel is seen, too.
        let tall = (count * height / highest).max(1);
        let (from, to) = (most * at as f64 / BARS as f64, most * (at + 1) as f64 / BARS as f64);
        let _infallible = writeln!(
            text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{tall}\"><title>{count} channels with {from:.0} to {to:.0} routes\
             </title></rect>",
            LEFT + at * bar,
            height + 10 - tall,
            bar - 1,
        );
    }
    let _infallible = writeln!(
        text,
        "<text x=\"{}\" y=\"18\" text-anchor=\"end\">{highest}</text>\
         <text x=\"{}\" y=\"{base}\" text-anchor=\"end\">0</text>\
         <text x=\"{LEFT}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most:.0}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">routes over a channel; upwards, how many channels</text></svg>",
        LEFT - 6,
        LEFT - 6,
        height + 24,
        LEFT + width,
        height + 24,
        LEFT + width / 2,
        height + 38,
        base = height + 10,
    );
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_routing::Subnet;
    use mapper_routing::engines::{Engine, Settings};

    use super::*;

    #[test]
    fn every_channel_stands_in_one_bar() {
        let bars = histogram(&[0.0, 0.5, 30.0, 29.9], 30.0);
        assert_eq!((bars[0], bars[BARS - 1], bars.iter().sum::<usize>()), (2, 2, 4));
    }

    #[test]
    fn engines_stand_side_by_side_and_names_are_text() {
        let fabric = generate("clos:hosts=16,ports=4").unwrap();
        let subnet = Subnet::new(&fabric, None).unwrap();
        let engines = [Engine::File, Engine::Updn, Engine::Minhop];
        let comparison = Comparison::of(&fabric, &subnet, &engines, &Settings::default(), Vec::new());
        let page = page(&comparison, "<script>alert(1)</script>");
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert_eq!((page.matches("<section>").count(), page.matches("<svg").count()), (3, 2));
        assert!(page.contains("<p>would not serve: "), "{page}");
    }
}
