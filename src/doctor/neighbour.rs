//! Who is at the other end of a cable.
//!
//! Two probes ask: one that a tagged crossbar stamps and sends back, one that a plain crossbar
//! sends back. Either is answered by an agent that it hits. The sender of these probes has level
//! 0, so nobody takes it for a mapper; and behind a crossbar nobody hears of it.

use std::fmt;
use std::io;
use std::time::Duration;

use mapper_proto::Mac;
use mapper_proto::map::Rank;
use mapper_proto::wire::{
    AgentState, Element, Frame as WireFrame, FrameError, Info, Message, Probe, ProbeKind, Route, split_route,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::link::LinkError;
use crate::link::ethernet::{EthernetSocket, Frame, MAX_FRAME_BYTES, Marking};
use crate::link::interface::Interface;

/// How long to listen in all.
const PATIENCE: Duration = Duration::from_millis(1000);
/// How often the probes are sent.
const SENDINGS: u32 = 3;
/// The time between.
const INTERVAL: Duration = Duration::from_millis(200);
/// The ids of the two probes.
const IDENTIFY_ID: u32 = 1;
const LOOPBACK_ID: u32 = 2;

/// Who is at the other end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// A crossbar with an identity.
    TaggedXbar { tag: u64, port: u8 },
    /// A crossbar without.
    PlainXbar,
    /// An agent.
    Agent { mac: Mac, state: AgentState },
    /// An agent whose messages are signed.
    Signs,
    /// Someone who speaks another version of the protocol.
    OtherVersion(u8),
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TaggedXbar { tag, port } => write!(f, "port {port} of the crossbar with tag {tag:#018x}"),
            Self::PlainXbar => f.write_str("a plain crossbar"),
            Self::Agent { mac, state } => write!(f, "the agent of host {mac}, which is {state}"),
            Self::Signs => f.write_str("an agent that signs its messages"),
            Self::OtherVersion(version) => write!(f, "someone who speaks version {version} of the protocol"),
        }
    }
}

/// Probes and listens, for at most a second.
pub(super) fn find(interface: &Interface, marking: Marking) -> Result<Option<Neighbour>, LinkError> {
    let failed =
        |source| LinkError::Io { interface: interface.name.clone(), doing: "probing the cable", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let socket = EthernetSocket::open(interface, marking)?;
        listen(&socket, interface.mac).await.map_err(failed)
    })
}

async fn listen(socket: &EthernetSocket, own: Mac) -> io::Result<Option<Neighbour>> {
    let deadline = Instant::now() + PATIENCE;
    let mut next_sending = Instant::now();
    let mut sendings = 0;
    let mut buffer = vec![0; MAX_FRAME_BYTES];
    // An agent that speaks of its own accord, while a crossbar or agent may still answer.
    let mut overheard = None;
    loop {
        let wake_at = if sendings < SENDINGS { next_sending } else { deadline };
        tokio::select! {
            () = sleep_until(wake_at) => {
                if sendings == SENDINGS {
                    return Ok(overheard);
                }
                for (route, frame) in probes(own) {
                    // A send that fails is as good as a frame that is lost.
                    let _lost = socket.send(route.as_bytes(), &frame);
                }
                sendings += 1;
                next_sending = wake_at + INTERVAL;
            }
            heard = timeout_at(deadline, socket.recv(&mut buffer)) => {
                let Ok(bytes) = heard else { return Ok(overheard) };
                let Some(frame) = Frame::parse(&buffer[..bytes?]) else { continue };
                match judge(frame.payload(), own) {
                    Some((neighbour, true)) => return Ok(Some(neighbour)),
                    Some((neighbour, false)) => overheard = Some(neighbour),
                    None => {}
                }
            }
        }
    }
}

/// What the probes are sent along, and their frames.
fn probes(own: Mac) -> [(Route, Vec<u8>); 2] {
    let info = Info { rank: Rank { level: 0, mac: own }, ..Info::default() };
    let probe = |id, kind, turn| {
        let probe = Probe { id, kind, left: 1, info, way_there: Route::new() };
        ([turn].into_iter().collect(), Message::Probe(probe).encode())
    };
    [
        probe(IDENTIFY_ID, ProbeKind::Identify, Element::Identify),
        probe(LOOPBACK_ID, ProbeKind::Loopback, Element::Relative(0)),
    ]
}

