//! The calls by which an agent is registered at a device.
#![expect(unsafe_code, reason = "the kernel is given memory that it writes to")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use mapper_ib::mad::{AGENT_CLASS, AGENT_OUI, SEND};

use super::super::CLASS_BY_LID;

/// `_IOWR(0x1B, 1, struct ib_user_mad_reg_req)`.
const REGISTER_AGENT: u32 = 0xC01C_1B01;
/// `_IO(0x1B, 3)`: headers have a partition key, and are 64 bytes long.
const ENABLE_PKEY: u32 = 0x1B03;

/// A class of management that an agent is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) number: u8,
    version: u8,
    queue_pair: u8,
    /// The methods of requests that are taken, a bit each.
    methods: u32,
    /// The vendor whose class it is; 0 for none.
    oui: [u8; 3],
}

impl Class {
    /// The class of a port that only asks by directed routes, and takes no requests.
    pub(super) const ASKING: Self =
        Self { number: super::CLASS_DIRECTED, version: 1, queue_pair: 0, methods: 0, oui: [0; 3] };

    /// The classes that a subnet manager serves: Get, Set, Trap and TrapRepress of the subnet, and of its
    /// administration Get, Set, Report, GetTable and Delete; and what agents send each other.
    pub(super) const OF_MANAGERS: [Self; 4] = [
        Self { methods: 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7, ..Self::ASKING },
        Self { number: CLASS_BY_LID, methods: 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7, ..Self::ASKING },
        Self {
            number: CLASS_ADMINISTRATION,
            version: 2,
            queue_pair: 1,
            methods: 1 << 1 | 1 << 2 | REPORT | 1 << 0x12 | 1 << 0x15,
            ..Self::ASKING
        },
        Self { number: AGENT_CLASS, version: 1, queue_pair: 1, methods: 1 << SEND, oui: AGENT_OUI },
    ];

    /// The same without reports; `None` if it has none.
    pub(super) fn without_reports(&self) -> Option<Self> {
        let is_administration = self.number == CLASS_ADMINISTRATION && self.methods & REPORT != 0;
        is_administration.then_some(Self { methods: self.methods & !REPORT, ..*self })
    }
}

/// The bit of the method by which the administration tells what happened.
const REPORT: u32 = 1 << 6;
/// The class of the subnet's administration.
const CLASS_ADMINISTRATION: u8 = 0x03;

/// What the kernel takes and gives; as `struct ib_user_mad_reg_req` in `rdma/ib_user_mad.h`.
#[repr(C)]
#[derive(Debug, Default)]
struct Registration {
    id: u32,
    /// The methods of requests that are taken.
    method_mask: [u32; 4],
    queue_pair: u8,
    class: u8,
    class_version: u8,
    oui: [u8; 3],
    segmentation_version: u8,
}

const _: () = assert!(size_of::<Registration>() == 28, "the size is part of the call's number");

/// Has headers with a partition key.
pub(super) fn enable_partition_keys(device: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `device` lives, and the call takes no memory.
    match unsafe { libc::ioctl(device.as_raw_fd(), ENABLE_PKEY.into(), 0) } {
        done if done < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Registers an agent, and returns its number.
pub(super) fn register(device: &File, class: &Class) -> io::Result<u32> {
    let mut registration = Registration {
        method_mask: [class.methods, 0, 0, 0],
        queue_pair: class.queue_pair,
        class: class.number,
        class_version: class.version,
        oui: class.oui,
        ..Registration::default()
    };
    // SAFETY: the call reads and writes the 28 bytes that its number tells, which is the size of `registration`, and
    // that lives until the call has returned.
    let registered = unsafe { libc::ioctl(device.as_raw_fd(), REGISTER_AGENT.into(), &raw mut registration) };
    if registered < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(registration.id)
}
