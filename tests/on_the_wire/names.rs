//! A test of hosts that tell each other their names, and of the commands that show the names.

use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::{MAPPER, can_make_namespaces};

/// The name that each board has for each address that it names.
fn all_named(boards: &[Value]) -> bool {
    boards.len() == 4
        && boards.iter().all(|board| {
            let names = board["names"].as_object().unwrap();
            let leader = board["leader"].as_str().unwrap_or_default();
            board["network_configured"] == true && names.contains_key(leader)
        })
}

#[test]
fn names_are_shown_on_boards_in_routes_in_maps_and_on_request() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let made = std::process::Command::new(MAPPER).arg("key").output().unwrap();
    std::fs::write(&keys, made.stdout).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let key_file = keys.display().to_string();
    for options in [&[][..], &["--", "--key-file", &key_file]] {
        let lab = Lab::up("ring:n=4,hosts=1", options);
        let boards = lab.wait_until("all names", all_named);
        assert_eq!(boards[0]["name"], "h1");
        assert_eq!(boards[0]["names"]["02:00:00:00:00:04"], "h4");
        let text = lab.run(&["exec", "h2", MAPPER, "board-info"]);
        assert!(text.contains("global mapper h4 (02:00:00:00:00:04)"), "{text}");

        let resolve = |what: &str| lab.try_run(&["exec", "h1", MAPPER, "resolve", what]);
        let answer = wait_for("the name of a host that is no neighbour", || {
            Some(resolve("H3")).filter(|output| output.status.success())
        });
        let said = String::from_utf8(answer.stdout).unwrap();
        assert!(said.starts_with("h3 02:00:00:00:00:03 at port 0x"), "{said}");
        assert!(said.contains(", by 0x"), "{said}");
        let by_address = String::from_utf8(resolve("02:00:00:00:00:03").stdout).unwrap();
        assert_eq!(by_address, said);
        let unknown = resolve("nobody");
        assert_eq!(unknown.status.code(), Some(1));
        let error = String::from_utf8(unknown.stderr).unwrap();
        assert!(error.contains("nobody: no host of the map is called so"), "{error}");

        let routes = lab.run(&["exec", "h1", MAPPER, "board-info", "--routes"]);
        assert!(routes.contains("  route to h3 02:00:00:00:00:03 (ethernet) by h1:"), "{routes}");
    }
}

#[test]
fn the_file_of_the_map_gets_the_names_when_they_come_and_a_name_can_change() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    lab.wait_for_network("the ring", 3, 3);
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map.json");
    lab.stop_agent("h2");
    let config = dir.path().join("mapper.toml");
    let write = |name: &str| {
        let text =
            format!("interface = \"fab0\"\nhost-name = \"{name}\"\nmap-file = \"{}\"\n", map.display());
        std::fs::write(&config, text).unwrap();
    };
    write("second");
    let pid_file = dir.path().join("pid").display().to_string();
    let config_path = config.display().to_string();
    lab.run(&["exec", "h2", MAPPER, "agent", "--config", &config_path, "--daemon-pid-file", &pid_file]);
    let named_in_map = |name: &str| {
        let text = std::fs::read(&map).ok()?;
        let json: Value = serde_json::from_slice(&text).ok()?;
        let names: Vec<_> =
            json["hosts"].as_array()?.iter().filter_map(|host| host["name"].as_str()).collect();
        (names.contains(&name) && names.contains(&"h3")).then_some(())
    };
    wait_for("the names in the file of the map", || named_in_map("second"));
    write("other");
    let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    wait_for("the new name", || named_in_map("other"));
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}
