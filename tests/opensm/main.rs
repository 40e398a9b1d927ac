//! Tables beside OpenSM's own, on fabrics that ibsim simulates.
//!
//! [`exact`]: engines whose tables are to equal OpenSM's, entry by entry; [`options`]: with its options;
//! [`io_nodes`]: where hosts are above the leaves. [`discovery`]: fabrics of ours that InfiniBand's own tools read. [`round_trip`]: tables that OpenSM loads, `ibdmchk` proves
//! and `ibtracert` walks. Needs `opensm`, `ibsim`, `ibnetdiscover`, `ibdmchk`, `ibtracert` and libumad2sim;
//! says so and passes without them, and fails without them if `MAPPER_REQUIRE_ALL` is set.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod bisection;
mod discovery;
mod dumps;
mod exact;
mod fabrics;
mod io_nodes;
mod lists;
mod options;
mod peers;
mod round_trip;
