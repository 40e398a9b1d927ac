//! The marked part of a file of hosts' names, and all around it, which stays as it is byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::KeptHost;

/// Behind which each host of a fabric has its name, whatever else is called so.
const DOMAIN: &str = ".fabric";
/// Says in the marked part that the file's last line had no end before.
const JOINED: &[u8] = b"# The line before these had no end.\n";
/// The longest name (RFC 1123), and the longest part of one between dots.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// The marks are not as this program wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "line {line} is a mark of a marked part that has no beginning, no end, or two: take its marks out by hand"
)]
pub(crate) struct DamagedMarks {
    /// The line, counted from 1.
    pub line: usize,
}

/// A file of hosts' names around the part with one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Around<'a> {
    before: &'a [u8],
    after: &'a [u8],
    begin: String,
    end: String,
}

impl<'a> Around<'a> {
    /// Finds the part marked `# mapper MARK begin` and `# mapper MARK end`. If there is none, it will stand at
    /// the end of the file.
    ///
    /// # Errors
    /// If one mark is there without the other, or twice.
    pub(crate) fn of(text: &'a [u8], mark: &str) -> Result<Self, DamagedMarks> {
        let (begin, end) = (format!("# mapper {mark} begin"), format!("# mapper {mark} end"));
        let (mut opened, mut closed) = (None, None);
        let mut at = 0;
        for (number, line) in (1..).zip(text.split_inclusive(|&byte| byte == b'\n')) {
            let trimmed = line.trim_ascii_end();
            let damaged = Err(DamagedMarks { line: number });
            if trimmed == begin.as_bytes() {
                match opened {
                    None => opened = Some((number, at)),
                    Some(_) => return damaged,
                }
            } else if trimmed == end.as_bytes() {
                match (opened, closed) {
                    (Some(_), None) => closed = Some(at + line.len()),
                    _ => return damaged,
                }
            }
            at += line.len();
        }
        match (opened, closed) {
            (None, _) => Ok(Self { before: text, after: &[], begin, end }),
            (Some((line, _)), None) => Err(DamagedMarks { line }),
            (Some((_, opened)), Some(closed)) => {
                let (mut before, after) = (&text[..opened], &text[closed..]);
                if after.is_empty() && text[opened..closed].windows(JOINED.len()).any(|bytes| bytes == JOINED)
                {
                    before = before.strip_suffix(b"\n").unwrap_or(before);
                }
                Ok(Self { before, after, begin, end })
            }
        }
    }

    /// The file without the marked part.
    pub(crate) fn without(&self) -> Vec<u8> {
        [self.before, self.after].concat()
    }

    /// The file with these hosts in the marked part, and the names that are left out, with why.
    pub(crate) fn with(&self, entries: &[KeptHost]) -> (Vec<u8>, BTreeMap<String, String>) {
        let (lines, left_out) = lines(entries, &self.names());
        let mut text = self.before.to_vec();
        let is_joined = self.before.last().is_some_and(|&byte| byte != b'\n');
        text.extend(is_joined.then_some(b'\n'));
        text.extend(format!("{}\n", self.begin).bytes());
        if is_joined {
            text.extend(JOINED);
        }
        text.extend(format!("{lines}{}\n", self.end).bytes());
        text.extend(self.after);
        (text, left_out)
    }

    /// The names outside the marked part, in small letters, and the addresses that they have there.
    fn names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let outside = [self.before, self.after].concat();
        for line in outside.split(|&byte| byte == b'\n').map(String::from_utf8_lossy) {
            let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let Some(address) = words.next() else { continue };
            for name in words {
                names.entry(name.to_ascii_lowercase()).or_default().insert(address.to_owned());
            }
        }
        names
    }
}

