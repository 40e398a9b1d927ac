//! A simulated source-routed fabric that runs thousands of real mapper agents in virtual time.

#![forbid(unsafe_code)]
pub mod topology;
