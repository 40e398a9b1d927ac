//! Why engines do not serve, in kinds that programs can tell apart.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::dispersive::SourceProof;
use super::{Balance, Engine, Setting};
use crate::RoutingError;
use crate::proof::{TableViolation, TablesProof};
use crate::tables::Layers;

/// Why an engine does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{engine} cannot serve: {why}")]
pub struct EngineError {
    /// The engine.
    pub engine: Engine,
    /// What is wrong with the fabric or the settings, and what would help.
    pub why: Refusal,
}

impl EngineError {
    /// The error of an engine that refuses for this reason.
    pub fn refuse(engine: Engine, why: impl Into<Refusal>) -> Self {
        Self { engine, why: why.into() }
    }
}

/// What is wrong with a fabric or with settings, so that an engine cannot serve; and what would help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A lid matrix is given, and the engine finds hops by itself.
    #[error("it finds hops by rules of its own; give a lid matrix to {}, or none", takers(*.balance))]
    LidMatrix {
        /// The balance that is asked for. It decides which engines take a lid matrix.
        balance: Balance,
    },
    /// The first layer is behind the last that may be used.
    #[error("no layer is left: {allowed} are allowed (--max-layers), the first is {first} (--lash-start-vl)")]
    NoLayerLeft {
        /// How many layers are allowed, with those before the first.
        allowed: u8,
        /// The number of the first layer.
        first: u8,
    },
    /// Routes need more layers than there are to close no circle.
    #[error("{0}")]
    TooManyLayers(TooManyLayers),
    /// The fabric has more xbars than can be served pair by pair.
    #[error("the fabric has {xbars} xbars; it serves {most} at most")]
    TooManyXbars {
        /// How many xbars the fabric has.
        xbars: usize,
        /// The limit.
        most: usize,
    },
    /// Tables were asked for, and the engine computes none.
    #[error("it computes source routes, and no forwarding tables")]
    NoTables,
    /// A reason that only this engine has.
    #[error("{0}")]
    Own(OwnReason),
}

/// The engines that take a lid matrix.
fn takers(balance: Balance) -> String {
    super::setting::listed(&Setting::Hops.engines(balance), "or")
}

/// In how many layers an engine would serve, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyLayers {
    /// How many layers are enough for it. Fewer may be enough, too.
    pub needed: usize,
    /// How many there are from the first one on.
    pub left: u8,
    /// The number of the first layer.
    pub first: u8,
    /// What else to try.
    pub instead: Instead,
}

impl TooManyLayers {
    /// Whether the user can allow more layers, of which there are only so many at all.
    fn is_settable(&self) -> bool {
        usize::from(self.first) + self.needed <= usize::from(Layers::MAX)
    }

    /// Its words without the advice to try another engine.
    fn without_instead(&self) -> String {
        let Self { needed, left, first, .. } = self;
        let more = if self.is_settable() { "; allow more (--max-layers)" } else { "" };
        format!("it would serve in {needed} layers, but there are {left} from layer {first} on{more}")
    }
}

impl fmt::Display for TooManyLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = if self.is_settable() { ", or" } else { ";" };
        write!(f, "{}{join} try {}", self.without_instead(), self.instead)
    }
}

/// An engine that may serve where another one refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instead {
    /// The engine.
    pub engine: Engine,
    /// What speaks for it, in words that follow its name, if that has to be said.
    pub merit: Option<&'static str>,
}

impl From<Engine> for Instead {
    fn from(engine: Engine) -> Self {
        Self { engine, merit: None }
    }
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.merit {
            Some(merit) => write!(f, "{}, {merit}", self.engine),
            None => self.engine.fmt(f),
        }
    }
}

/// An engine to use instead, as a reason of one engine's own advises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Nothing else helps.
    Only(Engine),
    /// The reason itself names something else that helps.
    Or(Engine),
}

impl Advice {
    const fn engine(self) -> Engine {
        match self {
            Self::Only(engine) | Self::Or(engine) => engine,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(engine) => write!(f, "; use {engine}"),
            Self::Or(engine) => write!(f, ", or use {engine}"),
        }
    }
}

/// A reason that only one engine has: an error of a type of the engine's own.
#[derive(Debug, Clone)]
pub struct OwnReason {
    why: Arc<dyn StdError + Send + Sync>,
    /// An engine to use instead. What `why` says does not name it.
    instead: Option<Advice>,
}

impl fmt::Display for OwnReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        self.instead.map_or(Ok(()), |advice| advice.fmt(f))
    }
}

/// Reasons count as equal if their words are the same.
impl PartialEq for OwnReason {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for OwnReason {}

impl Refusal {
    /// A reason that only one engine has.
    pub fn own(reason: impl StdError + Send + Sync + 'static) -> Self {
        Self::own_advising(reason, None)
    }

    /// A reason that only this engine has, and the engine to use instead, which the reason itself does not name.
    pub(super) fn own_advising(
        reason: impl StdError + Send + Sync + 'static,
        instead: Option<Advice>,
    ) -> Self {
        Self::Own(OwnReason { why: Arc::new(reason), instead })
    }

