//! Tests of the client and the connections of the service, without agents.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mapper_acm::fabric::{Host, Path as FabricPath, Unit, gid_of};
use mapper_acm::service::Settings;
use mapper_acm::wire::{Address, EntryFlags, Status};
use mapper_proto::{Instant, Mac};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use super::client::{Client, ClientError, Service, blocking};
use super::connection;
use super::listener::Listener;
use super::options::Place;
use super::state::State;

/// Host n of a fabric: it is called `n<n>`, and host 1 has ten addresses more.
fn host(n: u32) -> Host {
    let path = FabricPath { hops: 2, layer: 0, mtu_bytes: 1500, rate_mbps: 10_000, is_reversible: true };
    let addresses = if n == 1 { (1..=10).map(|last| [10, 0, 0, last].into()).collect() } else { Vec::new() };
    Host { mac: Mac::from_position(n), name: Some(format!("n{n}")), addresses, path: Some(path) }
}

fn unit(hosts: u32) -> Unit {
    Unit::new("eth0".to_owned(), Mac::from_position(1), (1..=hosts).map(host))
}

fn name(n: u32) -> Address {
    Address::Name(format!("n{n}"))
}

/// Runs a service on this thread beside `test`, which gets what is the service's and where it is.
fn with_service<F: Future<Output = ()>>(test: impl FnOnce(Rc<State>, PathBuf) -> F) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("acm.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = Listener::open(&Place::Unix { socket: socket.clone(), link: None }).unwrap();
        let state = Rc::new(State::new(Settings::default()));
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(100)));
        let (served, timer) = (Rc::clone(&state), Rc::clone(&state));
        tokio::task::spawn_local(async move { timer.give_up_in_time().await });
        tokio::task::spawn_local(async move {
            let places = Arc::new(Semaphore::new(8));
            for client in 0.. {
                let place = Arc::clone(&places).acquire_owned().await.unwrap();
                let stream = listener.accept().await.unwrap();
                let silence = Duration::from_secs(60);
                let serving = connection::serve(stream, client, Rc::clone(&served), silence, place);
                tokio::task::spawn_local(serving);
            }
        });
        test(state, socket).await;
    });
}

async fn connect(socket: &Path) -> Client {
    Client::connect(&Service::Unix(socket.to_owned())).await.unwrap()
}

#[test]
fn many_questions_are_under_way_at_once_and_each_gets_its_own_answer() {
    with_service(|state, socket| async move {
        let client = Arc::new(connect(&socket).await);
        // Host 200 comes later: who asks for it waits, and holds up nobody.
        let patient = Arc::clone(&client);
        let late = tokio::spawn(async move { patient.resolve(None, name(200), EntryFlags::default()).await });
        let asked: Vec<_> = (2..=60)
            .map(|n| {
                let client = Arc::clone(&client);
                tokio::spawn(async move {
                    (n, client.resolve(Some(name(1)), name(n), EntryFlags::default()).await)
                })
            })
            .collect();
        for asked in asked {
            let (n, resolved) = asked.await.unwrap();
            assert_eq!(resolved.unwrap().path.dgid, gid_of(Mac::from_position(n)));
        }
        assert!(!late.is_finished());
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(200)));
        assert_eq!(late.await.unwrap().unwrap().path.dgid, gid_of(Mac::from_position(200)));
    });
}

#[test]
fn a_client_is_told_paths_counters_and_all_addresses_of_an_endpoint() {
    with_service(|_, socket| async move {
        let client = connect(&socket).await;
        let resolved = client.resolve(None, name(2), EntryFlags::default()).await.unwrap();
        assert_eq!(resolved.source, Some(name(1)));
        assert_eq!(client.resolve_path(resolved.path, EntryFlags::VERIFY).await.unwrap(), resolved.path);
        assert_eq!(client.counters(0).await.unwrap()[1], 2);
        assert_eq!(client.counters(1).await.unwrap(), client.counters_of(name(1)).await.unwrap());
        assert_eq!(client.endpoint(1).await.unwrap().addresses.len(), 11);
        let refused = client.endpoint(2).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused(Status::INVALID)), "{refused}");
        // The client without a runtime is told the same.
        let (path, place) = (resolved.path, Service::Unix(socket));
        let asking = tokio::task::spawn_blocking(move || {
            let mut client = blocking::Client::connect(&place).unwrap();
            assert_eq!(client.resolve(None, name(2), EntryFlags::NO_DELAY).unwrap(), resolved);
            assert_eq!(client.resolve_path(path, EntryFlags::VERIFY).unwrap(), path);
            let unknown = client.resolve(None, name(999), EntryFlags::NO_DELAY).unwrap_err();
            assert!(matches!(unknown, ClientError::Refused(Status::NO_DATA)), "{unknown}");
            assert_eq!(client.endpoint(1).unwrap().addresses.len(), 11);
            client.counters(0).unwrap()
        });
        assert_eq!(asking.await.unwrap()[2], 1);
    });
}

#[test]
fn clients_of_both_kinds_hear_of_a_new_map() {
    with_service(|state, socket| async move {
        let client = Arc::new(connect(&socket).await);
        let first = client.changed(0).await.unwrap();
        let waiting = Arc::clone(&client);
        let told = tokio::spawn(async move { waiting.changed(first).await });
        let place = Service::Unix(socket);
        let blocking = tokio::task::spawn_blocking(move || {
            blocking::Client::connect(&place).unwrap().changed(first).unwrap()
        });
        // Meanwhile the same connection answers what else is asked.
        client.resolve(None, name(2), EntryFlags::default()).await.unwrap();
        while state.service.borrow().waiting() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(!told.is_finished());
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(101)));
        let second = told.await.unwrap().unwrap();
        assert!(second != first && blocking.await.unwrap() == second);
    });
}

#[test]
fn who_waits_learns_that_the_service_has_gone() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let client = std::thread::spawn(move || {
        let socket: PathBuf = receiver.recv().unwrap();
        let mut client = blocking::Client::connect(&Service::Unix(socket)).unwrap();
        client.resolve(None, name(999), EntryFlags::default()).unwrap_err()
    });
    with_service(|state, socket| async move {
        sender.send(socket).unwrap();
        while state.service.borrow().waiting() == 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(matches!(client.join().unwrap(), ClientError::Closed));
    let nobody =
        blocking::Client::connect(&Service::Unix("/nonexistent/acm.sock".into())).unwrap_err().to_string();
    assert!(nobody.starts_with("cannot reach the service at /nonexistent/acm.sock"), "{nobody}");
}
