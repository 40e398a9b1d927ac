//! A port of this machine, by the kernel's device for management datagrams (`/dev/infiniband/umadN`).
//!
//! Who only asks registers an agent for the class of directed routes, which takes no requests of others. A subnet manager
//! registers one for each class that it serves, and opens the device that marks its port (`issmN`). Each datagram has a
//! header of 64 bytes before it, in the form with partition keys.

mod ioctl;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use mapper_ib::mad::MAD_BYTES;
use mapper_ib::{Address, Packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::{CLASS_AT, CLASS_BY_LID, CLASS_DIRECTED, MANAGEMENT_KEY, METHOD_AT, lost_without_room};
use ioctl::Class;

const HEADER_BYTES: usize = 64;
const STATUS_AT: usize = 4;
const TIMEOUT_AT: usize = 8;
const LENGTH_AT: usize = 16;
const PAIR_AT: usize = 20;
const PAIR_KEY_AT: usize = 24;
const LID_AT: usize = 28;
const LEVEL_AT: usize = 30;
/// The bit of a method that says that it answers.
const ANSWERS: u8 = 0x80;
/// The destination of directed routes.
const PERMISSIVE_LID: u16 = 0xFFFF;

/// Why a device cannot be used.
#[derive(Debug, Error)]
pub enum UmadError {
    /// There is no such device.
    #[error(
        "there is no {}; load the kernel's module ib_umad, and see /sys/class/infiniband_mad for the ports that this \
         machine has",
        path.display()
    )]
    NotThere {
        /// The device.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("cannot open {}; root may, or whoever its group lets in", path.display())]
    Open {
        /// The device.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It takes no agent.
    #[error(
        "{} does not register for class {class:#x}; is it a device of management datagrams, and does no other manager \
         have its port?",
        path.display()
    )]
    Register {
        /// The class.
        class: u8,
        /// The device.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Agents at a port of this machine. The kernel forgets them when it is dropped.
#[derive(Debug)]
pub struct UmadPort {
    device: File,
    /// The numbers of agents, by class.
    agents: Vec<(u8, u32)>,
    /// How long whoever sends waits for an answer until it sends again.
    answer_timeout: Duration,
    /// While it is open, the port says that a subnet manager is behind it.
    _mark: Option<File>,
}

/// How long an answer of the subnet's administration is waited for at least.
const ADMINISTRATION_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the kernel is to wait for the answer to a datagram, in milliseconds. While it waits, it takes no second question
/// with the number of the first, and then it hands on no answer any more. So its time is over just before the question is sent again.
fn kernel_timeout_ms(answer_timeout: Duration, mad: &[u8; MAD_BYTES]) -> u32 {
    // An answer gets no answer, so the kernel need not wait for one.
    if mad[METHOD_AT] & ANSWERS != 0 {
        return 0;
    }
    let own = match mad[CLASS_AT] {
        CLASS_DIRECTED | CLASS_BY_LID => answer_timeout,
        _ => answer_timeout.max(ADMINISTRATION_TIMEOUT),
    };
    u32::try_from((own - own / 10).as_millis()).unwrap_or(u32::MAX).max(1)
}

/// The header and a datagram. Numbers are in the byte order of the machine, but for those that go out. The kernel itself
/// repeats nothing.
fn outgoing(agent: u32, answer_timeout: Duration, packet: &Packet) -> [u8; HEADER_BYTES + MAD_BYTES] {
    let mut bytes = [0; HEADER_BYTES + MAD_BYTES];
    bytes[..4].copy_from_slice(&agent.to_ne_bytes());
    let timeout_ms = kernel_timeout_ms(answer_timeout, &packet.mad);
    bytes[TIMEOUT_AT..TIMEOUT_AT + 4].copy_from_slice(&timeout_ms.to_ne_bytes());
    bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&(MAD_BYTES as u32).to_ne_bytes());
    let lid = match packet.address {
        Address::Directed => PERMISSIVE_LID,
        Address::Lid { lid, queue_pair, level } => {
            bytes[PAIR_AT..PAIR_AT + 4].copy_from_slice(&queue_pair.to_be_bytes());
            if queue_pair != 0 {
                bytes[PAIR_KEY_AT..PAIR_KEY_AT + 4].copy_from_slice(&MANAGEMENT_KEY.to_be_bytes());
            }
            bytes[LEVEL_AT] = level;
            lid
        }
    };
    bytes[LID_AT..LID_AT + 2].copy_from_slice(&lid.to_be_bytes());
    bytes[HEADER_BYTES..].copy_from_slice(&packet.mad);
    bytes
}

