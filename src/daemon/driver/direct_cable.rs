//! The cable of an agent without a crossbar: who is at its other end.

use std::future::pending;

use mapper_machine::link::ethernet::Frame;
use mapper_proto::wire::{End, FrameKind};

use super::attachment::Attachment;
use super::event_loop::Driver;

/// The number by which hellos know the interface of an agent without a crossbar.
pub(super) const PORT: u8 = 0;

/// What arrived at the interface of an agent without a crossbar and was not for the agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeldBack {
    /// Hellos of neighbours.
    pub(super) hellos: u64,
    /// Hellos that make no sense, of another version, or not from the interface that they name.
    pub(super) bad_hellos: u64,
    /// Frames that arrived while more than two interfaces shared the cable.
    pub(super) shared_wire: u64,
}

/// Waits until a hello is due at the interface of an agent, for ever if it has a crossbar, which says hello itself.
pub(super) async fn hello_due(attachment: &Attachment) {
    match attachment.crossbar {
        Some(_) => pending().await,
        None => attachment.hellos.due().await,
    }
}

impl Driver {
    /// Takes a hello, or any frame while more than two interfaces share the cable. Returns whether it did, so
    /// that the frame is not for the host. The crossbar of a node takes those of its own ports.
    pub(super) fn take_of_cable(&mut self, frame: &Frame<'_>) -> bool {
        let attachment = &mut self.attachment;
        if attachment.crossbar.is_some() {
            return false;
        }
        let hellos = &attachment.hellos;
        if FrameKind::of(frame.payload()) == Ok(FrameKind::Hello) {
            let used = hellos.hear(PORT, frame.source, frame.payload());
            let counter =
                if used { &mut attachment.held_back.hellos } else { &mut attachment.held_back.bad_hellos };
            *counter += 1;
            self.exchange_hellos();
            return true;
        }
        let shared = hellos.is_shared(PORT);
        attachment.held_back.shared_wire += u64::from(shared);
        shared
    }

    /// Tells the neighbour how the interface is now.
    pub(super) fn follow_cable(&mut self) {
        let Self { attachment, host, .. } = self;
        if attachment.crossbar.is_none() {
            attachment.hellos.set_link(PORT, Some(&attachment.link), End::Host { mac: host.own() });
            self.exchange_hellos();
        }
    }

    /// Sends the hellos that are due at the interface of an agent without a crossbar, and acts on what has been
    /// heard.
    pub(super) fn exchange_hellos(&mut self) {
        if self.attachment.crossbar.is_some() {
            return;
        }
        let hellos = self.attachment.hellos.clone();
        while let Some((_, hello)) = hellos.poll_hello() {
            self.attachment.link.send(&[], &hello);
        }
        while hellos.poll_event().is_some() {}
    }
}
