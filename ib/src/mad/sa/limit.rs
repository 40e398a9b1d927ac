//! How a request bounds an MTU, a rate or a life time.

/// How a value that is offered must compare with one that is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selector {
    /// It must be greater.
    More,
    /// It must be less.
    Less,
    /// It must be equal.
    Exactly,
    /// It is to be the best that there is, whatever is named.
    Best,
}

/// A selector in the two highest bits of a byte, and a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// How the value must compare with the code.
    pub selector: Selector,
    /// The code, at most 63.
    pub code: u8,
}

impl Limit {
    const SELECTORS: [Selector; 4] = [Selector::More, Selector::Less, Selector::Exactly, Selector::Best];

    /// Exactly this value, as in answers.
    pub const fn exactly(code: u8) -> Self {
        Self { selector: Selector::Exactly, code }
    }

    pub(super) fn parse(byte: u8) -> Self {
        Self { selector: Self::SELECTORS[usize::from(byte >> 6)], code: byte & 0x3F }
    }

    pub(super) const fn emit(self) -> u8 {
        (self.selector as u8) << 6 | self.code & 0x3F
    }

    /// The highest value within the bound, for a path or group that can be used with the value that it offers
    /// and with all lower ones. `scale` has all codes, the lowest value first.
    pub fn fit(self, offered: u8, scale: &[u8]) -> Option<u8> {
        let place = |code: u8| scale.iter().position(|&known| known == code);
        let offered_at = place(offered)?;
        if self.selector == Selector::Best {
            return Some(offered);
        }
        let named = place(self.code)?;
        match self.selector {
            Selector::More => (offered_at > named).then_some(offered),
            Selector::Less => scale.get(offered_at.min(named.checked_sub(1)?)).copied(),
            _ => (offered_at >= named).then_some(self.code),
        }
    }

    /// Whether a value that is fixed is within the bound.
    pub fn allows(self, value: u8, scale: &[u8]) -> bool {
        let place = |code: u8| scale.iter().position(|&known| known == code);
        let (value, named) = (place(value), place(self.code));
        match self.selector {
            Selector::More => value > named,
            Selector::Less => value < named,
            Selector::Exactly => value == named,
            Selector::Best => true,
        }
    }

    /// A life time within the bound, if there is one. A longer one than is offered may be told, a shorter one
    /// not.
    pub const fn fit_life_time(self, offered: u8) -> Option<u8> {
        let (fits, told) = match self.selector {
            Selector::More => (offered > self.code, offered),
            Selector::Less => (offered < self.code, offered),
            Selector::Exactly => (offered <= self.code, self.code),
            Selector::Best => (true, offered),
        };
        if fits { Some(told) } else { None }
    }
}
