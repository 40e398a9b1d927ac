use std::collections::BTreeMap;
use std::path::Path;

use clap::Parser;
use mapper_machine::options::{ConfigFileError, ZeroDestination};

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    options: XbarOptions,
}

/// The options of a daemon of another kind, which has a key that crossbars do not know.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OfAgents {
    level: u8,
    tap: String,
    #[serde(skip)]
    shared: Shared,
}

impl FileOptions for OfAgents {
    const PROCESS_FOLLOWS: &'static str = "level";
    const FRAMES_FOLLOW: &'static str = "tap";
    const EXAMPLES: &'static str = "";

    fn with(self, shared: Shared) -> Self {
        Self { shared, ..self }
    }

    fn or(self, _file: Self) -> Self {
        self
    }
}

fn of_agents(path: &Path) -> Result<Shared, ConfigFileError> {
    let OfAgents { level: 3, tap, shared } = options::read_if_there(path)? else {
        panic!("the keys of agents are not read");
    };
    assert_eq!(tap, "fabric0");
    Ok(shared)
}

fn read(line: &str) -> Result<XbarConfig, XbarConfigError> {
    let words = std::iter::once("xbar").chain(line.split_whitespace());
    XbarSource::new(Command::try_parse_from(words).unwrap().options, None, of_agents).read(&[])
}