/// The datagram that was received; `None` if it is one of ours that comes back because no answer came.
fn received(bytes: &[u8]) -> Option<Packet> {
    let status = bytes.get(STATUS_AT..STATUS_AT + 4)?;
    let mad: [u8; MAD_BYTES] = bytes.get(HEADER_BYTES..)?.try_into().ok()?;
    if status != [0; 4] {
        return None;
    }
    let address = if mad[CLASS_AT] == CLASS_DIRECTED {
        Address::Directed
    } else {
        Address::Lid {
            lid: u16::from_be_bytes(bytes[LID_AT..LID_AT + 2].try_into().ok()?),
            queue_pair: u32::from_be_bytes(bytes[PAIR_AT..PAIR_AT + 4].try_into().ok()?),
            level: bytes[LEVEL_AT],
        }
    };
    Some(Packet { address, mad })
}

/// The path of one of a port's devices.
fn device(kind: &str, number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/infiniband/{kind}{number}"))
}

fn open_device(path: PathBuf) -> Result<(File, PathBuf), UmadError> {
    match OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&path) {
        Ok(device) => Ok((device, path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(UmadError::NotThere { path }),
        Err(source) => Err(UmadError::Open { path, source }),
    }
}

impl UmadPort {
    /// Opens the device `/dev/infiniband/umad<number>` to ask by directed routes.
    ///
    /// # Errors
    /// If there is no such device, it may not be opened, or it takes no agent.
    pub fn open(number: u32, answer_timeout: Duration) -> Result<Self, UmadError> {
        Self::open_at(device("umad", number), answer_timeout, &[Class::ASKING])
    }

    /// Opens it for a subnet manager, and marks the port.
    ///
    /// # Errors
    /// If that fails, or another manager has the port.
    pub fn open_for_manager(number: u32, answer_timeout: Duration) -> Result<Self, UmadError> {
        let port = Self::open_at(device("umad", number), answer_timeout, &Class::OF_MANAGERS)?;
        let (mark, _) = open_device(device("issm", number))?;
        Ok(Self { _mark: Some(mark), ..port })
    }

    fn open_at(path: PathBuf, answer_timeout: Duration, classes: &[Class]) -> Result<Self, UmadError> {
        let (device, path) = open_device(path)?;
        let register = |class: &Class| {
            // Another program may take reports at this port. Then there is no word of changes.
            ioctl::register(&device, class).or_else(|refused| match class.without_reports() {
                Some(lesser) => ioctl::register(&device, &lesser),
                None => Err(refused),
            })
        };
        let number = |class: &Class| match register(class) {
            Ok(agent) => Ok((class.number, agent)),
            Err(source) => Err(UmadError::Register { path: path.clone(), class: class.number, source }),
        };
        let refused = || UmadError::Register {
            path: path.clone(),
            class: classes.first().map_or(CLASS_DIRECTED, |class| class.number),
            source: io::Error::last_os_error(),
        };
        ioctl::enable_partition_keys(&device).map_err(|_| refused())?;
        let agents = classes.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Self { device, agents, answer_timeout, _mark: None })
    }

    pub(super) fn send(&self, packet: &Packet) -> io::Result<()> {
        let class = packet.mad[CLASS_AT];
        let agent = self.agents.iter().find(|&&(known, _)| known == class).map(|&(_, agent)| agent);
        let Some(agent) = agent else {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("no agent for class {class:#x}")));
        };
        match (&self.device).write(&outgoing(agent, self.answer_timeout, packet)) {
            // The kernel still waits for the answer to the first question of this number.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            result => lost_without_room(result),
        }
    }

    pub(super) fn receive(&self, timeout: Duration) -> io::Result<Option<Packet>> {
        let limit = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.device, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match self.receive_now() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            result => result,
        }
    }

    pub(super) fn receive_now(&self) -> io::Result<Option<Packet>> {
        let mut bytes = [0; HEADER_BYTES + MAD_BYTES];
        let length = (&self.device).read(&mut bytes)?;
        Ok(received(&bytes[..length]))
    }
}

