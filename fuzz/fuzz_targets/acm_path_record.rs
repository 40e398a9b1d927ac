//! The ACM service: see `acm_bodies::acm_path_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mapper_fuzz::acm_bodies::acm_path_record(bytes));
