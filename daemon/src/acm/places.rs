//! The places of clients, which bound how many are connected at once.
//!
//! Programs stay connected while they have nothing to ask (librdmacm does as long as it runs), so a connection that is
//! silent is no sign of a client that is gone, and is not closed soon. But silent ones must not keep others out: when
//! there is no place for one that comes, the one that was silent for longest gives way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use mapper_acm::service::ClientId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// How long a client must have been silent to give way to another.
const IDLE: Duration = Duration::from_secs(1);

/// The places, of which the clients of one thread take some.
#[derive(Debug)]
pub(super) struct Places {
    most: Cell<usize>,
    seats: RefCell<BTreeMap<ClientId, Rc<Seat>>>,
    /// Tells that there may be room.
    freed: Notify,
}

/// What is known of a client that has a place.
#[derive(Debug)]
struct Seat {
    heard: Cell<Instant>,
    /// How many of its requests wait for their answers.
    waiting: Cell<usize>,
    is_leaving: Cell<bool>,
    give_way: Notify,
}

/// A place that a client has until this is dropped.
#[derive(Debug)]
pub(super) struct TakenPlace {
    places: Rc<Places>,
    client: ClientId,
    seat: Rc<Seat>,
}

impl Places {
    /// Places for `most` clients.
    pub(super) fn new(most: usize) -> Rc<Self> {
        Rc::new(Self { most: Cell::new(most), seats: RefCell::default(), freed: Notify::new() })
    }

    /// Changes how many clients there may be. Those that are too many stay until they go.
    pub(super) fn set_most(&self, most: usize) {
        self.most.set(most);
        self.freed.notify_one();
    }

    /// Waits until there is room for a client. Who is silent gives way.
    pub(super) async fn room(&self) {
        while self.seats.borrow().len() >= self.most.get() {
            self.have_idlest_give_way();
            tokio::select! {
                () = self.freed.notified() => {}
                () = sleep(IDLE) => {}
            }
        }
    }

    /// Gives a place to a client, for which there is room.
    pub(super) fn take(self: &Rc<Self>, client: ClientId) -> TakenPlace {
        let seat = Rc::new(Seat {
            heard: Cell::new(Instant::now()),
            waiting: Cell::new(0),
            is_leaving: Cell::new(false),
            give_way: Notify::new(),
        });
        self.seats.borrow_mut().insert(client, Rc::clone(&seat));
        TakenPlace { places: Rc::clone(self), client, seat }
    }

    /// Has the client leave that was silent for longest, of those that wait for nothing, unless one leaves already.
    fn have_idlest_give_way(&self) {
        let seats = self.seats.borrow();
        if seats.values().any(|seat| seat.is_leaving.get()) {
            return;
        }
        let is_idle = |seat: &&Rc<Seat>| seat.waiting.get() == 0 && seat.heard.get().elapsed() >= IDLE;
        if let Some(idlest) = seats.values().filter(is_idle).min_by_key(|seat| seat.heard.get()) {
            idlest.is_leaving.set(true);
            idlest.give_way.notify_one();
        }
    }
}

impl TakenPlace {
    /// Takes in that the client has been heard, or was told something, just now.
    pub(super) fn hear(&self) {
        self.seat.heard.set(Instant::now());
    }

    /// When the client was last heard, or told something.
    pub(super) fn heard(&self) -> Instant {
        self.seat.heard.get()
    }

    /// Takes in that one more request of the client waits for its answer.
    pub(super) fn begin_waiting(&self) {
        self.seat.waiting.set(self.seat.waiting.get() + 1);
    }

    /// Takes in that a request of the client has its answer.
    pub(super) fn end_waiting(&self) {
        self.seat.waiting.set(self.seat.waiting.get().saturating_sub(1));
    }

    /// Ends when the client must give way to another.
    pub(super) async fn must_give_way(&self) {
        self.seat.give_way.notified().await;
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.places.seats.borrow_mut().remove(&self.client);
        self.places.freed.notify_one();
    }
}
