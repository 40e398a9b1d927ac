//! What stands in the terminal.

use std::collections::VecDeque;
use std::fmt::Write;

use mapper_fabric::names::Names;
use mapper_fabric::wording::{first_of, plural};
use mapper_proto::map::Fabric;
use mapper_proto::quote;

use crate::view::feed::{HostState, Moment};

/// How long lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// As a terminal is wide.
    Terminal,
    /// As long as what they tell, as in a file or for another program.
    Any,
}

impl Width {
    /// The text, or as much of it as has room where lines have to fit a terminal.
    pub(super) fn cut(self, text: &str, most: usize) -> String {
        match self {
            Self::Terminal => text.chars().take(most).collect(),
            Self::Any => text.to_owned(),
        }
    }
}

/// The columns of a terminal that everybody has.
pub(super) const COLUMNS: usize = 80;
/// Most lines about what is wrong, and about what happened.
const MOST_TROUBLES: usize = 8;
const MOST_EVENTS: usize = 8;
/// By how much the second line of what is too long for one is moved to the right.
const INDENT: usize = 4;

/// States of hosts, and what they are called.
const STATES: [(HostState, &str); 6] = [
    (HostState::Configured, "configured"),
    (HostState::AtWork, "at work"),
    (HostState::Silent, "silent"),
    (HostState::Missing, "missing"),
    (HostState::Isolated, "isolated"),
    (HostState::Unknown, "unknown"),
];

/// What happened last, and what was said of it.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// What happened, and when.
    events: VecDeque<(String, String)>,
    says: String,
}

/// Hosts that are not there as they should be, and how they are: those that somebody misses, and those without a cable.
pub(super) fn away(moment: &Moment, fabric: &Fabric) -> Vec<(usize, &'static str)> {
    let hosts = fabric.map.hosts.iter().enumerate();
    let face_to_face = fabric.face_to_face().is_some();
    let how = |(host, it): (usize, &mapper_proto::map::Host)| {
        let state = moment.hosts.get(host).copied().unwrap_or(HostState::Unknown);
        match state {
            HostState::Silent => Some((host, "silent")),
            HostState::Missing => Some((host, "missing")),
            HostState::Isolated => Some((host, "isolated")),
            _ if it.at.is_none() && !face_to_face => Some((host, "without a cable")),
            _ => None,
        }
    };
    hosts.filter_map(how).collect()
}

impl Screen {
    /// Notes what happened.
    pub(super) fn note(&mut self, at: String, what: &str, says: &str) {
        if !what.is_empty() {
            self.events.push_back((at.clone(), what.to_owned()));
        }
        if says != self.says {
            says.clone_into(&mut self.says);
            self.events.push_back((at, says.to_owned()));
        }
        while self.events.len() > MOST_EVENTS {
            self.events.pop_front();
        }
    }

    /// All that is shown: how the fabric is, the lines about units, who is away, loads, what is wrong, and what happened.
    pub(super) fn text(
        &self,
        moment: &Moment,
        fabric: &Fabric,
        names: &Names,
        (units, loads): (&[String], &[String]),
        width: Width,
    ) -> String {
        let map = &fabric.map;
        let counts = [(map.hosts.len(), "host"), (map.xbars.len(), "xbar"), (map.cables.len(), "cable")];
        let [hosts, xbars, cables] = counts.map(|(count, thing)| plural(count, thing));
        let says = if moment.says.is_empty() { String::new() } else { format!("{}: ", moment.says) };
        let at = moment.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let mut lines = vec![format!("{says}{hosts}, {xbars}, {cables} between xbars{at}")];
        lines.extend(states(moment));
        let mut add = |heading: Option<&str>, body: &[String]| {
            if !body.is_empty() {
                lines.push(String::new());
                lines.extend(heading.map(str::to_owned));
                lines.extend_from_slice(body);
            }
        };
        add(None, units);
        add(Some("Who is missing"), &missing(moment, fabric, names));
        add(None, loads);
        let mut troubles: Vec<String> =
            moment.troubles.iter().take(MOST_TROUBLES).map(|trouble| format!("  {trouble}")).collect();
        if let Some(more @ 1..) = moment.troubles.len().checked_sub(MOST_TROUBLES) {
            troubles.push(format!("  and {more} more"));
        }
        add(Some("What is wrong"), &troubles);
        let happened: Vec<String> =
            self.events.iter().rev().map(|(at, what)| format!("{at:>10}  {what}")).collect();
        add(Some("What happened"), &happened);
        fitted(&lines, width)
    }
}

