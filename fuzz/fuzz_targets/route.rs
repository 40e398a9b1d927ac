//! Routes: see `bodies::route`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::bodies::route(bytes));