/// The lines of the hosts, and the names that are left out.
fn lines(
    entries: &[KeptHost],
    outside: &BTreeMap<String, BTreeSet<String>>,
) -> (String, BTreeMap<String, String>) {
    let mut left_out = BTreeMap::new();
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        *alike.entry(base(&entry.name).to_ascii_lowercase()).or_default() += 1;
    }
    let mut text = String::new();
    for entry in entries {
        let name = base(&entry.name);
        let hosts = alike.get(&name.to_ascii_lowercase()).copied().unwrap_or_default();
        let why = match refusal(name) {
            None if hosts > 1 => Some(format!("{hosts} hosts are called so")),
            refusal => refusal.map(str::to_owned),
        };
        if let Some(why) = why {
            left_out.insert(entry.name.clone(), why);
            continue;
        }
        let known = |name: &String| outside.get(&name.to_ascii_lowercase());
        let (short, full) = (name.to_owned(), format!("{name}{DOMAIN}"));
        let mut names = vec![full];
        // The machine's own name is its own affair, and one with dots is looked up in DNS: it would get another
        // meaning on this machine alone.
        if !entry.is_own && !name.contains('.') {
            names.push(short);
        }
        for name in names.iter().filter(|name| known(name).is_some_and(|known| !is_same(known, entry))) {
            left_out.insert(name.clone(), "the file gives it to another address already".to_owned());
        }
        names.retain(|name| known(name).is_none());
        if !names.is_empty() {
            text.extend(entry.addresses.iter().map(|address| format!("{address}\t{}\n", names.join(" "))));
        }
    }
    (text, left_out)
}

/// Whether all that the file says of a name anyway is true of the host.
fn is_same(known: &BTreeSet<String>, entry: &KeptHost) -> bool {
    known.iter().all(|known| known.parse().is_ok_and(|known| entry.addresses.contains(&known)))
}

/// A name without `.fabric` behind it, if it has that.
pub(crate) fn base(name: &str) -> &str {
    let at = name.len().saturating_sub(DOMAIN.len());
    match name.split_at_checked(at) {
        Some((base, end)) if !base.is_empty() && end.eq_ignore_ascii_case(DOMAIN) => base,
        _ => name,
    }
}

