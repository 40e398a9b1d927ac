//! What kind of fabric an orientation was made for.

use std::fmt;

use mapper_fabric::wording::plural;

/// Most roots that are named.
const MOST_ROOTS: usize = 3;

/// What an orientation was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A folded Clos, so every shortest route is legal.
    Clos {
        /// How many tiers of xbars it has.
        tiers: u32,
    },
    /// A tree that is no folded Clos: every cable joins neighbouring tiers, but some route up and then down is longer than
    /// others, or there is none.
    Tree {
        /// How many tiers of xbars it has.
        tiers: u32,
    },
    /// A torus or mesh of at least two dimensions, by direction order.
    Grid {
        /// How many coordinates each dimension has, in the order that the map suggests. The routes may take
        /// another dimension for X.
        sizes: Vec<u8>,
    },
    /// Anything else, by up*/down*.
    UpDown {
        /// The root of each connected part, by rising part.
        roots: Vec<u32>,
    },
}

impl fmt::Display for Shape {
    /// Writes in words how routes go.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clos { tiers } => write!(f, "up and down a folded Clos of {}", plural(*tiers, "tier")),
            Self::Tree { tiers } => write!(f, "up and down a tree of {}", plural(*tiers, "tier")),
            Self::Grid { sizes } => {
                let sizes: Vec<String> = sizes.iter().map(u8::to_string).collect();
                write!(f, "direction order on a grid of {}", sizes.join(" x "))
            }
            Self::UpDown { roots } => {
                let shown: Vec<String> = roots.iter().take(MOST_ROOTS).map(u32::to_string).collect();
                match roots.len() {
                    0 => f.write_str("up*/down*"),
                    1..=MOST_ROOTS => write!(f, "up*/down* from xbar {}", shown.join(", ")),
                    all => {
                        write!(f, "up*/down* from xbar {} and {} more", shown.join(", "), all - MOST_ROOTS)
                    }
                }
            }
        }
    }
}
