//! The text of metrics: OpenMetrics 1.0, and the older Prometheus text format.
//!
//! The writer keeps the rules that readers insist on: a family's description stands before its samples, the
//! samples of a family stand together, counters end in `_total`, names end with their unit, quotes are
//! escaped, and `# EOF` comes last.

use std::fmt::Write as _;

/// One of the two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenMetrics 1.0, for scrapes.
    OpenMetrics,
    /// The Prometheus text format 0.0.4, which is the only one that node_exporter reads from a file. It has
    /// no state sets, infos or units.
    Prometheus,
}

impl Dialect {
    /// The format's `Content-Type`.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What the samples of a family are. A family is all samples of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyKind {
    /// Numbers that only grow, and start again from 0 when the program does.
    Counter,
    /// Numbers that go up and down.
    Gauge,
    /// One sample for each state. That of the current state is 1, and all others are 0.
    StateSet,
    /// A sample that is always 1 and whose labels carry the information.
    Info,
}

/// The unit of a family, with which its name ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The family has no unit, as it counts things.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Unit {
    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => "_bytes",
            Self::Seconds => "_seconds",
        }
    }
}

/// A text of metrics that is being written.
#[derive(Debug)]
pub struct Exposition {
    dialect: Dialect,
    /// Labels of every sample, escaped, each with a comma behind it.
    common: String,
    text: String,
}

impl Exposition {
    /// An empty text, whose samples all have these labels.
    pub fn new(dialect: Dialect, common: &[(&str, &str)]) -> Self {
        let mut labels = String::new();
        for (name, value) in common {
            push_label(&mut labels, name, value);
        }
        Self { dialect, common: labels, text: String::new() }
    }

    /// Begins a family. `name` has neither unit nor `_total`, and `help` no line break.
    pub fn family(&mut self, kind: FamilyKind, name: &'static str, unit: Unit, help: &str) -> Family<'_> {
        let Self { dialect, text, .. } = self;
        let base = format!("{name}{}", unit.suffix());
        let sample = match kind {
            FamilyKind::Counter => format!("{base}_total"),
            FamilyKind::Info => format!("{base}_info"),
            FamilyKind::Gauge | FamilyKind::StateSet => base.clone(),
        };
        let (described, type_name) = match (*dialect, kind) {
            (Dialect::OpenMetrics, FamilyKind::Counter) => (&base, "counter"),
            (Dialect::OpenMetrics, FamilyKind::StateSet) => (&base, "stateset"),
            (Dialect::OpenMetrics, FamilyKind::Info) => (&base, "info"),
            (Dialect::Prometheus, FamilyKind::Counter) => (&sample, "counter"),
            (_, FamilyKind::Gauge | FamilyKind::StateSet | FamilyKind::Info) => (&sample, "gauge"),
        };
        // Writing to a String never fails.
        let _infallible = writeln!(text, "# TYPE {described} {type_name}");
        if *dialect == Dialect::OpenMetrics && unit != Unit::None {
            let _infallible = writeln!(text, "# UNIT {described} {}", &unit.suffix()[1..]);
        }
        let _infallible = writeln!(text, "# HELP {described} {help}");
        Family { exposition: self, base, sample }
    }

    /// A counter with one sample.
    pub fn counter(&mut self, name: &'static str, unit: Unit, help: &str, value: u64) {
        self.family(FamilyKind::Counter, name, unit, help).sample(&[], value);
    }

    /// A gauge with one sample.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: u64) {
        self.family(FamilyKind::Gauge, name, Unit::None, help).sample(&[], value);
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.dialect == Dialect::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// A family whose samples are being written.
#[derive(Debug)]
pub struct Family<'a> {
    exposition: &'a mut Exposition,
    base: String,
    sample: String,
}

impl Family<'_> {
    /// Writes a sample with these labels besides those of all samples.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: u64) -> &mut Self {
        self.write(labels, &value.to_string())
    }

    /// Writes a sample whose value is no whole number.
    pub fn sample_float(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.write(labels, &value.to_string())
    }

    /// Writes samples that differ in one label, each with the value of that label.
    pub fn by(&mut self, label: &str, samples: &[(&str, u64)]) {
        for (value, count) in samples {
            self.sample(&[(label, value)], *count);
        }
    }

    /// Writes the samples of a state set, of which `current` is 1.
    pub fn states<'s>(&mut self, states: impl IntoIterator<Item = &'s str>, current: &str) {
        let label = self.base.clone();
        for state in states {
            self.sample(&[(&label, state)], u64::from(state == current));
        }
    }

    fn write(&mut self, labels: &[(&str, &str)], value: &str) -> &mut Self {
        let Exposition { common, text, .. } = &mut *self.exposition;
        text.push_str(&self.sample);
        if !(common.is_empty() && labels.is_empty()) {
            text.push('{');
            text.push_str(common);
            for (name, value) in labels {
                push_label(text, name, value);
            }
            // This removes the comma behind the last label.
            text.pop();
            text.push('}');
        }
        text.push(' ');
        text.push_str(value);
        text.push('\n');
        self
    }
}

fn push_label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push_str("\",");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(dialect: Dialect) -> String {
        let mut text = Exposition::new(dialect, &[("interface", "eth1")]);
        text.counter("x_frames", Unit::None, "Frames.", 7);
        text.family(FamilyKind::Gauge, "x_age", Unit::Seconds, "Age.").sample_float(&[], 1.5);
        text.family(FamilyKind::StateSet, "x_state", Unit::None, "State.").states(["up", "down"], "up");
        text.family(FamilyKind::Info, "x", Unit::None, "What it is.").sample(&[("name", "a\"b\\c\nd")], 1);
        text.finish()
    }

    #[test]
    fn openmetrics_is_written_to_the_letter() {
        assert_eq!(
            example(Dialect::OpenMetrics),
            r##"# TYPE x_frames counter
# HELP x_frames Frames.
x_frames_total{interface="eth1"} 7
# TYPE x_age_seconds gauge
# UNIT x_age_seconds seconds
# HELP x_age_seconds Age.
x_age_seconds{interface="eth1"} 1.5
# TYPE x_state stateset
# HELP x_state State.
x_state{interface="eth1",x_state="up"} 1
x_state{interface="eth1",x_state="down"} 0
# TYPE x info
# HELP x What it is.
x_info{interface="eth1",name="a\"b\\c\nd"} 1
# EOF
"##
        );
    }

    #[test]
    fn the_older_format_names_counters_in_full_and_has_only_its_own_types() {
        let text = example(Dialect::Prometheus);
        assert!(text.contains("# TYPE x_frames_total counter\n"), "{text}");
        assert!(text.contains("# TYPE x_state gauge\n") && text.contains("# TYPE x_info gauge\n"), "{text}");
        assert!(!text.contains("UNIT") && !text.contains("EOF"), "{text}");
    }

    #[test]
    fn a_sample_without_labels_has_no_braces() {
        let mut text = Exposition::new(Dialect::OpenMetrics, &[]);
        text.gauge("x", "X.", 1);
        assert!(text.finish().ends_with("\nx 1\n# EOF\n"));
    }
}
