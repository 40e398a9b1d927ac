//! The cable of an agent without a crossbar: who is at its other end.

use std::future::pending;

use mapper_machine::link::ethernet::EthernetFrame;
use mapper_proto::wire::{FrameKind, HelloEnd};

use super::attachment::Attachment;
use super::state::Driver;
use crate::agent::status::FrameCount;

/// The number by which hellos know the interface of an agent without a crossbar.
pub(super) const PORT: u8 = 0;

/// Waits until a hello is due at the interface of an agent, for ever if it has a crossbar, which says hello itself.
pub(super) async fn hello_due(attachment: &Attachment) {
    match attachment.crossbar {
        Some(_) => pending().await,
        None => attachment.hellos.due().await,
    }
}

impl Driver {
    /// Takes a frame if it is a hello or another program's, and any frame while more than two interfaces share the cable.
    /// Returns whether it took it, so that the host does not get it. The crossbar of a node does the same at its own
    /// ports.
    pub(super) fn take_of_cable(&mut self, frame: &EthernetFrame<'_>) -> bool {
        let attachment = &mut self.attachment;
        if attachment.crossbar.is_some() {
            return false;
        }
        // Other programs may send frames under this EtherType that look like a message.
        if !attachment.link.is_addressed(frame.bytes) {
            attachment.foreign += 1;
            return true;
        }
        let hellos = &attachment.hellos;
        if FrameKind::of(frame.payload()) == Ok(FrameKind::Hello) {
            let used = hellos.hear(PORT, frame.source, frame.payload());
            attachment.held_back.count(if used { FrameCount::Hellos } else { FrameCount::BadHellos });
            self.exchange_hellos();
            return true;
        }
        let shared = hellos.is_shared(PORT);
        attachment.held_back.add(FrameCount::SharedWire, shared.into());
        shared
    }

    /// Tells the neighbour how the interface is now.
    pub(super) fn follow_cable(&mut self) {
        let Self { attachment, host, .. } = self;
        if attachment.crossbar.is_none() {
            attachment.hellos.set_link(PORT, Some(&attachment.link), HelloEnd::Host { mac: host.own() });
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
