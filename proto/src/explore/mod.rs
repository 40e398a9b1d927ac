//! Exploration: how a fabric becomes known.
#![allow(missing_docs)]
use crate::map::{Host, Map, PortRef};
use crate::wire::{ProbeKind, Route, Stamp};
use crate::{Instant, Mac};
use std::time::Duration;
#[derive(Debug, Clone)]
pub struct ExploreSettings {
    pub plain_ports: u8,
    pub max_hops: usize,
    pub probe_timeout: Duration,
    pub probe_tries: u8,
    pub probe_window: usize,
}
#[derive(Debug)]
pub struct Explorer;
#[derive(Debug)]
pub struct Request {
    pub id: u32,
    pub route: Route,
    pub kind: RequestKind,
}
#[derive(Debug)]
pub enum RequestKind {
    Probe { kind: ProbeKind, left: u8 },
    Scout { way_back: Route },
}
#[derive(Debug)]
pub enum Outcome {
    Returned { stamp: Option<Stamp> },
    Host(Host),
    OwnHost,
}
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    #[error("x")]
    X,
}
impl Explorer {
    pub fn new(_s: &ExploreSettings, _own: Host, _seed: u64) -> Self {
        Self
    }
    pub fn incremental(_s: &ExploreSettings, _own: Host, _seed: u64, _p: &Map, _su: &[PortRef]) -> Self {
        Self
    }
    pub fn poll_probe(&mut self, _now: Instant) -> Option<Request> {
        None
    }
    pub fn handle_outcome(&mut self, _now: Instant, _id: u32, _o: Outcome) -> bool {
        false
    }
    pub fn handle_timeout(&mut self, _now: Instant) {}
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub fn result(&mut self) -> Option<Result<Map, ExploreError>> {
        None
    }
    pub fn knows_host(&self, _m: Mac) -> bool {
        false
    }
}
