//! Files that are refused, and what the error says.

use proptest::prelude::*;

use super::*;

#[test]
fn errors_name_file_line_and_what_was_expected() {
    for (text, error) in [
        ("", "file:1: there is nothing in it; expected a fabric"),
        ("hello\n", "file:1: expected a node"),
        ("vendid=0x0\n", "file:1: there is no node in it; expected a fabric"),
        ("# x\nSwitch 8\n", "file:2: expected a node"),
        (
            "Switch 8 \"s\"\n[1] \"h\"\n\nCa 1 \"h\"\n[1] \"s\"[1] # lid 640 lmc 8 \"s\" lid 1\n",
            "file:5: an LMC of `8`; expected 0 to 7, for 2^LMC addresses",
        ),
        (
            "Switch 8 \"s\"\n[1] \"h\"\n\nCa 1 \"h\"\n[1] \"s\"[1] # lid 640 lmc 9999999999999999\n",
            "file:5: an LMC of `9999999999999999`; expected 0 to 7",
        ),
        ("Switch 8 \"s\" # \"s\" base port 0 lid 3 lmc 300\n", "file:1: an LMC of `300`; expected 0 to 7"),
        (
            "Switch 8 \"s\" # \"s\" base port 0 lid 70000 lmc 0\n",
            "file:1: a LID of `70000`; expected one from 1 to 65535, or 0 for none",
        ),
        (
            "switchguid=0x10\nSwitch 8 \"s\"\n\nswitchguid=0x10\nSwitch 8 \"t\"\n",
            "file:5: `t` has GUID 0x10, which is that of `s` at line 2; each GUID must be one node's",
        ),
        (
            "Switch 8 \"S-0000000000000010\"\n\ncaguid=0x10\nCa 1 \"h\"\n",
            "file:4: `h` has GUID 0x10, which is that of `S-0000000000000010` at line 1",
        ),
        (
            "caguid=0x20\nCa 2 \"h\"\n\ncaguid=0x20\nCa 1 \"i\"\n",
            "file:5: `i` has GUID 0x20, which is that of `h` at line 2",
        ),
        (
            "Switch 8 \"s\"\n\nCa 2 \"h\"\n[1](21) \"s\"[1]\n[2](21) \"s\"[2]\n",
            "file:5: `h` port 2 has GUID 0x21, which is that of `h` port 1 at line 4; each GUID must be one port's",
        ),
        (
            "switchguid=0x21\nSwitch 8 \"s\"\n\nCa 2 \"h\"\n[1](21) \"s\"[1]\n",
            "file:5: `h` port 1 has GUID 0x21, which is that of `s` at line 2",
        ),
        ("Switch 300 \"s\"\n", "file:1: `300` is no number of ports; expected a number from 1 to 255"),
        ("Switch 8 \"s\"\n[9] \"s\"[1]\n", "file:2: node `s` has no port 9; expected a port from 1 to 8"),
        ("Switch 8 \"s\"\n[0] \"s\"[1]\n", "file:2: node `s` has no port 0; expected a port from 1 to 8"),
        ("Switch 8 \"s\"\n[1 \"s\"[1]\n", "file:2: expected a port: `[1] \"id\"[2]`"),
        ("[1] \"s\"[1]\n", "file:1: a port before any node"),
        ("Switch 8 \"s\"\n\nSwitch 8 \"s\"\n", "file:3: node `s` is already there, at line 1"),
        ("Switch 8 \"\"\n", "file:1: `` is no name of a node; expected 1 to 64 printable characters"),
        ("switchguid=0xg\n", "file:1: `0xg` is no GUID; expected up to 16 hexadecimal digits"),
        (
            "Switch 8 \"s\"\n[1] \"t\"[1]\n\nSwitch 8 \"t\"\n[1] \"s\"[2]\n",
            "file:5: `t` port 1 is cabled to `s` port 2 here, but to `s` port 1 at line 2; a port has one cable",
        ),
        ("1\n", "file:1: expected the numbers of hosts and of switches"),
        ("1 1\nx\n", "file:2: expected a node: `s 16 \"name\"`"),
        ("1 1\ns 8 \"s\"\nmany\n", "file:3: expected the number of links"),
        ("1 1\ns 8 \"s\"\n", "file:2: the number of links is missing"),
        ("1 1\ns 8 \"s\"\n2\n0 h - \"h\" 0\n", "file:4: 1 more links were announced"),
        ("1 1\ns 8 \"s\"\n1\n8 h - \"h\" 0\n", "file:4: node `s` has no port 8; expected a port from 0 to 7"),
        ("1 1\ns 8 \"s\"\n1\n0 h \"h\" 0\n", "file:4: expected a link"),
        ("1 1\ns 8 \"s\"\n0\n", "announces 1 hosts and 1 switches, but there are 0 and 1"),
        ("1 0\nh - \"h\"\n0\naddress 12\n", "file:4: `12` is not a MAC address"),
        (
            "2 0\nh - \"h\"\n0\naddress 020000000001\n\nh - \"i\"\n0\naddress 020000000001\n",
            "file:8: address 02:00:00:00:00:01 is that of line 4 already",
        ),
        ("{\n", "file:2: EOF while parsing"),
        (
            "[]\n",
            "file:1: it is in no known format; expected ibnetdiscover, ibsim, OpenSM .lst, ibutils .topo, GM .map, mapper.map/1 JSON",
        ),
        (
            "digraph f {\n  a -> b;\n}\n",
            "file:1: it is in no known format; expected ibnetdiscover, ibsim, OpenSM .lst",
        ),
        (
            "<!doctype html>\n<html lang=\"en\">\n",
            "file:1: it is in no known format; expected ibnetdiscover, ibsim",
        ),
        (
            "# Of Slurm.\nSwitchName=s1 Nodes=h1\n",
            "file:1: it is in no known format; expected ibnetdiscover, ibsim",
        ),
        (
            "{\"schema\":\"mapper.map/1\",\n\"hots\":[]}",
            "file:2, column 6: unknown field `hots`, expected one of `schema`, `version`, `hosts`, `xbars`, `cables`",
        ),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"ff:ff:ff:ff:ff:ff"}]}"#,
            "file:hosts[0].mac: ff:ff:ff:ff:ff:ff is no address of a host",
        ),
        (
            "{\"schema\":\"mapper.sim/1\"}",
            "file:schema: `mapper.sim/1` is not read here; expected `mapper.map/1`",
        ),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"02:00:00:00:00:01","xbar":"x","port":1}]}"#,
            "file:hosts[0].xbar: there is no xbar `x`",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"tag":"0xzz"}]}"#,
            "file:xbars[0].tag: `0xzz` is not a hexadecimal number",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"guid":"0x7"},{"id":"y","ports":4,"guid":"0x7"}]}"#,
            "file:xbars[1].guid: GUID 0x7 is that of xbars[0].guid already; each GUID must be one xbar's or port's",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"guid":"0x7"}],"hosts":[{"mac":"02:00:00:00:00:01","port_guid":"0x7"}]}"#,
            "file:hosts[0].port_guid: GUID 0x7 is that of xbars[0].guid already",
        ),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"02:00:00:00:00:01","guid":"7"},{"mac":"02:00:00:00:00:02","guid":"7"}]}"#,
            "file:hosts[1].guid: GUID 0x7 is that of hosts[0].guid already",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",1],"b":["x",2],"speed":"fast"}]}"#,
            "file:cables[0].speed: `fast` is no speed of a cable; expected lanes and rate, such as 4xQDR",
        ),
        ("SW 2 1 0x2 4x SDR - CA 1\n", "file:1: expected a port as ibnetdiscover -p prints it: `SW 2 1 0x"),
        (
            "SW 2 1 0x2 4x SDR - CA 1 1 0x2 ( 'a' - 'b' )\n",
            "file:1: GUID 0x2 is that of another kind of node at line 1; each GUID must be one node's",
        ),
        ("{ SW Ports:04 }\n", "file:1: expected a cable: `{ SW Ports:24"),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",5],"b":["x",1]}]}"#,
            "file:cables[0].a: `x` has no port 5; expected at most 4",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",0],"b":["x",4]}]}"#,
            "file:cables[0].b: `x` uses ports 0 and 4; expected ports that count from 0, or from 1",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",1],"b":["x",1]}]}"#,
            "file:cables[0].b: `x` port 1 has a cable already",
        ),
    ] {
        let message = read(text).unwrap_err();
        assert!(message.contains(error), "{text:?}: {message}");
        assert!(
            !message.contains(" at line 1 column") && !message.contains(" at line 2 column"),
            "{message}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = read(&text);
        let ends = "{ SW Ports:04 NodeGUID:2 PortGUID:2 {x} LID:2 PN:01 } { CA Ports:01 NodeGUID:1 ";
        let port = "SW 2 1 0x2 4x SDR - ";
        for begin in ["{\"schema\":", "2 1\n", "Switch 8 \"a\"\n[1] ", ends, port] {
            let _ = read(&format!("{begin}{text}"));
        }
    }

    #[test]
    fn no_mutation_makes_a_reader_panic(
        spec in prop::sample::select(SPECS.to_vec()),
        format in prop::sample::select(vec![FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4, any::<u8>()), 1..6),
    ) {
        let mut bytes = write(&generated(spec), format).into_bytes();
        for (at, edit, byte) in edits {
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(fabric) = read(&String::from_utf8_lossy(&bytes))
            && !fabric.hosts.is_empty()
        {
            for format in [FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json] {
                // What was read can be written and read again.
                let back = read(&write(&fabric, format)).unwrap();
                prop_assert_eq!(back.map.cables.len(), fabric.map.cables.len());
                prop_assert_eq!(back.map.hosts.len(), fabric.map.hosts.len());
            }
            write(&fabric, FileFormat::Dot);
            write(&fabric, FileFormat::Svg);
        }
    }
}
