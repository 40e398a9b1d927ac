//! What is said of a line of a configuration file that is wrong: beside what the TOML reader says, which key was meant, or
//! which has a value of the wrong type and what a right one looks like.

use mapper_proto::quote;
use toml::de::{DeTable, DeValue};

/// How the reader says that a key is none of those that there are, and so of a word that is a value.
const UNKNOWN_KEY: &str = "unknown field `";
const UNKNOWN_WORD: &str = "unknown variant `";
/// How the reader begins what it says of a value of the wrong type.
const WRONG_TYPE: [&str; 3] = ["invalid type: ", "expected a text", "wanted string or table"];
/// What the reader wants at the end of a message, and what people call that.
const WANTED: [(&str, &str); 7] = [
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected a boolean", "expected true or false"),
    ("expected a string", "expected a text"),
    ("expected path string", "expected a path"),
    ("expected a sequence", "expected a list"),
    ("expected struct PlanKeys", "expected a table"),
    ("expected struct AcmKeys", "expected a table"),
];

/// What is wrong with a text at the byte `at`, in the words of the reader and in those that help. `examples` is a file in which each
/// key has a value, also in comments.
pub(super) fn explained(text: &str, at: usize, told: &str, examples: &str) -> String {
    let words = quote::harmless(&in_words(&with_the_name_that_was_meant(told)), quote::MAX_MESSAGE_BYTES);
    if told.starts_with(UNKNOWN_KEY) {
        return words;
    }
    let Some(key) = key_of_value_at(text, at) else { return words };
    let shown = quote::harmless(key.last().map_or("", String::as_str), quote::MAX_QUOTED_BYTES);
    let is_wrong_type = WRONG_TYPE.iter().any(|start| told.starts_with(start));
    match example(examples, &key).filter(|_| is_wrong_type) {
        Some(example) => format!("`{shown}`: {words}, as in `{example}`"),
        None => format!("`{shown}`: {words}"),
    }
}

/// What the reader says, with what people call what it wants.
fn in_words(told: &str) -> String {
    if told == "wanted string or table" {
        return "expected a text".to_owned();
    }
    let wanted =
        WANTED.iter().find_map(|(reader, people)| Some(told.strip_suffix(reader)?.to_owned() + people));
    wanted.unwrap_or_else(|| told.to_owned())
}

/// What the reader says of an unknown name, with the one that was probably meant.
fn with_the_name_that_was_meant(told: &str) -> String {
    let starts = [UNKNOWN_KEY, UNKNOWN_WORD];
    let unknown = starts.iter().find_map(|start| told.strip_prefix(start)?.split_once("`, expected "));
    let meant = unknown.and_then(|(name, known)| nearest(name, known.split('`').skip(1).step_by(2)));
    match (unknown, meant) {
        (Some((_, known)), Some(meant)) => {
            let head = told.strip_suffix(known).and_then(|head| head.strip_suffix(", expected "));
            let head = head.unwrap_or_default();
            format!("{head}, did you mean `{meant}`? Expected {known}")
        }
        _ => told.to_owned(),
    }
}

/// The known name that is most like this one, if one has at most one other letter in three.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (letters, name) = (name.chars().count(), name.to_lowercase().replace('_', "-"));
    let apart = known.map(|known| (strsim::osa_distance(&name, known), known));
    let most = (letters / 3).max(1);
    apart.filter(|&(letters, _)| letters <= most).min_by_key(|&(letters, _)| letters).map(|(_, known)| known)
}

/// The key whose value is at a byte of a text, behind the tables that it is in.
fn key_of_value_at(text: &str, at: usize) -> Option<Vec<String>> {
    // A text that is no TOML has no values.
    let document = DeTable::parse(text).ok()?;
    key_in(document.get_ref(), at)
}

