//! The functions that the shim calls, and those of the shim that OpenSM calls. `shim/mapper.h` declares them.
//!
//! The only module with `unsafe` code. No panic gets out of it: each function catches its own, says so in the
//! log where it has one, and returns what makes OpenSM take its next engine.
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the shim is the only caller, and keeps to what the header says"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use mapper_opensm::{Adapter, Link, Request, Switch};

use crate::plugin::Plugin;

type LogFunction = extern "C" fn(osm: *mut c_void, is_error: c_int, line: *const c_char);

/// A plugin and the log of its OpenSM.
pub(crate) struct Loaded {
    plugin: Plugin,
    log: Log,
}

#[derive(Clone, Copy)]
struct Log {
    osm: *mut c_void,
    function: LogFunction,
}

impl Log {
    fn line(self, is_error: bool, line: &str) {
        let text = CString::new(line.replace('\0', "?")).unwrap_or_default();
        (self.function)(self.osm, c_int::from(is_error), text.as_ptr());
    }
}

/// What a call comes to, or `otherwise` if it panics.
fn guarded<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// The text of a C string; empty for none.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the shim passes strings of OpenSM that end with a zero and outlive the call.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

#[repr(C)]
struct EventPlugin {
    osm_version: *const c_char,
    create: extern "C" fn(*mut c_void) -> *mut c_void,
    delete: extern "C" fn(*mut c_void),
    report: extern "C" fn(*mut c_void, c_int, *mut c_void),
}

// SAFETY: it is never written to, and the text that it points to is a constant of the shim.
unsafe impl Sync for EventPlugin {}

// SAFETY: the shim defines these, with these types (`shim/mapper.h`).
unsafe extern "C" {
    safe fn mapper_shim_create(osm: *mut c_void) -> *mut c_void;
    safe fn mapper_shim_delete(data: *mut c_void);
    safe fn mapper_shim_report(data: *mut c_void, event: c_int, event_data: *mut c_void);
    static mapper_shim_osm_version: c_char;
}

extern "C" fn create(osm: *mut c_void) -> *mut c_void {
    mapper_shim_create(osm)
}

extern "C" fn delete(data: *mut c_void) {
    mapper_shim_delete(data);
}

extern "C" fn report(data: *mut c_void, event: c_int, event_data: *mut c_void) {
    mapper_shim_report(data, event, event_data);
}

/// What OpenSM looks for in a plugin (`osm_event_plugin.h`).
// SAFETY: no other library of OpenSM's process has this name: it looks it up in this one.
#[unsafe(no_mangle)]
static osm_event_plugin: EventPlugin =
    EventPlugin { osm_version: &raw const mapper_shim_osm_version, create, delete, report };

// SAFETY (of all names below): they begin with `mapper_`, which nothing else of the process does.

#[unsafe(no_mangle)]
extern "C" fn mapper_new(options: *const c_char, osm: *mut c_void, function: LogFunction) -> *mut Loaded {
    guarded(std::ptr::null_mut(), || {
        let log = Log { osm, function };
        let plugin = Plugin::new(&text(options), &|is_error, line| log.line(is_error, line));
        plugin.map_or(std::ptr::null_mut(), |plugin| Box::into_raw(Box::new(Loaded { plugin, log })))
    })
}

#[unsafe(no_mangle)]
extern "C" fn mapper_free(loaded: *mut Loaded) {
    guarded((), || {
        if !loaded.is_null() {
            // SAFETY: it came from `mapper_new`, and the shim lets go of it here.
            drop(unsafe { Box::from_raw(loaded) });
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn mapper_request_new(lanes: u8) -> *mut Request {
    guarded(std::ptr::null_mut(), || Box::into_raw(Box::new(Request { lanes, ..Request::default() })))
}

#[unsafe(no_mangle)]
extern "C" fn mapper_request_switch(
    request: *mut Request,
    guid: u64,
    system_guid: u64,
    description: *const c_char,
    lid: u16,
    lmc: u8,
    ports: u8,
    lft: *const u8,
    lft_size: usize,
) {
    guarded((), || {
        let in_force = if lft.is_null() {
            Vec::new()
        } else {
            // SAFETY: OpenSM holds its lock, and so many bytes at this place.
            unsafe { std::slice::from_raw_parts(lft, lft_size) }.to_vec()
        };
        let description = text(description);
        let links = Vec::new();
        // SAFETY: it came from `mapper_request_new`, and one thread builds it.
        let request = unsafe { &mut *request };
        request.switches.push(Switch {
            guid,
            system_guid,
            description,
            lid,
            lmc,
            ports,
            links,
            in_force,
            before: Vec::new(),
        });
    });
}

#[unsafe(no_mangle)]
extern "C" fn mapper_request_link(request: *mut Request, port: u8, peer: u64, peer_port: u8) {
    guarded((), || {
        // SAFETY: it came from `mapper_request_new`, and one thread builds it.
        let request = unsafe { &mut *request };
        if let Some(switch) = request.switches.last_mut() {
            switch.links.push(Link { port, peer, peer_port });
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn mapper_request_adapter(
    request: *mut Request,
    node_guid: u64,
    port_guid: u64,
    system_guid: u64,
    description: *const c_char,
    port: u8,
    lid: u16,
    lmc: u8,
) {
    guarded((), || {
        let description = text(description);
        let adapter = Adapter { node_guid, port_guid, system_guid, description, port, lid, lmc };
        // SAFETY: it came from `mapper_request_new`, and one thread builds it.
        unsafe { &mut *request }.adapters.push(adapter);
    });
}

#[unsafe(no_mangle)]
extern "C" fn mapper_compute(loaded: *mut Loaded, request: *mut Request) -> c_int {
    // SAFETY: the plugin came from `mapper_new`; OpenSM's lock is held for writing, so nobody else uses it.
    let Loaded { plugin, log } = unsafe { &mut *loaded };
    let log = *log;
    // SAFETY: it came from `mapper_request_new`, and the shim lets go of it here.
    let request = unsafe { Box::from_raw(request) };
    let done = guarded(None, || Some(plugin.compute(*request, &|is_error, line| log.line(is_error, line))));
    if done.is_none() {
        guarded((), || log.line(true, "the plugin itself failed: left to OpenSM's next engine"));
    }
    if done == Some(true) { 0 } else { -1 }
}

#[unsafe(no_mangle)]
extern "C" fn mapper_table(loaded: *const Loaded, guid: u64, size: *mut usize) -> *const u8 {
    guarded(std::ptr::null(), || {
        // SAFETY: the plugin came from `mapper_new`; nobody writes to it while OpenSM's lock is held.
        let Some(table) = unsafe { &*loaded }.plugin.table(guid) else { return std::ptr::null() };
        // SAFETY: the shim passes the place of a variable of its own.
        unsafe { *size = table.len() };
        table.as_ptr()
    })
}

#[unsafe(no_mangle)]
extern "C" fn mapper_layers(loaded: *const Loaded) -> u8 {
    // SAFETY: the plugin came from `mapper_new`; nobody writes to it while OpenSM's lock is held.
    guarded(1, || unsafe { &*loaded }.plugin.layers())
}

#[unsafe(no_mangle)]
extern "C" fn mapper_level(loaded: *const Loaded, from: u16, to: u16, hint: u8) -> u8 {
    // SAFETY: the plugin came from `mapper_new`; nobody writes to it while OpenSM's lock is held.
    guarded(hint, || unsafe { &*loaded }.plugin.level(from, to).unwrap_or(hint))
}
