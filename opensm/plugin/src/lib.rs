//! The event plugin by which OpenSM runs mapper's engines.
//!
//! A shim in C (`shim/`) reads OpenSM's structures and fills its tables. Here its requests are taken to
//! the [worker](mapper_opensm::Worker), a process of its own: what goes wrong in an engine ends that
//! process, and what would go wrong here is caught at the [boundary].

#[expect(unsafe_code, reason = "it speaks to C")]
mod boundary;
mod plugin;
