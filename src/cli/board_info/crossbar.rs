//! Describes the crossbars of this machine as text for a person.

use mapper_daemon::xbar::XbarStatus;

use crate::cli::xbar::describe_data_path;

/// Describes a crossbar: a line, and below it what users' packets go by, and a line for each port without carrier.
pub(super) fn describe_xbar(xbar: &XbarStatus) -> String {
    let XbarStatus { name, kind, tag, ports, .. } = xbar;
    if let Some(why) = &xbar.no_answer {
        return format!("crossbar {name}: down\n  {why}\n");
    }
    let tag = tag.as_ref().map(|tag| format!(" {tag}")).unwrap_or_default();
    let up = ports.iter().filter(|port| port.carrier).count();
    let mut text = format!("crossbar {name}: {kind}{tag}: {up} of {} ports have carrier\n", ports.len());
    text.extend(xbar.data_path.as_ref().map(describe_data_path));
    for port in ports.iter().filter(|port| !port.carrier) {
        let why = match (port.exists, port.up) {
            (false, _) => "there is no such interface",
            (true, false) => "it is down",
            (true, true) => "no carrier",
        };
        text.push_str(&format!("  port {} ({}): {why}\n", port.port, port.interface));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossbar_is_a_line_and_a_line_for_each_port_that_is_down() {
        let port = |port, exists, carrier| mapper_daemon::xbar::PortStatus {
            port,
            interface: format!("eth{port}"),
            exists,
            up: exists,
            carrier,
            ..Default::default()
        };
        let xbar = XbarStatus {
            name: "leaf".to_owned(),
            kind: "plain".to_owned(),
            ports: vec![port(1, true, true), port(2, true, false), port(3, false, false)],
            ..XbarStatus::default()
        };
        let expected = "crossbar leaf: plain: 1 of 3 ports have carrier\n  port 2 (eth2): no carrier\n  \
                        port 3 (eth3): there is no such interface\n";
        assert_eq!(describe_xbar(&xbar), expected);
        let down = describe_xbar(&XbarStatus::silent("leaf", "it is stopped".to_owned()));
        assert_eq!(down, "crossbar leaf: down\n  it is stopped\n");
    }
}
