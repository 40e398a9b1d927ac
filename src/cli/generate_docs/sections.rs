//! The parts of manual pages that do not follow from the definitions of the commands.

/// A name, and what the page says about it.
pub(super) type Item = (&'static str, &'static str);

/// The sections of a page that are written by hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sections {
    /// The section of the manual: 1 for commands of every user, 8 for those of the operator.
    pub(super) number: &'static str,
    /// What exit status 1 means if the command itself did not fail. What it prints on standard output then says why.
    pub(super) unmet: Option<&'static str>,
    /// Exit statuses besides those that all commands have.
    pub(super) statuses: &'static [Item],
    /// The signals that the command follows.
    pub(super) signals: &'static [Item],
    /// The files that the command reads or writes.
    pub(super) files: &'static [Item],
    /// Examples, each with what it is for and the commands.
    pub(super) examples: &'static [Item],
}

const NOTHING: Sections =
    Sections { number: "1", unmet: None, statuses: &[], signals: &[], files: &[], examples: &[] };

const STOP: Item = ("SIGTERM, SIGINT", "Leave cleanly.");
const REOPEN: Item = ("SIGUSR1", "Open the file of --verbose-file again, after it was rotated.");
const RELOAD_PORTS: Item = (
    "SIGHUP",
    "Read the configuration again: ports come and go, and the others go on; also the level of the log.",
);
const RUN_DIR: Item = (
    "/run/mapper",
    "The status sockets, and what keeps two agents from one interface. MAPPER_RUN_DIR overrides it.",
);
const CONFIGURATION: Item =
    ("/etc/mapper/mapper.toml", "The configuration of the units and the init script; see mapper.toml(5).");
const ONE_INTERFACE: Item =
    ("/etc/mapper/IF.toml", "What holds for one interface alone: read over mapper.toml.");

const AGENT: Sections = Sections {
    number: "8",
    signals: &[STOP, ("SIGHUP", "Read the configuration again."), REOPEN],
    files: &[
        CONFIGURATION,
        ONE_INTERFACE,
        RUN_DIR,
        ("/etc/default/mapper", "The interfaces for which the init script starts agents."),
    ],
    examples: &[
        ("An agent for eth1, and again at every boot:", "systemctl enable --now mapper@eth1"),
        ("The same without systemd: name the interface in /etc/default/mapper, and", "service mapper start"),
        (
            "By hand, until the network is mapped, and a look at the map:",
            "mapper agent --interface eth1 --map-once --map-file map.json\nmapper topology show map.json",
        ),
    ],
    ..NOTHING
};

const XBAR: Sections = Sections {
    number: "8",
    unmet: Some(
        "With --status, there is no crossbar, or one may not be asked by this user: standard output says so. Under \
         --format json the list is empty where there is none, and standard error has the reason.",
    ),
    signals: &[STOP, RELOAD_PORTS, REOPEN],
    files: &[
        (
            "/etc/mapper/xbar-NAME.toml",
            "The ports and options of mapper-xbar@NAME.service: ports = [\"eth1\", \"eth2\"], and each option as a key.",
        ),
        (
            "/etc/mapper/mapper.toml",
            "What it shares with the agents: ethertype, destination, group, log-level.",
        ),
    ],
    examples: &[
        ("A crossbar of three interfaces:", "mapper xbar --ports eth1,eth2,eth3"),
        ("One of all interfaces of a kind, also of those that come later:", "mapper xbar --ports 'eth*'"),
        (
            "The same at every boot:",
            "echo 'ports = [\"eth1\", \"eth2\", \"eth3\"]' >/etc/mapper/xbar-rack1.toml\n\
             systemctl enable --now mapper-xbar@rack1",
        ),
    ],
    ..NOTHING
};

const BANDWIDTH: Sections = Sections {
    unmet: Some("No way told what it carries: standard output shows each."),
    files: &[RUN_DIR],
    ..NOTHING
};

const NODE: Sections = Sections {
    number: "8",
    signals: &[
        STOP,
        ("SIGHUP", "Read the configuration again: ports come and go, and the others go on."),
        REOPEN,
    ],
    files: &[
        CONFIGURATION,
        (
            "/etc/mapper/node.toml",
            "Read over it by mapper-node.service, and must name the ports: ports = [\"eth1\", \"eth2\"].",
        ),
        RUN_DIR,
    ],
    examples: &[
        (
            "A server cabled to two others by eth1 and eth2, with interface fabric0 over them:",
            "mapper node --ports eth1,eth2 --address 10.1.0.0/24",
        ),
        (
            "The same at every boot:",
            "echo 'ports = [\"eth*\"]' >/etc/mapper/node.toml\nsystemctl enable --now mapper-node",
        ),
    ],
    ..AGENT
};

