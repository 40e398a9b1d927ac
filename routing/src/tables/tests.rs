//! Tests of rows that clones share, and of tables that are filled xbar by xbar.

use super::{ByXbar, Tables};

fn ports(tables: &Tables) -> Vec<u8> {
    tables.to_ports()
}

#[test]
fn what_is_written_to_a_clone_is_its_own() {
    let before = Tables::from_ports(3, (0..12).collect());
    let mut after = before.clone();
    after.set_port(1, 2, 77);
    after.set_port(2, 2, 78);
    after.set_port(0, 0, 79);
    assert_eq!(ports(&before), (0..12).collect::<Vec<u8>>());
    assert_eq!(ports(&after), [79, 1, 2, 3, 4, 5, 6, 77, 78, 9, 10, 11]);
    assert_eq!((after.port(1, 2), after.port(0, 3), after.of_slot(0)), (77, 9, [79, 1, 2].as_slice()));
    assert_eq!(after.changed_entries(&before), 3);
    assert_ne!(before, after);
    // A clone of a clone can be changed without its original, too.
    let mut again = after.clone();
    again.set_port(1, 2, 7);
    again.set_port(2, 2, 8);
    again.set_port(0, 0, 0);
    assert_eq!(again, before);
    assert_eq!(after.port(1, 2), 77);
}

#[test]
fn all_ports_can_be_written_at_once() {
    let before = Tables::from_ports(2, vec![1, 2, 3, 4]);
    let mut after = before.clone();
    after.set_port(0, 1, 9);
    after.as_mut_slice()[0] = 8;
    assert_eq!(ports(&after), [8, 2, 9, 4]);
    assert_eq!(ports(&before), [1, 2, 3, 4]);
    let mut shared = before.clone();
    shared.as_mut_slice().fill(Tables::NONE);
    assert_eq!((shared, before.port(0, 0)), (Tables::empty(2, 2), 1));
}

#[test]
fn tables_of_other_sizes_differ() {
    let tables = Tables::from_ports(2, vec![1, 2, 3, 4]);
    assert_ne!(tables, Tables::from_ports(4, vec![1, 2, 3, 4]));
    assert_ne!(tables, Tables::from_ports(2, vec![1, 2]));
    assert_eq!(Tables::empty(0, 0), Tables::from_ports(0, Vec::new()));
}

#[test]
fn rows_that_are_made_ready_say_the_same_and_are_written_to_alone() {
    let before = Tables::from_ports(3, (0..240).collect());
    let mut once = before.clone();
    once.set_port(1, 4, 250);
    let known = once.clone();
    for slots in [&[][..], &[4], &[0, 4, 4, 79], &[1, 2, 3]] {
        let mut ready = once.clone();
        ready.own_rows(slots);
        assert_eq!(ready, known);
        for &slot in slots {
            ready.set_port(2, slot, 251);
        }
        let rows: std::collections::BTreeSet<u32> = slots.iter().copied().collect();
        assert_eq!((ready.changed_entries(&known), &once), (rows.len(), &known));
    }
    // Tables that nobody else holds are written in place.
    let mut alone = Tables::from_ports(3, (0..240).collect());
    alone.own_rows(&[5]);
    alone.set_port(0, 5, 7);
    assert!(alone.places.is_empty() && alone.own.is_empty());
}

#[test]
fn xbars_that_come_one_after_another_make_the_same_tables() {
    // More than are put in at once, in an order of their own.
    let (xbars, slots) = (150_u32, 40_u32);
    let port = |xbar: u32, slot: u32| (xbar * 7 + slot * 3) as u8;
    let mut filled = ByXbar::new(xbars as usize, slots as usize);
    for nth in 0..xbars {
        let xbar = nth * 61 % xbars;
        filled.begin(xbar);
        (0..slots).filter(|slot| slot % 5 != 2).for_each(|slot| filled.set(slot, port(xbar, slot)));
    }
    // If the row of an xbar is set twice, the later one counts alone, whether the earlier one is in the tables yet or not.
    for xbar in [0, 61, 89, 89] {
        filled.begin(xbar);
        filled.set(xbar % slots, 9);
    }
    let filled = filled.finish();
    for (xbar, slot) in (0..xbars).flat_map(|xbar| (0..slots).map(move |slot| (xbar, slot))) {
        let expected = match (xbar, slot) {
            (0 | 61 | 89, _) if slot == xbar % slots => 9,
            (0 | 61 | 89, _) => Tables::NONE,
            _ if slot % 5 == 2 => Tables::NONE,
            _ => port(xbar, slot),
        };
        assert_eq!(filled.port(xbar, slot), expected, "xbar {xbar}, slot {slot}");
    }
    assert_eq!(ByXbar::new(0, 0).finish().entry_count(), 0);
}