/// Why a text cannot be a host's name in a file, by RFC 1123; `None` if it can.
fn refusal(name: &str) -> Option<&'static str> {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if name.len() + DOMAIN.len() > MAX_NAME_BYTES || !name.split('.').all(is_label) {
        Some("it is no host name: letters, digits and hyphens, with dots between")
    } else if last.bytes().all(|byte| byte.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(is_number)
    {
        Some("it can be read as an address")
    } else if last == "localhost" || name.to_ascii_lowercase().starts_with("localhost.") {
        Some("it is what every machine calls itself")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, addresses: &[&str]) -> KeptHost {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        KeptHost { name: name.to_owned(), addresses, is_own: false }
    }

    fn with(outside: &str, entries: &[KeptHost]) -> (String, BTreeMap<String, String>) {
        let (text, left_out) = Around::of(outside.as_bytes(), "fabric0").unwrap().with(entries);
        (String::from_utf8(text).unwrap(), left_out)
    }

    #[test]
    fn every_host_has_its_addresses_and_two_names() {
        let entries = [entry("n1", &["10.1.0.1", "fd00::1"]), entry("N2.fabric", &["10.1.0.2"])];
        let (text, left_out) = with("127.0.0.1 localhost\n", &entries);
        assert_eq!(
            text,
            "127.0.0.1 localhost\n# mapper fabric0 begin\n10.1.0.1\tn1.fabric n1\nfd00::1\tn1.fabric n1\n\
             10.1.0.2\tN2.fabric N2\n# mapper fabric0 end\n"
        );
        assert!(left_out.is_empty());
        // The part is replaced where it stands, and that of another daemon is left alone.
        let more = format!("{text}# mapper other begin\n10.2.0.1\tx.fabric x\n# mapper other end\nlast 1\n");
        let (text, _) = with(&more, &entries[..1]);
        assert!(text.ends_with("fd00::1\tn1.fabric n1\n# mapper fabric0 end\n# mapper other begin\n10.2.0.1\tx.fabric x\n# mapper other end\nlast 1\n"));
    }

    #[test]
    fn what_cannot_stand_there_is_left_out_and_told() {
        let outside =
            "127.0.0.1 localhost\n127.0.1.1\tme.example me # my own\n10.9.9.9 Taken\n10.1.0.8 known\n";
        let long = "x".repeat(64);
        let refused =
            ["twice", "TWICE.fabric", "a b", "-a", "ä", "a..b", "10.0.0.1", "7", "0x1f", "localhost", &long];
        let mut entries: Vec<_> = refused.iter().map(|name| entry(name, &["10.1.0.1"])).collect();
        entries.push(entry("taken", &["10.1.0.7"]));
        entries.push(entry("known", &["10.1.0.8"]));
        entries.push(entry("a.example.com", &["10.1.0.9"]));
        entries.push(KeptHost { is_own: true, ..entry("mine", &["10.1.0.10"]) });
        let (text, left_out) = with(outside, &entries);
        let block = text.split_once("begin\n").unwrap().1;
        assert_eq!(
            block,
            "10.1.0.7\ttaken.fabric\n10.1.0.8\tknown.fabric\n10.1.0.9\ta.example.com.fabric\n\
             10.1.0.10\tmine.fabric\n# mapper fabric0 end\n"
        );
        let told: Vec<_> = left_out.keys().map(String::as_str).collect();
        let mut expected = [&refused[..], &["taken"]].concat();
        expected.sort_unstable();
        assert_eq!(told, expected);
        assert_eq!(left_out["twice"], "2 hosts are called so");
    }

    #[test]
    fn damaged_marks_are_refused_with_their_line() {
        let (begin, end) = ("# mapper fabric0 begin\n", "# mapper fabric0 end\n");
        for (text, line) in [
            (format!("a\n{begin}b\n"), 2),
            (format!("a\n{end}"), 2),
            (format!("{begin}{begin}{end}"), 2),
            (format!("{begin}{end}x\n{end}"), 4),
            (format!("{begin}{end}{begin}{end}"), 3),
        ] {
            assert_eq!(Around::of(text.as_bytes(), "fabric0"), Err(DamagedMarks { line }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_outside_changes_and_a_part_that_goes_leaves_no_trace(
            outside in "([a-z0-9.#: \t]{0,20}\n){0,6}[a-z0-9. ]{0,5}",
            names in proptest::collection::vec("[a-z0-9.-]{1,8}", 0..8),
            later in "([a-z0-9. ]{0,9}\n){0,2}",
        ) {
            let entries: Vec<_> = names.iter().map(|name| entry(name, &["10.1.0.1"])).collect();
            let around = Around::of(outside.as_bytes(), "fabric0").unwrap();
            prop_assert_eq!(around.without(), outside.as_bytes());
            let (first, _) = around.with(&entries);
            let around = Around::of(&first, "fabric0").unwrap();
            prop_assert_eq!(around.with(&entries).0, &first[..], "the same again is the same");
            prop_assert_eq!(around.without(), outside.as_bytes());
            let (second, _) = around.with(&[]);
            prop_assert_eq!(Around::of(&second, "fabric0").unwrap().without(), outside.as_bytes());
            // Somebody has written more behind it.
            let more = [&first[..], later.as_bytes()].concat();
            let left = Around::of(&more, "fabric0").unwrap().without();
            let end = if later.is_empty() || outside.is_empty() || outside.ends_with('\n') { "" } else { "\n" };
            prop_assert_eq!(left, format!("{outside}{end}{later}").into_bytes());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(around) = Around::of(&bytes, "fabric0") {
                let (text, _) = around.with(&[entry("n1", &["10.1.0.1"])]);
                prop_assert!(text.starts_with(&bytes));
            }
        }
    }
}
