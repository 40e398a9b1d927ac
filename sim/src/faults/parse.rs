//! The fault file.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::quote::{self, quoted};
use thiserror::Error;

use super::{Fault, FaultPlan, RandomFaults, RandomKind, Setting, Timed};
use crate::fabric::{Plant, PlantNode, PlantPort};

/// The least MTU that all frames of the mapper fit.
const LEAST_MTU: u16 = 1500;
/// Most routes to a destination that a host can be set to.
const MAX_PASSES: u8 = 64;
/// Most bytes of a file's name in an error.
const MAX_FILE_NAME_BYTES: usize = 1024;

/// A fault file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {why}")]
pub struct FaultError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub why: String,
}

impl FaultPlan {
    /// Reads a fault file (see the [module's documentation](super)) for this fabric. `file` names
    /// it in errors.
    ///
    /// # Errors
    /// If a line is no instruction or names what the fabric does not have.
    pub fn parse(file: &str, text: &str, plant: &Plant) -> Result<Self, FaultError> {
        let (mut plan, mut count) = (Self::default(), 0);
        for (index, line) in text.lines().enumerate() {
            let parsed = words(line).and_then(|words| {
                let mut words = Words { words: &words, plant };
                let mut line = Self::default();
                instruction(&mut words, index + 1, &mut line)?;
                count += line.count();
                plan.timed.append(&mut line.timed);
                plan.random.append(&mut line.random);
                // This bounds the memory that a short line can ask for.
                if count <= Self::MAX_FAULTS {
                    return Ok(());
                }
                Err(format!(
                    "that makes {count} faults, mending included; expected at most {}",
                    Self::MAX_FAULTS
                ))
            });
            // A trace names the file that its faults were in, and that name comes from outside, too.
            parsed.map_err(|why| FaultError {
                file: quote::harmless(file, MAX_FILE_NAME_BYTES),
                line: index + 1,
                why: quote::harmless(&why, quote::MAX_MESSAGE_BYTES),
            })?;
        }
        Ok(plan)
    }

    /// How many faults it demands, those to draw and those that mend them included.
    fn count(&self) -> u64 {
        let drawn = |random: &RandomFaults| {
            let each = if random.mend_after.is_some() { 2 } else { 1 };
            // A line that draws no faults takes room, too.
            (u64::from(random.count) * each).max(1)
        };
        self.timed.len() as u64 + self.random.iter().map(drawn).sum::<u64>()
    }
}

/// One line's instruction, added to the plan.
fn instruction(words: &mut Words<'_>, line: usize, plan: &mut FaultPlan) -> Result<(), String> {
    let Some(first) = words.next() else { return Ok(()) };
    let mut add = |at, fault| plan.timed.push(Timed { at, fault, line: Some(line) });
    match first {
        "at" => {
            let at = words.moment()?;
            let fault = words.fault()?;
            add(at, fault);
        }
        "random" => plan.random.push(words.random()?),
        "loss" | "corrupt" | "duplicate" | "jitter" => {
            let (begin, end) = words.noise(first)?;
            let (from, until) = words.span()?;
            add(from, begin);
            if let Some(until) = until {
                add(until, end);
            }
        }
        other => {
            return Err(format!(
                "expected `at`, `random`, `loss`, `corrupt`, `duplicate` or `jitter`, found {}",
                quoted(other)
            ));
        }
    }
    words.end()
}

/// The words of a line without its comment. A word may stand in double quotes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, behind) = match first {
            '#' => break,
            '"' => {
                let close = rest[1..].find('"').ok_or("a quoted name does not end on its line")? + 1;
                // A port may follow the quotes: "a name":3
                let end = rest[close..].find(char::is_whitespace).map_or(rest.len(), |n| close + n);
                (format!("{}{}", &rest[1..close], &rest[close + 1..end]), &rest[end..])
            }
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        words.push(word);
        rest = behind.trim_start();
    }
    Ok(words)
}

