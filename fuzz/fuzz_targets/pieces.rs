//! Pieces of maps: see `bodies::pieces`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::bodies::pieces(bytes));
