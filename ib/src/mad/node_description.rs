//! What people call a node.

use super::{DATA_BYTES, Data, put};

/// The attribute NodeDescription.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeDescription(pub String);

impl NodeDescription {
    /// Reads the text up to the first zero. Bytes that are no UTF-8 are replaced, and blanks at the end are
    /// dropped.
    pub fn parse(data: &Data) -> Self {
        let text = data.split(|&byte| byte == 0).next().unwrap_or_default();
        Self(String::from_utf8_lossy(text).trim_end().to_owned())
    }

    /// The bytes as they travel. Text for which there is no room is cut off.
    pub fn emit(&self) -> Data {
        let mut data = [0; DATA_BYTES];
        let text = self.0.as_bytes();
        put(&mut data, 0, &text[..text.len().min(DATA_BYTES)]);
        data
    }
}
