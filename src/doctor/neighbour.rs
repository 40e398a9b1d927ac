//! Who is at the other end of a cable.
//!
//! The search sends two probes: a tagged crossbar stamps one and sends it back, and a plain crossbar sends
//! back the other. An agent that receives either of them answers it; an agent with keys asks first who is
//! there. The sender of these probes has level 0, so that no agent takes it for a mapper. No agent behind a
//! crossbar receives them.

use std::fmt;
use std::io;
use std::time::Duration;

use mapper_proto::Mac;
use mapper_proto::map::Rank;
use mapper_proto::wire::{
    AgentState, Element, Frame, FrameError, Info, KeyRing, Message, Probe, ProbeKind, Reply, Route, Scout,
    Seal, split_route,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use mapper_machine::link::LinkError;
use mapper_machine::link::ethernet::{EthernetFrame, EthernetSocket, MAX_FRAME_BYTES, Marking};
use mapper_machine::link::interface::Interface;

/// How long the search lasts in all.
const PATIENCE: Duration = Duration::from_millis(1000);
/// How often the probes are sent.
const SENDINGS: u64 = 3;
/// The time between two sendings of the probes.
const INTERVAL: Duration = Duration::from_millis(200);
/// The ids of the two probes.
const IDENTIFY_ID: u32 = 1;
const LOOPBACK_ID: u32 = 2;

/// Who is at the other end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// A crossbar with an identity.
    TaggedXbar { tag: u64, port: u8 },
    /// A crossbar without an identity.
    PlainXbar,
    /// An agent.
    Agent { mac: Mac, state: AgentState },
    /// An agent that signs, while this host has no keys.
    Signs,
    /// An agent that signs with the key of this number, which this host lacks or has with another secret.
    OtherKey(u32),
    /// An agent that does not sign, while this host has keys.
    Unsigned(Mac),
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
            Self::OtherKey(id) => write!(f, "an agent that signs with another key, number {id}"),
            Self::Unsigned(mac) => write!(f, "the agent of host {mac}, which does not sign its messages"),
            Self::OtherVersion(version) => write!(f, "someone who speaks version {version} of the protocol"),
        }
    }
}

/// Sends the probes and listens for answers, for at most a second.
pub(super) fn find(
    interface: &Interface,
    marking: Marking,
    keys: Option<&KeyRing>,
) -> Result<Option<Neighbour>, LinkError> {
    let failed =
        |source| LinkError::Io { interface: interface.name.clone(), doing: "probing the cable", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let socket = EthernetSocket::open(interface, marking)?;
        let prober = Prober { own: interface.mac, keys };
        prober.listen(&socket).await.map_err(failed)
    })
}

/// The sender of the probes, and the keys by which it believes answers.
struct Prober<'a> {
    own: Mac,
    keys: Option<&'a KeyRing>,
}