/// Words still to be read.
struct Words<'a> {
    words: &'a [String],
    plant: &'a Plant,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn expect(&mut self, what: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("the line ends where {what} was expected"))
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), String> {
        match self.expect(&format!("`{keyword}`"))? {
            word if word == keyword => Ok(()),
            other => Err(format!("expected `{keyword}`, found {}", quoted(other))),
        }
    }

    fn end(&self) -> Result<(), String> {
        self.words.first().map_or(Ok(()), |word| Err(format!("{} is one word too many", quoted(word))))
    }

    fn fault(&mut self) -> Result<Fault, String> {
        let word = self.expect("a fault")?;
        Ok(match word {
            "cut" => Fault::Cut(self.cable_end()?),
            "mend" => Fault::Mend(self.cable_end()?),
            "silence" => Fault::Silence(self.cable_end()?),
            "lossy" => Fault::Lossy { at: self.cable_end()?, rate: self.rate()? },
            "move" => {
                let from = self.cable_end()?;
                self.keyword("to")?;
                Fault::Move { from, to: self.cable_end()? }
            }
            "kill" => Fault::Kill(self.host()?),
            "restart" => Fault::Restart(self.host()?),
            "mute" => Fault::Mute(self.host()?),
            "hostile" => Fault::Hostile(self.host()?),
            "remove" => Fault::Remove(self.host()?),
            "insert" => Fault::Insert(self.host()?),
            "twin" => {
                let host = self.host()?;
                self.keyword("of")?;
                Fault::Twin { host, of: self.host()? }
            }
            "untwin" => Fault::Untwin(self.host()?),
            "off" => Fault::Off(self.xbar()?),
            "on" => Fault::On(self.xbar()?),
            "swap" => Fault::Swap(self.xbar()?),
            "lose" => Fault::Lose(self.number_of_frame()?),
            "lose-tries" => Fault::LoseTries(self.number_of_frame()?),
            "rekey" => Fault::Rekey(self.host()?),
            "mtu" => Fault::Mtu { host: self.host()?, bytes: self.mtu()? },
            "level" => Fault::Level { host: self.host()?, level: self.level()? },
            "passes" => Fault::Passes { host: self.host()?, passes: self.passes()? },
            "set" => {
                let host = self.host()?;
                let (name, value) = (self.expect("a setting")?, self.expect("its value")?);
                Fault::Set { host, setting: Setting::parse(name, value)? }
            }
            "rename" => Fault::Rename { host: self.host()?, number: self.number_of("a name")? },
            "readdress" => Fault::Readdress { host: self.host()?, number: self.number_of("an address")? },
            "alias" => {
                let number = self.number_of("a name")?;
                self.keyword("to")?;
                Fault::Alias { number, to: self.host()? }
            }
            "ask" => Fault::Ask { host: self.host()?, number: self.number_of("a name")? },
            "firewall" => Fault::Firewall(self.host()?),
            "firewall-v4" => Fault::FirewallV4(self.host()?),
            "open" => Fault::Open(self.host()?),
            "flush" => Fault::Flush(self.host()?),
            "heal" => Fault::Heal,
            "loss" | "corrupt" | "duplicate" | "jitter" => self.noise(word)?.0,
            other => return Err(format!("{} is no fault", quoted(other))),
        })
    }

    fn mtu(&mut self) -> Result<u16, String> {
        let word = self.expect("a number of bytes")?;
        let bytes = word.parse().ok().filter(|&bytes| bytes >= LEAST_MTU);
        bytes.ok_or_else(|| format!("{} is no MTU; expected {LEAST_MTU} to {} bytes", quoted(word), u16::MAX))
    }

    fn level(&mut self) -> Result<u8, String> {
        let word = self.expect("a level")?;
        word.parse().map_err(|_| format!("{} is no level; expected 0 to {}", quoted(word), u8::MAX))
    }

    fn passes(&mut self) -> Result<u8, String> {
        let word = self.expect("a number of routes")?;
        let passes = word.parse().ok().filter(|passes| (1..=MAX_PASSES).contains(passes));
        passes.ok_or_else(|| format!("{} is no number of routes; expected 1 to {MAX_PASSES}", quoted(word)))
    }

    /// The number of a name or of an address, as `of` says.
    fn number_of(&mut self, of: &str) -> Result<u16, String> {
        let word = self.expect(&format!("the number of {of}"))?;
        word.parse().map_err(|_| format!("{} is no number of {of}; expected 0 to {}", quoted(word), u16::MAX))
    }

    fn number_of_frame(&mut self) -> Result<u64, String> {
        let word = self.expect("the number of a frame")?;
        let number = word.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| format!("{} is no number of a frame; the first has number 1", quoted(word)))
    }

    /// The fault that begins this noise and the one that ends it.
    fn noise(&mut self, word: &str) -> Result<(Fault, Fault), String> {
        if word == "jitter" {
            return Ok((Fault::Jitter(self.duration()?), Fault::Jitter(Duration::ZERO)));
        }
        let rate = self.rate()?;
        Ok(match word {
            "loss" => (Fault::Loss(rate), Fault::Loss(0.0)),
            "corrupt" => (Fault::Corrupt(rate), Fault::Corrupt(0.0)),
            _ => (Fault::Duplicate(rate), Fault::Duplicate(0.0)),
        })
    }

    fn random(&mut self) -> Result<RandomFaults, String> {
        let count = self.expect("a number of faults")?;
        let count = count.parse().map_err(|_| format!("{} is no number of faults", quoted(count)))?;
        let word = self.expect("a fault")?;
        let kind = RandomKind::ALL
            .into_iter()
            .find(|kind| kind.word() == word)
            .ok_or_else(|| format!("{} is no fault that can be drawn", quoted(word)))?;
        self.keyword("between")?;
        let from = self.moment()?;
        self.keyword("and")?;
        let until = self.moment()?;
        if until < from {
            return Err("the second time is before the first".to_owned());
        }
        let mend_after = match self.next() {
            None => None,
            Some("mend-after") => Some(self.duration()?),
            Some(other) => return Err(format!("expected `mend-after`, found {}", quoted(other))),
        };
        Ok(RandomFaults { count, kind, from, until, mend_after })
    }

    fn span(&mut self) -> Result<(Instant, Option<Instant>), String> {
        let (mut from, mut until) = (Instant::ZERO, None);
        while let Some(word) = self.next() {
            match word {
                "from" => from = self.moment()?,
                "until" => until = Some(self.moment()?),
                other => return Err(format!("expected `from` or `until`, found {}", quoted(other))),
            }
        }
        if until.is_some_and(|until| until < from) {
            return Err("it ends before it begins".to_owned());
        }
        Ok((from, until))
    }

    fn moment(&mut self) -> Result<Instant, String> {
        self.duration().map(|since_start| Instant::ZERO + since_start)
    }

    fn duration(&mut self) -> Result<Duration, String> {
        let word = self.expect("a time like 500ms")?;
        duration(word).ok_or_else(|| {
            format!("{} is no time; expected one like 500ms, 1.5s or 20us, up to 1000000s", quoted(word))
        })
    }

    fn rate(&mut self) -> Result<f64, String> {
        let word = self.expect("a rate like 1%")?;
        rate(word).ok_or_else(|| format!("{} is no rate; expected one from 0% to 100%", quoted(word)))
    }

    fn host(&mut self) -> Result<u32, String> {
        let name = self.expect("a host's name")?;
        match self.plant.node(name) {
            Some(PlantNode::Host(host)) => Ok(host),
            Some(PlantNode::Xbar(_)) => Err(format!("{} is an xbar; expected a host", quoted(name))),
            None => Err(format!("the fabric has no host {}", quoted(name))),
        }
    }

    fn xbar(&mut self) -> Result<u32, String> {
        let name = self.expect("an xbar's name")?;
        match self.plant.node(name) {
            Some(PlantNode::Xbar(xbar)) => Ok(xbar),
            Some(PlantNode::Host(_)) => Err(format!("{} is a host; expected an xbar", quoted(name))),
            None => Err(format!("the fabric has no xbar {}", quoted(name))),
        }
    }

    fn cable_end(&mut self) -> Result<PlantPort, String> {
        let name = self.expect("a cable's end (HOST or XBAR:PORT)")?;
        if let Some(node @ PlantNode::Host(_)) = self.plant.node(name) {
            return Ok(PlantPort { node, port: 0 });
        }
        let (node, port) = name
            .rsplit_once(':')
            .ok_or_else(|| format!("{} is neither a host nor XBAR:PORT", quoted(name)))?;
        let port: u8 = port.parse().map_err(|_| format!("{} is no port number", quoted(port)))?;
        match self.plant.node(node) {
            None => Err(format!("the fabric has no node {}", quoted(node))),
            // A host has one interface, so its port needs no checking.
            Some(node @ PlantNode::Host(_)) => Ok(PlantPort { node, port: 0 }),
            Some(node) => {
                let end = PlantPort { node, port };
                let known = self.plant.ends().any(|other| other == end);
                known.then_some(end).ok_or_else(|| format!("{}: that xbar has no port {port}", quoted(name)))
            }
        }
    }
}

/// A time with its unit: ns, us, ms, s.
fn duration(word: &str) -> Option<Duration> {
    let split = word.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = word[..split].parse().ok()?;
    let seconds = match &word[split..] {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok().filter(|&time| time <= FaultPlan::MAX_TIME)
}

/// A probability written as a percentage, `1%`; `None` if it is not one.
pub fn rate(word: &str) -> Option<f64> {
    let percent: f64 = word.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests;
