//! The event plugin by which OpenSM runs mapper's engines.
//!
//! A shim in C (`shim/`) reads OpenSM's structures and fills its tables. Here its requests are taken to
//! the [worker](mapper_opensm::Worker), a process of its own: what goes wrong in an engine ends that
//! process, and what would go wrong here is caught in the module `boundary`.
//!
//! It needs OpenSM's headers (libopensm-dev, libibumad-dev). Where they are missing it is empty.

#[cfg(opensm)]
#[expect(unsafe_code, reason = "it speaks to C")]
mod boundary;
#[cfg(opensm)]
mod plugin;
