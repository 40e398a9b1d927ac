//! The software crossbar.
