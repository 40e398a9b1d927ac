//! The loop of a running agent: what it waits for, and who takes in what comes.

use std::future::pending;
use std::io;

use mapper_proto::wire::Printer;
use mapper_proto::{Instant, Mac};
use tokio::sync::mpsc;
use tracing::{Level, debug, enabled, info, trace};

use super::DaemonEnd;
use super::direct_cable::hello_due;
use super::interface_changes::carrier_changed;
use super::kernel_side::from_kernel;
use super::state::Driver;
use super::user_interface::UserInterface;
use crate::agent::DaemonError;
use crate::agent::metrics;
use crate::agent::status::AgentRequest;
use mapper_machine::link::batch::Batch;
use mapper_machine::link::ethernet::{EthernetFrame, MAX_FRAME_BYTES};
use mapper_machine::link::held_address::AddressMonitor;
use mapper_machine::link::interface::{InterfaceChange, InterfaceMonitor};
use mapper_machine::log;
use mapper_machine::signals::{Signal, Signals};
use mapper_machine::status::{Client, StatusServer};

/// How many requests wait to be answered at most.
const REQUESTS: usize = 16;
/// How many frames of the user are taken in before timers and sockets have their turn.
const BURST: usize = 64;
/// How many batches of frames of the fabric are taken in at most before what has timed out is given up.
const BATCHES_BEFORE_TIMEOUTS: usize = 16;

