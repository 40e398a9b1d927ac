//! The tree over the map in force: how a new map is announced downwards, how its failure travels
//! up and down, and how all learn that all are done.

use super::cause::Cause;
use super::status::FrameDrop;
use std::sync::Arc;

use super::doubts::Doubts;
use super::event::Event;
use super::held::{Child, Held};
use super::machine::Agent;
use super::parent::Parent;
use super::requests::Asked;
use super::settings::Settings;
use super::timers::Timer;
use crate::map::{Map, MapVersion, PortRef, Rank};
use crate::wire::{AgentState, Element, Info, Reason, RoundTrip, Route};
use crate::{Instant, Mac};

impl Agent {
    /// Puts a map in force, asks the driver for routes, and tells the children that there is a map to
    /// collect: they need not wait for routes that only this host needs.
    pub(super) fn install(&mut self, now: Instant, held: Held, map: Map) {
        // Whoever hands down a map has mapped. What ended the pause before may be lost, as with a cable that was cut meanwhile.
        if self.pause.is_on() {
            self.end_pause(now);
        }
        let neighbours = held.neighbours();
        self.parent = None;
        self.suspects.clear();
        self.held = Some(Box::new(held));
        self.state = AgentState::Routing;
        self.stop_timer(Timer::Query);
        self.set_timer(Timer::Patience, now + self.settings.silence_limit);
        self.rest_before_cycle(now);
        let map = Arc::new(map);
        self.event(Event::MapInstalled { map: map.clone(), neighbours });
        self.look_at_heard(now, &map);
        self.watch_contested(now);
        self.tell_children(now, |_| true);
        self.check_mtu_told(now, &map.frame_sizes);
        self.check_own_entry(now, &map);
    }

    /// Declares the map invalid if it shows this host with another level or type. Nobody else can judge that,
    /// and the mapper may have been told so by somebody else.
    fn check_own_entry(&mut self, now: Instant, map: &Map) {
        let Settings { mac, level, host_type, .. } = self.settings;
        let own = map.hosts.iter().find(|host| host.mac == mac);
        if own.is_some_and(|own| (own.level, own.host_type) != (level, host_type)) {
            let home: Vec<_> = own.and_then(|own| own.at).into_iter().collect();
            self.invalidate(now, Cause::OwnEntryWrong, &home);
        }
    }

    /// Takes in that the driver has routes to all hosts in place.
    pub(super) fn take_routes(&mut self, now: Instant, version: MapVersion, routes: Vec<(Mac, Route)>) {
        let Some(held) = self.held.as_mut().filter(|held| held.version == version && held.valid) else {
            return;
        };
        for (mac, route) in routes {
            if let Some(back) = reverse(&route) {
                held.routes.insert(mac, RoundTrip { there: route, back });
            }
        }
        held.routed = true;
        held.routing_failure = None;
        let alone = held.is_alone();
        self.state = if alone { AgentState::Isolated } else { AgentState::Configured };
        self.stop_timer(Timer::Patience);
        self.event(Event::Configured { version });
        self.tell_the_unaware(now);
        self.completeness_changed(now);
        self.print_at_parent_if_wanted(now, "configured");
    }

    /// Takes in that the driver cannot route by this map. This agent stays without routes and says why. It
    /// still hands the map down and verifies, so that all others can work and a repair of the fabric is
    /// noticed.
    pub(super) fn take_routing_failure(&mut self, now: Instant, version: MapVersion, why: String) {
        let Some(held) = self.held.as_mut().filter(|held| held.version == version && held.valid) else {
            return;
        };
        let line = format!("no routes: {why}");
        held.routing_failure = Some(why);
        self.timers[Timer::Patience as usize] = None;
        if held.is_alone() {
            // This host is alone in the map, so there is nobody to have a route to.
            self.state = AgentState::Isolated;
        }
        self.tell_the_unaware(now);
        self.print_at_parent_if_wanted(now, &line);
    }

    /// Tells those children that took no note of the map while there were only the shortest ways to
    /// them: there may be others now.
    fn tell_the_unaware(&mut self, now: Instant) {
        self.requests.forget(|asked| matches!(asked, Asked::ChildNotice(_)));
        self.tell_children(now, |child| !child.aware);
    }

    fn tell_children(&mut self, now: Instant, wanted: impl Fn(&Child) -> bool) {
        let children = self.held.iter().flat_map(|held| &held.children);
        let macs: Vec<_> = children.filter(|child| wanted(child)).map(|child| child.mac).collect();
        for mac in macs {
            self.tell_child(now, mac);
        }
    }