    /// The engine that it advises to use instead.
    pub fn instead(&self) -> Option<Engine> {
        match self {
            Self::TooManyLayers(layers) => Some(layers.instead.engine),
            Self::Own(own) => own.instead.map(Advice::engine),
            Self::LidMatrix { .. }
            | Self::NoLayerLeft { .. }
            | Self::TooManyXbars { .. }
            | Self::NoTables => None,
        }
    }

    /// Its words without the advice to use that engine.
    pub fn without_instead(&self) -> String {
        match self {
            Self::TooManyLayers(layers) => layers.without_instead(),
            Self::Own(own) => own.why.to_string(),
            Self::LidMatrix { .. }
            | Self::NoLayerLeft { .. }
            | Self::TooManyXbars { .. }
            | Self::NoTables => self.to_string(),
        }
    }
}

/// Why an engine that was tried did not serve.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WhyNotServed {
    /// It refused, or does not obey settings that cannot be ignored.
    #[error("{0}")]
    Refused(Refusal),
    /// Its tables are wrong, or would have to be, as hosts are too far apart.
    #[error("{0}")]
    Unproved(Box<TablesProof>),
    /// Some hosts are too far apart for source routes: the violation, and what it says by the fabric's names.
    #[error("{1}")]
    TooFar(TableViolation, String),
    /// A host's source routes cannot be computed: why, and the same by the fabric's names.
    #[error("{1}")]
    NoSourceRoutes(RoutingError, String),
    /// Source routes were computed, and are wrong.
    #[error("{}", .0.summary())]
    UnprovedRoutes(Box<SourceProof>),
    /// It serves, but another engine serves better, or equally well as far as can be measured and in fewer
    /// layers, more simply or with fewer entries that differ from those in force.
    #[error("another engine's effective bisection is better, or as good")]
    Beaten {
        /// The effective bisection of its tables.
        effective_bisection: f64,
    },
    /// It loads tables, and none were given.
    #[error("no tables were given to load")]
    NothingToLoad,
    /// It was not tried, as it does not obey all that is set, and others do. The list says what would have no
    /// effect.
    #[error("not tried, as engines serve that obey all that is set; {}", .0.join("; "))]
    Disobeys(Vec<String>),
    /// It was not tried, as it takes far longer than others on a fabric of this size.
    #[error("not tried, as others serve that take far less time on {size}")]
    TakesLong {
        /// How large the fabric is.
        size: String,
    },
    /// It was not tried, as all ways that it could lead hosts' frames are also those of another engine, which balances
    /// alike and was tried.
    #[error("not tried, as it has no other ways for hosts' frames than {other}")]
    SameWays {
        /// The other engine.
        other: Engine,
    },
}

impl WhyNotServed {
    /// Whether hosts are farther apart than the longest route that is allowed, so that no engine serves.
    pub fn is_distance(&self) -> bool {
        match self {
            Self::Unproved(proof) => {
                proof.violations.iter().any(|found| matches!(found, TableViolation::TooFar { .. }))
            }
            Self::TooFar(..) => true,
            _ => false,
        }
    }

    /// The effective bisection of its tables if they are proved, and others were preferred.
    pub fn effective_bisection(&self) -> Option<f64> {
        match self {
            Self::Beaten { effective_bisection } => Some(*effective_bisection),
            _ => None,
        }
    }

    /// Whether it was not tried at all, though it might have served.
    pub fn is_left_out(&self) -> bool {
        matches!(self, Self::Disobeys(_) | Self::TakesLong { .. } | Self::SameWays { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Error)]
    #[error("it is no tree{0}")]
    struct NoTree(&'static str);

    #[test]
    fn an_engine_to_use_instead_is_left_out_with_the_words_that_lead_to_it() {
        let layers = |needed| {
            let instead = Engine::Updn.into();
            Refusal::TooManyLayers(TooManyLayers { needed, left: 1, first: 0, instead })
        };
        let own = |more, advice| Refusal::own_advising(NoTree(more), advice);
        for (refusal, without, with) in [
            (own("", None), "it is no tree", ""),
            (own("", Some(Advice::Only(Engine::Updn))), "it is no tree", "; use updn"),
            (
                own("; name the roots", Some(Advice::Or(Engine::Updn))),
                "it is no tree; name the roots",
                ", or use updn",
            ),
            (
                layers(2),
                "it would serve in 2 layers, but there are 1 from layer 0 on; allow more (--max-layers)",
                ", or try updn",
            ),
            (layers(99), "it would serve in 99 layers, but there are 1 from layer 0 on", "; try updn"),
        ] {
            assert_eq!(refusal.instead().is_some(), !with.is_empty());
            assert_eq!(
                (refusal.without_instead().as_str(), refusal.to_string()),
                (without, format!("{without}{with}"))
            );
        }
    }
}
