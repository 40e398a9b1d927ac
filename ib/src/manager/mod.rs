//! A subnet manager without I/O: it explores, has tables computed, writes what differs, and keeps watch.
//!
//! Whoever drives it sends what [`SubnetManager::poll_transmit`] gives, hands what comes to
//! [`SubnetManager::handle_packet`], calls [`SubnetManager::handle_timeout`] at the moment that
//! [`SubnetManager::poll_timeout`] names, computes what [`SubnetManager::poll_task`] asks for, and tells people what
//! [`SubnetManager::poll_event`] says.
//!
//! ```text
//! sweep -> read tables and other managers -> elect -> LIDs -> tables (computed elsewhere) -> write, phase by phase
//!   ^                                          |         ^                                      |
//!   |                                          |         +-- a switch told that a cable failed --+
//!   +---- another trap, or a look that differs |--------------------- watch <-------------------+
//!                                              v
//!                                           stand by, and ask the master whether it lives
//! ```

mod administering;
mod asking;
mod counts;
mod driving;
mod election;
mod event;
mod exploring;
mod glance;
mod inquiring;
pub(crate) mod inventory;
mod known;
mod reading;
mod requests;
mod settings;
mod share;
mod status;
pub mod task;
#[cfg(test)]
pub(crate) mod tests;
mod under_way;
mod watch;
mod writing;
mod wrong_keys;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mapper_proto::Tally;
use mapper_proto::time::Instant;

pub use crate::inquiries::{Destination, FoundPath};
pub use crate::program::multicast::{GroupMembers, Members};
pub use counts::{Datagrams, SubnetCount};
pub use event::Event;
pub use inquiring::OwnPort;
pub use settings::ManagerSettings;
pub use status::{OtherManager, Status, Work};
pub use task::{Levels, Link, Routes, Task, TaskAdapter, TaskSwitch};

use crate::administration::{Administration, TableOf};
use crate::exchange::{Exchange, Failure};
use crate::inquiries::Inquiries;
use crate::lids::Lids;
use crate::mad::SmState;
use crate::packet::Packet;
use crate::program::Held;
use crate::sweep::Sweep;
use asking::FIRST_TABLE;
use election::{Manager, Polling};
use glance::Glances;
use inventory::Inventory;
use reading::Reading;
use settings::manner;
use share::{FIRST_LOOK, Share, ShareSeen};
use under_way::UnderWay;
use watch::Watch;
use writing::Writing;
use wrong_keys::WrongKeys;

/// What a manager is doing.
#[derive(Debug)]
enum Stage {
    /// It waits until this moment.
    Waiting { until: Instant },
    /// It explores the subnet.
    Sweeping(Box<Sweep>),
    /// It reads what the switches hold.
    Reading(Box<Reading>),
    /// It waits for the tables that it asked for.
    Computing {
        number: u64,
        /// The LIDs of the adapters that stand in for unknown nodes. They get no entries.
        stand_ins: Vec<u16>,
    },
    /// It writes whatever is not as it is to be.
    Writing(Box<Writing>),
    /// It looks at all switches to see whether anything has changed.
    Watching(Box<Watch>),
    /// It looks at the switches that told of a change.
    Glancing(Box<Glances>),
    /// It stands by, and asks the master whether it is still there.
    Polling(Polling),
}

