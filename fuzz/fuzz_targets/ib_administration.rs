//! Datagrams of InfiniBand's subnet administration: see `ib_bodies::administration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::ib_bodies::administration(bytes));
