//! The fault file.

use std::time::Duration;

use mapper_proto::Instant;
use thiserror::Error;

use super::{Fault, FaultPlan, RandomFaults, RandomKind, Timed};
use crate::fabric::{End, Node, Plant};

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
                // Bounds the memory that a short line can ask for.
                if count <= Self::MAX_FAULTS {
                    return Ok(());
                }
                Err(format!(
                    "that makes {count} faults, mending included; expected at most {}",
                    Self::MAX_FAULTS
                ))
            });
            parsed.map_err(|why| FaultError { file: file.to_owned(), line: index + 1, why })?;
        }
        Ok(plan)
    }

    /// How many faults it demands, those to draw and those that mend them included.
    fn count(&self) -> u64 {
        let drawn = |random: &RandomFaults| {
            let each = if random.mend_after.is_some() { 2 } else { 1 };
            // A line that draws nothing takes room too.
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
                "expected `at`, `random`, `loss`, `corrupt`, `duplicate` or `jitter`, found `{other}`"
            ));
        }
    }
    words.end()
}

/// The words of a line, less its comment. A word may stand in double quotes.
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
            other => Err(format!("expected `{keyword}`, found `{other}`")),
        }
    }

    fn end(&self) -> Result<(), String> {
        self.words.first().map_or(Ok(()), |word| Err(format!("`{word}` is one word too many")))
    }

    fn fault(&mut self) -> Result<Fault, String> {
        let word = self.expect("a fault")?;
        Ok(match word {
            "cut" => Fault::Cut(self.cable_end()?),
            "mend" => Fault::Mend(self.cable_end()?),
            "silence" => Fault::Silence(self.cable_end()?),
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
            "off" => Fault::Off(self.xbar()?),
            "on" => Fault::On(self.xbar()?),
            "swap" => Fault::Swap(self.xbar()?),
            "heal" => Fault::Heal,
            "loss" | "corrupt" | "duplicate" | "jitter" => self.noise(word)?.0,
            other => return Err(format!("`{other}` is no fault")),
        })
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
        let count = count.parse().map_err(|_| format!("`{count}` is no number of faults"))?;
        let word = self.expect("a fault")?;
        let kind = RandomKind::ALL
            .into_iter()
            .find(|kind| kind.word() == word)
            .ok_or_else(|| format!("`{word}` is no fault that can be drawn"))?;
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
            Some(other) => return Err(format!("expected `mend-after`, found `{other}`")),
        };
        Ok(RandomFaults { count, kind, from, until, mend_after })
    }

    fn span(&mut self) -> Result<(Instant, Option<Instant>), String> {
        let (mut from, mut until) = (Instant::ZERO, None);
        while let Some(word) = self.next() {
            match word {
                "from" => from = self.moment()?,
                "until" => until = Some(self.moment()?),
                other => return Err(format!("expected `from` or `until`, found `{other}`")),
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
            format!("`{word}` is no time; expected one like 500ms, 1.5s or 20us, up to 1000000s")
        })
    }

    fn rate(&mut self) -> Result<f64, String> {
        let word = self.expect("a rate like 1%")?;
        rate(word).ok_or_else(|| format!("`{word}` is no rate; expected one from 0% to 100%"))
    }

    fn host(&mut self) -> Result<u32, String> {
        let name = self.expect("a host's name")?;
        match self.plant.node(name) {
            Some(Node::Host(host)) => Ok(host),
            Some(Node::Xbar(_)) => Err(format!("`{name}` is an xbar; expected a host")),
            None => Err(format!("the fabric has no host `{name}`")),
        }
    }

    fn xbar(&mut self) -> Result<u32, String> {
        let name = self.expect("an xbar's name")?;
        match self.plant.node(name) {
            Some(Node::Xbar(xbar)) => Ok(xbar),
            Some(Node::Host(_)) => Err(format!("`{name}` is a host; expected an xbar")),
            None => Err(format!("the fabric has no xbar `{name}`")),
        }
    }

    fn cable_end(&mut self) -> Result<End, String> {
        let name = self.expect("a cable's end (HOST or XBAR:PORT)")?;
        if let Some(node @ Node::Host(_)) = self.plant.node(name) {
            return Ok(End { node, port: 0 });
        }
        let (node, port) =
            name.rsplit_once(':').ok_or_else(|| format!("`{name}` is neither a host nor XBAR:PORT"))?;
        let port: u8 = port.parse().map_err(|_| format!("`{port}` is no port number"))?;
        match self.plant.node(node) {
            None => Err(format!("the fabric has no node `{node}`")),
            // A host has one interface, so its port needs no checking.
            Some(node @ Node::Host(_)) => Ok(End { node, port: 0 }),
            Some(node) => {
                let end = End { node, port };
                let known = self.plant.ends().any(|other| other == end);
                known.then_some(end).ok_or_else(|| format!("`{name}`: that xbar has no port {port}"))
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
mod tests {
    use mapper_proto::map::Fabric;

    use super::*;
    use crate::fabric::Xbars;
    use crate::topology::generate;

    fn fabric() -> Fabric {
        let mut fabric = generate("ring:n=3,hosts=1,ports=8").unwrap();
        fabric.hosts[1].name = "a b:1".to_owned();
        fabric.xbars[0].name = "leaf".to_owned();
        fabric
    }

    fn parse(text: &str) -> Result<FaultPlan, FaultError> {
        let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
        FaultPlan::parse("file", text, &plant)
    }

    fn one(line: &str) -> Timed {
        parse(line).unwrap().timed[0]
    }

    #[test]
    fn reads_every_fault() {
        let end = |node, port| End { node, port };
        let leaf = |port| end(Node::Xbar(0), port);
        assert_eq!(one("at 500ms cut leaf:2").fault, Fault::Cut(leaf(2)));
        assert_eq!(one("at 500ms cut leaf:2").at, Instant::from_nanos(500_000_000));
        assert_eq!(one("at 1.5us mend h1").fault, Fault::Mend(end(Node::Host(0), 0)));
        assert_eq!(one("at 0s silence \"a b:1\"").fault, Fault::Silence(end(Node::Host(1), 0)));
        assert_eq!(
            one("at 1s move h1 to leaf:8").fault,
            Fault::Move { from: end(Node::Host(0), 0), to: leaf(8) }
        );
        assert_eq!(one("  at 1s kill h3 # why").fault, Fault::Kill(2));
        assert_eq!(one("at 1s off leaf").fault, Fault::Off(0));
        assert_eq!(one("at 1s heal").fault, Fault::Heal);
        assert_eq!(one("at 1s loss 2%").fault, Fault::Loss(0.02));
    }

    #[test]
    fn the_language_for_people_is_the_one_that_is_read() {
        let plant = Plant::new(&generate("clos:hosts=128,ports=16").unwrap(), Xbars::AsDescribed, 1).unwrap();
        let (_, instructions) = crate::faults::LANGUAGE.split_once("\n\n").unwrap();
        let plan = FaultPlan::parse("language", instructions, &plant).unwrap();
        assert_eq!((plan.timed.len(), plan.random.len()), (19, 1));
        for kind in RandomKind::ALL {
            assert!(instructions.contains(&format!(" {}", kind.word())), "{kind:?}");
        }
    }

    #[test]
    fn noise_begins_and_ends() {
        let plan = parse("loss 1% from 1s until 2s\njitter 5us\n").unwrap();
        let faults: Vec<_> =
            plan.timed.iter().map(|timed| (timed.at.as_nanos() / 1_000_000, timed.fault)).collect();
        let jitter = Fault::Jitter(Duration::from_micros(5));
        assert_eq!(faults, [(1000, Fault::Loss(0.01)), (2000, Fault::Loss(0.0)), (0, jitter)]);
    }

    #[test]
    fn random_faults_are_drawn_alike_and_mended() {
        let plan = parse("random 10 cut between 1s and 2s mend-after 500ms\nrandom 1 swap between 0s and 0s")
            .unwrap();
        let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
        let drawn = plan.draw(&plant, 4);
        assert_eq!(drawn, plan.draw(&plant, 4));
        assert_ne!(drawn, plan.draw(&plant, 5));
        assert_eq!(drawn.len(), 21);
        assert!(drawn.is_sorted_by_key(|timed| timed.at));
        assert_eq!(drawn.iter().filter(|timed| matches!(timed.fault, Fault::Mend(_))).count(), 10);
    }

    #[test]
    fn errors_name_file_line_and_what_was_expected() {
        for (line, why) in [
            ("kill h1", "expected `at`"),
            ("at soon kill h1", "`soon` is no time"),
            ("at -1s kill h1", "`-1s` is no time"),
            ("at 1s", "the line ends where a fault was expected"),
            ("at 1s kill leaf", "`leaf` is an xbar"),
            ("at 1s kill h9", "no host `h9`"),
            ("at 1s cut leaf:9", "no port 9"),
            ("at 1s cut leaf:x", "`x` is no port number"),
            ("at 1s cut nowhere:1", "no node `nowhere`"),
            ("at 1s kill h1 h3", "`h3` is one word too many"),
            ("at 1s move h1 leaf:8", "expected `to`"),
            ("at 1s kill \"h1", "does not end"),
            ("loss 101%", "`101%` is no rate"),
            ("loss 1% until 1s from 2s", "ends before it begins"),
            ("random 2 heal between 1s and 2s", "no fault that can be drawn"),
            ("random 2 cut between 2s and 1s", "before the first"),
            ("random 4000000000 cut between 0s and 1s", "at most 100000"),
            ("random 50001 cut between 0s and 1s mend-after 1s", "100002 faults"),
            ("at 1e18s heal", "no time"),
        ] {
            let error = parse(&format!("# first\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("file:2: ") && error.contains(why), "{line}: {error}");
        }
    }
}
