//! `mapper xbar --status`: shows the crossbars of this machine.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mapper_daemon::xbar::cable::CableState;
use mapper_daemon::xbar::{PortStatus, XbarDataPath, XbarStatus, socket};
use serde::Serialize;

use crate::cli::nobody_there::no_crossbar;
use crate::cli::put_right::write_put_right;
use crate::cli::{CliError, Format, output};
use mapper_fabric::wording::plural;
use mapper_machine::log;

/// How long a crossbar may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The JSON `mapper.xbar/1`. `xbars` are those of this machine, sorted by name, each as
/// [`XbarStatus`]: `name`, `kind` (`plain`, `tagged`), `tag` (hex string or null), `first_port`,
/// `port_count`, `log_lines_lost`, `data_path` (null, or {`kind` (`srv6`, `tap`), `why`, `objects`, `put_right`,
/// `troubles` []}), `ports` [{`port`, `interface`, `exists`, `up`, `carrier`, `mtu`, `cable`
/// {`state` (`silent`, `joined`, `one-way`, `looped`, `shared`), `mtu`, `neighbour` (null or {`mac`, `host`, `tag`, `port`,
/// `mtu`, `flags` []}), `looped_to`, `shared_with` []}, `received`, `received_bytes`, `overruns`, `forwarded`, `hellos`,
/// `dropped` {by reason}, `sent`, `sent_bytes`, `unsent`, `hellos_sent`, `notices`, `notices_suppressed`}], `pid`, `uptime_ms`, `no_answer` (null, or why nothing else is known).
#[derive(Serialize)]
struct XbarStatusJson<'a> {
    schema: &'static str,
    xbars: &'a [XbarStatus],
}

