//! Objects of this machine's kernel that are others than it was told, as they are told.

use mapper_host::kernel_path;
use mapper_machine::kernel::object_name;
use serde::{Deserialize, Serialize};

/// An object that the kernel holds otherwise than it was told: one by which it obeys others' segments, or by which packets go by
/// their destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDiffers {
    /// What people call it, as `route fcbb:bb00:3::/48 in table 28001`.
    pub object: String,
    /// How it differs.
    pub how: Difference,
}

/// How an object differs from what the kernel was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The kernel was told it and does not hold it.
    Missing,
    /// The kernel holds another one in its place.
    Other,
    /// The kernel was not told it and holds it.
    Extra,
}

impl ObjectDiffers {
    pub(super) fn of(differs: &kernel_path::ObjectDiffers) -> Self {
        let how = match differs.how {
            kernel_path::Difference::Missing => Difference::Missing,
            kernel_path::Difference::Other => Difference::Other,
            kernel_path::Difference::Extra => Difference::Extra,
        };
        Self { object: object_name(&differs.change), how }
    }
}
