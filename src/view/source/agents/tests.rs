//! What boards and maps of agents come to in a picture.

use mapper_daemon::agent::status::{CableEnd, DeadCable, MapVersionDto, NarrowCable, Reason};
use mapper_fabric::generate;
use mapper_proto::Mac;
use mapper_proto::wire::AgentState;

use super::*;
use crate::view::feed::{CableState, HostState};

fn board(unit: u8, counter: u32) -> Board {
    let version = MapVersionDto { mac: Mac::from_position(1).to_string(), counter };
    Board {
        map_version: Some(version),
        mac: Some(Mac::from_position(1).to_string()),
        state: AgentState::Configured.into(),
        network_configured: true,
        no_answer: None,
        ..Board::silent(unit, String::new())
    }
}

#[test]
fn two_maps_stand_beside_each_other_and_each_board_speaks_of_its_own() {
    let (mut one, mut other) = (board(0, 1), board(1, 2));
    let name = |board: &Board| {
        let version = board.map_version.clone().unwrap();
        version.to_string()
    };
    let mut known = Known::default();
    known.add(name(&one), generate("ring:n=3").unwrap(), Some(0));
    known.add(name(&other), generate("ring:n=4").unwrap(), Some(1));
    assert_eq!((known.fabric.map.hosts.len(), known.fabric.map.cables.len()), (7, 7));
    assert_eq!(known.fabric.xbars[3].name, "unit1-xbar1");
    other.network_configured = false;
    other.mac = None;
    one.unreachable = vec![Reason { mac: Mac::from_position(3).to_string(), why: "no answer".to_owned() }];
    let tag = known.fabric.map.xbars[0].tag.unwrap();
    let dead = known.fabric.map.cables[0].a;
    assert_eq!(dead.xbar, 0);
    one.dead_cables =
        vec![DeadCable { tag: Some(format!("{tag:016x}")), port: dead.port, ..DeadCable::default() }];
    let boards = Boards { boards: vec![one, other], why_not: None };
    assert!(known.is_of(&boards.boards));
    let moment = known.moment(&boards, String::new());
    assert_eq!(moment.cables[0], CableState::Dead);
    assert_eq!(moment.hosts[1], HostState::Configured);
    let (of_one, of_other) = moment.hosts.split_at(3);
    assert_eq!(of_one, [HostState::Configured, HostState::Configured, HostState::Silent]);
    assert_eq!(of_other, [HostState::Unknown; 4], "the other map has a host of the same address");
    assert_eq!(moment.says, "1 host silent");
}

#[test]
fn narrow_and_dead_cables_are_those_of_the_map_of_whoever_names_them() {
    let (one, mut other) = (board(0, 1), board(1, 2));
    let ring = generate("ring:n=3").unwrap();
    let mut known = Known::default();
    let version = |board: &Board| board.map_version.as_ref().unwrap().to_string();
    known.add(version(&one), ring.clone(), Some(0));
    known.add(version(&other), ring.clone(), Some(1));
    let (dead, narrow) = (ring.map.cables[0].a, ring.map.cables[1].b);
    let tag = ring.map.xbars[dead.xbar as usize].tag.unwrap();
    other.dead_cables =
        vec![DeadCable { tag: Some(format!("{tag:016x}")), port: dead.port, ..DeadCable::default() }];
    let host = ring.map.hosts.iter().find(|host| host.at.unwrap().xbar == narrow.xbar).unwrap();
    let end = CableEnd { host: host.mac.to_string(), port: Some(narrow.port), interface: None, mtu: 1500 };
    other.narrow_cables = vec![NarrowCable { mtu: 1500, longest: 9000, ends: vec![end] }];
    let moment = known.moment(&Boards { boards: vec![one, other], why_not: None }, String::new());
    assert_eq!(moment.cables[..3], [CableState::Whole; 3]);
    assert_eq!(moment.cables[3..], [CableState::Dead, CableState::Narrow, CableState::Whole]);
}

#[test]
fn who_has_no_map_is_shown_where_only_one_host_can_be_meant() {
    let (one, other) = (board(0, 1), board(1, 2));
    let last = Mac::from_position(4).to_string();
    let lost = |mac: &str| Board {
        map_version: None,
        mac: Some(mac.to_owned()),
        state: AgentState::Isolated.into(),
        network_configured: false,
        ..board(2, 0)
    };
    let mut known = Known::default();
    let version = |board: &Board| board.map_version.as_ref().unwrap().to_string();
    known.add(version(&one), generate("ring:n=3").unwrap(), Some(0));
    known.add(version(&other), generate("ring:n=4").unwrap(), Some(1));
    let isolated = |board: Board| {
        let moment = known.moment(&Boards { boards: vec![board], why_not: None }, String::new());
        let hosts = moment.hosts.iter().enumerate();
        hosts.filter(|&(_, &state)| state == HostState::Isolated).map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(isolated(lost(&last)), [6]);
    assert!(isolated(lost(&Mac::from_position(1).to_string())).is_empty(), "both maps have it");
}

#[test]
fn an_xbar_is_called_by_the_host_whose_node_it_is_or_by_its_only_one() {
    let mut fabric = generate("ring:n=3,hosts=1").unwrap();
    fabric.xbars.iter_mut().for_each(|label| label.description.clear());
    fabric.hosts[1].name = fabric.map.hosts[1].mac.to_string();
    fabric.map.hosts.push(fabric.map.hosts[2]);
    fabric.hosts.push(fabric.hosts[2].clone());
    let said = |fabric: &mut Fabric| {
        name_xbars(fabric);
        fabric.xbars.iter().map(|label| label.description.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        said(&mut fabric),
        ["xbar of h1", "", ""],
        "the second has a host without a name, the third has two"
    );
    let node = fabric.map.hosts[2];
    fabric.map.hosts[3].mac = Mac([2, 0, 0, 0, 9, 9]);
    fabric.map.xbars[2].tag = Some(node.mac.to_u64() << 16 | 7);
    assert_eq!(said(&mut fabric), ["xbar of h1", "", "xbar of h3"], "it is the node of one of them");
}

#[test]
fn where_no_agent_runs_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let boards = boards(dir.path());
    assert!(boards.why_not.as_ref().unwrap().contains("mapper doctor"));
    assert_eq!(Known::default().moment(&boards, String::new()).says, "no agent answers");
}
