//! Lines of standard error between those of standard output.
//!
//! `ibnetdiscover > FILE 2>&1` writes what the libraries complain of into the file, where a node did not answer.
//! Standard output is written by the block and standard error by the line, so a complaint may stand in the
//! middle of a line, whose second half follows it.

use std::borrow::Cow;

use super::draft::Draft;

/// How the complaints of InfiniBand's libraries and tools begin.
const BEGINNINGS: [&str; 6] =
    ["ibwarn: [", "ibdebug: [", "iberror: ", "ibpanic: [", "ibnetdiscover: ", "ibnetdisc: "];

/// A file of the sources, a line in it, and a semicolon or colon: `../src/query_smp.c:227; umad ..`.
const SOURCE_FILE: &str = ".c:";

/// The lines of a text, numbered, without those of standard error, which the draft is told of.
pub(super) fn taken_out<'a>(text: &'a str, draft: &mut Draft) -> Vec<(usize, Cow<'a, str>)> {
    let mut lines: Vec<(usize, Cow<'_, str>)> = Vec::new();
    let mut cut: Option<(usize, String)> = None;
    for (line, content) in (1..).zip(text.lines()) {
        if let Some(start) = begins(content) {
            draft.leave_out(line, format!("a line of standard error: {}", content[start..].trim()));
            let half = &content[..start];
            if !half.trim().is_empty() {
                let (line, before) = cut.take().unwrap_or((line, String::new()));
                cut = Some((line, before + half));
            }
            continue;
        }
        match cut.take() {
            Some((line, half)) => lines.push((line, Cow::Owned(half + content))),
            None => lines.push((line, Cow::Borrowed(content))),
        }
    }
    lines.extend(cut.map(|(line, half)| (line, Cow::Owned(half))));
    lines
}

/// Where a complaint begins in a line, if there is one.
pub(super) fn begins(content: &str) -> Option<usize> {
    // All complaints have a colon, and few other lines do: most need no closer look.
    if !content.contains(':') || content.trim_start().starts_with('#') {
        return None;
    }
    let word = BEGINNINGS.iter().filter_map(|beginning| content.find(beginning));
    word.chain(source_file(content)).min()
}

/// Where the name of a file of the sources begins, if a line of that file is named.
fn source_file(content: &str) -> Option<usize> {
    let (path, rest) = content.split_once(SOURCE_FILE)?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == rest.len() || !after.starts_with([';', ':']) {
        return None;
    }
    // In the middle of a line only a path that says where it begins can be told from what stands before it.
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    match path.chars().all(is_path) {
        true => Some(0),
        false => ["../", "./", "src/", "/"].iter().find_map(|beginning| path.find(beginning)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(usize, String)> {
        let lines = taken_out(text, &mut Draft::default());
        lines.into_iter().map(|(line, content)| (line, content.into_owned())).collect()
    }

    #[test]
    fn complaints_are_taken_out_and_halves_of_a_line_joined() {
        let text = "Switch 8 \"S1\"\n[1]\t\"Hibwarn: [7] mad_rpc: _do_madrpc failed; dport (Lid 3)\n1\"[1]\n\
                    ../libibnetdisc/query_smp.c:227; umad (DR path slid 0; dlid 0; 0,1) bad status 110\n[2] \"H2\"[1]\n";
        let expected = [(1, "Switch 8 \"S1\""), (2, "[1]\t\"H1\"[1]"), (5, "[2] \"H2\"[1]")];
        assert_eq!(lines(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn what_is_no_complaint_stays() {
        for text in ["# ibwarn: [1] in a comment", "[1] \"H1\"[1] # \"node.c:5\" lid 4 4xSDR", "vendid=0x0"] {
            assert_eq!(lines(text), [(1, text.to_owned())]);
        }
    }
}
