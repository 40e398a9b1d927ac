//! What is said where no agent or crossbar can be asked: in the same words by all commands that ask one.

use std::path::Path;

/// Says that no agent can be asked, or not that of this unit, and what to do about it.
pub(super) fn no_agent(unit: Option<u8>, run_dir: &Path) -> String {
    let run_dir = run_dir.display();
    match unit {
        Some(unit) => format!(
            "no agent of unit {unit} has a status socket in {run_dir}: `mapper board-info` shows those that do, \
             --run-dir names another directory"
        ),
        None => format!(
            "no agent has a status socket in {run_dir}: start one with `mapper agent` or `mapper node`; `mapper \
             doctor` says what keeps it from running, --run-dir names another directory"
        ),
    }
}

/// Says that no crossbar can be asked, or not the one of this name, and what to do about it.
pub(super) fn no_crossbar(name: Option<&str>, run_dir: &Path) -> String {
    let run_dir = run_dir.display();
    match name {
        Some(name) => format!(
            "no crossbar `{name}` has a status socket in {run_dir}: `mapper xbar --status` shows those that do, \
             --run-dir names another directory"
        ),
        None => format!(
            "no crossbar has a status socket in {run_dir}: start one with `mapper xbar` or `mapper node`; `mapper \
             doctor` says what keeps it from running, --run-dir names another directory"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_there_is_named_with_what_to_do() {
        let run_dir = Path::new("/run/x");
        for text in [no_agent(None, run_dir), no_agent(Some(3), run_dir), no_crossbar(Some("core"), run_dir)]
        {
            assert!(text.contains("/run/x") && text.contains("--run-dir"), "{text}");
        }
        assert!(no_agent(Some(3), run_dir).starts_with("no agent of unit 3 has"));
        assert!(no_crossbar(None, run_dir).contains("start one with `mapper xbar`"));
    }
}