/// Who sent or sent back this payload, and whether it is the answer to a probe; `None` if it tells
/// nothing.
fn judge(payload: &[u8], own: Mac) -> Option<(Neighbour, bool)> {
    let (_, frame) = split_route(payload).ok()?;
    match Message::decode(frame) {
        Ok((Message::Probe(probe), stamp)) if probe.info.rank.mac == own => match (probe.id, stamp) {
            (IDENTIFY_ID, Some(stamp)) => {
                Some((Neighbour::TaggedXbar { tag: stamp.tag, port: stamp.arrival }, true))
            }
            (LOOPBACK_ID, _) => Some((Neighbour::PlainXbar, true)),
            _ => None,
        },
        Ok((Message::Reply(reply), _)) => {
            let info = reply.info;
            let answers = reply.to == own && [IDENTIFY_ID, LOOPBACK_ID].contains(&reply.id);
            Some((Neighbour::Agent { mac: info.rank.mac, state: info.state }, answers))
        }
        Ok((Message::Probe(Probe { info, .. }), _)) => overheard(frame, &info),
        Ok((Message::Scout(scout), _)) => overheard(frame, &scout.info),
        Err(FrameError::UnknownVersion(version)) => Some((Neighbour::OtherVersion(version), false)),
        Err(_) => None,
    }
}

/// Who speaks of their own accord.
fn overheard(frame: &[u8], info: &Info) -> Option<(Neighbour, bool)> {
    let signed = WireFrame::parse(frame).is_ok_and(|frame| frame.auth().is_some());
    let agent = Neighbour::Agent { mac: info.rank.mac, state: info.state };
    Some((if signed { Neighbour::Signs } else { agent }, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::wire::{Answer, Crossbar, CrossbarKind, Decision, Reply};

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);

    /// What comes back from a crossbar that these probes hit at its port 3.
    fn reflected(kind: CrossbarKind) -> Vec<Neighbour> {
        let mut crossbar = Crossbar { kind, first_port: 1, ports: 8, carrier: [0; 32] };
        crossbar.set_carrier(3, true);
        let heard = probes(OWN).into_iter().filter_map(|(route, frame)| {
            let mut payload = [route.as_bytes(), &frame].concat();
            let strip = match crossbar.decide(3, &payload) {
                Decision::Forward { port: 3, strip } => strip,
                Decision::Identify { strip, stamp_at } => {
                    crossbar.write_stamp(3, stamp_at, &mut payload);
                    strip
                }
                _ => return None,
            };
            let (neighbour, answer) = judge(&payload[strip..], OWN)?;
            assert!(answer);
            Some(neighbour)
        });
        heard.collect()
    }

    #[test]
    fn crossbars_are_told_by_what_they_send_back() {
        let tagged = reflected(CrossbarKind::Tagged { tag: 9 });
        assert!(tagged.contains(&Neighbour::TaggedXbar { tag: 9, port: 3 }), "{tagged:?}");
        assert_eq!(reflected(CrossbarKind::Plain), [Neighbour::PlainXbar]);
    }

    #[test]
    fn an_agent_is_told_by_its_reply() {
        let mac = Mac::from_position(7);
        let info = Info { rank: Rank { level: 1, mac }, state: AgentState::Isolated, ..Info::default() };
        let reply = Message::Reply(Reply { id: LOOPBACK_ID, to: OWN, info, answer: Answer::Probe });
        let agent = Neighbour::Agent { mac, state: AgentState::Isolated };
        assert_eq!(judge(&reply.encode(), OWN), Some((agent, true)));
    }

    #[test]
    fn another_version_is_told_from_noise() {
        let mut frame = probes(Mac::from_position(9))[1].1.clone();
        frame[4] = 77;
        let end = frame.len() - 4;
        let crc = crc32fast::hash(&frame[..end]).to_be_bytes();
        frame[end..].copy_from_slice(&crc);
        assert_eq!(judge(&frame, OWN), Some((Neighbour::OtherVersion(77), false)));
        frame[9] ^= 1;
        assert_eq!(judge(&frame, OWN), None);
        assert_eq!(judge(&[], OWN), None);
    }
}
