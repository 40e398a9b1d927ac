//! A tap interface, by which this process exchanges Ethernet frames with the kernel.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use mapper_proto::Mac;
use thiserror::Error;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::address::InterfaceAddress;
use super::interface::Interface;
use super::offload::{Coalescer, Segments};
use super::{LinkError, readiness, set_link, tun};
use crate::sysctl;

const DEVICE: &str = "/dev/net/tun";

/// Why a tap interface cannot be made or used, and what to do.
#[derive(Debug, Error)]
pub enum TapError {
    /// The kernel has no tap interfaces.
    #[error(
        "cannot make the tap interface `{name}`: {DEVICE} does not exist; load the module with `modprobe tun`, \
         and give a container the device"
    )]
    NoDevice {
        /// The interface.
        name: String,
    },
    /// The device's mode, or a container's list of devices, keeps the process out.
    #[error(
        "no permission to open {DEVICE} for the tap interface `{name}`: let this process read and write the \
         device (`chmod 666 {DEVICE}`; making an interface needs CAP_NET_ADMIN besides), and give a container \
         the device"
    )]
    DeviceForbidden {
        /// The interface.
        name: String,
    },
    /// The process may not make interfaces.
    #[error(
        "no permission to make the tap interface `{name}`; run as root, or give the program the capability \
         once: `setcap cap_net_raw,cap_net_admin+ep {program}`"
    )]
    NotPermitted {
        /// The interface.
        name: String,
        /// The path of the running program.
        program: String,
    },
    /// The name is that of another kind of interface.
    #[error("`{name}` exists and is no tap interface; give the tap interface another name")]
    NameTaken {
        /// The interface.
        name: String,
    },
    /// The name cannot be that of an interface.
    #[error("`{name}` cannot name an interface: give 1 to 15 characters without `/`, `%`, `:` and blanks")]
    BadName {
        /// What was given.
        name: String,
    },
    /// Another process has the interface's device open.
    #[error("the tap interface `{name}` is used by another process; end that, or give another name")]
    Busy {
        /// The interface.
        name: String,
    },
    /// The kernel refused to give the interface an IP address.
    #[error(
        "the tap interface `{name}` cannot have the address {address}{}",
        if *.disabled { format!(": IPv6 is disabled; `sysctl net.ipv6.conf.{name}.disable_ipv6=0`") } else { String::new() }
    )]
    Address {
        /// The interface.
        name: String,
        /// The address.
        address: InterfaceAddress,
        /// Whether IPv6 is disabled there.
        disabled: bool,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused to take an IP address from the interface.
    #[error(
        "the tap interface `{name}` keeps the address {address}; `ip address delete {address} dev {name}`"
    )]
    AddressKept {
        /// The interface.
        name: String,
        /// The address.
        address: InterfaceAddress,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused a call for another reason.
    #[error("tap interface `{name}`: {doing}")]
    Io {
        /// The interface.
        name: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel did not answer a question about interfaces.
    #[error("tap interface")]
    Link(#[from] LinkError),
}

/// A tap interface. It exists as long as this value, unless it was made persistent: see [`Self::set_persistent`].
///
/// The kernel hands over TCP in segments of up to 64 KiB with checksums left to be done, and takes such
/// segments too. That costs a fraction of the system calls and of the kernel's work. Segments are cut and
/// joined here, so users of this type see only ordinary frames.
#[derive(Debug)]
pub struct Tap {
    name: String,
    index: u32,
    file: AsyncFd<File>,
    /// The frame that the kernel sent last, as far as it was not handed out yet.
    segments: RefCell<Segments>,
    /// The segments that wait to be joined and handed to the kernel.
    coalescer: RefCell<Coalescer>,
    refused: Cell<u64>,
}

impl Tap {
    /// Makes the interface of this name, or takes over a tap interface of this name that no process uses.
    /// Gives it this address and this MTU (in bytes), and sets it up. Needs a tokio runtime with I/O, and
    /// `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel cannot make it, the process may not, or the name is taken.
    pub fn create(name: &str, mac: Mac, mtu: u32) -> Result<Self, TapError> {
        let file = attach(name)?;
        let index = match Interface::look_up(name)? {
            Some(interface) => interface.index,
            None => return Err(LinkError::NoSuchInterface(name.to_owned()).into()),
        };
        let failed = |doing| move |source| TapError::Io { name: name.to_owned(), doing, source };
        set_link::set_up(index, mac, mtu)
            .map_err(failed("setting its address and MTU, and setting it up"))?;
        let file = readiness::watch_file(file).map_err(failed("watching it"))?;
        Ok(Self {
            name: name.to_owned(),
            index,
            file,
            segments: RefCell::default(),
            coalescer: RefCell::default(),
            refused: Cell::new(0),
        })
    }

    /// Whether [`Self::create`] could have this name. A tap interface of this name is taken over for a
    /// moment; none is made.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn check_name(name: &str) -> Result<(), TapError> {
        if !is_interface_name(name) {
            return Err(TapError::BadName { name: name.to_owned() });
        }
        if Interface::look_up(name)?.is_some() {
            attach(name)?;
        }
        Ok(())
    }

    /// Gives the interface an IP address. Needs `CAP_NET_ADMIN`. Where IPv6 is switched off on the interface, as machines
    /// have it that switch it off everywhere, it is switched on for an address of IPv6.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_address(&self, address: InterfaceAddress) -> Result<(), TapError> {
        let is_disabled = |error: &io::Error| error.raw_os_error() == Some(libc::EACCES);
        let first = address.add_to(self.index);
        let added = match first {
            Err(error) if is_disabled(&error) && sysctl::enable_ipv6(self.index, &self.name).is_ok() => {
                address.add_to(self.index)
            }
            result => result,
        };
        added.map_err(|source| TapError::Address {
            name: self.name.clone(),
            address,
            disabled: is_disabled(&source),
            source,
        })
    }

    /// Takes an IP address from the interface. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses. That the interface does not have the address is no error.
    pub fn remove_address(&self, address: InterfaceAddress) -> Result<(), TapError> {
        match address.remove_from(self.index) {
            Err(source) if source.raw_os_error() != Some(libc::EADDRNOTAVAIL) => {
                Err(TapError::AddressKept { name: self.name.clone(), address, source })
            }
            _ => Ok(()),
        }
    }

    /// Gives the interface another MTU, in bytes. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), TapError> {
        set_link::set_mtu(self.index, mtu).map_err(|source| TapError::Io {
            name: self.name.clone(),
            doing: "setting its MTU",
            source,
        })
    }

    /// The interface's number in its network namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Says whether the interface stays, with its addresses, when this value is gone or the process has crashed. The
    /// kernel takes away routes whose source address is gone.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_persistent(&self, stays: bool) -> Result<(), TapError> {
        tun::set_persistent(self.file.get_ref(), stays).map_err(|source| TapError::Io {
            name: self.name.clone(),
            doing: "saying whether it stays when the process ends",
            source,
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the kernel sends a frame, which [`Self::try_read`] then returns. Nothing is lost if the
    /// future is dropped.
    ///
    /// # Errors
    /// If the interface cannot be used any more, as somebody removed it.
    pub async fn ready(&self) -> io::Result<()> {
        while self.segments.borrow().is_empty() {
            self.file.async_io(Interest::READABLE, |file| self.fetch(file)).await?;
        }
        Ok(())
    }

    /// Puts the next frame that the kernel sends into `buffer`; returns how long it is. A frame longer
    /// than the buffer is cut off, and its end is lost.
    ///
    /// # Errors
    /// `WouldBlock` if no frame is there, else as [`Self::ready`].
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(length) = self.segments.borrow_mut().next_into(buffer) {
                return Ok(length);
            }
            self.file.try_io(Interest::READABLE, |file| self.fetch(file))?;
        }
    }

    fn fetch(&self, mut file: &File) -> io::Result<()> {
        let mut segments = self.segments.borrow_mut();
        let bytes = file.read(segments.room())?;
        segments.begin(bytes);
        Ok(())
    }

    /// Hands a frame to the kernel as if it had arrived. It may wait for [`Self::flush`], to be
    /// joined with others of its flow. What the kernel does not take is lost and counted.
    pub fn queue(&self, frame: &[u8]) {
        self.coalescer.borrow_mut().push(frame, |header, frame| self.write(header, frame));
    }

    /// Hands the frames that wait to the kernel.
    pub fn flush(&self) {
        self.coalescer.borrow_mut().flush(|header, frame| self.write(header, frame));
    }

    fn write(&self, header: &[u8], frame: &[u8]) {
        if self.file.get_ref().write_vectored(&[IoSlice::new(header), IoSlice::new(frame)]).is_err() {
            self.refused.set(self.refused.get() + 1);
        }
    }

    /// How many frames the kernel did not take, as the interface was down or gone, or memory short.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }
}

