//! InfiniBand without I/O: management datagrams, and the sweep that explores a fabric by them.
//!
//! - [`mad`]: directed-route datagrams of subnet management (SMPs) and the attributes that they carry, as the
//!   InfiniBand Architecture Specification, volume 1, chapter 14 lays them out.
//! - [`sweep`]: breadth-first exploration by GUID. It only ever asks: no request of it changes anything.
//! - [`codes`]: the codes of MTUs and rates.
//! - [`lids`]: which LIDs ports have.
//! - [`manager`]: a subnet manager, which writes what differs (`program`), settles with others who is master, and answers
//!   hosts (`administration`), and asks for paths itself (`inquiries`).
//! - [`simulated`]: subnets without hardware, and the fault search over them.
//! - [`record`]: datagrams as lines of text, for a person and to be played again.
//!
//! Sweep and manager are state machines like the agent: time is a number, datagrams come and go as bytes.

#![forbid(unsafe_code)]

mod administration;
pub mod codes;
mod exchange;
mod inquiries;
pub mod lids;
pub mod mad;
pub mod manager;
mod packet;
mod program;
pub mod record;
mod requests;
mod rmpp;
pub mod simulated;
pub mod sweep;

pub use exchange::Failure;
pub use packet::{Address, Packet};