/// How many hosts are in each state; none if nothing is known of any.
fn states(moment: &Moment) -> Option<String> {
    let count = |wanted: HostState| moment.hosts.iter().filter(|&&state| state == wanted).count();
    let counts = STATES.map(|(state, name)| (count(state), name));
    let some: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let is_known = moment.hosts.iter().any(|&state| state != HostState::Unknown);
    is_known.then(|| format!("hosts: {}", some.join(", ")))
}

/// The hosts that are away, a line for each way of being so.
fn missing(moment: &Moment, fabric: &Fabric, names: &Names) -> Vec<String> {
    let away = away(moment, fabric);
    let line = |how: &str| {
        let these: Vec<String> =
            away.iter().filter(|(_, is)| *is == how).map(|&(host, _)| names.host(host as u32)).collect();
        (!these.is_empty()).then(|| format!("  {how:<15} {}", first_of(&these, these.len())))
    };
    ["missing", "silent", "isolated", "without a cable"].into_iter().filter_map(line).collect()
}

/// Lines of this width. Of a terminal's what is too long for two lines is cut. Names and reasons come from other machines:
/// what a terminal obeys is made visible.
fn fitted(lines: &[String], width: Width) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let shown: Vec<char> = quote::visible(line).trim_end().chars().collect();
        let (first, rest) = shown.split_at(match width {
            Width::Terminal => shown.len().min(COLUMNS),
            Width::Any => shown.len(),
        });
        // Writing to a String never fails.
        let _infallible = writeln!(text, "{}", first.iter().collect::<String>());
        if !rest.is_empty() {
            let rest = rest.iter().take(COLUMNS - INDENT).collect::<String>();
            let _infallible = writeln!(text, "{:INDENT$}{rest}", "");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn eighty_columns_hold_it_whatever_names_are_like() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.hosts[1].description = "\x1b[2J".to_owned() + &"h".repeat(90);
        let troubles =
            (0..20).map(|number| format!("trouble \x1b[2J {number} {}", "y".repeat(200))).collect();
        let mut moment = Moment { says: "1 host silent".to_owned(), troubles, ..Moment::default() };
        moment.hosts = vec![HostState::Configured; 8];
        (moment.hosts[1], moment.hosts[2]) = (HostState::Silent, HostState::Missing);
        fabric.map.hosts[4].at = None;
        let mut screen = Screen::default();
        (0..20).for_each(|second| screen.note(format!("{second} s"), "map 1", &moment.says));
        let names = Names::of(&fabric);
        let text = screen.text(
            &moment,
            &fabric,
            &names,
            (&["unit".to_owned()], &["z".repeat(500)]),
            Width::Terminal,
        );
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(!text.contains('\x1b') && text.lines().count() < 45, "{text}");
        for wanted in [
            "hosts: 6 configured, 1 silent, 1 missing",
            "and 12 more",
            "      19 s  map 1",
            "  missing         h3\n",
            "  without a cable h5\n",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }

    #[test]
    fn what_goes_to_no_terminal_is_not_cut() {
        let fabric = generate("ring:n=4").unwrap();
        let moment = Moment { troubles: vec!["y".repeat(300)], ..Moment::default() };
        let text = Screen::default().text(&moment, &fabric, &Names::of(&fabric), (&[], &[]), Width::Any);
        assert!(text.contains(&format!("  {}\n", "y".repeat(300))), "{text}");
    }
}
