//! The functions that C calls. `include/mapper_acm.h` describes them.

#![allow(unsafe_code, reason = "C calls these functions, and hands over pointers")]
#![expect(clippy::missing_safety_doc, reason = "include/mapper_acm.h says what C must hand over")]

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libc::sockaddr;
use mapper_acm::wire::{Address, COUNTERS, EntryFlags, PathRecord, Status};
use mapper_acm_client::blocking::Client;
use mapper_acm_client::{ClientError, ServiceAddress};

use crate::arguments::{put, socket_address, text};

/// The bytes of an address in words.
const ADDRESS_BYTES: usize = 64;

/// A connection, of which one thread has its turn at a time.
#[derive(Debug)]
pub struct Connection(Mutex<Client>);

/// A path record, in the bytes by which it travels.
#[repr(C)]
#[derive(Debug)]
pub struct PathOut {
    record: [u8; PathRecord::BYTES],
}

/// The counters of an endpoint, or of all together.
#[repr(C)]
#[derive(Debug)]
pub struct CountersOut {
    count: [u64; COUNTERS],
}

/// An endpoint of the service, and the addresses that it goes by.
#[repr(C)]
#[derive(Debug)]
pub struct EndpointOut {
    guid: u64,
    pkey: u16,
    port: u8,
    ports: u8,
    address_count: u32,
    addresses: *mut [u8; ADDRESS_BYTES],
}

/// The number of errno that says what is wrong.
fn errno(error: &ClientError) -> c_int {
    let number = match error {
        ClientError::Refused(status) => match *status {
            Status::NO_MEMORY => libc::ENOMEM,
            Status::NO_DATA => libc::ENODATA,
            Status::NOT_CONNECTED => libc::ENOTCONN,
            Status::TIMED_OUT => libc::ETIMEDOUT,
            Status::SOURCE_ADDRESS | Status::DESTINATION_ADDRESS => libc::EADDRNOTAVAIL,
            _ => libc::EINVAL,
        },
        ClientError::Unreachable { source, .. } | ClientError::Io(source) => {
            source.raw_os_error().unwrap_or(libc::EIO)
        }
        ClientError::Closed => libc::EPIPE,
        ClientError::Silent => libc::ETIMEDOUT,
        ClientError::Malformed(_) => libc::EPROTO,
    };
    -number
}

/// Asks, and puts the answer where C wants it.
///
/// # Safety
/// `connection` is null or came from [`mapper_acm_connect`], and `out` is null or leads to room for such a value.
unsafe fn answer<T>(
    connection: *const Connection,
    out: *mut T,
    ask: impl FnOnce(&mut Client) -> Result<T, ClientError>,
) -> c_int {
    // SAFETY: the caller says that it is null or a connection.
    let Some(Connection(client)) = (unsafe { connection.as_ref() }) else { return -libc::EINVAL };
    match ask(&mut client.lock().unwrap_or_else(PoisonError::into_inner)) {
        Ok(value) => {
            // SAFETY: the caller says that there is room.
            let is_put = unsafe { put(out, value) };
            if is_put { 0 } else { -libc::EINVAL }
        }
        Err(error) => errno(&error),
    }
}

fn path(
    client: &mut Client,
    source: Option<Address>,
    to: Address,
    flags: u32,
) -> Result<PathOut, ClientError> {
    let resolved = client.resolve(source, to, EntryFlags(flags))?;
    Ok(PathOut { record: resolved.path.to_bytes() })
}

/// Connects to a service.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_connect(
    service: *const c_char,
    connection: *mut *mut Connection,
) -> c_int {
    let place = if service.is_null() {
        ServiceAddress::local()
    } else {
        // SAFETY: C hands over a text.
        match unsafe { text(service) } {
            Some(text) => ServiceAddress::parse(text),
            None => return -libc::EINVAL,
        }
    };
    match Client::connect(&place) {
        Ok(client) => {
            let made = Box::into_raw(Box::new(Connection(Mutex::new(client))));
            // SAFETY: C hands over room for a pointer.
            if unsafe { put(connection, made) } {
                return 0;
            }
            // SAFETY: it was made just now, and nobody else knows of it.
            drop(unsafe { Box::from_raw(made) });
            -libc::EINVAL
        }
        Err(error) => errno(&error),
    }
}

/// Changes how long the service may take to answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_set_patience(connection: *mut Connection, milliseconds: u32) -> c_int {
    // SAFETY: C hands over a connection, or null.
    let Some(Connection(client)) = (unsafe { connection.as_ref() }) else { return -libc::EINVAL };
    if milliseconds == 0 {
        return -libc::EINVAL;
    }
    let patience = Duration::from_millis(milliseconds.into());
    let set = client.lock().unwrap_or_else(PoisonError::into_inner).set_patience(patience);
    set.map_or_else(|error| errno(&error), |()| 0)
}

/// Closes a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_disconnect(connection: *mut Connection) {
    if !connection.is_null() {
        // SAFETY: it came from `mapper_acm_connect`, and C uses it no more.
        drop(unsafe { Box::from_raw(connection) });
    }
}