/// The manager of a subnet, which may be its master or stand by.
#[derive(Debug)]
pub struct SubnetManager {
    settings: ManagerSettings,
    role: SmState,
    stage: Stage,
    lids: Lids,
    inventory: Inventory,
    held: Held,
    /// Other managers, as they answered last.
    others: Vec<Manager>,
    /// How often in a row all that switches hold was read anew, because another master is there that may
    /// write to them.
    contested: u8,
    /// Whether a port says that a manager runs behind it which did not answer and may be master.
    has_silent_manager: bool,
    /// Whether a port did not tell whether it has a cable, or the node behind a port did not say what it is,
    /// so that another manager may be there.
    is_somebody_silent: bool,
    /// The manager that is waited for while standing by.
    master: Option<Manager>,
    /// The administration, which answers hosts.
    administration: Administration,
    /// The switches that this manager looks at for the master while it stands by, beside all else.
    share: Option<Box<Share>>,
    share_seen: Option<ShareSeen>,
    polls_without_share: u32,
    next_look: u32,
    next_share: u32,
    /// How many switches agents reported on at the last look, by the GUIDs of their ports.
    reported: BTreeMap<u64, usize>,
    /// Agents that did not report, and for how many looks they are given no share.
    resting: BTreeMap<u64, u8>,
    /// How often in a row a switch did not answer an agent by LID but answered the master, by the GUIDs of
    /// the agent's port and of the switch. An agent that did not report is counted under its port's GUID
    /// twice.
    unreached: BTreeMap<(u64, u64), u8>,
    /// The questions of programs of this machine.
    inquiries: Inquiries,
    /// Commands to other managers, which are sent beside all else.
    commands: Exchange<election::Told>,
    /// Questions for tables that somebody asked about, which are sent beside all else.
    tables: Exchange<TableOf>,
    out: VecDeque<Packet>,
    task: Option<Task>,
    events: VecDeque<Event>,
    /// What was wrong at the last sweep, in words, so that it is told only once.
    problems: Vec<String>,
    /// The switches that did not tell what they hold at the last reading, in words.
    left_out: Vec<String>,
    /// What could not be written the last time, in words.
    unwritten: Vec<String>,
    wrong_keys: WrongKeys,
    /// Why there are no tables for the subnet as it is.
    routing_failure: Option<String>,
    /// Whether tables are in force, and all was written the last time.
    is_up: bool,
    /// Whether the subnet may have changed since the sweep under way, or the last one, began.
    is_stale: bool,
    /// When everything is to be looked at again, because marks were cleared or something did not answer.
    recheck_at: Option<Instant>,
    /// The switches that told that a port changed and were not looked at since, by GUID.
    changed: BTreeSet<u64>,
    /// When the entries of tables that nobody waited for are to be written, once packets under way are gone.
    rest_at: Option<Instant>,
    /// Whether tables are wanted as soon as possible, because a cable failed.
    is_urgent: bool,
    /// Tables of before by which packets may be under way.
    under_way: UnderWay,
    /// Whether hosts are to be asked to join and subscribe again.
    reregister: bool,
    groups: GroupMembers,
    /// Whether groups have changed since they were last written.
    are_groups_new: bool,
    /// The switches that did not tell their multicast tables, by GUID.
    without_groups: BTreeSet<u64>,
    engine: Option<String>,
    /// How many failures, switches and adapters there were when people were last told that the subnet is up;
    /// `None` if it has gone down since.
    told_up: Option<[usize; 3]>,
    /// The tables that were written last.
    routes: Option<Routes>,
    next_tid: u32,
    next_task: u64,
    activity: u32,
    counts: Tally<SubnetCount>,
    datagrams: Datagrams,
    began: Instant,
    sent_before: u64,
    leaving: bool,
}

/// The first number of transactions of commands, which is far from those of everything else.
const FIRST_COMMAND: u32 = 1 << 31;
/// The least time that an answer of the subnet's administration is waited for, as it may have much to do.
const ADMINISTRATION_TIMEOUT: Duration = Duration::from_secs(1);
/// Most events that wait to be told.
const MAX_EVENTS: usize = 1000;