/// Opens the device of the tap interface of this name, which is made if there is none.
fn attach(name: &str) -> Result<File, TapError> {
    if !is_interface_name(name) {
        return Err(TapError::BadName { name: name.to_owned() });
    }
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
    let file = file.map_err(|source| not_opened(name, source))?;
    tun::attach_tap(&file, name).map_err(|source| not_attached(name, source))?;
    Ok(file)
}

/// Whether the kernel would take this as a name as it is. With `%` in it the kernel would make up a name.
fn is_interface_name(name: &str) -> bool {
    let bad = |byte: u8| matches!(byte, b'/' | b'%' | b':' | 0) || byte.is_ascii_whitespace();
    !matches!(name, "" | "." | "..") && name.len() < libc::IFNAMSIZ && !name.bytes().any(bad)
}

fn not_opened(name: &str, source: io::Error) -> TapError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::NoDevice { name },
        // The file /dev/net/tun may not be opened, and no capability for the network makes up for that.
        Some(libc::EACCES | libc::EPERM) => TapError::DeviceForbidden { name },
        _ => TapError::Io { name, doing: "opening /dev/net/tun", source },
    }
}

fn not_attached(name: &str, source: io::Error) -> TapError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::EPERM) => TapError::NotPermitted { name, program: program() },
        // The name belongs to an interface of another kind, for example to a tun interface.
        Some(libc::EINVAL) => TapError::NameTaken { name },
        Some(libc::EBUSY) => TapError::Busy { name },
        _ => TapError::Io { name, doing: "making it", source },
    }
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "/path/to/mapper".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_takes_is_a_name() {
        for good in ["fabric0", "a", "fifteen-letters"] {
            assert!(is_interface_name(good), "{good}");
        }
        for bad in ["", ".", "..", "sixteen--letters", "a/b", "tap%d", "a b", "a:1", "a\0"] {
            assert!(!is_interface_name(bad), "{bad}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |errno| io::Error::from_raw_os_error(errno);
        assert!(not_opened("t0", error(libc::ENOENT)).to_string().contains("modprobe tun"));
        let forbidden = not_opened("t0", error(libc::EACCES)).to_string();
        assert!(forbidden.contains("chmod 666 /dev/net/tun") && !forbidden.contains("setcap"), "{forbidden}");
        assert!(not_attached("t0", error(libc::EPERM)).to_string().contains("setcap"));
        assert!(not_attached("lo", error(libc::EINVAL)).to_string().contains("another name"));
        assert!(not_attached("t0", error(libc::EBUSY)).to_string().contains("another process"));
    }
}
