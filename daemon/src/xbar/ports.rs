//! Which interface is behind which port of a crossbar: the names that the user gives, and the numbers they
//! get.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A port as the user names it: `eth1`, `7=eth1`, or `eth*` for all interfaces that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPort {
    /// The number that the user asks for, if any.
    pub number: Option<u8>,
    /// The name of the interface, or a pattern.
    pub interface: String,
}

impl NamedPort {
    /// Whether the name is a pattern, which stands for all interfaces that match: `*` is any characters, `?`
    /// is any one.
    pub fn is_pattern(&self) -> bool {
        self.interface.contains(['*', '?'])
    }
}

impl FromStr for NamedPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, interface) = match text.split_once('=') {
            None => (None, text),
            Some((number, interface)) => {
                let number = number.parse().map_err(|_| format!("`{number}` is no port from 0 to 255"))?;
                (Some(number), interface)
            }
        };
        if interface.is_empty() {
            return Err("expected an interface, or N=interface".to_owned());
        }
        let port = Self { number, interface: interface.to_owned() };
        if port.number.is_some() && port.is_pattern() {
            return Err(format!("`{interface}` may match several interfaces; leave the number out"));
        }
        Ok(port)
    }
}

impl fmt::Display for NamedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{number}={}", self.interface),
            None => f.write_str(&self.interface),
        }
    }
}

/// Why ports do not go together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortsError {
    /// A number was given twice.
    #[error("port {0} is named twice")]
    PortTwice(u8),
    /// An interface was named twice.
    #[error("interface `{0}` is named twice")]
    InterfaceTwice(String),
    /// All numbers are in use, so that none is left for the interface.
    #[error("there is no port number left for interface `{0}`; the highest is 255")]
    NoNumberLeft(String),
    /// A port has a number that the crossbar does not have.
    #[error("port {port} is outside the crossbar, whose {ports} ports begin at {first_port}")]
    Outside {
        /// The number.
        port: u8,
        /// The number of the crossbar's first port.
        first_port: u8,
        /// How many ports the crossbar has.
        ports: u8,
    },
    /// The last port would have a number above 255.
    #[error("{ports} ports from {first_port} on end beyond port 255")]
    TooMany {
        /// The number of the first.
        first_port: u8,
        /// How many there are.
        ports: u8,
    },
    /// The numbers are too far apart for a crossbar.
    #[error("a crossbar has at most 255 ports; these numbers need {0}")]
    TooWide(usize),
}

/// Port numbers and the interfaces behind them, in rising order.
pub type Numbered = Vec<(u8, String)>;

/// Gives each interface that is named its port: the number that is asked for, else the one that it has in
/// `current`, else the one after the port before it in the list. If that one is in use in a running crossbar,
/// the interface gets the lowest number that is free.
///
/// # Errors
/// If a number or an interface is named twice, or no number is left.
pub fn number(names: &[NamedPort], current: &[(u8, String)]) -> Result<Numbered, PortsError> {
    let mut numbered: Numbered = Vec::with_capacity(names.len());
    let claimed = |number: u8| names.iter().any(|name| name.number == Some(number));
    let held = |interface: &str| {
        let held = current.iter().find(|(_, other)| other == interface);
        held.map(|(number, _)| *number).filter(|&number| !claimed(number))
    };
    let unnumbered = names.iter().filter(|name| name.number.is_none());
    let kept: Vec<u8> = unnumbered.filter_map(|name| held(&name.interface)).collect();
    let mut next = Some(1);
    for NamedPort { number, interface } in names {
        let is_free = |number: u8, numbered: &Numbered| {
            !claimed(number) && !kept.contains(&number) && numbered.iter().all(|(other, _)| *other != number)
        };
        let new = || match next {
            // When a crossbar starts, the numbers rise along the list, so that the user can tell them from
            // it.
            _ if current.is_empty() => next,
            Some(next) if is_free(next, &numbered) => Some(next),
            _ => (1..=u8::MAX).find(|&number| is_free(number, &numbered)),
        };
        let number = number.or_else(|| held(interface)).or_else(new);
        let Some(number) = number else { return Err(PortsError::NoNumberLeft(interface.clone())) };
        if numbered.iter().any(|(other, _)| *other == number) {
            return Err(PortsError::PortTwice(number));
        }
        if numbered.iter().any(|(_, other)| other == interface) {
            return Err(PortsError::InterfaceTwice(interface.clone()));
        }
        numbered.push((number, interface.clone()));
        next = number.checked_add(1);
    }
    numbered.sort_unstable();
    Ok(numbered)
}

/// Whether a name matches a pattern: `*` is any characters, also none, `?` is any one.
pub fn matches(pattern: &str, name: &str) -> bool {
    // What stands behind the last `*`, and the part of the name that is left for it. A later `*` can take whatever an
    // earlier one leaves, so only the last one is tried at all places, and the work is bounded by the product of both lengths.
    let mut again: Option<(&str, &str)> = None;
    let (mut pattern, mut name) = (pattern, name);
    loop {
        let (mut wanted, mut found) = (pattern.chars(), name.chars());
        match (wanted.next(), found.next()) {
            (Some('*'), _) => {
                pattern = wanted.as_str();
                again = Some((pattern, name));
                continue;
            }
            (Some(one), Some(other)) if one == '?' || one == other => {
                (pattern, name) = (wanted.as_str(), found.as_str());
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((behind, left)) = again else { return false };
        let mut shorter = left.chars();
        if shorter.next().is_none() {
            return false;
        }
        (pattern, name) = (behind, shorter.as_str());
        again = Some((behind, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<NamedPort> {
        text.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    fn numbered(text: &str, current: &[(u8, String)]) -> String {
        let numbered = number(&names(text), current).unwrap();
        numbered.iter().map(|(number, name)| format!("{number}={name}")).collect::<Vec<_>>().join(" ")
    }

    fn current(text: &str) -> Numbered {
        number(&names(text), &[]).unwrap()
    }

    #[test]
    fn what_runs_keeps_its_number_and_what_is_new_takes_the_next_that_is_free() {
        let running = current("a b c");
        assert_eq!(numbered("a c", &running), "1=a 3=c");
        assert_eq!(numbered("a c d", &running), "1=a 3=c 4=d");
        assert_eq!(numbered("a d b c", &running), "1=a 2=b 3=c 4=d");
        assert_eq!(numbered("d a b c", &running), "1=a 2=b 3=c 4=d");
        assert_eq!(numbered("a b 9=c", &running), "1=a 2=b 9=c", "a number that is named wins");
        assert_eq!(numbered("a 2=c b", &running), "1=a 2=c 3=b", "and moves who has it");
        let full: Numbered = (1..=255).map(|number| (number, format!("e{number}"))).collect();
        let all = full.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            number(&names(&format!("{all} one-more")), &full),
            Err(PortsError::NoNumberLeft("one-more".to_owned()))
        );
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name, expected) in [
            ("eth*", "eth1", true),
            ("eth*", "eth", true),
            ("eth*", "veth1", false),
            ("*", "anything", true),
            ("e*s?f*", "enp1s0f1", true),
            ("eth?", "eth", false),
            ("eth?", "eth12", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!("3=eth*".parse::<NamedPort>().unwrap_err().contains("leave the number out"));
    }
}