/// Shows the crossbars that have a socket in the run directory. The exit status is 1 if there is
/// none, or if one may not be asked by this user.
pub(super) fn show(run_dir: &Path, name: Option<&str>, format: Format) -> Result<ExitCode, CliError> {
    let socket::Answers { mut xbars, denied } = socket::ask_all(run_dir, Instant::now() + PATIENCE)?;
    if let Some(name) = name {
        xbars.retain(|xbar| xbar.name == name);
    }
    match format {
        Format::Json => {
            let answer = XbarStatusJson { schema: "mapper.xbar/1", xbars: &xbars };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
            if xbars.is_empty() {
                // If standard error cannot be written, the exit status still tells that there is none.
                let _unheard = log::say(&format!("mapper: {}\n", no_crossbar(name, run_dir)));
            }
        }
        Format::Text if xbars.is_empty() => {
            output::print(&(no_crossbar(name, run_dir) + "\n"))?;
        }
        Format::Text => output::print(&xbars.iter().map(describe).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(if denied || xbars.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Describes a crossbar: a line about it, a table of its ports, and what was dropped and why.
pub(super) fn describe(xbar: &XbarStatus) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _infallible = write_xbar(&mut text, xbar);
    text
}

fn write_xbar(text: &mut String, xbar: &XbarStatus) -> std::fmt::Result {
    let XbarStatus { name, kind, first_port, port_count, pid, .. } = xbar;
    if let Some(why) = &xbar.no_answer {
        writeln!(text, "crossbar {name}: down")?;
        return writeln!(text, "  {why}");
    }
    let tag = xbar.tag.as_ref().map(|tag| format!(" {tag}")).unwrap_or_default();
    let last_port = first_port.saturating_add(port_count.saturating_sub(1));
    let up = describe_time(xbar.uptime_ms);
    writeln!(
        text,
        "crossbar {name}: {kind}{tag}, ports {first_port} to {last_port}, process {pid}, up {up}"
    )?;
    if xbar.log_lines_lost > 0 {
        let lines = plural(xbar.log_lines_lost, "line");
        writeln!(text, "  {lines} of its log lost: not read, or not written")?;
    }
    text.extend(xbar.data_path.as_ref().map(describe_data_path));
    write_table(text, &xbar.ports)?;
    for port in &xbar.ports {
        write_cable(text, port)?;
        write_losses(text, port)?;
    }
    Ok(())
}

/// Describes what users' packets go by at the crossbar, and what of its kernel was put right, in indented lines.
pub(in crate::cli) fn describe_data_path(path: &XbarDataPath) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _infallible = write_data_path(&mut text, path);
    text
}

fn write_data_path(text: &mut String, path: &XbarDataPath) -> std::fmt::Result {
    let XbarDataPath { kind, why, objects, put_right, troubles } = path;
    let held = match objects {
        0 => String::new(),
        &objects => format!("; it is to hold {}", plural(objects, "object")),
    };
    writeln!(text, "  users' packets go by {kind}: {why}{held}")?;
    write_put_right(text, *put_right, troubles)
}

fn write_table(text: &mut String, ports: &[PortStatus]) -> std::fmt::Result {
    let heads = ["port", "interface", "carrier", "received", "forwarded", "dropped", "sent", "unsent"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(ports.iter().map(|port| {
        let carrier = match (port.exists, port.carrier) {
            (false, _) => "absent",
            (true, false) => "no",
            (true, true) => "yes",
        };
        let numbers = [port.received, port.forwarded, port.dropped.total(), port.sent, port.unsent];
        let [received, forwarded, dropped, sent, unsent] = numbers.map(|number| number.to_string());
        let (interface, carrier) = (port.interface.clone(), carrier.to_owned());
        [port.port.to_string(), interface, carrier, received, forwarded, dropped, sent, unsent]
    }));
    for row in &rows {
        text.push(' ');
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
            // Words are aligned to the left of their columns, numbers to the right.
            match column {
                1 | 2 => write!(text, " {cell:<width$}")?,
                _ => write!(text, " {cell:>width$}")?,
            }
        }
        text.push('\n');
    }
    Ok(())
}

/// Writes who is at the other end of a port's cable, and what is wrong with the cable.
fn write_cable(text: &mut String, port: &PortStatus) -> std::fmt::Result {
    if let (Some(CableState::Joined), Some(neighbour)) = (port.cable.state.known(), &port.cable.neighbour) {
        writeln!(text, "  port {} is cabled to {}, MTU {}", port.port, neighbour.describe(), neighbour.mtu)?;
    }
    match port.cable.trouble(&port.interface) {
        Some(trouble) => writeln!(text, "  port {}: {trouble}", port.port),
        None => Ok(()),
    }
}

/// Writes why frames that arrived at a port were lost, if any were.
fn write_losses(text: &mut String, port: &PortStatus) -> std::fmt::Result {
    let overruns = (port.overruns, "lost before it, as they came too fast");
    let reasons = port.dropped.iter().map(|(why, _, count)| (count, why.words())).chain([overruns]);
    let reasons: Vec<_> = reasons.filter(|(count, _)| *count > 0).collect();
    if !reasons.is_empty() {
        let words: Vec<_> = reasons.iter().map(|(count, reason)| format!("{count} {reason}")).collect();
        writeln!(text, "  lost at port {}: {}", port.port, words.join("; "))?;
    }
    if port.notices + port.notices_suppressed > 0 {
        let PortStatus { port, notices, notices_suppressed, .. } = port;
        writeln!(
            text,
            "  senders told through port {port}: {notices} times, {notices_suppressed} times not"
        )?;
    }
    Ok(())
}

fn describe_time(ms: u64) -> String {
    let minutes = ms / 60_000;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", ms / 1000),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_daemon::xbar::cable::{CableStatus, NeighbourStatus};
    use mapper_daemon::xbar::counters::XbarDrop;
    use mapper_proto::Tally;

    #[test]
    fn a_table_shows_each_port_and_a_line_why_frames_were_lost() {
        let dropped = Tally::from_iter([(XbarDrop::NoCarrier, 7), (XbarDrop::TooLong, 2)]);
        let busy = PortStatus {
            port: 1,
            interface: "eth1".to_owned(),
            exists: true,
            carrier: true,
            received: 1009,
            forwarded: 1000,
            dropped,
            notices: 6,
            notices_suppressed: 1,
            ..PortStatus::default()
        };
        let absent = PortStatus { port: 12, interface: "enp3s0f1".to_owned(), ..PortStatus::default() };
        let xbar = XbarStatus {
            name: "core".to_owned(),
            kind: "tagged".to_owned(),
            tag: Some("000000000000feed".to_owned()),
            first_port: 1,
            port_count: 12,
            ports: vec![busy, absent],
            pid: 42,
            uptime_ms: 100 * 60_000,
            log_lines_lost: 0,
            data_path: None,
            no_answer: None,
        };
        let expected = "\
crossbar core: tagged 000000000000feed, ports 1 to 12, process 42, up 1 h 40 min
  port interface carrier received forwarded dropped sent unsent
     1 eth1      yes         1009      1000       9    0      0
    12 enp3s0f1  absent         0         0       0    0      0
  lost at port 1: 7 to a port without carrier; 2 too long for the interface
  senders told through port 1: 6 times, 1 times not
";
        assert_eq!(describe(&xbar), expected);
    }

    #[test]
    fn what_packets_go_by_and_what_others_changed_in_the_kernel_is_shown() {
        let path = XbarDataPath {
            kind: "srv6".to_owned(),
            why: "the kernel obeys segments".to_owned(),
            objects: 6,
            put_right: 2,
            troubles: vec!["no memory".to_owned()],
        };
        let text = describe(&XbarStatus { data_path: Some(path), ..XbarStatus::default() });
        let lines = "\n  users' packets go by srv6: the kernel obeys segments; it is to hold 6 objects\n  2 objects put \
                     right in the kernel, as others had changed them\n  the kernel: no memory\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn who_is_at_the_other_end_of_a_cable_is_shown_and_that_its_mtu_differs() {
        let neighbour = NeighbourStatus {
            mac: "02:00:00:00:00:01".to_owned(),
            tag: Some("000000000000feed".to_owned()),
            port: Some(3),
            mtu: 1500,
            ..NeighbourStatus::default()
        };
        let cable = CableStatus {
            state: CableState::Joined.into(),
            mtu: Some(9000),
            neighbour: Some(neighbour),
            ..CableStatus::default()
        };
        let interface = "eth1".to_owned();
        let port = PortStatus { port: 1, interface, mtu: Some(9000), cable, ..PortStatus::default() };
        let text = describe(&XbarStatus { ports: vec![port], ..XbarStatus::default() });
        let line =
            "  port 1 is cabled to 02:00:00:00:00:01, port 3 of crossbar 0x000000000000feed, MTU 1500\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("  port 1: eth1 carries 9000 bytes, and at the other end"), "{text}");
    }

    #[test]
    fn one_that_does_not_answer_is_shown_with_the_reason() {
        let text = describe(&XbarStatus::silent("core", "it is stopped".to_owned()));
        assert_eq!(text, "crossbar core: down\n  it is stopped\n");
    }
}
