//! The client of the ACM service, for programs in C: see `include/mapper_acm.h`.
//!
//! `arguments` reads what C hands over; all else is without `unsafe`, but that each function is called by C.

mod arguments;
mod calls;

pub use calls::{
    Connection, CountersOut, EndpointOut, PathOut, mapper_acm_connect, mapper_acm_disconnect,
    mapper_acm_free_endpoint, mapper_acm_query_counters, mapper_acm_query_counters_of,
    mapper_acm_query_endpoint, mapper_acm_resolve_ip, mapper_acm_resolve_name, mapper_acm_resolve_path,
    mapper_acm_set_patience, mapper_acm_wait_for_change,
};
