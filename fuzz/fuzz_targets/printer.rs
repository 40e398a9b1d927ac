//! The printer of frames: see `bodies::printer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::bodies::printer(bytes));
