//! Tests that compare our tables with OpenSM's own, on fabrics that ibsim simulates.
//!
//! - [`acm`]: programs that ask a machine's ACM service are told the paths of a subnet.
//! - [`administration`]: hosts are answered by our agents as by OpenSM.
//! - [`boards`]: our agents show their subnet on boards, in metrics, as a map and to the doctor.
//! - [`exact`]: the engines whose tables must equal OpenSM's, entry by entry.
//! - [`options`]: the same with OpenSM's options.
//! - [`help`]: all of OpenSM's options of routing are ours, too.
//! - [`io_nodes`]: the same on fabrics with hosts above the leaves.
//! - [`judged`]: `ibdmchk` judges what our agents wrote into switches.
//! - [`discovery`]: fabrics of ours are read by the tools of InfiniBand.
//! - [`explored`]: our exploration finds what the tools of InfiniBand find.
//! - [`checked`]: tables are read out of switches and judged.
//! - [`clusters`]: our agents manage a cluster with service adapters on all switches.
//! - [`managed`]: our agents manage a subnet themselves.
//! - [`mistakes`]: what an administrator can do wrong, and is told.
//! - [`plugin`]: OpenSM takes our tables from the plugin, at every sweep.
//! - [`round_trip`]: our tables are loaded by OpenSM, proved by `ibdmchk` and walked by `ibtracert`.
//!
//! The tests need `opensm`, `ibsim`, `ibnetdiscover`, `ibdmchk`, `ibtracert` and libumad2sim. Without them
//! they say so and pass, or fail if `MAPPER_REQUIRE_ALL` is set.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, and show the logs of what ran"
)]

mod acm;
mod administration;
mod bisection;
mod boards;
mod built;
mod checked;
mod clusters;
mod discovery;
mod dumps;
mod exact;
mod explored;
mod fabrics;
mod help;
mod io_nodes;
mod judged;
mod lists;
mod managed;
mod mistakes;
mod options;
mod peers;
mod plugin;
mod round_trip;