const BOARD_INFO: Sections = Sections {
    unmet: Some(
        "No board answers, one that was named is missing or silent, or one may not be asked by this user: standard \
         output says which and why. Where there is no board at all, --format json gives an empty list, and standard \
         error the reason.",
    ),
    statuses: &[("4", "Time ran out before every board was configured.")],
    files: &[RUN_DIR],
    examples: &[(
        "Wait until the network is fully configured, ten seconds at most:",
        "mapper board-info --wait 10",
    )],
    ..NOTHING
};

const RESOLVE: Sections = Sections {
    files: &[RUN_DIR],
    examples: &[("Where node7 is, and how frames get there:", "mapper resolve node7")],
    ..NOTHING
};

const TRACE: Sections = Sections {
    unmet: Some("The host answers along no way: standard output says where each breaks off."),
    files: &[RUN_DIR],
    examples: &[("Where the ways to node7 break off:", "mapper trace node7")],
    ..NOTHING
};

const PING: Sections = Sections {
    unmet: Some("Nothing came back: standard output counts the losses of each way."),
    files: &[RUN_DIR],
    examples: &[(
        "A hundred round trips along each way to node7:",
        "mapper ping node7 --count 100 --interval-ms 10",
    )],
    ..NOTHING
};

const DOCTOR: Sections = Sections {
    number: "8",
    unmet: Some("A check failed: standard output says which, and what to do."),
    examples: &[
        ("What keeps the installed daemons from working:", "mapper doctor"),
        (
            "What a machine lacks before anything is configured, with these interfaces cabled to the fabric:",
            "mapper doctor --ports 'eth*'",
        ),
        (
            "Before a node is started on these ports, mend what is safe:",
            "mapper doctor --ports eth1,eth2 --fix",
        ),
    ],
    ..NOTHING
};

const DIFF: Sections = Sections {
    statuses: &[("3", "The fabrics differ.")],
    examples: &[(
        "What is cabled otherwise than planned:",
        "mapper topology diff clos:hosts=128,ports=16 /var/lib/mapper/map.json",
    )],
    ..NOTHING
};

const PLAN_CHECK: Sections = Sections {
    statuses: &[("3", "Something is not as planned.")],
    examples: &[(
        "What to do so that the cluster is cabled as a spreadsheet says:",
        "ibnetdiscover > fabric.net\nmapper plan check cables.csv fabric.net",
    )],
    ..NOTHING
};

const WHAT_IF: Sections = Sections {
    examples: &[
        (
            "What the loss of a cable and of a switch would cost:",
            "mapper what-if fabric.net --cut leaf1:3 --remove spine2",
        ),
        ("Which single switch is missed most:", "mapper what-if fabric.net --each xbar --most 5"),
    ],
    ..NOTHING
};

const ROUTE: Sections = Sections {
    examples: &[
        (
            "Tables for an InfiniBand fabric, and OpenSM with them:",
            "ibnetdiscover >fabric.net\n\
             mapper route fabric.net --lfts fabric.lfts\n\
             opensm -R file -U fabric.lfts",
        ),
        (
            "The same after a cable has failed; what is still right stays:",
            "ibnetdiscover >fabric.net\n\
             mapper route fabric.net --engine ftree,updn --previous fabric.lfts --lfts new.lfts",
        ),
        (
            "What a fabric would be like, before it is built:",
            "mapper route 'torus:x=6,y=5,z=5' --engine lash",
        ),
        ("Which engine serves it best:", "mapper route 'torus:x=6,y=5,z=5' --compare minhop,updn,lash,torus"),
    ],
    ..NOTHING
};

const CHECK: Sections = Sections {
    statuses: &[(
        "3",
        "A pair has no route, a route leads elsewhere, is a loop or too long, or a layer can deadlock.",
    )],
    examples: &[
        (
            "Whether the tables that OpenSM dumped can deadlock (opensm -D 0x43):",
            "ibnetdiscover >fabric.net\nmapper check fabric.net --lfts /var/log/opensm-lfts.dump",
        ),
        (
            "The routes that simulated agents computed:",
            "mapper sim --map-file map.json --routes-dir routes\nmapper check map.json --routes-dir routes",
        ),
    ],
    ..NOTHING
};

const SIM: Sections = Sections {
    examples: &[
        ("128 hosts on 24 crossbars in virtual time:", "mapper sim"),
        (
            "The same with faults, recorded and run again:",
            "mapper sim --faults faults.txt --trace run.trace\nmapper sim --replay run.trace",
        ),
    ],
    ..NOTHING
};

