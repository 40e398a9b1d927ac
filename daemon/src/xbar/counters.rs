//! What a crossbar counts at each port.

use enum_map::Enum;
use mapper_machine::link::Unsent;
use mapper_proto::Tally;
use mapper_proto::wire::DropReason;
use strum::IntoStaticStr;

/// What became of the frames that arrived at a port. The sum of [`ArrivalCount::Forwarded`], [`ArrivalCount::Hellos`]
/// and all of `dropped` is how many frames arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrivalCounters {
    /// Frames that went on or ended here, and what was said because of them.
    pub counts: Tally<ArrivalCount>,
    /// Frames that arrived and did not leave by any port, counted by the reason.
    pub dropped: Tally<XbarDrop>,
}

/// What is counted at a port beside drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ArrivalCount {
    /// Frames that left by any port; that may be the one at which they arrived.
    Forwarded,
    /// Hellos of neighbours.
    Hellos,
    /// Hellos sent out of this port.
    HellosSent,
    /// Notices sent back out of this port, each because a data frame could not be forwarded, or because a port lost carrier
    /// that a check had left by.
    Notices,
    /// Notices not sent because there were too many of them.
    NoticesSuppressed,
}

/// Why a frame that arrived at a port does not leave by any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum XbarDrop {
    /// The frame was to leave by a port whose interface has no carrier.
    NoCarrier,
    /// The frame was to leave by a port without interface.
    NoInterface,
    /// The frame was to leave by a port that the crossbar does not have.
    NoSuchPort,
    /// The route ends at the crossbar.
    NoRoute,
    /// The next route element is of a kind that the crossbar does not know.
    NotUnderstood,
    /// The frame ends inside its route.
    Truncated,
    /// The frame asks for a stamp and has no room for one.
    NoStampArea,
    /// The route turns back more than once.
    TurnsAgain,
    /// The frame is a hello with a route. A hello is for the other end of one cable alone.
    HelloOnRoute,
    /// The frame is a hello that makes no sense, of another version, or not from the interface that it names.
    BadHello,
    /// The frame is of no kind that is known here: other programs use the same EtherType.
    Foreign,
    /// The cable of the port where it arrived, or of that by which it was to leave, has more than two ends.
    SharedWire,
    /// Too many frames with a route longer than there and back over 62 crossbars came in.
    LongRoutes,
    /// Too many frames waited to leave.
    QueueFull,
    /// The frame is longer than the interface carries.
    TooLong,
    /// The kernel did not take the frame for another reason.
    Refused,
}

impl XbarDrop {
    /// The reason, in words that follow a number of frames.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoCarrier => "to a port without carrier",
            Self::NoInterface => "to a port without interface",
            Self::NoSuchPort => "to a port that it does not have",
            Self::NoRoute => "whose route ends here",
            Self::NotUnderstood => "with a route element that it does not know",
            Self::Truncated => "that end inside their route",
            Self::NoStampArea => "without room for a stamp",
            Self::TurnsAgain => "that turn back more than once",
            Self::HelloOnRoute => "that are hellos with a route",
            Self::BadHello => "that are hellos and make no sense",
            Self::Foreign => "of other programs",
            Self::SharedWire => "at a cable with more than two ends",
            Self::LongRoutes => "as too many had very long routes",
            Self::QueueFull => "as too many waited to leave",
            Self::TooLong => "too long for the interface",
            Self::Refused => "that the kernel refused",
        }
    }
}

impl From<DropReason> for XbarDrop {
    fn from(reason: DropReason) -> Self {
        match reason {
            DropReason::NoRoute => Self::NoRoute,
            DropReason::NoSuchPort => Self::NoSuchPort,
            DropReason::NotUnderstood => Self::NotUnderstood,
            DropReason::Truncated => Self::Truncated,
            DropReason::NoStampArea => Self::NoStampArea,
            DropReason::TurnsAgain => Self::TurnsAgain,
            DropReason::HelloOnRoute => Self::HelloOnRoute,
        }
    }
}

impl From<Unsent> for XbarDrop {
    fn from(why: Unsent) -> Self {
        match why {
            Unsent::QueueFull => Self::QueueFull,
            Unsent::TooLong => Self::TooLong,
            Unsent::Down => Self::NoCarrier,
            Unsent::Refused => Self::Refused,
        }
    }
}
