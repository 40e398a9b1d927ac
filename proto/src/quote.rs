//! Text from outside, as messages repeat it.
//!
//! What a file or a stranger says may be of any length, and may hold what a terminal obeys. Whoever
//! repeats it in an error, a note or a log line does so by these functions.

/// Most bytes of what is quoted.
pub const MAX_QUOTED_BYTES: usize = 60;

/// Most bytes of a whole message about what somebody else wrote.
pub const MAX_MESSAGE_BYTES: usize = 300;

/// Words from outside in quotes: their beginning, without what a terminal would obey.
pub fn quoted(words: impl AsRef<[u8]>) -> String {
    let words = words.as_ref();
    // The words are cut before they are decoded, as they may be long. Three more bytes finish the last
    // character.
    let near = &words[..words.len().min(MAX_QUOTED_BYTES + 3)];
    format!("`{}`", harmless(&String::from_utf8_lossy(near), MAX_QUOTED_BYTES))
}

/// A text without what a terminal would obey, cut after `most_bytes` bytes.
///
/// Line breaks are replaced too: a message is one line.
pub fn harmless(text: &str, most_bytes: usize) -> String {
    let cut = text.floor_char_boundary(most_bytes);
    let mut shown = visible(&text[..cut]);
    if cut < text.len() {
        shown.push_str("..");
    }
    shown
}

/// A text of any length without what a terminal would obey.
pub fn visible(text: &str) -> String {
    text.replace(is_obeyed, "\u{fffd}")
}

/// Whether a terminal does something else than show a character: control characters, and those that
/// turn the direction of writing or break the line.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_quoted() {
        assert_eq!(quoted("leaf1"), "`leaf1`");
        let text = quoted("\u{1b}[2J\r\u{7}\u{9b}1m\u{202e}\n");
        assert_eq!(text, "`\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}1m\u{fffd}\u{fffd}`");
        assert_eq!(quoted(b"\xff\xfe"), "`\u{fffd}\u{fffd}`");
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(quoted("x".repeat(60)), format!("`{}`", "x".repeat(60)));
        assert_eq!(quoted("x".repeat(61)), format!("`{}..`", "x".repeat(60)));
        assert_eq!(quoted("ö".repeat(1 << 20)), format!("`{}..`", "ö".repeat(30)));
        assert_eq!(harmless(&format!("a{}", "ö".repeat(9)), 4), "aö..");
    }
}
