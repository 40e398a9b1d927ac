//! The metrics of a software crossbar.

use super::{PortStatus, XbarDataPath, XbarStatus};
use mapper_machine::metrics::{Dialect, Exposition, FamilyKind, Unit};

/// The metrics of the crossbar with this status.
pub(crate) fn render(status: &XbarStatus, dialect: Dialect) -> String {
    let mut text = Exposition::new(dialect, &[("xbar", &status.name)]);
    let tag = status.tag.as_deref().unwrap_or_default();
    let labels = [("version", env!("CARGO_PKG_VERSION")), ("kind", &*status.kind), ("tag", tag)];
    text.family(FamilyKind::Info, "mapper_xbar", Unit::None, "The crossbar and its program.")
        .sample(&labels, 1);
    text.family(
        FamilyKind::Gauge,
        "mapper_xbar_uptime",
        Unit::Seconds,
        "How long the crossbar has been running.",
    )
    .sample_float(&[], status.uptime_ms as f64 / 1e3);
    let help = "Lines of the log that were lost, as nobody read them or they could not be written.";
    text.counter("mapper_xbar_log_lines_lost", Unit::None, help, status.log_lines_lost);
    if let Some(path) = &status.data_path {
        write_data_path(&mut text, path);
    }
    write_ports(&mut text, &status.ports);
    let help = "Frames that arrived at the port and did not leave by any, by why.";
    let mut family = text.family(FamilyKind::Counter, "mapper_xbar_dropped", Unit::None, help);
    for port in &status.ports {
        let number = port.port.to_string();
        for (_, reason, count) in port.dropped.iter() {
            family
                .sample(&[("port", &number), ("port_interface", &port.interface), ("reason", reason)], count);
        }
    }
    text.finish()
}

/// Writes what users' packets go by.
fn write_data_path(text: &mut Exposition, path: &XbarDataPath) {
    text.family(FamilyKind::Info, "mapper_xbar_data_path", Unit::None, "What users' packets go by.")
        .sample(&[("kind", &*path.kind)], 1);
    let help = "Objects that the kernel is to hold.";
    text.family(FamilyKind::Gauge, "mapper_xbar_kernel_objects", Unit::None, help)
        .sample(&[], path.objects as u64);
    let help = "Objects and settings of the kernel that others had changed, and that were put right.";
    text.counter("mapper_xbar_kernel_put_right", Unit::None, help, path.put_right);
    let help = "How many things the kernel refuses.";
    text.family(FamilyKind::Gauge, "mapper_xbar_kernel_troubles", Unit::None, help)
        .sample(&[], path.troubles.len() as u64);
}

/// A family of metrics with one number for each port.
struct PortFamily {
    kind: FamilyKind,
    name: &'static str,
    unit: Unit,
    help: &'static str,
    of: fn(&PortStatus) -> u64,
}

impl PortFamily {
    const fn gauge(name: &'static str, help: &'static str, of: fn(&PortStatus) -> u64) -> Self {
        Self { kind: FamilyKind::Gauge, name, unit: Unit::None, help, of }
    }

    const fn counter(name: &'static str, help: &'static str, of: fn(&PortStatus) -> u64) -> Self {
        Self { kind: FamilyKind::Counter, name, unit: Unit::None, help, of }
    }

    const fn bytes(name: &'static str, help: &'static str, of: fn(&PortStatus) -> u64) -> Self {
        Self { kind: FamilyKind::Counter, name, unit: Unit::Bytes, help, of }
    }
}

const PORT_FAMILIES: [PortFamily; 11] = [
    PortFamily::gauge("mapper_xbar_port_exists", "1 if the port's interface exists.", |port| {
        port.exists.into()
    }),
    PortFamily::gauge("mapper_xbar_port_carrier", "1 if the port has carrier.", |port| port.carrier.into()),
    PortFamily::counter("mapper_xbar_received_frames", "Frames that arrived at the port.", |port| {
        port.received
    }),
    PortFamily::bytes("mapper_xbar_received", "Bytes that arrived at the port.", |port| port.received_bytes),
    PortFamily::counter(
        "mapper_xbar_overruns",
        "Frames that the kernel lost before they were taken in.",
        |port| port.overruns,
    ),
    PortFamily::counter(
        "mapper_xbar_forwarded_frames",
        "Frames that arrived at the port and left by some port.",
        |port| port.forwarded,
    ),
    PortFamily::counter("mapper_xbar_sent_frames", "Frames that left by the port.", |port| port.sent),
    PortFamily::bytes("mapper_xbar_sent", "Bytes that left by the port.", |port| port.sent_bytes),
    PortFamily::counter(
        "mapper_xbar_unsent_frames",
        "Frames that should have left by the port, but that it did not take.",
        |port| port.unsent,
    ),
    PortFamily::counter(
        "mapper_xbar_notices",
        "Notices sent back out of the port, as a frame could not go on or the cable that it took was lost.",
        |port| port.notices,
    ),
    PortFamily::counter(
        "mapper_xbar_notices_suppressed",
        "Notices not sent, as there were too many of them.",
        |port| port.notices_suppressed,
    ),
];

fn write_ports(text: &mut Exposition, ports: &[PortStatus]) {
    for PortFamily { kind, name, unit, help, of } in PORT_FAMILIES {
        let mut family = text.family(kind, name, unit, help);
        for port in ports {
            let number = port.port.to_string();
            family.sample(&[("port", &number), ("port_interface", &port.interface)], of(port));
        }
    }
}

#[cfg(test)]
pub(crate) fn assert_well_formed(text: &str) {
    let mut families = std::collections::BTreeSet::new();
    let mut current = "none yet".to_owned();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            rest.split(' ').next().unwrap_or_default().clone_into(&mut current);
            assert!(families.insert(current.clone()), "{current} twice");
        }
        let name = ["# TYPE ", "# HELP ", "# UNIT "].iter().find_map(|start| line.strip_prefix(start));
        assert!(name.unwrap_or(line).starts_with(&current), "{line} under {current}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xbar::counters::XbarDrop;
    use mapper_proto::Tally;

    #[test]
    fn each_port_has_its_numbers() {
        let port = |number, sent| PortStatus {
            port: number,
            interface: format!("p{number}"),
            carrier: number == 1,
            sent,
            dropped: Tally::from_iter([(XbarDrop::QueueFull, 4)]),
            ..PortStatus::default()
        };
        let status = XbarStatus {
            name: "leaf".to_owned(),
            kind: "plain".to_owned(),
            ports: vec![port(1, 7), port(2, 0)],
            data_path: Some(XbarDataPath { objects: 6, put_right: 2, ..XbarDataPath::tap("") }),
            ..XbarStatus::default()
        };
        let text = render(&status, Dialect::OpenMetrics);
        for line in [
            r#"mapper_xbar_data_path_info{xbar="leaf",kind="tap"} 1"#,
            r#"mapper_xbar_kernel_objects{xbar="leaf"} 6"#,
            r#"mapper_xbar_kernel_put_right_total{xbar="leaf"} 2"#,
            r#"mapper_xbar_port_carrier{xbar="leaf",port="1",port_interface="p1"} 1"#,
            r#"mapper_xbar_port_carrier{xbar="leaf",port="2",port_interface="p2"} 0"#,
            r#"mapper_xbar_sent_frames_total{xbar="leaf",port="1",port_interface="p1"} 7"#,
            r#"mapper_xbar_sent_bytes_total{xbar="leaf",port="1",port_interface="p1"} 0"#,
            r#"mapper_xbar_dropped_total{xbar="leaf",port="2",port_interface="p2",reason="queue_full"} 4"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_well_formed(&text);
    }
}