/// The path to a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_resolve_name(
    connection: *mut Connection,
    source: *const c_char,
    destination: *const c_char,
    flags: u32,
    out: *mut PathOut,
) -> c_int {
    // SAFETY: C hands over texts, or null for no source.
    let (from, to) = unsafe { (text(source), text(destination)) };
    let Some(to) = to.filter(|_| from.is_some() != source.is_null()) else { return -libc::EINVAL };
    let name = |text: &str| Address::Name(text.to_owned());
    // SAFETY: C hands over a connection and room for a path.
    unsafe { answer(connection, out, |client| path(client, from.map(name), name(to), flags)) }
}

/// The path to an address of IP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_resolve_ip(
    connection: *mut Connection,
    source: *const sockaddr,
    destination: *const sockaddr,
    flags: u32,
    out: *mut PathOut,
) -> c_int {
    // SAFETY: C hands over socket addresses, or null for no source.
    let (from, to) = unsafe { (socket_address(source), socket_address(destination)) };
    let Some(to) = to.filter(|_| from.is_some() != source.is_null()) else { return -libc::EINVAL };
    // SAFETY: C hands over a connection and room for a path.
    unsafe { answer(connection, out, |client| path(client, from, to, flags)) }
}

/// Completes or verifies a path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_resolve_path(
    connection: *mut Connection,
    flags: u32,
    known: *mut PathOut,
) -> c_int {
    // SAFETY: C hands over a path, or null.
    let Some(record) = (unsafe { known.as_ref() }).map(|known| PathRecord::parse(&known.record)) else {
        return -libc::EINVAL;
    };
    let ask = |client: &mut Client| {
        let record = client.resolve_path(record, EntryFlags(flags))?;
        Ok(PathOut { record: record.to_bytes() })
    };
    // SAFETY: C hands over a connection and room for a path.
    unsafe { answer(connection, known, ask) }
}

/// The counters of an endpoint, or of all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_query_counters(
    connection: *mut Connection,
    endpoint: u8,
    out: *mut CountersOut,
) -> c_int {
    let ask = |client: &mut Client| Ok(CountersOut { count: client.counters(endpoint)? });
    // SAFETY: C hands over a connection and room for counters.
    unsafe { answer(connection, out, ask) }
}

/// The counters of the endpoint with this name or address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_query_counters_of(
    connection: *mut Connection,
    address: *const c_char,
    out: *mut CountersOut,
) -> c_int {
    // SAFETY: C hands over a text.
    let Some(address) = (unsafe { text(address) }) else { return -libc::EINVAL };
    let address =
        address.parse().map_or_else(|_| Address::Name(address.to_owned()), |ip: std::net::IpAddr| ip.into());
    let ask = |client: &mut Client| Ok(CountersOut { count: client.counters_of(address)? });
    // SAFETY: C hands over a connection and room for counters.
    unsafe { answer(connection, out, ask) }
}

/// An endpoint with its addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_query_endpoint(
    connection: *mut Connection,
    endpoint: u8,
    out: *mut EndpointOut,
) -> c_int {
    if out.is_null() {
        return -libc::EINVAL;
    }
    let ask = |client: &mut Client| {
        let info = client.endpoint(endpoint)?;
        let addresses: Box<[[u8; ADDRESS_BYTES]]> = info.addresses.iter().map(|it| in_room(it)).collect();
        Ok(EndpointOut {
            guid: info.guid,
            pkey: info.pkey,
            port: info.port,
            ports: info.ports,
            address_count: addresses.len() as u32,
            addresses: Box::into_raw(addresses).cast(),
        })
    };
    // SAFETY: C hands over a connection and room for an endpoint.
    unsafe { answer(connection, out, ask) }
}

/// Waits for a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_wait_for_change(connection: *mut Connection, number: *mut u32) -> c_int {
    // SAFETY: C hands over a number, or null.
    let Some(&seen) = (unsafe { number.as_ref() }) else { return -libc::EINVAL };
    // SAFETY: C hands over a connection and room for a number.
    unsafe { answer(connection, number, |client| client.changed(seen)) }
}

/// A text that ends with a zero; what is too long is cut off.
fn in_room(text: &str) -> [u8; ADDRESS_BYTES] {
    let mut room = [0; ADDRESS_BYTES];
    room[..ADDRESS_BYTES - 1].iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    room
}

/// Frees the addresses of an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mapper_acm_free_endpoint(info: *mut EndpointOut) {
    // SAFETY: C hands over an endpoint, or null.
    let Some(info) = (unsafe { info.as_mut() }) else { return };
    if !info.addresses.is_null() {
        let all = ptr::slice_from_raw_parts_mut(info.addresses, info.address_count as usize);
        // SAFETY: these addresses were made by `mapper_acm_query_endpoint`, and are forgotten below.
        drop(unsafe { Box::from_raw(all) });
    }
    (info.addresses, info.address_count) = (ptr::null_mut(), 0);
}