fn refusal(line: &str) -> PortsError {
    match read(line) {
        Err(XbarConfigError::Ports(error)) => error,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn ports_are_numbered_in_order_from_1_in_either_spelling() {
    for line in ["--port a --port b --port 7=c --port d", "--ports a,b,7=c,d"] {
        let config = read(line).unwrap();
        let interfaces: Vec<_> = config.interfaces.iter().map(|(n, name)| (*n, name.as_str())).collect();
        assert_eq!(interfaces, [(1, "a"), (2, "b"), (7, "c"), (8, "d")]);
        assert_eq!((config.first_port, config.ports, config.name.as_str()), (1, 8, "a"));
        assert_eq!(config.kind, XbarKind::Tagged(None));
    }
}

#[test]
fn a_crossbar_may_count_from_0_and_have_more_ports_than_interfaces() {
    for line in
        ["--port 0=a --port 3=b --ports 16 --kind plain", "--ports 0=a,3=b --port-count 16 --kind plain"]
    {
        let config = read(line).unwrap();
        assert_eq!((config.first_port, config.ports, config.kind), (0, 16, XbarKind::Plain));
        assert!(!config.grows);
    }
}

#[test]
fn ports_that_do_not_go_together_are_refused() {
    assert_eq!(refusal("--port 1=a --port 1=b"), PortsError::PortTwice(1));
    assert_eq!(refusal("--port a --port a"), PortsError::InterfaceTwice("a".to_owned()));
    assert_eq!(refusal("--port 255=a --port b"), PortsError::NoNumberLeft("b".to_owned()));
    assert_eq!(refusal("--port 0=a --port 255=b"), PortsError::TooWide(256));
    let outside = PortsError::Outside { port: 9, first_port: 1, ports: 8 };
    assert_eq!(refusal("--port 9=a --ports 8"), outside);
    let many = PortsError::TooMany { first_port: 200, ports: 100 };
    assert_eq!(refusal("--port 200=a --first-port 200 --ports 100"), many);
}

#[test]
fn frames_go_to_no_zero_address_and_a_crossbar_has_ports() {
    let zero = read("--ports a --destination 00:00:00:00:00:00");
    assert!(matches!(zero, Err(XbarConfigError::Destination(ZeroDestination))), "{zero:?}");
    assert!(matches!(read("--ports 8"), Err(XbarConfigError::NoPorts)));
}

#[test]
fn a_pattern_has_no_number_yet() {
    let config = read("--ports up1,eth*").unwrap();
    assert_eq!((config.interfaces.len(), config.patterns.as_slice()), (1, &["eth*".to_owned()][..]));
    assert_eq!(read("--ports eth*").unwrap().name, "eth");
    assert_eq!(read("--ports *").unwrap().name, "xbar");
}

#[test]
fn every_option_is_a_key_and_wrong_keys_are_told_all_of_them_in_order() {
    use clap::Args;
    let command = XbarOptions::augment_args(clap::Command::new("xbar"));
    let options = command.get_arguments().filter_map(clap::Arg::get_long);
    let all: Vec<_> = options.map(|option| format!("`{option}`")).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str| {
        std::fs::write(file.path(), text).unwrap();
        options::read_toml::<XbarOptions>(file.path()).map_err(|error| error.to_string())
    };
    let meant = |key: &str| format!("did you mean `{key}`? Expected");
    for (wrong, hint) in [
        ("frames", "expected".to_owned()),
        ("log", "expected".to_owned()),
        ("log_level", meant("log-level")),
        ("prots", meant("ports")),
    ] {
        let error = read(&format!("verbose = true\n{wrong} = 1\n")).unwrap_err();
        let expected = format!(":2: unknown field `{wrong}`, {hint} one of {}", all.join(", "));
        assert!(error.contains(&expected[..150]), "{error}");
    }
    let examples: BTreeMap<String, toml::Value> = toml::from_str(XbarOptions::EXAMPLES).unwrap();
    for option in all.iter().map(|option| option.trim_matches('`')) {
        let error = read(&format!("{option} = 1979-05-27\n")).unwrap_err();
        assert!(examples.contains_key(option) && error.contains(&format!(":1: `{option}`: ")), "{error}");
    }
    let all_examples = read(XbarOptions::EXAMPLES);
    assert!(all_examples.is_ok(), "{all_examples:?}");
    let shared = "ethertype = \"0x88b6\"\ndestination = \"02:00:00:00:00:01\"\nmetrics-listen = \"127.0.0.1:1\"\n\
                  metrics-file = \"m\"\nlog-level = \"warn\"\nlog-format = \"json\"\nverbose = true\nverbose-file = \"v\"\n";
    let words = [
        "--ethertype=0x88b6",
        "--destination=02:00:00:00:00:01",
        "--metrics-listen=127.0.0.1:1",
        "--metrics-file=m",
        "--log-level=warn",
        "--log-format=json",
        "--verbose",
        "--verbose-file=v",
    ];
    let line = Command::try_parse_from([&["xbar"], &words[..]].concat()).unwrap().options;
    assert_eq!(read(shared).unwrap(), line);
    assert!(
        read("ethertype = \"0x88b6\"\nlog-level = \"loud\"\n")
            .unwrap_err()
            .contains(":2: `log-level`: unknown variant")
    );
}

#[test]
fn a_directory_has_a_file_for_each_crossbar_and_one_for_all_daemons() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("mapper.toml", "level = 3\ntap = \"fabric0\"\nethertype = \"0x88b6\"\n");
    write("xbar-rack1.toml", "ports = [\"eth1\", \"7=eth2\"]\nkind = \"plain\"\n");
    let line = Command::try_parse_from(["xbar", "--name", "rack1"]).unwrap().options;
    let source = XbarSource::new(line, Some(dir.path().to_owned()), of_agents);
    let config = source.read(&[]).unwrap();
    assert_eq!(
        (config.name.as_str(), config.kind, config.service.marking.ethertype),
        ("rack1", XbarKind::Plain, 0x88b6)
    );
    write("xbar-rack1.toml", "ports = [\"eth3\", \"eth1\"]\n");
    let again = source.read(&config.interfaces).unwrap();
    assert_eq!(again.interfaces, [(1, "eth1".to_owned()), (2, "eth3".to_owned())]);
    write("xbar-rack1.toml", "\nprots = [\"eth3\"]\n");
    let error = source.read(&[]).unwrap_err().to_string();
    assert!(error.contains("xbar-rack1.toml:2: unknown field `prots`"), "{error}");
}

#[test]
fn an_ability_that_only_senders_use_cannot_be_avoided_by_a_crossbar() {
    assert!(matches!(read("--ports a --kernel-avoid segments,marks"), Err(XbarConfigError::AvoidsMarks)));
    assert_eq!(
        read("--ports a --kernel-avoid segments,shortcuts").unwrap().kernel_avoid,
        [Ability::Segments, Ability::Shortcuts]
    );
}
