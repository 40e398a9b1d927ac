//! The service, and the clients that its late replies go to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use mapper_acm::service::{ClientId, Service, Settings};
use mapper_machine::clock::Clock;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc};
use tracing::warn;

use crate::agent::status::PathsNumberReader;

/// The service with all that its tasks share, which run on one thread.
pub(super) struct State {
    pub(super) service: RefCell<Service>,
    pub(super) clock: Clock,
    clients: RefCell<BTreeMap<ClientId, mpsc::UnboundedSender<Vec<u8>>>>,
    /// Tells that the next moment may be another at which the service has something to do.
    waits: Notify,
    /// Tells that agents are to find something out.
    to_ask: Notify,
    /// Tells that what this machine goes by may differ from what its agents were told.
    names: Notify,
    /// The names and addresses that several hosts of an agent's map have, with these hosts.
    clashes: RefCell<BTreeMap<u8, BTreeMap<String, String>>>,
    /// What was logged of names that files tell otherwise than hosts, by agent.
    contradictions: RefCell<BTreeMap<u8, BTreeSet<String>>>,
    /// How often the paths of each agent have changed, and how often they had when it told them.
    paths: RefCell<BTreeMap<u8, (PathsNumberReader, u64)>>,
}

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            service: RefCell::new(Service::new(settings)),
            clock: Clock::start(),
            clients: RefCell::default(),
            waits: Notify::new(),
            to_ask: Notify::new(),
            names: Notify::new(),
            clashes: RefCell::default(),
            contradictions: RefCell::default(),
            paths: RefCell::default(),
        }
    }

    /// Takes in how often an agent's paths had changed when it told them. Returns whether they have not changed since.
    pub(super) fn paths_were_told(&self, unit: u8, reader: PathsNumberReader, number: u64) -> bool {
        let is_so_still = reader.get() == Some(number);
        self.paths.borrow_mut().insert(unit, (reader, number));
        is_so_still
    }

    /// Whether this number is that of the paths that an agent told last, as far as it says how often they changed.
    pub(super) fn is_of_told_paths(&self, unit: u8, number: Option<u64>) -> bool {
        self.paths.borrow().get(&unit).is_none_or(|&(_, told)| Some(told) == number)
    }

    /// Forgets how often the paths of an agent have changed that is gone.
    pub(super) fn forget_paths(&self, unit: u8) {
        self.paths.borrow_mut().remove(&unit);
    }

    /// Has nothing be answered of the fabrics whose paths have changed since they were told.
    pub(super) fn suspect_what_changed(&self, service: &mut Service) {
        for (&unit, (reader, told)) in &*self.paths.borrow() {
            if reader.get() != Some(*told) {
                service.suspect(unit);
            }
        }
    }

    /// Takes a client in. Its late replies come by what is returned; they are not more than the questions of it that may
    /// wait.
    pub(super) fn add_client(&self, client: ClientId) -> mpsc::UnboundedReceiver<Vec<u8>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.clients.borrow_mut().insert(client, sender);
        receiver
    }

    pub(super) fn drop_client(&self, client: ClientId) {
        self.clients.borrow_mut().remove(&client);
        self.service.borrow_mut().drop_client(client);
    }

    /// Logs which names and addresses are those of several hosts now, as far as that was not logged before.
    pub(super) fn tell_of_clashes(&self, unit: u8, clashes: BTreeMap<String, String>) {
        let mut told = self.clashes.borrow_mut();
        let before = told.get(&unit);
        for (address, owners) in &clashes {
            if before.and_then(|all| all.get(address)) != Some(owners) {
                warn!(unit, "{address} is not answered, as {owners} say that it is theirs");
            }
        }
        told.insert(unit, clashes);
    }

    /// Logs what a file says otherwise than a host, as far as that was not logged before.
    pub(super) fn tell_of_contradictions(&self, unit: u8, lines: BTreeSet<String>) {
        let mut told = self.contradictions.borrow_mut();
        let before = told.entry(unit).or_default();
        lines.difference(before).for_each(|line| warn!(unit, "{line}"));
        *before = lines;
    }

    /// Tells that the next moment may be another at which the service has something to do.
    pub(super) fn question_waits(&self) {
        self.waits.notify_one();
    }

    /// Tells that what this machine goes by may differ from what its agents were told.
    pub(super) fn names_changed(&self) {
        self.names.notify_waiters();
    }

    /// Ends when [`Self::names_changed`] is next called, from this moment on.
    pub(super) fn names_may_differ(&self) -> Notified<'_> {
        self.names.notified()
    }

    /// Tells that agents are to find something out, if that is so.
    pub(super) fn have_asked(&self, service: &Service) {
        if service.has_to_ask() {
            self.to_ask.notify_one();
        }
    }

    /// Waits until agents are to find something out.
    pub(super) async fn next_to_ask(&self) {
        self.to_ask.notified().await;
    }

    /// Logs that several hosts have said that a name or an address is theirs, unless that was logged before.
    pub(super) fn tell_of_clash(&self, unit: u8, address: String, owners: String) {
        let mut clashes = self.clashes.borrow().get(&unit).cloned().unwrap_or_default();
        clashes.insert(address, owners);
        self.tell_of_clashes(unit, clashes);
    }

    /// Does something with the service, and hands out the replies that have become due.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Service) -> T) -> T {
        let mut service = self.service.borrow_mut();
        let done = change(&mut service);
        let clients = self.clients.borrow();
        while let Some((client, reply)) = service.poll_reply() {
            if let Some(sender) = clients.get(&client) {
                // This fails only if the client is just going.
                let _gone = sender.send(reply);
            }
        }
        self.have_asked(&service);
        self.question_waits();
        done
    }

    /// Gives up questions that wait for too long, for ever.
    pub(super) async fn give_up_in_time(&self) {
        loop {
            let at = self.service.borrow().poll_timeout();
            tokio::select! {
                () = self.clock.sleep_until(at) => {}
                () = self.waits.notified() => continue,
            }
            self.change(|service| service.handle_timeout(self.clock.now()));
        }
    }
}
