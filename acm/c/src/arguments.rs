//! Reads what C hands over.

#![allow(unsafe_code, reason = "what C hands over are pointers")]

use std::ffi::{CStr, c_char};
use std::net::{Ipv4Addr, Ipv6Addr};

use libc::{AF_INET, AF_INET6, sockaddr, sockaddr_in, sockaddr_in6};
use mapper_acm::wire::Address;

/// A text; `None` for a null pointer, or if it is no UTF-8.
///
/// # Safety
/// The pointer is null or leads to bytes that end with a zero.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller says that a zero ends it.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// An address of IP; `None` for a null pointer or another kind of address.
///
/// # Safety
/// The pointer is null or leads to a socket address that is as long as its family says.
pub(crate) unsafe fn socket_address(pointer: *const sockaddr) -> Option<Address> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller says that there is an address. It may stand anywhere.
    let family = unsafe { (&raw const (*pointer).sa_family).read_unaligned() };
    match i32::from(family) {
        AF_INET => {
            // SAFETY: the caller says that an address of this family is this long.
            let found = unsafe { pointer.cast::<sockaddr_in>().read_unaligned() };
            Some(Address::V4(Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr))))
        }
        AF_INET6 => {
            // SAFETY: the caller says that an address of this family is this long.
            let found = unsafe { pointer.cast::<sockaddr_in6>().read_unaligned() };
            Some(Address::V6(Ipv6Addr::from(found.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

/// Writes a value where C wants it; false for a null pointer.
///
/// # Safety
/// The pointer is null or leads to room for such a value.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) -> bool {
    if pointer.is_null() {
        return false;
    }
    // SAFETY: the caller says that there is room.
    unsafe { pointer.write(value) };
    true
}