impl Prober<'_> {
    async fn listen(&self, socket: &EthernetSocket) -> io::Result<Option<Neighbour>> {
        let deadline = Instant::now() + PATIENCE;
        let mut next_sending = Instant::now();
        let mut sendings = 0;
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        // An agent that was heard without having been asked. It counts only if nobody answers a probe.
        let mut overheard = None;
        loop {
            let wake_at = if sendings < SENDINGS { next_sending } else { deadline };
            tokio::select! {
                () = sleep_until(wake_at) => {
                    if sendings == SENDINGS {
                        return Ok(overheard);
                    }
                    sendings += 1;
                    for (route, frame) in self.probes(sendings) {
                        // A probe that cannot be sent counts as lost on its way.
                        let _lost = socket.send(route.as_bytes(), &frame);
                    }
                    next_sending = wake_at + INTERVAL;
                }
                heard = timeout_at(deadline, socket.recv(&mut buffer)) => {
                    let Ok(bytes) = heard else { return Ok(overheard) };
                    let Some(frame) = EthernetFrame::parse(&buffer[..bytes?]) else { continue };
                    match self.judge(frame.payload()) {
                        Some((neighbour, true)) => return Ok(Some(neighbour)),
                        Some((neighbour, false)) => overheard = Some(neighbour),
                        None => {}
                    }
                }
            }
        }
    }

    /// The routes and frames of the two probes, for the `nth` sending.
    fn probes(&self, nth: u64) -> [(Route, Vec<u8>); 2] {
        let info = Info {
            rank: Rank { level: 0, mac: self.own },
            // The nonce must differ from that of an agent that ran here before, and from that of an earlier
            // examination. The process id does.
            session: std::process::id(),
            ..Info::default()
        };
        let probe = |id, kind, turn: Element| {
            let message = Message::Probe(Probe { id, kind, left: 1, info, way_there: Route::new() });
            let sequence = 2 * nth + u64::from(id);
            let frame = match self.keys {
                None => message.encode(),
                Some(keys) => message.encode_sealed(Seal { key: keys.signing(), sequence, answers: 0 }),
            };
            ([turn].into_iter().collect(), frame)
        };
        [
            probe(IDENTIFY_ID, ProbeKind::Identify, Element::Identify),
            probe(LOOPBACK_ID, ProbeKind::Loopback, Element::Relative(0)),
        ]
    }

    /// Finds out who sent or reflected this payload, and whether that decides who the neighbour is; `None` if
    /// the payload tells nothing.
    fn judge(&self, payload: &[u8]) -> Option<(Neighbour, bool)> {
        let (_, bytes) = split_route(payload).ok()?;
        let frame = match Frame::parse(bytes) {
            Ok(frame) => frame,
            Err(FrameError::UnknownVersion(version)) => {
                return Some((Neighbour::OtherVersion(version), false));
            }
            Err(_) => return None,
        };
        match Message::read_frame(&frame).ok()? {
            (Message::Probe(probe), stamp) if probe.info.rank.mac == self.own => match (probe.id, stamp) {
                (IDENTIFY_ID, Some(stamp)) => {
                    Some((Neighbour::TaggedXbar { tag: stamp.tag, port: stamp.arrival }, true))
                }
                (LOOPBACK_ID, _) => Some((Neighbour::PlainXbar, true)),
                _ => None,
            },
            (Message::Reply(Reply { to, info, .. }), _) => Some((self.agent(&frame, &info), to == self.own)),
            (Message::Probe(Probe { info, .. }) | Message::Scout(Scout { info, .. }), _) => {
                Some((self.agent(&frame, &info), false))
            }
        }
    }

    /// The agent that sent a frame, as far as its signature can be believed.
    fn agent(&self, frame: &Frame<'_>, info: &Info) -> Neighbour {
        let (mac, state) = (info.rank.mac, info.state);
        match (self.keys, frame.auth()) {
            (None, None) => Neighbour::Agent { mac, state },
            (None, Some(_)) => Neighbour::Signs,
            (Some(_), None) => Neighbour::Unsigned(mac),
            (Some(keys), Some(auth)) => match keys.get(auth.key_id) {
                Some(key) if frame.is_signed_by(key) => Neighbour::Agent { mac, state },
                _ => Neighbour::OtherKey(auth.key_id),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::PortSet;
    use mapper_proto::wire::{Answer, Crossbar, CrossbarKind, Decision, Key};

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const PROBER: Prober<'_> = Prober { own: OWN, keys: None };

    fn ring(id: u32, byte: u8) -> KeyRing {
        KeyRing::new(vec![Key::new(id, [byte; 32])], 0).unwrap()
    }

    /// What the prober makes of the frames that come back from a crossbar of this kind, if its probes arrive
    /// at port 3.
    fn reflected(kind: CrossbarKind) -> Vec<Neighbour> {
        let mut crossbar = Crossbar { kind, first_port: 1, ports: 8, carriers: PortSet::NONE };
        crossbar.set_carrier(3, true);
        let heard = PROBER.probes(1).into_iter().filter_map(|(route, frame)| {
            let mut payload = [route.as_bytes(), &frame].concat();
            let strip = match crossbar.decide(3, &payload) {
                Decision::Forward { port: 3, strip } => strip,
                Decision::Identify { strip, stamp_at } => {
                    crossbar.write_stamp(3, stamp_at, &mut payload);
                    strip
                }
                _ => return None,
            };
            let (neighbour, answer) = PROBER.judge(&payload[strip..])?;
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
        assert_eq!(PROBER.judge(&reply.encode()), Some((agent, true)));
    }

    #[test]
    fn another_version_is_told_from_noise() {
        let other = Prober { own: Mac::from_position(9), keys: None };
        let mut frame = other.probes(1)[1].1.clone();
        frame[4] = 77;
        let end = frame.len() - 4;
        let crc = crc32fast::hash(&frame[..end]).to_be_bytes();
        frame[end..].copy_from_slice(&crc);
        assert_eq!(PROBER.judge(&frame), Some((Neighbour::OtherVersion(77), false)));
        frame[9] ^= 1;
        assert_eq!(PROBER.judge(&frame), None);
        assert_eq!(PROBER.judge(&[]), None);
    }

    #[test]
    fn keys_that_do_not_match_are_told_apart() {
        let mac = Mac::from_position(9);
        let (ours, same_number, other) = (ring(1, 1), ring(1, 2), ring(2, 2));
        let heard = |own_keys, their_keys| {
            let frame = Prober { own: mac, keys: their_keys }.probes(1)[1].1.clone();
            Prober { own: OWN, keys: own_keys }.judge(&frame)
        };
        let agent = Neighbour::Agent { mac, state: AgentState::Starting };
        assert_eq!(heard(None, None), Some((agent, false)));
        assert_eq!(heard(Some(&ours), Some(&ours)), Some((agent, false)));
        assert_eq!(heard(None, Some(&ours)), Some((Neighbour::Signs, false)));
        assert_eq!(heard(Some(&ours), None), Some((Neighbour::Unsigned(mac), false)));
        assert_eq!(heard(Some(&ours), Some(&same_number)), Some((Neighbour::OtherKey(1), false)));
        assert_eq!(heard(Some(&ours), Some(&other)), Some((Neighbour::OtherKey(2), false)));
    }
}
