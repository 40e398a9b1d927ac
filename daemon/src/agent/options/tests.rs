use clap::Args;
use mapper_machine::options::ZeroDestination;

use super::node_ports::node_name;
use super::source::Role;
use super::*;

fn parse(text: &str) -> Result<Options, (usize, String)> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Options::read(file.path()).map_err(|error| match error {
        ConfigFileError::Wrong { line, message, .. } => (line, message),
        other => panic!("{other}"),
    })
}

const DEFAULTS: &str = include_str!("../../../../mapper.toml");

/// The key and its value that a comment of the defaults file mentions, if it does.
fn example(line: &str) -> Option<String> {
    let (key, _) = line.strip_prefix("# ")?.split_once(" = ")?;
    key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-').then(|| line[2..].to_owned())
}

/// The defaults file with every key set, also those that it only mentions.
fn defaults_with_all_keys() -> String {
    DEFAULTS.lines().map(|line| example(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

#[test]
fn the_file_of_defaults_is_the_defaults() {
    let interface = Some("eth1".to_owned());
    let read = Options { interface: interface.clone(), ..parse(DEFAULTS).unwrap() };
    let process = ProcessKeys { run_dir: Some(options::DEFAULT_RUN_DIR.into()), ..ProcessKeys::default() };
    let unset = Options { interface, process, ..Options::default() };
    assert_eq!(read.resolve(Role::Agent), unset.resolve(Role::Agent));
}

#[test]
fn what_the_file_of_defaults_shows_as_comments_is_no_default() {
    let resolved = |options: Options| {
        let interface = options.interface.clone().or_else(|| Some("eth0".to_owned()));
        Options { interface, ..options }.resolve(Role::Agent)
    };
    let unset = resolved(Options::default());
    let of_agents = DEFAULTS.lines().take_while(|line| !line.starts_with('['));
    for text in of_agents.filter_map(example) {
        assert_ne!(
            resolved(parse(&text).unwrap()),
            unset,
            "this is a default, so it is to be no comment: {text}"
        );
    }
}

#[test]
fn the_file_of_defaults_lists_every_option() {
    let text = defaults_with_all_keys();
    parse(&text).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let command = Options::augment_args(clap::Command::new("agent"));
    let options: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    assert!(options.len() > 30);
    for option in &options {
        assert!(table.contains_key(*option), "mapper.toml does not mention `{option}`");
    }
    // The key `ports` is the one option that `mapper agent` does not take on its command line, and `acm` is the table of
    // another daemon.
    let acm = table["acm"].as_table().unwrap();
    assert!(table.contains_key("ports"));
    // The table `plan` is in the file alone.
    let plan: mapper_machine::options::PlanKeys = table["plan"].clone().try_into().unwrap();
    assert!(plan.file.is_some() && plan.on_change.is_some());
    assert_eq!(table.len(), options.len() + 3);
    let command = AcmKeys::augment_args(clap::Command::new("serve"));
    let options: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    assert!(options.iter().all(|option| acm.contains_key(*option)), "{options:?}");
    assert_eq!(acm.len(), options.len());
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    for (text, line, needle) in [
        ("level = 1\nlevle = 2\n", 2, "levle"),
        ("\n\nlevel = 256\n", 3, "256"),
        (
            "level = \"high\"\n",
            1,
            "`level`: invalid type: string \"high\", expected a whole number from 0 to 255, as in `level = 1`",
        ),
        ("pause = 1\n", 1, "expected true or false, as in `pause = false`"),
        ("tap = true\n", 1, "as in `tap = \"fabric0\"`"),
        (
            "[acm]\nport = \"x\"\n",
            2,
            "`port`: invalid type: string \"x\", expected a whole number from 1 to 65535, as in `port = 6125`",
        ),
        ("log-level = 1\n", 1, "`log-level`: expected a text, as in `log-level = \"info\"`"),
        ("address = 5\n", 1, "or a list of texts, as in `address = ["),
        ("[level]\n", 1, "`level`: invalid type: map"),
        ("[plan]\nfil = 1\n", 2, "did you mean `file`?"),
        ("levle = 2\n", 1, "unknown field `levle`, did you mean `level`? Expected one of `interface`"),
        ("# so\nprobe-tries = 0\n", 2, "from 1 to 100"),
        ("ethertype = \"0x05ff\"\n", 1, "0x0600"),
        ("ethertype = \"0x0800\"\n", 1, "IPv4"),
        ("ethertype = \"0806\"\n", 1, "ARP"),
        ("ethertype = \"0x86DD\"\n", 1, "IPv6"),
        ("ethertype = \"0x8100\"\n", 1, "VLAN"),
        ("destination = \"01:80\"\n", 1, "MAC"),
        ("host-type = \"vax\"\n", 1, "infiniband"),
        ("level = 1\nlevel = 1\n", 2, "duplicate"),
        ("level = \n", 1, ""),
        ("unit = 1\n[agent]\n", 2, "agent"),
    ] {
        let (found, message) = parse(text).unwrap_err();
        assert_eq!(found, line, "{text:?}: {message}");
        assert!(message.contains(needle), "{text:?}: {message}");
    }
}

#[test]
fn a_node_has_an_interface_over_the_fabric_unless_told_otherwise_and_an_agent_only_if_told() {
    let node = |tap: Option<&str>| Options {
        ports: Some(vec!["e1".to_owned()]),
        tap: tap.map(str::to_owned),
        ..Options::default()
    };
    let tap = |options: Options, role| options.resolve(role).unwrap().tap;
    assert_eq!(tap(node(None), Role::Node).as_deref(), Some("fabric0"));
    assert_eq!(tap(node(Some("t0")), Role::Node).as_deref(), Some("t0"));
    assert_eq!(tap(node(Some("none")), Role::Node), None);
    let agent = |tap| Options { interface: Some("e1".to_owned()), ports: None, ..node(tap) };
    assert_eq!(tap(agent(None), Role::Agent), None);
    assert_eq!(tap(agent(Some("none")), Role::Agent), None);
    let port = Options { ports: Some(vec!["fabric0".to_owned()]), ..Options::default() };
    assert_eq!(port.resolve(Role::Node), Err(OptionsError::TapIsPort));
    let addressed = |tap| {
        let address = Some(vec!["10.1.0.0/24".parse().unwrap(), "10.1.0.3/24".parse().unwrap()]);
        Options { address, ..node(tap) }.resolve(Role::Node)
    };
    assert_eq!(addressed(Some("none")), Err(OptionsError::AddressWithoutTap));
    let config = addressed(None).unwrap();
    assert_eq!(config.networks, ["10.1.0.0/24".parse().unwrap()]);
    assert_eq!(config.addresses, ["10.1.0.3/24".parse().unwrap()]);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let line = Options { level: Some(3), pause: Some(false), ..Options::default() };
    let file = parse("level = 1\npause = true\nunit = 4\ninterface = \"eth1\"\n").unwrap();
    let config = line.or(file).resolve(Role::Agent).unwrap();
    assert_eq!((config.settings.level, config.settings.pause, config.unit), (3, false, 4));
}

#[test]
fn without_an_interface_there_is_no_configuration() {
    assert_eq!(Options::default().resolve(Role::Agent), Err(OptionsError::NoInterface));
}

#[test]
fn a_parent_is_asked_before_it_is_silent() {
    for interval_ms in [3000, 5000] {
        let file = parse(&format!("interface = \"eth1\"\nquery-interval-ms = {interval_ms}\n")).unwrap();
        let message = file.resolve(Role::Agent).unwrap_err().to_string();
        assert!(message.contains("silence-limit-ms (3000)"), "{message}");
        assert!(message.contains(&format!("query-interval-ms ({interval_ms})")), "{message}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused_with_its_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"level = 1\n# \xff\n").unwrap();
    let message = Options::read(file.path()).unwrap_err().to_string();
    assert!(message.ends_with(":2: not UTF-8 text"), "{message}");
}

#[test]
fn a_node_has_ports_and_an_agent_an_interface() {
    let read = |text: &str, role| parse(text).unwrap().resolve(role);
    let node = read("ports = [\"eth1\", \"eth2\"]\n", Role::Node).unwrap();
    assert_eq!((node.interface.as_str(), node.ports.len()), ("eth1+eth2", 2));
    assert_eq!(read("ports = [\"eth1\"]\n", Role::Agent), Err(OptionsError::PortsOfAgent));
    assert_eq!(read("interface = \"eth1\"\n", Role::Node), Err(OptionsError::InterfaceOfNode));
    assert_eq!(read("ports = []\n", Role::Node), Err(OptionsError::PortCount));
    assert_eq!(read("ports = [\"eth1\", \"eth1\"]\n", Role::Node), Err(OptionsError::PortTwice));
}

#[test]
fn a_node_of_many_ports_has_a_name_that_fits_a_socket() {
    let names: Vec<_> = (0..254).map(|number| format!("fabric-port-{number}")).collect();
    assert_eq!(node_name(&names).unwrap(), "fabric-port-0+253-more");
    assert_eq!(node_name(&names[..2]).unwrap(), "fabric-port-0+fabric-port-1");
}

#[test]
fn a_tap_is_none_of_the_interfaces_that_are_cabled_to_the_fabric() {
    let read = |text: &str, role| parse(text).unwrap().resolve(role);
    assert_eq!(read("interface = \"eth1\"\ntap = \"eth1\"\n", Role::Agent), Err(OptionsError::TapIsPort));
    let ports = "ports = [\"eth1\", \"eth2\"]\n";
    assert_eq!(read(&format!("{ports}tap = \"eth2\"\n"), Role::Node), Err(OptionsError::TapIsPort));
    assert!(read(&format!("{ports}tap = \"eth3\"\n"), Role::Node).is_ok());
}

#[test]
fn types_of_hosts_are_named_as_they_are_read() {
    for number in 1..=u8::MAX {
        assert_eq!(HostType::name(number).parse::<HostType>().unwrap().number(), number);
    }
}

#[test]
fn addresses_are_one_or_several_and_need_a_tap() {
    let read = |text: &str| parse(text).unwrap().resolve(Role::Agent);
    let agent = "interface = \"eth1\"\n";
    let shown = |config: Config| config.addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    let one = read(&format!("{agent}tap = \"t0\"\naddress = \"10.1.0.1/24\"\n")).unwrap();
    assert_eq!(shown(one), ["10.1.0.1/24"]);
    let two = read(&format!("{agent}tap = \"t0\"\naddress = [\"10.1.0.1/24\", \"fd00::1/64\"]\n")).unwrap();
    assert_eq!(shown(two), ["10.1.0.1/24", "fd00::1/64"]);
    let twice =
        read(&format!("{agent}tap = \"t0\"\naddress = [\"10.1.0.1/24\", \"10.1.0.1/24\"]\n")).unwrap();
    assert_eq!(shown(twice), ["10.1.0.1/24"]);
    let without = read(&format!("{agent}address = \"10.1.0.1/24\"\n"));
    assert_eq!(without, Err(OptionsError::AddressWithoutTap));
    let (line, message) = parse("level = 1\naddress = \"10.1.0.1\"\nunit = 2\n").unwrap_err();
    assert_eq!(line, 2, "{message}");
    assert!(message.contains("`10.1.0.1` has no prefix; expected ADDRESS/PREFIX"), "{message}");
}

#[test]
fn frames_go_to_no_zero_address() {
    let file = parse("interface = \"eth1\"\ndestination = \"00:00:00:00:00:00\"\n").unwrap();
    assert_eq!(file.resolve(Role::Agent), Err(OptionsError::Destination(ZeroDestination)));
}

#[test]
fn a_file_without_end_is_refused_and_long_words_are_not_repeated() {
    let error = Options::read(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(error, "/dev/zero is longer than 1048576 bytes, which no configuration needs");
    let (line, message) = parse(&format!("level = 1\n{} = 1\n", "x".repeat(10_000))).unwrap_err();
    assert!(line == 2 && message.len() < 400, "{line}: {message}");
    let (_, message) = parse("\"\\u001b[2J\" = 1\n").unwrap_err();
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn a_node_takes_names_and_patterns_and_is_called_by_them() {
    let read =
        |ports: &str| parse(&format!("ports = [{ports}]\ntap = \"f0\"\n")).unwrap().resolve(Role::Node);
    let config = read("\"eth*\", \"enp3s0\", \"x?\"").unwrap();
    assert!(config.is_node());
    assert_eq!(
        (config.ports, config.patterns),
        (vec!["enp3s0".to_owned()], vec!["eth*".to_owned(), "x?".to_owned()])
    );
    assert_eq!(config.interface, "eth+enp3s0+x");
    assert_eq!(read("\"*\"").unwrap().interface, "node");
    assert!(read("\"f*\"").is_ok(), "the tap is left out of a pattern that it matches");
}

#[test]
fn a_node_takes_no_numbers() {
    for ports in ["\"1=e1\"", "\"e1\", \"2=e2\"", "\"1=e*\""] {
        let file = parse(&format!("ports = [{ports}]\n")).unwrap();
        assert_eq!(file.resolve(Role::Node), Err(OptionsError::PortOfXbar), "{ports}");
    }
}
