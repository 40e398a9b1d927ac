//! A set of an xbar's ports.

/// A set of ports: bit `p % 8` of byte `p / 8` stands for port p, as in a crossbar's stamp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortSet([u8; Self::BYTES]);

impl PortSet {
    /// Bytes of a set in a stamp.
    pub const BYTES: usize = 32;
    /// No port.
    pub const NONE: Self = Self([0; Self::BYTES]);
    /// All 256 ports.
    pub const ALL: Self = Self([0xff; Self::BYTES]);

    /// Whether this port is one of them.
    pub const fn contains(&self, port: u8) -> bool {
        self.0[port as usize / 8] >> (port % 8) & 1 == 1
    }

    /// Whether it has no port.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Adds a port.
    pub const fn insert(&mut self, port: u8) {
        self.0[port as usize / 8] |= 1 << (port % 8);
    }

    /// Takes a port out.
    pub const fn remove(&mut self, port: u8) {
        self.0[port as usize / 8] &= !(1 << (port % 8));
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|&port| self.contains(port))
    }

    /// The ports that are in one of the two sets and not in the other, in order, and whether they are in `after`.
    pub fn changes_to(self, after: Self) -> impl Iterator<Item = (u8, bool)> {
        let differ = |(before, after): (&u8, &u8)| before ^ after;
        let mut changed = Self::NONE;
        changed.0.iter_mut().zip(self.0.iter().zip(&after.0).map(differ)).for_each(|(to, byte)| *to = byte);
        (0..=u8::MAX)
            .filter(move |&port| changed.contains(port))
            .map(move |port| (port, after.contains(port)))
    }

    /// The set as it travels.
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<I: IntoIterator<Item = u8>>(ports: I) -> Self {
        let mut set = Self::NONE;
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

impl From<[u8; Self::BYTES]> for PortSet {
    fn from(bits: [u8; Self::BYTES]) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::PortSet;

    #[test]
    fn what_was_added_is_there_in_order_and_nothing_else() {
        let mut ports = PortSet::from_iter([255, 8, 0, 7, 8]);
        assert_eq!(ports.iter().collect::<Vec<_>>(), [0, 7, 8, 255]);
        assert!(!ports.contains(1) && !ports.contains(254));
        assert!(!ports.is_empty() && PortSet::NONE.is_empty());
        ports.remove(7);
        assert_eq!(ports, PortSet::from_iter([0, 8, 255]));
    }

    #[test]
    fn its_bits_are_those_of_a_stamp() {
        let mut bits = [0; 32];
        (bits[0], bits[31]) = (0b10, 0x80);
        assert_eq!(PortSet::from(bits).iter().collect::<Vec<_>>(), [1, 255]);
    }

    #[test]
    fn changes_are_what_is_in_one_set_alone() {
        let (before, after) = (PortSet::from_iter([1, 2, 255]), PortSet::from_iter([2, 3]));
        assert_eq!(before.changes_to(after).collect::<Vec<_>>(), [(1, false), (3, true), (255, false)]);
        assert_eq!(PortSet::NONE.changes_to(PortSet::ALL).count(), 256);
    }
}
