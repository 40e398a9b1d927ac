//! All that runs at one host of a fabric, without I/O.

#![forbid(unsafe_code)]

pub mod data;
pub mod healing;
pub mod routes;
