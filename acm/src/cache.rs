//! A bounded table of answers that grow old.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::Instant;

/// A table of a bounded size. When it is full, the entry goes that was not used for the longest time.
///
/// An entry that is used is put in front only once it has fallen behind a quarter of the table, so that a table of
/// which little is used need not be sorted at each use.
#[derive(Debug, Clone)]
pub struct Cache<K, V> {
    entries: BTreeMap<K, Slot<V>>,
    /// The entries from the one that was not used for longest.
    by_use: BTreeMap<u64, K>,
    most: usize,
    next_use: u64,
}

#[derive(Debug, Clone)]
struct Slot<V> {
    value: V,
    expires: Option<Instant>,
    used: u64,
}

impl<K: Ord + Clone, V> Cache<K, V> {
    /// An empty table for at most `most` entries.
    pub const fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), by_use: BTreeMap::new(), most, next_use: 0 }
    }

    /// How many entries there are, with those that are too old and were not asked for since.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Changes how many entries there may be.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
        self.evict();
    }

    /// The value of a key, if there is one that is not too old.
    pub fn get(&mut self, now: Instant, key: &K) -> Option<&V> {
        if self.entries.get(key)?.expires.is_some_and(|at| at <= now) {
            self.remove(key);
            return None;
        }
        let slot = self.entries.get_mut(key)?;
        if self.next_use - slot.used > (self.most / 4) as u64
            && let Some(key) = self.by_use.remove(&slot.used)
        {
            slot.used = self.next_use;
            self.by_use.insert(self.next_use, key);
            self.next_use += 1;
        }
        Some(&slot.value)
    }

    /// Puts a value in, which is kept for as long as `keep` says; `None` is for ever.
    pub fn insert(&mut self, now: Instant, key: K, value: V, keep: Option<Duration>) {
        self.remove(&key);
        let used = self.next_use;
        self.next_use += 1;
        self.by_use.insert(used, key.clone());
        self.entries.insert(key, Slot { value, expires: keep.map(|keep| now + keep), used });
        self.evict();
    }

    /// Takes out what is not to be kept, and says how many that were.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) -> usize {
        let before = self.entries.len();
        let by_use = &mut self.by_use;
        self.entries.retain(|key, slot| {
            let kept = keep(key, &slot.value);
            if !kept {
                by_use.remove(&slot.used);
            }
            kept
        });
        before - self.entries.len()
    }

    /// Takes an entry out, if there is one.
    pub fn remove(&mut self, key: &K) {
        if let Some(slot) = self.entries.remove(key) {
            self.by_use.remove(&slot.used);
        }
    }

    fn evict(&mut self) {
        while self.entries.len() > self.most
            && let Some((_, key)) = self.by_use.pop_first()
        {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Get(u8),
        Insert(u8, Option<u8>),
        Forget(u8),
        Wait(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..8u8).prop_map(Step::Get),
            ((0..8u8), proptest::option::of(1..9u8)).prop_map(|(key, keep)| Step::Insert(key, keep)),
            (0..8u8).prop_map(Step::Forget),
            (1..5u8).prop_map(Step::Wait),
        ];
        vec(step, 0..60)
    }

    proptest! {
        /// What is found is what was put in last, was not forgotten, and is not too old. Nothing is lost while there is
        /// room, and there is never more than may be.
        #[test]
        fn a_cache_is_a_table_with_a_bound(steps in steps(), most in 1..10usize) {
            let mut cache = Cache::new(most);
            let mut model: BTreeMap<u8, (usize, Option<Instant>)> = BTreeMap::new();
            let (mut now, mut evicts) = (Instant::ZERO, false);
            for (nth, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Wait(seconds) => now = now + Duration::from_secs(seconds.into()),
                    Step::Insert(key, keep) => {
                        let keep = keep.map(|seconds| Duration::from_secs(seconds.into()));
                        cache.insert(now, key, nth, keep);
                        model.insert(key, (nth, keep.map(|keep| now + keep)));
                        evicts |= model.len() > most;
                    }
                    Step::Forget(key) => {
                        cache.retain(|&known, _| known != key);
                        model.remove(&key);
                    }
                    Step::Get(key) => {
                        let expected = model.get(&key).filter(|(_, end)| end.is_none_or(|end| end > now));
                        let found = cache.get(now, &key).copied();
                        prop_assert!(found == expected.map(|&(value, _)| value) || found.is_none() && evicts);
                    }
                }
                prop_assert!(cache.len() <= most && cache.by_use.len() == cache.len());
            }
        }
    }

    #[test]
    fn of_a_full_cache_goes_what_was_not_used_for_longest() {
        let mut cache = Cache::new(8);
        (0..8).for_each(|key| cache.insert(Instant::ZERO, key, key, None));
        assert_eq!(cache.get(Instant::ZERO, &0), Some(&0));
        (8..11).for_each(|key| cache.insert(Instant::ZERO, key, key, None));
        let found: Vec<_> = (0..11).filter(|key| cache.get(Instant::ZERO, key).is_some()).collect();
        assert_eq!(found, [0, 4, 5, 6, 7, 8, 9, 10]);
        cache.set_most(1);
        assert_eq!(cache.len(), 1);
    }
}
