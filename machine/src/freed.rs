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

/// Gives back all code of the program and of its libraries. What is run from then on is mapped again from the file, mostly
/// from the page cache, 64 KiB at once, which takes some microseconds each; what was run only at the start, or while a fabric was mapped, stays away.
pub fn give_back_code() {
    let Ok(mappings) = fs::read_to_string("/proc/self/maps") else { return };
    for code in code_of_files(&mappings) {
        // SAFETY: the pages are private ones of a file that can be executed and not written, so what they hold is what the
        // file holds, and whoever needs a page gets the same bytes again. A failure leaves them as they are.
        unsafe {
            libc::madvise(std::ptr::without_provenance_mut(code.start), code.len(), libc::MADV_DONTNEED);
        }
    }
}

/// The addresses at which code of files is mapped, by what `/proc/self/maps` says.
fn code_of_files(mappings: &str) -> impl Iterator<Item = Range<usize>> {
    mappings.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (addresses, permissions) = (words.next()?, words.next()?);
        let path = words.nth(3)?;
        let (start, end) = addresses.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        let code = address(start)?..address(end)?;
        (permissions == "r-xp" && path.starts_with('/')).then_some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_found_and_nothing_that_can_differ_from_its_file() {
        let mappings = "\
55d0ad162000-55d0ad55f000 r--p 00000000 fe:00 5309394                    /usr/bin/mapper
55d0ad55f000-55d0ae62f000 r-xp 003fd000 fe:00 5309394                    /usr/bin/mapper
55d0ae62f000-55d0ae681000 r--p 014cc000 fe:00 5309394                    /usr/bin/mapper
55d0ae681000-55d0ae684000 rw-p 0151d000 fe:00 5309394                    /usr/bin/mapper
7f0000000000-7f0000001000 r-xp 00000000 00:00 0
7f384ea00000-7f384ea01000 rwxp 00000000 fe:00 99                         /usr/lib/patched.so
7f384eb00000-7f384ec56000 r-xp 00026000 fe:00 99                         /usr/lib/libc with a blank.so
7fff37dc2000-7fff37dc4000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";
        let found: Vec<Range<usize>> = code_of_files(mappings).collect();
        assert_eq!(found, [0x55d0_ad55_f000..0x55d0_ae62_f000, 0x7f38_4eb0_0000..0x7f38_4ec5_6000]);
    }

    #[test]
    fn a_program_goes_on_without_its_code() {
        let here = a_program_goes_on_without_its_code as fn() as usize;
        let mappings = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(code_of_files(&mappings).any(|code| code.contains(&here)));
        give_back_code();
        assert!(code_of_files(&mappings).count() > 1, "there are libraries, too");
    }
}