impl AsFd for UmadPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(class: u8, address: Address) -> Packet {
        let mut mad = [7; MAD_BYTES];
        mad[CLASS_AT] = class;
        Packet { address, mad }
    }

    fn number(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn a_datagram_goes_out_behind_the_kernels_header() {
        let bytes = outgoing(3, Duration::from_millis(200), &packet(CLASS_DIRECTED, Address::Directed));
        assert_eq!(bytes.len(), 320);
        // Agent, status, time-out, retries, length, then queue pair 0 and its key, 0.
        assert_eq!([0, 4, 8, 12, 16, 20, 24].map(|at| number(&bytes, at)), [3, 0, 180, 0, 256, 0, 0]);
        assert_eq!(bytes[28..32], [0xFF, 0xFF, 0, 0]);
        assert!(bytes[32..64].iter().all(|&byte| byte == 0) && bytes[66..].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn an_answer_by_lid_goes_to_its_queue_pair_and_waits_for_nothing() {
        let mut answer = packet(3, Address::Lid { lid: 0x1234, queue_pair: 5, level: 2 });
        answer.mad[METHOD_AT] = 0x81;
        let bytes = outgoing(3, Duration::from_millis(200), &answer);
        assert_eq!(number(&bytes, 8), 0);
        assert_eq!(bytes[20..31], [0, 0, 0, 5, 0x80, 1, 0, 0, 0x12, 0x34, 2]);
        assert_eq!(received(&bytes), Some(answer));
    }

    #[test]
    fn the_kernel_gives_up_just_before_a_question_is_sent_again() {
        let timeout_ms = |class, timeout_ms| {
            let timeout = Duration::from_millis(timeout_ms);
            number(&outgoing(3, timeout, &packet(class, Address::Directed)), 8)
        };
        assert_eq!([1, 1000].map(|own| timeout_ms(CLASS_BY_LID, own)), [1, 900]);
        // Answers of the subnet's administration are waited for longer, as it may have much to do.
        assert_eq!([1, 5000].map(|own| timeout_ms(3, own)), [900, 4500]);
    }

    #[test]
    fn what_was_not_answered_is_no_datagram() {
        let packet = packet(CLASS_DIRECTED, Address::Directed);
        let mut bytes = outgoing(3, Duration::from_millis(200), &packet);
        assert_eq!(received(&bytes), Some(packet));
        assert_eq!(received(&bytes[..319]), None);
        bytes[STATUS_AT..STATUS_AT + 4].copy_from_slice(&110_u32.to_ne_bytes());
        assert_eq!(received(&bytes), None);
    }

    #[test]
    fn a_device_that_is_missing_or_another_is_named() {
        let open =
            |path: &str| UmadPort::open_at(PathBuf::from(path), Duration::from_secs(1), &[Class::ASKING]);
        let refused = open("/dev/infiniband/umad9999").unwrap_err().to_string();
        assert!(
            refused.starts_with("there is no /dev/infiniband/umad9999; load the kernel's module ib_umad")
        );
        let refused = open("/dev/null").unwrap_err().to_string();
        assert!(refused.starts_with("/dev/null does not register for class 0x81"), "{refused}");
    }
}
