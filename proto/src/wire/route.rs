//! Route elements: what xbars strip and obey.

use std::fmt;

use thiserror::Error;

/// One element of a route. Its first byte has its first bit set and tells its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Element {
    /// `10dddddd`: leave by the arrival port plus a signed delta (-32..=31). All xbars know it.
    /// Delta 0 sends the frame back out of the port it came in by.
    Relative(i8),
    /// `11000000 pppppppp`: leave by this port. Tagged xbars know it.
    Absolute(u8),
    /// `11100000`: stamp the frame with identity, port count, arrival port and carriers, and
    /// send it back out of the port it came in by. Tagged xbars know it.
    Identify,
}

/// The ports to leave by, one xbar after the other, as the bytes that travel.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Route {
    bytes: Vec<u8>,
}

/// Bytes that are no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RouteError {
    /// A first byte that names no kind of element.
    #[error("byte {0:#04x} begins no route element")]
    UnknownElement(u8),
    /// An element that ends too early.
    #[error("the route ends inside an element")]
    Truncated,
    /// More than [`Route::MAX_BYTES`].
    #[error("the route is longer than {max} bytes", max = Route::MAX_BYTES)]
    TooLong,
}

impl Element {
    /// How many bytes it travels as.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Relative(_) | Self::Identify => 1,
            Self::Absolute(_) => 2,
        }
    }

    /// The element that `bytes` begin with. `Ok(None)` if the first byte's first bit is clear
    /// (or there is none), which means that the route has ended.
    pub fn first(bytes: &[u8]) -> Result<Option<Self>, RouteError> {
        let Some(&byte) = bytes.first() else { return Ok(None) };
        match byte {
            0x00..=0x7f => Ok(None),
            // The low six bits are a number with a sign, which is extended.
            0x80..=0xbf => Ok(Some(Self::Relative(((byte << 2) as i8) >> 2))),
            0xc0 => bytes.get(1).map(|&port| Some(Self::Absolute(port))).ok_or(RouteError::Truncated),
            0xe0 => Ok(Some(Self::Identify)),
            other => Err(RouteError::UnknownElement(other)),
        }
    }
}

impl Route {
    /// Most bytes in a route: there and back over 62 xbars, in two-byte elements. Its length travels
    /// as one byte.
    pub const MAX_BYTES: usize = 252;

    /// The route without elements: to whatever is at the other end of the cable.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// The route at the front of `payload`, and how many bytes it has.
    ///
    /// # Errors
    /// If an element is unknown or cut off, or the route is longer than [`Self::MAX_BYTES`].
    pub fn parse(payload: &[u8]) -> Result<(Self, usize), RouteError> {
        let mut at = 0;
        while let Some(element) = Element::first(&payload[at..])? {
            at += element.len_bytes();
            if at > Self::MAX_BYTES {
                return Err(RouteError::TooLong);
            }
        }
        Ok((Self { bytes: payload[..at].to_vec() }, at))
    }

    /// Adds an element at the end. Deltas outside -32..=31 cannot travel and are a bug here.
    pub fn push(&mut self, element: Element) {
        match element {
            Element::Relative(delta) => {
                debug_assert!((-32..=31).contains(&delta), "delta {delta} cannot travel");
                self.bytes.push(0x80 | (delta as u8 & 0x3f));
            }
            Element::Absolute(port) => self.bytes.extend([0xc0, port]),
            Element::Identify => self.bytes.push(0xe0),
        }
    }

    /// The elements, first to last.
    pub fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            // Only valid elements were ever pushed or parsed.
            let element = Element::first(rest).ok().flatten()?;
            rest = &rest[element.len_bytes()..];
            Some(element)
        })
    }

    /// The bytes that travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many elements, which is how many xbars obey it.
    pub fn hops(&self) -> usize {
        self.elements().count()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl FromIterator<Element> for Route {
    fn from_iter<I: IntoIterator<Item = Element>>(elements: I) -> Self {
        let mut route = Self::new();
        elements.into_iter().for_each(|element| route.push(element));
        route
    }
}

impl Extend<Element> for Route {
    fn extend<I: IntoIterator<Item = Element>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

impl fmt::Display for Route {
    /// Signed deltas, `@port` for absolute ones, `?` for identify, joined by commas; `-` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (i, element) in self.elements().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match element {
                Element::Relative(delta) => write!(f, "{comma}{delta}")?,
                Element::Absolute(port) => write!(f, "{comma}@{port}")?,
                Element::Identify => write!(f, "{comma}?")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