impl Driver {
    /// Does what comes until the agent is told to stop, or has mapped once and was to end then.
    ///
    /// # Errors
    /// If the agent cannot go on, or was to map once and ran out of time.
    pub(super) async fn drive(
        &mut self,
        (monitor, address_monitor): (&InterfaceMonitor, &AddressMonitor),
        [server, requests_server]: [&StatusServer; 2],
        signals: &mut Signals,
    ) -> Result<DaemonEnd, DaemonError> {
        // Reports from before this moment are dropped, and all interfaces are looked up instead. Among them
        // are reports of the steps in which this process made the tap interface.
        monitor.forget_past();
        self.apply(&InterfaceChange::Missed);
        self.follow_patterns();
        self.follow_address();
        self.look_around()?;
        self.say_name();
        self.follow_addresses()?;
        let mut neighbours = self.attachment.hellos.neighbours();
        // Some may have been heard while all this was made.
        self.follow_cabled_ports(&neighbours.borrow_and_update())?;
        self.follow_own_cables();
        self.pick_addresses();
        let mut batch = Batch::new();
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        // Requests are read by tasks of their own, so a client that asks slowly does not hold up the loop.
        let (asking, mut asked) = mpsc::channel(REQUESTS);
        loop {
            self.drain(None);
            self.store_names_if_due();
            self.count_packets();
            self.follow_patterns_if_due();
            self.follow_addresses_if_due()?;
            self.write_hosts_if_due();
            self.check_plan_if_due();
            self.end_lease_if_due();
            self.rest_if_due();
            self.notifier.feed_if_due(self.now());
            if self.must_leave()? {
                info!("mapping is complete everywhere; leaving");
                return Ok(DaemonEnd::Complete { hosts: self.host.agent().status().hosts });
            }
            let wake_at = self.wake_at();
            tokio::select! {
                () = self.attachment.link.recv_batch(&mut batch) => self.take_frames(&batch),
                ready = user_ready(&self.users) => self.take_user_frames(&mut buffer, ready)?,
                () = carrier_changed(&mut self.carriers) => {
                    self.follow_carriers();
                    self.follow_mtu();
                }
                () = hello_due(&self.attachment) => self.exchange_hellos(),
                said = from_kernel(&mut self.kernel, self.host.kernel_path()) => self.take_from_kernel(said),
                () = self.timer.sleep_until(wake_at) => {
                    self.take_waiting_frames(&mut batch).await;
                    self.host.handle_timeout(self.now());
                }
                Ok(()) = neighbours.changed() => {
                    self.follow_cabled_ports(&neighbours.borrow_and_update())?;
                    self.follow_own_cables();
                }
                computed = self.computation.finished() => self.take_routes(computed),
                checked = self.plan.checked() => self.take_checked(checked),
                client = server.accept() => match client {
                    Ok(client) => {
                        self.put_off_rest();
                        drop(tokio::spawn(client.answer(self.board())));
                    }
                    Err(error) => debug!(%error, "cannot accept on the status socket"),
                },
                client = requests_server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(take_request(client, asking.clone()))),
                    Err(error) => debug!(%error, "cannot accept on the socket of requests"),
                },
                Some((request, client)) = asked.recv() => self.answer(&request, client),
                request = self.exporter.requested() => {
                    self.put_off_rest();
                    let crossbar = self.attachment.crossbar.as_ref().map(|switch| switch.status());
                    let board = self.board();
                    let name_of = |mac| self.host.directory().name_of(mac).map(ToString::to_string);
                    let (known, dialect) = (&self.known, request.dialect());
                    let text = metrics::render_node(&board, known, &name_of, crossbar.as_ref(), dialect);
                    request.answer(text);
                }
                changes = monitor.changes() => {
                    changes?.iter().for_each(|change| self.apply(change));
                    self.follow_patterns();
                    self.follow_address();
                    self.look_around()?;
                    // An interface that comes may be a port, and have addresses already.
                    self.follow_addresses()?;
                }
                changed = address_monitor.changed() => {
                    changed?;
                    // An interface that is given an address for a while leads to another network.
                    self.follow_patterns();
                    self.follow_addresses()?;
                }
                signal = signals.next() => match signal {
                    Signal::Stop => {
                        info!("told to stop");
                        self.notifier.stopping();
                        return Ok(DaemonEnd::Stopped);
                    }
                    Signal::Reload => {
                        self.notifier.reloading();
                        self.reload();
                        self.notifier.ready();
                    }
                    Signal::ReopenLog => log::reopen(),
                },
            }
        }
    }

    /// When something is due next.
    fn wake_at(&self) -> Option<Instant> {
        let limit = self.config.map_once.map(|limit| Instant::ZERO + limit);
        let due = [
            self.rest_at,
            limit,
            self.notifier.feed_at(),
            self.store_names_at,
            self.count_at(),
            self.write_hosts_at,
            self.plan.due_at(),
            self.lease_ends_at(),
            self.host.poll_timeout(),
        ];
        let due = due.into_iter().chain([self.patterns_due_at(), self.addresses_due_at()]);
        due.flatten().min()
    }

    /// Takes in the frames that wait. After a while in which this process did not run, as on a busy machine, they may hold
    /// the answers to what would time out now. A crossbar of this process gets its turn to hand on what came to it.
    async fn take_waiting_frames(&mut self, batch: &mut Batch) {
        tokio::task::yield_now().await;
        for _ in 0..BATCHES_BEFORE_TIMEOUTS {
            tokio::select! {
                biased;
                () = self.attachment.link.recv_batch(batch) => self.take_frames(batch),
                () = std::future::ready(()) => return,
            }
        }
    }

    /// Takes in frames of the fabric, and does at once what follows from each. They came at one moment: to ask for the time of
    /// each would be a part of what a user's frame costs.
    fn take_frames(&mut self, batch: &Batch) {
        let now = self.now();
        for frame in batch.frames().filter_map(EthernetFrame::parse) {
            trace!(from = %frame.source, frame = %Printer::new(frame.payload()), "received");
            if !self.take_of_cable(&frame) {
                self.host.handle_frame(now, frame.payload());
                self.drain(Some(frame.source));
            }
        }
        if let Some(users) = &self.users {
            users.flush();
        }
    }

    /// Takes in the frames that the user sends, up to a burst.
    fn take_user_frames(&mut self, buffer: &mut [u8], ready: io::Result<()>) -> Result<(), DaemonError> {
        let now = self.now();
        ready.map_err(|_| DaemonError::TapGone)?;
        if let Some(users) = &self.users {
            for _ in 0..BURST {
                // Frames that are read must be sent, so no more are read than a burst.
                let Some(ethernet) = users.try_read(buffer) else { break };
                self.host.handle_user_frame(now, ethernet);
            }
        }
        Ok(())
    }

    /// Polls the host until there is nothing left, in the order of its contract. `source` is the sender of the frame that
    /// the host was just given, if it was given one.
    fn drain(&mut self, source: Option<Mac>) {
        self.set_tap_mtu();
        self.serve_kernel();
        let link = &self.attachment.link;
        let mut sent = false;
        while let Some(outgoing) = self.host.poll_transmit() {
            if enabled!(Level::TRACE) {
                trace!(frame = %Printer::new(&[outgoing.route, outgoing.frame].concat()), "sent");
            }
            link.queue(outgoing.route, outgoing.frame);
            sent = true;
        }
        if sent {
            link.flush();
        }
        while let Some(ethernet) = self.host.poll_user_frame() {
            if let Some(users) = &self.users {
                users.queue(ethernet);
            }
        }
        self.send_kernel_probes();
        while let Some(event) = self.host.poll_event() {
            self.act_on(event, source);
        }
        if let Some(task) = self.host.poll_task() {
            let names = self.config.map_file.as_ref().map(|_| self.names_of_map()).unwrap_or_default();
            self.computation.begin(task, self.config.map_file.clone(), names);
        }
    }
}

/// Waits until the user sends a frame, for ever if there is no tap interface.
async fn user_ready(users: &Option<UserInterface>) -> io::Result<()> {
    match users {
        Some(users) => users.ready().await,
        None => pending().await,
    }
}

/// Reads a client's request, and hands it to the loop.
async fn take_request(mut client: Client, asking: mpsc::Sender<(AgentRequest, Client)>) {
    if let Some(request) = client.request().await {
        // This fails only if the loop has ended, as the daemon is ending.
        let _ended = asking.send((request, client)).await;
    }
}