const VIEW: Sections = Sections {
    examples: &[
        ("A file, which is read again whenever it changes:", "mapper view fabric.topo"),
        (
            "A simulation with faults, slowed down:",
            "mapper view clos:hosts=128,ports=16 --sim --faults faults.txt",
        ),
        (
            "The agents of this machine, seen from another:",
            "mapper view --live\nssh -L 8642:127.0.0.1:8642 node1   # and then http://127.0.0.1:8642/",
        ),
        ("The page in one file:", "mapper topology convert fabric.topo -o fabric.html"),
    ],
    files: &[RUN_DIR],
    ..NOTHING
};

const DISSECTOR: Sections = Sections {
    files: &[("/usr/share/mapper/mapper.lua", "The same script, from the package.")],
    examples: &[
        (
            "The frames of a simulated run, in a terminal:",
            "mapper dissector >mapper.lua\n\
             mapper sim clos:hosts=8,ports=4 --pcapng run.pcapng\n\
             tshark -X lua_script:mapper.lua -r run.pcapng",
        ),
        (
            "Who asks for which piece of the map on an interface:",
            "tshark -X lua_script:mapper.lua -i eth1 -Y mapper.scout.map_request.piece",
        ),
    ],
    ..NOTHING
};

const MAPPER: Sections = Sections {
    examples: &[(
        "One crossbar wherever frames must be switched, and on each host an agent for its interface; both stay in the \
         foreground, so that an ampersand leaves the terminal free:",
        "mapper xbar --ports eth1,eth2,eth3 &   # on the machine that is the crossbar\n\
         mapper agent --interface eth0 &        # on each host\nmapper board-info --wait 10",
    )],
    files: &[CONFIGURATION, RUN_DIR],
    ..NOTHING
};

const ACM_SERVE: Sections = Sections {
    number: "8",
    signals: &[STOP, ("SIGHUP", "Read the configuration and the files that it names again."), REOPEN],
    files: &[
        ("/etc/mapper/mapper.toml", "Its table [acm] configures mapper-acm.service; see mapper.toml(5)."),
        (
            "/run/ibacm-unix.sock, /run/ibacm.sock",
            "The socket of programs that ask, and the link by which they find it.",
        ),
        (
            "/run/ibacm-tcp.port, /run/ibacm.port",
            "The port of TCP, where that is used, and the link by which it is found.",
        ),
        RUN_DIR,
    ],
    examples: &[
        (
            "The service for all agents of this machine, at every boot:",
            "systemctl enable --now mapper-acm.socket",
        ),
        (
            "By hand, with the files of ibacm:",
            "mapper acm serve --address-file /etc/rdma/ibacm_addr.cfg --options-file /etc/rdma/ibacm_opts.cfg",
        ),
    ],
    ..NOTHING
};

const ACM_QUERY: Sections = Sections {
    statuses: &[("255", "The service could not be reached, or did not answer the last question.")],
    examples: &[
        ("The path to node7, compared with map and routes:", "mapper acm query -f n -d node7 -v"),
        ("The counters and the endpoints of this machine:", "mapper acm query -P\nmapper acm query -e"),
    ],
    ..NOTHING
};

const ACM_CONFIG: Sections =
    Sections { examples: &[("Both files, where ibacm has them:", "mapper acm config -A -O")], ..NOTHING };

/// The sections of the page of a command, by the name of the page.
pub(super) fn of(name: &str) -> Sections {
    match name {
        "mapper" => MAPPER,
        "mapper-agent" => AGENT,
        "mapper-acm-serve" => ACM_SERVE,
        "mapper-acm-query" => ACM_QUERY,
        "mapper-acm-config" => ACM_CONFIG,
        "mapper-xbar" => XBAR,
        "mapper-node" => NODE,
        "mapper-dissector" => DISSECTOR,
        "mapper-doctor" => DOCTOR,
        "mapper-trace" => TRACE,
        "mapper-ping" => PING,
        "mapper-bandwidth" => BANDWIDTH,
        "mapper-board-info" => BOARD_INFO,
        "mapper-resolve" => RESOLVE,
        "mapper-sim" => SIM,
        "mapper-view" => VIEW,
        "mapper-route" => ROUTE,
        "mapper-check" => CHECK,
        "mapper-plan-check" => PLAN_CHECK,
        "mapper-what-if" => WHAT_IF,
        "mapper-topology-diff" => DIFF,
        _ => NOTHING,
    }
}
