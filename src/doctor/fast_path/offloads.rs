//! Offloads of network cards that are known to break packets which are forwarded.

use std::path::Path;

use mapper_machine::link::interface::Interface;

use crate::doctor::{Check, Repair, repair::output_of};

/// The driver of network cables between Thunderbolt ports. It says that it segments TCP, and mangles such packets
/// when they come from another interface.
const THUNDERBOLT: &str = "thunderbolt-net";

/// Names the offloads of a port that are to be off.
pub(super) fn check(port: &Interface) -> Vec<Check> {
    let driver = std::fs::read_link(Path::new("/sys/class/net").join(&port.name).join("device/driver"));
    let driver = driver.ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    if driver.as_deref() != Some(THUNDERBOLT) {
        return Vec::new();
    }
    let shown = match output_of("ethtool", &["-k", &port.name]) {
        Some(Ok(output)) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        _ => None,
    };
    vec![judge(&port.name, shown.as_deref())]
}

/// Judges what `ethtool -k` shows of a Thunderbolt port; `None` if it shows nothing.
fn judge(name: &str, shown: Option<&str>) -> Check {
    let check = "offloads";
    let off = format!("ethtool -K {name} tso off");
    let why = "TCP that is forwarded to a Thunderbolt port gets stuck while the port segments it (TSO)";
    let Some(shown) = shown else {
        let what = format!("{why}; whether it does was not looked at, as ethtool is missing or failed");
        return Check::warning(check, what, format!("install ethtool, then `{off}`"));
    };
    let is_on = |key: &str| {
        shown.lines().any(|line| line.trim().strip_prefix(key).is_some_and(|it| it.starts_with(": on")))
    };
    if !is_on("tcp-segmentation-offload") {
        return Check::ok(check, "it does not segment TCP");
    }
    let undo = format!("ethtool -K {name} tso on");
    Check::warning(check, why, format!("`{off}`, at every start")).with(Repair::new(off, undo))
}

#[cfg(test)]
mod tests {
    use super::super::super::Outcome;
    use super::*;

    #[test]
    fn segmentation_by_a_thunderbolt_port_is_to_be_off() {
        let on = judge(
            "tb0",
            Some("Features for tb0:\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n"),
        );
        assert_eq!(on.status, Outcome::Warning);
        assert_eq!(on.repair.unwrap().commands, ["ethtool -K tb0 tso off"]);
        assert_eq!(judge("tb0", Some("tcp-segmentation-offload: off\n")).status, Outcome::Ok);
        let unknown = judge("tb0", None);
        assert!(unknown.what.contains("was not looked at") && unknown.repair.is_none());
    }
}
