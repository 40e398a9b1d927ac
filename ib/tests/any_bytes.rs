//! Any bytes, given to the decoders of datagrams as a fuzzer gives them.

mod bodies;

use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that are often a datagram of the subnet's administration.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..600),
        vec(any::<u8>(), 256).prop_map(|mut mad| {
            mad[..3].copy_from_slice(&[1, 3, 2]);
            mad
        }),
    ]
}

proptest! {
    #[test]
    fn datagrams_of_the_administration_are_read_as_they_are_written(bytes in bytes()) {
        bodies::administration(&bytes);
    }
}
