//! Chains of a firewall and their rules, as far as they are understood.

/// Which packets a chain sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hook {
    /// Those that are for this machine.
    Input,
    /// Those that go on.
    Forward,
    /// Those that other chains send there.
    None,
}

/// The versions of IP that a table sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
    Both,
}

impl Family {
    /// Its name, as `nft` has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
            Self::Both => "inet",
        }
    }
}

/// What becomes of a packet that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    /// Something else, such as another chain that decides.
    Other,
}

/// A rule, as far as it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The interfaces that a packet comes in by; all, if there is none. An asterisk at the end matches any rest.
    pub(super) came_in: Vec<String>,
    /// The interfaces that it leaves by.
    pub(super) leaves: Vec<String>,
    /// The port of UDP that it goes to.
    pub(super) udp_port: Option<u16>,
    /// What it matches by beside these, or does beside deciding, as the firewall tells it.
    pub(super) more: Vec<String>,
    pub(super) verdict: Verdict,
}

impl Rule {
    /// A rule that matches everything.
    pub(super) const fn of_all(verdict: Verdict) -> Self {
        Self { came_in: Vec::new(), leaves: Vec::new(), udp_port: None, more: Vec::new(), verdict }
    }

    /// Whether it decides about all packets.
    pub(super) fn is_for_all(&self) -> bool {
        *self == Self::of_all(self.verdict)
    }

    /// Whether it decides about all packets that come in by this port and are not meant for a single port of UDP, or are for
    /// this one.
    pub(super) fn decides(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        self.more.is_empty()
            && is_any_match(&self.came_in, came_in)
            && leaves.map_or(self.leaves.is_empty(), |leaves| is_any_match(&self.leaves, leaves))
            && (self.udp_port.is_none() || self.udp_port == udp_port)
    }

    /// Whether it accepts them.
    pub(super) fn accepts(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        self.verdict == Verdict::Accept && self.decides(came_in, leaves, udp_port)
    }

    /// Whether it accepts packets because they come in by this interface.
    pub(super) fn accepts_for(&self, interface: &str) -> bool {
        let is_named = !self.came_in.is_empty() && is_any_match(&self.came_in, interface);
        self.verdict == Verdict::Accept && is_named
    }

    /// Whether it may accept some packets that come in by this interface.
    pub(super) fn may_accept_from(&self, interface: &str) -> bool {
        self.verdict != Verdict::Drop && is_any_match(&self.came_in, interface)
    }

    /// Whether it accepts, of what comes in by this port, at least what `other` accepts elsewhere. What rules match by beside
    /// interfaces and ports of UDP is not understood, so only a rule that has it alike is known to.
    pub(super) fn accepts_as_well(&self, came_in: &str, other: &Self) -> bool {
        self.verdict == Verdict::Accept
            && is_any_match(&self.came_in, came_in)
            && (self.more.is_empty() || self.more == other.more)
            && (self.udp_port.is_none() || self.udp_port == other.udp_port)
    }
}

/// Whether a name matches one of these patterns, or there are none.
fn is_any_match(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| is_match(pattern, name))
}

fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// A chain of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) family: Family,
    pub(super) table: String,
    pub(super) name: String,
    pub(super) hook: Hook,
    /// What becomes of packets that no rule decides about.
    pub(super) policy: Verdict,
    pub(super) rules: Vec<Rule>,
    /// The program that changes it, if it is one that chains of this name and table are made by.
    pub(super) program: Option<&'static str>,
}

impl Chain {
    /// Whether it drops what no rule accepts.
    pub(super) fn drops_the_rest(&self) -> bool {
        self.policy == Verdict::Drop
            || self.rules.iter().any(|rule| rule.verdict == Verdict::Drop && rule.is_for_all())
    }

    /// Whether a rule of its own drops what comes in by this port: the first one that decides about all of it, unless one
    /// before it may have another chain decide.
    pub(super) fn drops_by_rule(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        let ends = |rule: &&Rule| rule.verdict == Verdict::Other || rule.decides(came_in, leaves, udp_port);
        let first = self.rules.iter().find(ends);
        first.is_some_and(|rule| rule.verdict == Verdict::Drop)
    }

    pub(super) fn title(&self) -> String {
        format!("{} {} {}", self.family.name(), self.table, self.name)
    }
}

/// The rules of a chain and of those that it may send packets to.
pub(super) fn rules_of<'a>(chain: &'a Chain, all: &'a [Chain]) -> impl Iterator<Item = &'a Rule> {
    let of_table = |it: &&Chain| {
        let is_here = (it.family, &it.table, it.program) == (chain.family, &chain.table, chain.program);
        is_here && (it.hook == Hook::None || it.name == chain.name)
    };
    all.iter().filter(of_table).flat_map(|chain| &chain.rules)
}
