//! What agents of InfiniBand tell each other: see `ib_bodies::agents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::ib_bodies::agents(bytes));
