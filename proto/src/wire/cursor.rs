//! Reading and writing the fields of messages, big-endian.

use super::Route;
use crate::Mac;
use crate::map::MapVersion;

/// The bytes ended inside a field, or a field has a value that it may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Takes fields off the front of some bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is not yet read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Unreadable)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Unreadable)?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Unreadable> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Unreadable> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Unreadable> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn mac(&mut self) -> Result<Mac, Unreadable> {
        self.array().map(Mac)
    }

    /// A map version. Counter 0 goes with address 0 alone, so that "none" is written one way.
    pub(crate) fn version(&mut self) -> Result<MapVersion, Unreadable> {
        let version = MapVersion { mac: self.mac()?, counter: self.u32()? };
        if version.is_some() || version == MapVersion::NONE { Ok(version) } else { Err(Unreadable) }
    }

    /// A route behind its length, which must be all route.
    pub(crate) fn route(&mut self) -> Result<Route, Unreadable> {
        let length = usize::from(self.u8()?);
        let (route, used) = Route::parse(self.bytes(length)?).map_err(|_| Unreadable)?;
        if used == length { Ok(route) } else { Err(Unreadable) }
    }

    /// The next `count` bytes, which must be zeros.
    pub(crate) fn zeros(&mut self, count: usize) -> Result<(), Unreadable> {
        if self.bytes(count)?.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(Unreadable) }
    }

    /// Makes sure that nothing is left.
    pub(crate) fn finish(self) -> Result<(), Unreadable> {
        if self.rest.is_empty() { Ok(()) } else { Err(Unreadable) }
    }
}

/// Adds fields at the end of a buffer.
pub(crate) trait Write {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_mac(&mut self, mac: Mac);
    fn put_version(&mut self, version: MapVersion);
    fn put_route(&mut self, route: &Route);
    fn put_zeros(&mut self, count: usize);
}

impl Write for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_mac(&mut self, mac: Mac) {
        self.extend_from_slice(&mac.0);
    }

    fn put_version(&mut self, version: MapVersion) {
        let version = if version.is_some() { version } else { MapVersion::NONE };
        self.put_mac(version.mac);
        self.put_u32(version.counter);
    }

    fn put_route(&mut self, route: &Route) {
        debug_assert!(route.as_bytes().len() <= Route::MAX_BYTES, "the route is too long to travel");
        self.put_u8(route.as_bytes().len() as u8);
        self.extend_from_slice(route.as_bytes());
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_the_end_is_told() {
        let mut bytes = Vec::new();
        bytes.put_u8(1);
        bytes.put_u16(0x0203);
        bytes.put_u32(0x0405_0607);
        bytes.put_u64(0x0809_0a0b_0c0d_0e0f);
        assert_eq!(bytes, (1..=15).collect::<Vec<u8>>());
        let mut reader = WireReader::new(&bytes);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(0x0203));
        assert_eq!(reader.u32(), Ok(0x0405_0607));
        assert_eq!(reader.finish(), Err(Unreadable));
        assert_eq!(reader.u64(), Ok(0x0809_0a0b_0c0d_0e0f));
        assert_eq!(reader.u8(), Err(Unreadable));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_version_without_counter_is_written_as_none() {
        let mut bytes = Vec::new();
        bytes.put_version(MapVersion { mac: Mac::from_position(7), counter: 0 });
        assert_eq!(bytes, [0; 10]);
        bytes[0] = 1;
        assert_eq!(WireReader::new(&bytes).version(), Err(Unreadable));
    }
}
