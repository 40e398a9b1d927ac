//! Gives memory that is not needed any more back to the system.
#![allow(unsafe_code, reason = "no safe crate offers malloc_trim, or madvise on code")]

use std::fs;
use std::ops::Range;

/// Gives back what was freed in the middle of the heap, which the allocator would keep for ever. An
/// exploration may need a hundred times the memory of its map, and a daemon runs for months. Takes about a
/// millisecond.
pub fn give_back_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but the allocator's own free memory, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives back all code and constants of the program and of its libraries. What is needed from then on is mapped again
/// from the file, mostly from the page cache and some pages at once, which takes some microseconds each time. What was only
/// needed at the start, or while a fabric was mapped, stays away. Code that somebody has changed in memory, as
/// debuggers do, or has locked there, stays.
pub fn give_back_code_and_constants() {
    let Ok(mappings) = fs::read_to_string("/proc/self/smaps") else { return };
    for code in code_as_in_files(&mappings) {
        // SAFETY: these are private pages of a file, none of which has been written to, so whoever needs one gets the
        // same bytes again. This process unloads no library, so the mappings are those that were just read.
        // If it fails, they stay as they are.
        unsafe {
            libc::madvise(std::ptr::without_provenance_mut(code.start), code.len(), libc::MADV_DONTNEED);
        }
    }
}

/// The addresses at which code and constants are mapped that are what their file says, by `/proc/self/smaps`.
fn code_as_in_files(mappings: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Option<Range<usize>>> = Vec::new();
    for line in mappings.lines() {
        match line.split_once(':') {
            // An own copy may have been swapped out. The start of a program leaves such copies that nobody may write to.
            Some(("Anonymous" | "Private_Dirty" | "Private_Hugetlb" | "Swap", size)) => {
                let is_own_copy = size.trim() != "0 kB";
                if let Some(mapping) = found.last_mut().filter(|_| is_own_copy) {
                    *mapping = None;
                }
            }
            // A mapping begins with its addresses, and what is said of it with a capital letter.
            _ if line.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase()) => {
                found.push(code_of_file(line));
            }
            _ => {}
        }
    }
    found.into_iter().flatten().collect()
}

/// The addresses of a mapping by its first line, if it is of a file and nobody may write there.
fn code_of_file(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (addresses, permissions) = (words.next()?, words.next()?);
    let path = words.nth(3)?;
    let (start, end) = addresses.split_once('-')?;
    let address = |hex| usize::from_str_radix(hex, 16).ok();
    let code = address(start)?..address(end)?;
    (["r-xp", "r--p"].contains(&permissions) && path.starts_with('/')).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of code of files that this process holds.
    fn held_bytes() -> usize {
        let mappings = fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut is_code, mut held) = (false, 0);
        for line in mappings.lines() {
            match line.strip_prefix("Rss:") {
                Some(size) if is_code => {
                    held += size.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
                }
                Some(_) => {}
                None if line.contains(" r-xp ") => is_code = line.contains(" /"),
                None if line.contains(" r--p ") || line.contains(" rw-p ") => is_code = false,
                None => {}
            }
        }
        held
    }

    #[test]
    fn code_and_constants_of_files_are_found_and_nothing_that_may_differ_from_its_file() {
        let with_swap = |line: &str, anonymous: u32, swap: u32| {
            format!(
                "{line}\nSize: 1 kB\nPrivate_Dirty:         0 kB\nAnonymous:  {anonymous} kB\nSwap: {swap} kB\nVmFlags: rd ex\n"
            )
        };
        let mapping = |line: &str, anonymous: u32| with_swap(line, anonymous, 0);
        let mappings = [
            mapping(
                "55d0ad162000-55d0ad55f000 r--p 00000000 fe:00 5309394                    /usr/bin/mapper",
                0,
            ),
            mapping(
                "55d0ad55f000-55d0ae62f000 r-xp 003fd000 fe:00 5309394                    /usr/bin/mapper",
                0,
            ),
            mapping(
                "55d0ae681000-55d0ae684000 rw-p 0151d000 fe:00 5309394                    /usr/bin/mapper",
                4,
            ),
            with_swap(
                "55d0ae684000-55d0ae685000 r--p 0151d000 fe:00 5309394                    /usr/bin/mapper",
                0,
                4,
            ),
            mapping("7f0000000000-7f0000001000 r-xp 00000000 00:00 0", 0),
            mapping(
                "7f384ea00000-7f384ea01000 r-xp 00000000 fe:00 99             /usr/lib/with a breakpoint.so",
                4,
            ),
            mapping(
                "7f384eb00000-7f384ec56000 r-xp 00026000 fe:00 99             /usr/lib/libc: with blanks.so",
                0,
            ),
            mapping("7fff37dc2000-7fff37dc4000 r-xp 00000000 00:00 0                          [vdso]", 0),
        ];
        let found = code_as_in_files(&mappings.concat());
        let constants = 0x55d0_ad16_2000..0x55d0_ad55_f000;
        let code = [0x55d0_ad55_f000..0x55d0_ae62_f000, 0x7f38_4eb0_0000..0x7f38_4ec5_6000];
        assert_eq!(found, [&[constants], &code[..]].concat());
        assert_eq!(code_as_in_files("nonsense\nAnonymous: 4 kB\n"), []);
    }

    #[test]
    fn a_program_goes_on_when_it_has_given_back_its_code_and_holds_less() {
        // Other tests run beside this one, and may need more code between two looks than was given back.
        let mut rounds = (0..20).map(|_| {
            let before = held_bytes();
            give_back_code_and_constants();
            (before, held_bytes())
        });
        assert!(rounds.any(|(before, after)| after < before));
    }
}
