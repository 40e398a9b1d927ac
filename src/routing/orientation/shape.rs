//! What kind of fabric an orientation was made for.

use std::fmt;

/// What an orientation was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A folded Clos, so every shortest route is legal.
    Clos {
        /// How many tiers of xbars it has.
        tiers: u32,
    },
    /// A torus or mesh of at least two dimensions, by direction order.
    Grid {
        /// How many coordinates each dimension has, X first.
        sizes: Vec<u8>,
    },
    /// Anything else, by up*/down*.
    UpDown {
        /// The root of each connected part, by rising part.
        roots: Vec<u32>,
    },
}

impl fmt::Display for Shape {
    /// How routes go, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clos { tiers } => write!(f, "up and down a folded Clos of {tiers} tiers"),
            Self::Grid { sizes } => {
                let sizes: Vec<String> = sizes.iter().map(u8::to_string).collect();
                write!(f, "direction order on a grid of {}", sizes.join(" x "))
            }
            Self::UpDown { roots } => {
                let roots: Vec<String> = roots.iter().take(3).map(u32::to_string).collect();
                write!(f, "up*/down* from xbar {}", roots.join(", "))
            }
        }
    }
}
