//! Glances and studies: how sights of plain xbars are told apart as cheaply as can be.

use super::Explorer;
use super::knowledge::At;
use super::request::Job;
use super::xbar::Stage;

/// How many glances may fail behind one xbar before there are no more.
const FAILED_GLANCES: usize = 2;
/// Port probes of a study between two looks at what they found.
const STUDY_STEP: u8 = 3;
/// Sights studied at once.
const STUDIES: usize = 8;

impl Explorer {
    /// Whether the xbar before this sight has hosts.
    pub(super) fn is_behind_hosts(&self, node: u32) -> bool {
        let parent = self.known.parent(self.known.xbar(node).via);
        parent.is_some_and(|at| self.known.xbar(at.node).hosted)
    }

    pub(super) fn next_glance(&self, node: u32) -> Option<Job> {
        let xbar = self.known.xbar(node);
        if xbar.stage != Stage::Seen || xbar.identify_waiting || !self.known.is_near(node) {
            return None;
        }
        if self.tags_seen && self.may_identify(xbar, 1) {
            return Some(Job::Identify(xbar.via));
        }
        let behind_hosts = self.is_behind_hosts(node);
        if xbar.glanced + xbar.waiting as u8 >= self.guess.glance_probes(behind_hosts) || xbar.waiting >= 2 {
            return None;
        }
        if !self.is_within_reach(node) || !self.is_worth_a_glance(node, behind_hosts) {
            return None;
        }
        // [`Guess`](super::guess::Guess) counts deltas from the entry.
        let entry = self.known.root(At { node: xbar.via, delta: 0 }).delta;
        let feasible = xbar.feasible(i16::from(self.settings.plain_ports));
        let new = feasible.filter(|&delta| xbar.port(delta).is_none()).map(|delta| delta - entry);
        let best = self.guess.best(behind_hosts, new)?;
        if xbar.waiting > 0 && self.guess.is_likely(behind_hosts, best) {
            return None;
        }
        self.port_job(node, best + entry)
    }

    /// Whether a glance at this sight is worth its probes: if others behind the same xbar had hosts,
    /// or a study needs one; or, where few of them were looked at, if glances were of use elsewhere.
    fn is_worth_a_glance(&self, node: u32, behind_hosts: bool) -> bool {
        let generally = self.guess.is_worth_a_glance(behind_hosts);
        self.known.neighbours(node).map(|at| self.known.xbar(at.node)).any(|near| {
            let studied = matches!(near.stage, Stage::Studied | Stage::Compared);
            let mut failed = 0;
            for far in near.fars().filter_map(|(_, far)| self.known.xbar_of(far)) {
                if far.hosted {
                    return true;
                }
                failed += usize::from(far.glance_failed);
            }
            let few = failed < FAILED_GLANCES;
            (studied && (few || self.guess.was_of_use(behind_hosts)))
                || (near.stage == Stage::Resolved && few && generally)
        })
    }

    /// Whether a glance at this sight has nothing more to ask or to wait for.
    pub(super) fn is_glance_over(&self, node: u32) -> bool {
        let xbar = self.known.xbar(node);
        xbar.waiting == 0 && !xbar.identify_waiting && self.next_glance(node).is_none()
    }

    /// The next question of the studies that are late, or of those that are not.
    pub(super) fn next_of_studies(&mut self, late: bool) -> Option<Job> {
        let mut at = 0;
        while at < self.studies.len() {
            let root = self.known.root(At { node: self.studies[at], delta: 0 }).node;
            let known_before = self.studies[..at].contains(&root);
            if known_before || self.known.xbar(root).stage == Stage::Resolved {
                self.studies.remove(at);
                self.dirty = true;
                continue;
            }
            self.studies[at] = root;
            if self.known.xbar(root).late != late {
                at += 1;
                continue;
            }
            if let Some(job) = self.next_of_study(root) {
                return Some(job);
            }
            at += 1;
        }
        None
    }

    fn next_of_study(&mut self, node: u32) -> Option<Job> {
        let xbar = self.known.xbar(node);
        if xbar.stage != Stage::Studied {
            return None;
        }
        if self.tags_seen && self.may_identify(xbar, 1) {
            return Some(Job::Identify(xbar.via));
        }
        if xbar.study_left == 0 {
            if xbar.waiting > 0 || xbar.identify_waiting || self.has_unsettled_neighbour(node) {
                return None;
            }
            self.known.xbar_mut(node).study_left = STUDY_STEP;
        }
        let xbar = self.known.xbar(node);
        if let Some(delta) = self.new_port(xbar) {
            self.known.xbar_mut(node).study_left -= 1;
            return self.port_job(node, delta);
        }
        if xbar.waiting > 0 && self.silent_port(xbar).is_none() {
            return None;
        }
        if let Some(delta) = self.silent_port(xbar) {
            return self.port_job(node, delta);
        }
        if self.may_identify(xbar, self.settings.probe_tries) {
            return Some(Job::Identify(xbar.via));
        }
        if !xbar.identify_waiting && !self.has_unsettled_neighbour(node) {
            self.known.xbar_mut(node).stage = Stage::Compared;
            self.dirty = true;
        }
        None
    }

    /// Whether a glance at what is behind this sight may still tell something.
    fn has_unsettled_neighbour(&self, node: u32) -> bool {
        self.known.neighbours(node).any(|at| {
            at.node != node && self.known.xbar(at.node).stage == Stage::Seen && !self.is_glance_over(at.node)
        })
    }

    /// Lets a study go on that waits although nothing is under way. Returns whether there was one.
    pub(super) fn unstick(&mut self) -> bool {
        let studied = self.studies.iter().copied().find(|&s| self.known.xbar(s).stage == Stage::Studied);
        if let Some(sight) = studied {
            self.known.xbar_mut(sight).stage = Stage::Compared;
            self.dirty = true;
        }
        studied.is_some()
    }

    /// Begins to study the sights nearest to us, as many as may be studied at once.
    pub(super) fn admit_studies(&mut self) -> bool {
        let room = STUDIES.saturating_sub(self.studies.len());
        if room == 0 {
            return false;
        }
        let is_late = |&sight: &u32| self.known.xbar(sight).late;
        let late_room = (STUDIES / 2).saturating_sub(self.studies.iter().filter(|s| is_late(s)).count());
        let mut sights: Vec<(bool, usize, u32)> = Vec::new();
        for root in self.known.roots().filter(|&root| self.known.xbar(root).stage == Stage::Resolved) {
            let seen = self.known.neighbours(root).map(|at| at.node);
            let seen = seen.filter(|&node| self.known.xbar(node).stage == Stage::Seen);
            let seen = seen.filter(|&node| self.is_within_reach(node));
            sights.extend(seen.map(|node| (is_late(&node), self.known.depth(node), node)));
        }
        sights.sort_unstable();
        sights.dedup();
        // Late sights stand last, so that others do not wait for them.
        let in_time = sights.partition_point(|&(late, ..)| !late);
        sights.truncate(room.min(in_time + late_room));
        for &(.., node) in &sights {
            self.known.xbar_mut(node).stage = Stage::Studied;
            self.studies.push(node);
            self.wake_neighbours(node);
        }
        !sights.is_empty()
    }
}
