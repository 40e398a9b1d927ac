//! Keys, and the tags that they make over frames.
//!
//! A tag is HMAC-SHA-256 (RFC 2104, FIPS 198-1), cut to its first 20 bytes, over the header, the
//! body and the fields of the trailer before it. The route and the stamp area are left out: xbars
//! change both. Which key made the tag is said in clear, so that keys can be changed one agent
//! after the other: an agent accepts all its keys and signs with the first.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// Bytes of a key's secret.
pub const SECRET_BYTES: usize = 32;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 20;

/// SHA-256 works on blocks of so many bytes; HMAC fills a shorter key up with zeros.
const BLOCK_BYTES: usize = 64;

/// A key: its number, and a secret that all agents of a network share. Never shown.
#[derive(Clone)]
pub struct Key {
    id: u32,
    secret: [u8; SECRET_BYTES],
    /// The hash with the secret already taken in.
    keyed: Hmac<Sha256>,
}

impl Key {
    /// The key with this number and secret.
    pub fn new(id: u32, secret: [u8; SECRET_BYTES]) -> Self {
        let mut block = [0; BLOCK_BYTES];
        block[..SECRET_BYTES].copy_from_slice(&secret);
        Self { id, secret, keyed: Hmac::new(&block.into()) }
    }

    /// Its number, which travels in clear.
    pub const fn id(&self) -> u32 {
        self.id
    }

    fn hash(&self, parts: [&[u8]; 2]) -> Hmac<Sha256> {
        parts.iter().fold(self.keyed.clone(), |mut hash, part| {
            hash.update(part);
            hash
        })
    }

    /// The tag over these bytes, one after the other.
    pub(super) fn tag(&self, parts: [&[u8]; 2]) -> [u8; TAG_BYTES] {
        let whole = self.hash(parts).finalize().into_bytes();
        std::array::from_fn(|nth| whole[nth])
    }

    /// Whether this is the tag over these bytes, in a time that does not depend on the answer.
    pub(super) fn made(&self, tag: &[u8; TAG_BYTES], parts: [&[u8]; 2]) -> bool {
        self.hash(parts).verify_truncated_left(tag).is_ok()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.secret) == (other.id, &other.secret)
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Keys that make no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyRingError {
    /// There is nothing to sign with.
    #[error("there is no key in it; `mapper key` makes one")]
    Empty,
    /// Two keys have one number, so nobody could tell which of them made a tag.
    #[error("two keys have the number {0}; give each its own")]
    Repeated(u32),
}

/// The keys of an agent. It signs with the first and accepts all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRing {
    keys: Arc<[Key]>,
    salt: u64,
}

impl KeyRing {
    /// These keys. `salt` must come fresh from the system's random source at each start of a
    /// process: an agent's session and sequence numbers begin with it, and must never be those of
    /// a former self, also if the agent's seed is.
    ///
    /// # Errors
    /// If there is no key, or two have one number.
    pub fn new(keys: Vec<Key>, salt: u64) -> Result<Self, KeyRingError> {
        for (nth, key) in keys.iter().enumerate() {
            if keys[..nth].iter().any(|other| other.id == key.id) {
                return Err(KeyRingError::Repeated(key.id));
            }
        }
        if keys.is_empty() {
            return Err(KeyRingError::Empty);
        }
        Ok(Self { keys: keys.into(), salt })
    }

    /// The key that signs.
    pub fn signing(&self) -> &Key {
        &self.keys[0]
    }

    /// The key with this number.
    pub fn get(&self, id: u32) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// The numbers of all keys, that of the signing one first.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.keys.iter().map(Key::id)
    }

    /// What makes sessions and sequence numbers unlike those of a former self.
    pub(crate) const fn salt(&self) -> u64 {
        self.salt
    }
}

/// What seals a frame: the key, and the trailer's fields before the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal<'a> {
    /// The key that makes the tag.
    pub key: &'a Key,
    /// Grows with each frame of a sender.
    pub sequence: u64,
    /// The sequence number of the frame that this one answers; 0 if it answers none.
    pub answers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_rfc_4231() {
        // Test case 1 has a key of 20 bytes 0x0b, which zeros fill up to the same block.
        let mut secret = [0; SECRET_BYTES];
        secret[..20].fill(0x0b);
        let tag = Key::new(1, secret).tag([b"Hi ", b"There"]);
        let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200");
    }

    #[test]
    fn a_tag_holds_for_its_key_and_bytes_alone() {
        let key = Key::new(1, [7; SECRET_BYTES]);
        let tag = key.tag([b"ab", b"c"]);
        assert!(key.made(&tag, [b"ab", b"c"]));
        assert!(!key.made(&tag, [b"ab", b"d"]));
        assert!(!Key::new(1, [8; SECRET_BYTES]).made(&tag, [b"ab", b"c"]));
        let mut other = tag;
        other[TAG_BYTES - 1] ^= 1;
        assert!(!key.made(&other, [b"ab", b"c"]));
    }

    #[test]
    fn a_ring_has_keys_and_each_its_number() {
        let key = |id| Key::new(id, [id as u8; SECRET_BYTES]);
        assert_eq!(KeyRing::new(vec![], 1), Err(KeyRingError::Empty));
        assert_eq!(KeyRing::new(vec![key(3), key(4), key(3)], 1), Err(KeyRingError::Repeated(3)));
        let ring = KeyRing::new(vec![key(3), key(4)], 1).unwrap();
        assert_eq!((ring.signing().id(), ring.get(4), ring.get(5)), (3, Some(&key(4)), None));
        assert_eq!(ring.ids().collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn a_secret_is_never_shown() {
        let ring = KeyRing::new(vec![Key::new(9, [0xab; SECRET_BYTES])], 1).unwrap();
        let shown = format!("{ring:?}");
        assert!(shown.contains("id: 9") && !shown.contains("171") && !shown.contains("ab,"), "{shown}");
    }
}