impl SubnetManager {
    /// A manager that begins to explore at once, with the LIDs that were given before.
    pub fn new(settings: ManagerSettings, lids: Lids, now: Instant) -> Self {
        let mut manager = Self {
            settings,
            role: SmState::Discovering,
            stage: Stage::Waiting { until: now },
            lids,
            inventory: Inventory::default(),
            held: Held::default(),
            others: Vec::new(),
            contested: 0,
            has_silent_manager: false,
            is_somebody_silent: false,
            master: None,
            administration: Administration::default(),
            share: None,
            share_seen: None,
            polls_without_share: 0,
            next_look: FIRST_LOOK,
            next_share: 0,
            reported: BTreeMap::new(),
            resting: BTreeMap::new(),
            unreached: BTreeMap::new(),
            inquiries: Inquiries::new(settings.sweep.timeout.max(ADMINISTRATION_TIMEOUT)),
            commands: Exchange::new(manner(&settings), FIRST_COMMAND),
            tables: Exchange::new(manner(&settings), FIRST_TABLE),
            out: VecDeque::new(),
            task: None,
            events: VecDeque::new(),
            problems: Vec::new(),
            left_out: Vec::new(),
            unwritten: Vec::new(),
            wrong_keys: WrongKeys::default(),
            routing_failure: None,
            is_up: false,
            is_stale: true,
            recheck_at: None,
            changed: BTreeSet::new(),
            rest_at: None,
            is_urgent: false,
            under_way: UnderWay::default(),
            reregister: true,
            groups: GroupMembers::default(),
            without_groups: BTreeSet::new(),
            are_groups_new: false,
            engine: None,
            told_up: None,
            routes: None,
            next_tid: 1,
            next_task: 1,
            activity: 0,
            counts: Tally::default(),
            datagrams: Datagrams::default(),
            began: now,
            sent_before: 0,
            leaving: false,
        };
        manager.begin_sweep(now);
        manager
    }

    /// Tables to compute, if some are wanted. The answer goes to [`Self::handle_routes`].
    pub fn poll_task(&mut self) -> Option<Task> {
        self.task.take()
    }

    /// Something to tell people.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Begins to leave: hands the subnet over to another manager, if one stands by. [`Self::has_left`] says when that is
    /// done.
    pub fn leave(&mut self) {
        self.leaving = true;
        self.hand_over_at_the_end();
        self.role = SmState::NotActive;
        self.administration.end();
        self.share = None;
        self.paths_changed();
        self.stage = Stage::Waiting { until: Instant::FAR };
    }

    /// Whether nothing is left to do after [`Self::leave`].
    pub fn has_left(&self) -> bool {
        self.leaving && self.commands.is_empty() && self.out.is_empty()
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    fn stop_waiting(&mut self, now: Instant) {
        if self.leaving || self.role == SmState::NotActive {
            self.stage = Stage::Waiting { until: Instant::FAR };
            return;
        }
        let is_stale = self.is_stale || self.recheck_at.is_some_and(|at| at <= now);
        match (self.role, &self.master) {
            (SmState::Master, _) if !is_stale && !self.changed.is_empty() => self.begin_glance(now),
            (SmState::Master, _) if !is_stale && self.are_groups_new => self.regroup(now),
            (SmState::Master, _) if !is_stale && self.rest_at.is_some_and(|at| at <= now) => {
                self.write_the_rest(now);
            }
            (SmState::Master, _) if !is_stale => self.begin_watch(now),
            (SmState::Standby, Some(master)) => {
                let master = master.clone();
                self.begin_polling(&master);
            }
            _ => self.begin_sweep(now),
        }
    }

    /// Takes the numbers of transactions up to this one as used. They stay below those of commands.
    fn take_tids(&mut self, next: u32) {
        self.next_tid = if next < FIRST_COMMAND / 2 { next } else { 1 };
    }

    /// Tells what is wrong, unless it was wrong the last time, too.
    fn tell_problems(&mut self, problems: Vec<String>) {
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            if self.events.len() < MAX_EVENTS {
                self.events.push_back(Event::Problem(problem.clone()));
            }
        }
        self.problems = problems;
    }

    /// Waits, and then tries everything again.
    fn retry(&mut self, now: Instant) {
        self.is_stale = true;
        self.stage = Stage::Waiting { until: now + self.settings.retry_delay };
    }

    /// Whether something is to be done before the next look.
    fn is_more(&self) -> bool {
        self.is_stale || self.are_groups_new || !self.changed.is_empty()
    }
}

/// Why an order failed, in words.
fn why(failure: Failure) -> String {
    match failure {
        Failure::Silent => "no answer".to_owned(),
        Failure::Refused { status } => format!("refused with status {status:#x}"),
        Failure::NotTaken => "what was written is not there when read back".to_owned(),
    }
}