    /// Notes that a child knows of the map. If another host has answered in its place, verification will notice. A child
    /// that holds the map already, as this agent has started again, says whether all below it do.
    pub(super) fn child_notified(&mut self, now: Instant, mac: Mac, info: &Info) {
        let Some(held) = self.held.as_mut().filter(|_| info.rank.mac == mac) else { return };
        let has_it = held.valid && held.version == info.version;
        let Some(child) = held.child_mut(mac) else { return };
        child.aware = true;
        if has_it {
            self.judge_child(now, mac, info);
        }
    }

    /// Takes in what the parent answers to the word that this agent and those below it are complete. An agent that has
    /// started again is given a map which all others have had for long, so the parent may know that the network is complete
    /// and tell nobody of it any more.
    pub(super) fn parent_notified(&mut self, now: Instant, mac: Mac, info: &Info) {
        let holds_this = |held: &Held| held.valid && held.version == info.version;
        if info.rank.mac == mac && self.is_parent(mac) && self.held.as_deref().is_some_and(holds_this) {
            self.judge_parent(now, info);
        }
    }

    /// Ends the wait for pieces of a map, or for routes, that have not come. Without routes the agent goes on
    /// as if there were none, so that nobody below waits for them, and takes them when they come.
    pub(super) fn lose_patience(&mut self, now: Instant) {
        match (self.state, &self.held) {
            (AgentState::Fetching, _) => self.fetch_failed(now, Cause::PiecesEnded),
            (AgentState::Routing, Some(held)) if !held.is_done() => {
                let (version, limit) = (held.version, self.settings.silence_limit);
                let why = format!("routes to all hosts are not computed yet after {limit:?}");
                self.take_routing_failure(now, version, why);
            }
            _ => {}
        }
    }

