//! Frames, message bodies and stamps: see `bodies::message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::bodies::message(bytes));
