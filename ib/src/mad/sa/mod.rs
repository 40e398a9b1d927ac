//! What hosts ask of the subnet's administration, and its answers, as the InfiniBand Architecture Specification, volume 1,
//! chapter 15 lays them out.
//!
//! - [`SaMad`]: the datagram, with the header of transfers in several segments.
//! - [`Field`]: the parts of a record that a request can name, each with its bit of the component mask.
//! - A record has a type where a request says something in it; the others are bytes that a function makes.

mod field;
mod gid;
mod header;
mod inform_info;
mod inform_record;
mod limit;
mod mc_member_record;
mod multi_path_record;
mod path_record;
mod report;
mod service_record;
mod subnet_records;
mod table_records;
#[cfg(test)]
mod tests;

pub use field::{Field, matches};
pub use gid::Gid;
pub use header::{
    CLASS, CLASS_AT, RECORD_BYTES, Rmpp, SEGMENT_HEADER_BYTES, SaAttribute, SaMad, SaMadError, SaMethod,
    SaStatus,
};
pub use inform_info::InformInfo;
pub use inform_record::{INFORM_FIELDS, inform_record};
pub use limit::{Limit, Selector};
pub use mc_member_record::{JoinState, McMemberRecord};
pub use multi_path_record::MultiPathRecord;
pub use path_record::PathRecord;
pub use report::SubnetNotice;
pub use service_record::ServiceRecord;
pub use subnet_records::{
    LINK_FIELDS, MANAGER_FIELDS, NODE_FIELDS, PORT_FIELDS, SWITCH_FIELDS, class_port_info, link_record,
    manager_record, node_record, port_record, switch_record,
};
pub use table_records::{
    GUID_FIELDS, LINEAR_TABLE_FIELDS, MULTICAST_TABLE_FIELDS, PARTITION_FIELDS, SL_TO_VL_FIELDS, TablePlace,
    VL_ARBITRATION_FIELDS, table_record,
};