    /// Tells a child to collect the map, or that the network is complete.
    pub(super) fn tell_child(&mut self, now: Instant, mac: Mac) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        let reason = Reason::Tree { version: held.version, level: held.leader.level };
        let Some(way) = held.routes.get(&mac).cloned() else { return };
        if !self.requests.waits_for(Asked::ChildNotice(mac)) {
            self.ask(now, Asked::ChildNotice(mac), way, reason, self.settings.probe_tries);
        }
    }

    /// Notes that a child does not answer the notice of the map. The next cycle of verification decides what is
    /// to be done.
    pub(super) fn child_silent(&mut self, mac: Mac) {
        if let Some(child) = self.held.as_mut().and_then(|held| held.child_mut(mac)) {
            child.trouble = Some("does not answer".to_owned());
        }
    }

    /// Handles the claim of a host that it is this agent's parent in the tree of a map.
    pub(super) fn hear_tree(
        &mut self,
        now: Instant,
        info: &Info,
        way: RoundTrip,
        version: MapVersion,
        level: u8,
    ) {
        let leader = Rank { level, mac: version.mac };
        if self.twin.is_some() {
            return;
        }
        if version != info.version || !version.is_some() || leader <= self.rank() {
            self.dropped.count(FrameDrop::Implausible);
            return;
        }
        if let Some(held) = self.held.as_ref().filter(|held| held.valid) {
            if held.version == version {
                return self.judge_parent(now, info);
            }
            // The map of a higher mapper stays until it is found not to hold. That somebody follows a lower
            // mapper may mean that it does not, which the parent knows.
            if held.leader > leader {
                return self.verify_parent(now);
            }
        }
        let other = self.fetching().filter(|fetching| *fetching != version);
        let outranked = other.is_some() && self.leader().is_some_and(|fetched| fetched > leader);
        if self.fetching() == Some(version) || outranked {
            return;
        }
        if self.is_refuted(version) {
            return self.refuse(now, info, way, version);
        }
        self.begin_fetch(now, info, way, Some(level));
    }

    /// Judges by what the parent in the tree says of itself whether it still holds the map.
    pub(super) fn judge_parent(&mut self, now: Instant, info: &Info) {
        let Some(held) = self.held.as_mut().filter(|held| held.valid) else { return };
        if held.parent.is_none_or(|parent| parent.mac != info.rank.mac) {
            return;
        }
        if !info.version.is_some() {
            // The parent may have restarted and be given this very map again, so there is nothing to report.
            self.give_up_map(now, Cause::ParentHasNoMap);
        } else if info.version != held.version {
            let Some(way) = held.routes.get(&info.rank.mac).cloned() else { return };
            if self.is_refuted(info.version) {
                return self.tell_refuted(now, info.rank.mac, way, info.version);
            }
            self.begin_fetch(now, info, way, None);
        } else {
            // An agent that starts again is given a map which all others have, and has no routes at first. Its parent may not
            // know that yet; it says so again when this agent tells it that it is complete.
            let is_complete = info.flags.network_complete && held.routed;
            if held.network_complete != is_complete {
                held.network_complete = is_complete;
                self.spread_completeness(now);
            }
        }
    }

    /// Tells the parent, or at the root all, that this agent and those below it are now complete, or no longer.
    pub(super) fn completeness_changed(&mut self, now: Instant) {
        let Some(held) = self.held.as_mut().filter(|held| held.valid) else { return };
        let complete = held.subtree_complete();
        if held.parent.is_none() {
            // Hosts with contested addresses are not in the map, so the network is not complete without them.
            let complete = complete && held.conflicts.iter().all(|conflict| conflict.mac == Mac::NOBODY);
            if held.network_complete != complete {
                held.network_complete = complete;
                self.spread_completeness(now);
            }
        } else if held.reported_complete != complete {
            held.reported_complete = complete;
            let reason = Reason::QueryMapVersion { seen: MapVersion::NONE, suspects: Vec::new() };
            let parent = held.parent.map(|parent| parent.mac);
            let way = parent.and_then(|mac| Some((mac, held.routes.get(&mac).cloned()?)));
            if let Some((mac, way)) = way {
                self.requests.forget(|asked| matches!(asked, Asked::ParentNotice(_)));
                self.ask(now, Asked::ParentNotice(mac), way, reason, self.settings.probe_tries);
            }
        }
    }

    /// Tells the children that the network has become complete, or is no longer.
    fn spread_completeness(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref() else { return };
        let version = held.version;
        if !held.network_complete {
            return;
        }
        self.event(Event::NetworkComplete { version });
        // A notice that is still under way does not carry the new flag, so it is sent anew.
        self.requests.forget(|asked| matches!(asked, Asked::ChildNotice(_)));
        self.tell_children(now, |_| true);
    }

    /// Declares the map in force invalid, for `cause`. The global mapper maps again; all others report to their
    /// parent and wait. The children learn of it at once. `suspects` are the ports where the map may be wrong.
    pub(super) fn invalidate(&mut self, now: Instant, cause: Cause, suspects: &[PortRef]) {
        let Some(held) = self.held.as_mut().filter(|held| held.valid) else { return };
        held.avoid(suspects, self.settings.mac);
        let version = held.version;
        self.refute(version);
        self.note_suspects(suspects);
        self.give_up_map(now, cause);
    }

    /// Waits for another map, or makes one if there is no parent to wait for.
    fn give_up_map(&mut self, now: Instant, cause: Cause) {
        let Some(held) = self.held.as_ref() else { return };
        let parent = held.parent.and_then(|rank| Some((rank, held.routes.get(&rank.mac).cloned()?)));
        let Some((rank, way)) = parent else { return self.map_again(now, cause) };
        self.leave_tree(now, cause.clone());
        self.follow(now, Parent::in_tree(rank, way, now, now));
        self.report_to_parent(now);
        self.print_at_parent_if_wanted(now, &cause.to_string());
    }

    /// Ends all that this agent does for the map in force, one that it waits for or one that it makes. Its
    /// tables stay: users' traffic goes on until new ones replace them.
    pub(super) fn leave_tree(&mut self, now: Instant, cause: Cause) {
        self.mapping = None;
        self.fetch = None;
        self.cycle = None;
        self.doubts = Doubts::none();
        // Questions of services go on, as each service waits to hear what comes of its question.
        self.requests.forget(|asked| {
            !matches!(asked, Asked::Resume | Asked::Courtesy | Asked::Refutation(_) | Asked::Service { .. })
        });
        self.end_quiet(now, None);
        for timer in [Timer::Map, Timer::Verify, Timer::Query, Timer::Patience] {
            self.stop_timer(timer);
        }
        let Some(held) = self.held.as_mut().filter(|held| held.valid) else { return };
        held.valid = false;
        held.network_complete = false;
        let version = held.version;
        let ways: Vec<_> = held.children.iter().filter_map(|c| held.routes.get(&c.mac).cloned()).collect();
        self.event(Event::MapInvalid { version, cause });
        for way in ways {
            // The question tells the child that this agent has no valid map any more, as all its messages do now.
            self.ask(now, Asked::Courtesy, way, Reason::Verify, self.settings.probe_tries);
        }
    }
}

/// The way back over a route of relative elements. That of an absolute one cannot be told.
fn reverse(route: &Route) -> Option<Route> {
    let mut deltas = route
        .elements()
        .map(|element| match element {
            // The delta of -32 is left out, as its negative does not fit an element.
            Element::Relative(delta @ -31..) => Some(Element::Relative(-delta)),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()?;
    deltas.reverse();
    Some(deltas.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_routes_have_a_way_back() {
        let route = Route::from_iter([Element::Relative(3), Element::Relative(-1)]);
        assert_eq!(reverse(&route).unwrap().to_string(), "1,-3");
        assert_eq!(reverse(&Route::from_iter([Element::Absolute(3)])), None);
        assert_eq!(reverse(&Route::from_iter([Element::Relative(-32)])), None);
    }
}
