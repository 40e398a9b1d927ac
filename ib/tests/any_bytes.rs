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

/// Bytes that are often a datagram of an agent.
fn words() -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), 256), any::<bool>(), 0x10..0x14_u8, 0..50_u8).prop_map(
        |(mut mad, is_ours, attribute, count)| {
            if is_ours {
                mad[..4].copy_from_slice(&[1, 0x3A, 1, 3]);
                mad[16..18].copy_from_slice(&[0, attribute]);
                mad[37..40].copy_from_slice(&[0x02, 0x6D, 0x70]);
                mad[41] = count;
            }
            mad
        },
    )
}

proptest! {
    #[test]
    fn datagrams_of_the_administration_are_read_as_they_are_written(bytes in bytes()) {
        bodies::administration(&bytes);
    }

    #[test]
    fn what_agents_tell_each_other_is_read_as_it_is_written(bytes in words()) {
        bodies::agents(&bytes);
    }
}
