//! The six directions in which a frame can leave a router, and what a frame may still do after each.

use std::fmt;

/// A direction along a dimension: x+, x-, y+, y-, z+ or z-.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Heading(u8);

impl Heading {
    pub(super) const X_PLUS: Self = Self(0);
    pub(super) const X_MINUS: Self = Self(1);
    pub(super) const Y_PLUS: Self = Self(2);
    pub(super) const Y_MINUS: Self = Self(3);
    pub(super) const Z_PLUS: Self = Self(4);
    pub(super) const Z_MINUS: Self = Self(5);

    /// All of them, in the order in which they are preferred.
    pub(super) const ALL: [Self; 6] =
        [Self::X_PLUS, Self::X_MINUS, Self::Y_PLUS, Self::Y_MINUS, Self::Z_PLUS, Self::Z_MINUS];

    /// The heading along a dimension towards higher coordinates, or lower ones.
    pub(super) const fn along(dimension: usize, plus: bool) -> Self {
        Self(2 * dimension as u8 + !plus as u8)
    }

    /// The heading of this number, if it is one: see [`Self::index`].
    pub(super) const fn from_index(index: u8) -> Option<Self> {
        if index < 6 { Some(Self(index)) } else { None }
    }

    /// Its number, 0 to 5.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// 0 for X, 1 for Y, 2 for Z.
    pub(super) const fn dimension(self) -> usize {
        self.0 as usize / 2
    }

    /// Whether it leads towards higher coordinates.
    pub(super) const fn is_plus(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// The way back.
    pub(super) const fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["x+", "x-", "y+", "y-", "z+", "z-"][self.index()])
    }
}
