//! The forwarding decision: see `bodies::crossbar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::bodies::crossbar(bytes));
