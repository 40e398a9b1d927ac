//! A set of an xbar's ports.

/// A set of ports: bit `p % 8` of byte `p / 8` stands for port p, as in a crossbar's stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PortSet([u8; 32]);

impl PortSet {
    /// Whether this port is one of them.
    pub(crate) const fn contains(&self, port: u8) -> bool {
        self.0[port as usize / 8] >> (port % 8) & 1 == 1
    }

    /// Adds a port.
    pub(crate) const fn insert(&mut self, port: u8) {
        self.0[port as usize / 8] |= 1 << (port % 8);
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|&port| self.contains(port))
    }
}

impl From<[u8; 32]> for PortSet {
    fn from(bits: [u8; 32]) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::PortSet;

    #[test]
    fn what_was_added_is_there_in_order_and_nothing_else() {
        let mut ports = PortSet::default();
        [255, 8, 0, 7, 8].into_iter().for_each(|port| ports.insert(port));
        assert_eq!(ports.iter().collect::<Vec<_>>(), [0, 7, 8, 255]);
        assert!(!ports.contains(1) && !ports.contains(254));
    }

    #[test]
    fn its_bits_are_those_of_a_stamp() {
        let mut bits = [0; 32];
        (bits[0], bits[31]) = (0b10, 0x80);
        assert_eq!(PortSet::from(bits).iter().collect::<Vec<_>>(), [1, 255]);
    }
}