fn key_in(table: &DeTable<'_>, at: usize) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let within = match value.get_ref() {
            DeValue::Table(inner) => key_in(inner, at),
            _ => None,
        };
        let mut keys = within.or_else(|| value.span().contains(&at).then(Vec::new))?;
        keys.insert(0, key.get_ref().to_string());
        Some(keys)
    })
}

/// The line of a file of examples that sets a key, which is behind the tables that it is in.
fn example<'a>(examples: &'a str, key: &[String]) -> Option<&'a str> {
    let (key, tables) = key.split_last()?;
    let mut table = String::new();
    let header = format!("[{key}]");
    examples.lines().find_map(|line| {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut table);
        }
        if tables.is_empty() && line == header {
            return Some(line);
        }
        let line = line.strip_prefix("# ").unwrap_or(line);
        let sets = line.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with(" = "));
        (sets && table == tables.join(".")).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: &str = "# Of what.\nlevel = 1\n# ports = [\"eth1\"]\n[acm]\nport = 6125\n";

    #[test]
    fn a_name_that_is_nearly_right_is_told_which_was_meant() {
        let meant = |name| {
            let told = format!("unknown field `{name}`, expected one of `level`, `log-level`, `port`");
            let explained = explained("", 0, &told, EXAMPLES);
            assert!(explained.ends_with("one of `level`, `log-level`, `port`"), "{explained}");
            let meant = explained.split_once("did you mean `").and_then(|(_, rest)| rest.split_once("`?"));
            meant.map(|(meant, _)| meant.to_owned())
        };
        for (name, key) in
            [("levle", "level"), ("Level", "level"), ("log_level", "log-level"), ("prot", "port")]
        {
            assert_eq!(meant(name).as_deref(), Some(key), "{name}");
        }
        for far in ["log", "frames", "x", ""] {
            assert_eq!(meant(far), None, "{far}");
        }
        let told = explained("", 0, "unknown field `fil`, expected `file` or `on-change`", EXAMPLES);
        assert_eq!(told, "unknown field `fil`, did you mean `file`? Expected `file` or `on-change`");
        let odd = "unknown field `a`, expected `b`, expected `c`";
        assert!(explained("", 0, odd, EXAMPLES).contains("did you mean `b`?"));
    }

    #[test]
    fn a_value_of_a_wrong_type_is_told_with_its_key_and_a_right_one() {
        let told = |text: &str, at: &str, told: &str| explained(text, text.find(at).unwrap(), told, EXAMPLES);
        let wrong = "invalid type: string \"high\", expected a whole number from 0 to 255";
        for said in [wrong, "invalid type: string \"high\", expected u8"] {
            let told = told("level = \"high\"\n", "\"high", said);
            assert_eq!(told, format!("`level`: {wrong}, as in `level = 1`"));
        }
        assert_eq!(
            told(
                "level = 1\n[acm]\nport = true\n",
                "true",
                "invalid type: boolean `true`, expected a whole number"
            ),
            "`port`: invalid type: boolean `true`, expected a whole number, as in `port = 6125`"
        );
        assert_eq!(
            told("port = true\n", "true", "invalid type: x"),
            "`port`: invalid type: x",
            "there is no example of a key outside of the table"
        );
        assert_eq!(told("level = 256\n", "256", "expected less"), "`level`: expected less");
        assert_eq!(
            told("acm = 1\n", "1", "invalid type: integer `1`, expected struct AcmKeys"),
            "`acm`: invalid type: integer `1`, expected a table, as in `[acm]`"
        );
        assert_eq!(
            told("level = { a = 1 }\n", "{", "wanted string or table"),
            "`level`: expected a text, as in `level = 1`"
        );
        assert_eq!(
            told("level = \"lo\"\n", "\"lo", "unknown variant `lo`, expected `low` or `high`"),
            "`level`: unknown variant `lo`, did you mean `low`? Expected `low` or `high`"
        );
        assert_eq!(
            told("level = \n", "level", "string values must be quoted"),
            "string values must be quoted"
        );
    }
}
