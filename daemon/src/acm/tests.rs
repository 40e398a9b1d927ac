//! Tests of the client and the connections of the service, without agents.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mapper_acm::fabric::{Host, Path as FabricPath, Unit, gid_of};
use mapper_acm::service::Settings;
use mapper_acm::wire::{Address, EntryFlags, Request, Status, request_bytes};
use mapper_proto::{Instant, Mac};
use tokio::task::LocalSet;

use super::connection;
use super::listener::Listener;
use super::options::ListenPlace;
use super::places::Places;
use super::state::State;
use crate::agent::status::{PathsNumber, PathsNumberReader, paths_number_path};
use mapper_acm_client::{Client, ClientError, ServiceAddress, blocking};

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
    with_places(&Places::new(8), test);
}

/// As [`with_service`], for no more clients than there are places.
fn with_places<F: Future<Output = ()>>(places: &Rc<Places>, test: impl FnOnce(Rc<State>, PathBuf) -> F) {
    let places = Rc::clone(places);
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("acm.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = Listener::open(&ListenPlace::Unix { socket: socket.clone(), link: None }).unwrap();
        let state = Rc::new(State::new(Settings::default()));
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(100)));
        let (served, timer) = (Rc::clone(&state), Rc::clone(&state));
        tokio::task::spawn_local(async move { timer.give_up_in_time().await });
        tokio::task::spawn_local(async move {
            for client in 0.. {
                let stream = listener.accept().await.unwrap();
                places.room().await;
                let silence = Duration::from_secs(60);
                let serving =
                    connection::serve(stream, client, Rc::clone(&served), silence, places.take(client));
                tokio::task::spawn_local(serving);
            }
        });
        test(state, socket).await;
    });
}

async fn connect(socket: &Path) -> Client {
    Client::connect(&ServiceAddress::Unix(socket.to_owned())).await.unwrap()
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
        let (path, place) = (resolved.path, ServiceAddress::Unix(socket));
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
        let place = ServiceAddress::Unix(socket);
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
        let mut client = blocking::Client::connect(&ServiceAddress::Unix(socket)).unwrap();
        client.resolve(None, name(999), EntryFlags::default()).unwrap_err()
    });
    with_service(|state, socket| async move {
        sender.send(socket).unwrap();
        while state.service.borrow().waiting() == 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(matches!(client.join().unwrap(), ClientError::Closed));
    let nobody = blocking::Client::connect(&ServiceAddress::Unix("/nonexistent/acm.sock".into()))
        .unwrap_err()
        .to_string();
    assert!(nobody.starts_with("cannot reach the service at /nonexistent/acm.sock"), "{nobody}");
}

#[test]
fn who_is_silent_gives_way_to_who_comes_and_who_waits_for_an_answer_does_not() {
    with_places(&Places::new(2), |state, socket| async move {
        let waiting = Arc::new(connect(&socket).await);
        let asker = Arc::clone(&waiting);
        let late = tokio::spawn(async move { asker.resolve(None, name(200), EntryFlags::default()).await });
        while state.service.borrow().waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let silent = connect(&socket).await;
        silent.resolve(None, name(2), EntryFlags::default()).await.unwrap();
        let third = connect(&socket).await;
        third.resolve(None, name(3), EntryFlags::default()).await.unwrap();
        let refused = silent.resolve(None, name(2), EntryFlags::default()).await.unwrap_err();
        assert!(matches!(refused, ClientError::Closed | ClientError::Io(_)), "{refused}");
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(200)));
        assert_eq!(late.await.unwrap().unwrap().path.dgid, gid_of(Mac::from_position(200)));
    });
}

#[test]
fn more_clients_are_served_as_soon_as_there_may_be_more() {
    let places = Places::new(1);
    let more = Rc::clone(&places);
    with_places(&places, |state, socket| async move {
        let first = Arc::new(connect(&socket).await);
        let asker = Arc::clone(&first);
        let _waits = tokio::spawn(async move { asker.resolve(None, name(200), EntryFlags::default()).await });
        while state.service.borrow().waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let second = connect(&socket).await;
        let resolved = second.resolve(None, name(2), EntryFlags::default());
        tokio::pin!(resolved);
        assert!(waits_still(&mut resolved).await);
        more.set_most(2);
        assert_eq!(resolved.await.unwrap().path.dgid, gid_of(Mac::from_position(2)));
    });
}

/// Whether a future still waits when all else has had its turn a few times.
async fn waits_still<F: Future + Unpin>(future: &mut F) -> bool {
    for _ in 0..100 {
        if std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_ready())).await
        {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[test]
fn nothing_is_answered_from_paths_that_have_changed_since_they_were_told() {
    with_service(|state, socket| async move {
        let dir = tempfile::tempdir().unwrap();
        let file = paths_number_path(dir.path(), 0);
        let mut agent = PathsNumber::open(&file).unwrap();
        assert!(state.paths_were_told(0, PathsNumberReader::open(&file).unwrap(), agent.get()));
        let client = connect(&socket).await;
        let at_once = EntryFlags::NO_DELAY;
        client.resolve(None, name(2), at_once).await.unwrap();
        // The agent has a new map. It has told nobody, and nothing is answered all the same.
        agent.raise().unwrap();
        let unknown = client.resolve(None, name(2), at_once).await.unwrap_err();
        assert!(matches!(unknown, ClientError::Refused(Status::NO_DATA)), "{unknown}");
        assert!(!state.paths_were_told(0, PathsNumberReader::open(&file).unwrap(), agent.get() - 1));
        assert!(state.paths_were_told(0, PathsNumberReader::open(&file).unwrap(), agent.get()));
        state.change(|service| service.set_unit(Instant::ZERO, 0, unit(100)));
        client.resolve(None, name(2), at_once).await.unwrap();
    });
}

#[test]
fn who_gives_up_asking_leaves_no_part_of_a_request_behind() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Arc::new(connect(&socket).await);
        let (stream, _) = listener.accept().unwrap();
        // These are more than the connection holds, as nobody reads.
        let asks: Vec<_> = (0..10_000)
            .map(|n| {
                let client = Arc::clone(&client);
                tokio::spawn(async move { client.resolve(None, name(n), EntryFlags::default()).await })
            })
            .collect();
        let (mut written, mut unchanged) = (0, 0);
        while written == 0 || unchanged < 100 {
            tokio::task::yield_now().await;
            let now = rustix::io::ioctl_fionread(&stream).unwrap();
            (written, unchanged) = (now, if now == written { unchanged + 1 } else { 0 });
        }
        asks.iter().for_each(tokio::task::JoinHandle::abort);
        let last = tokio::spawn(async move { client.counters(0).await });
        let reading = tokio::task::spawn_blocking(move || read_whole_requests(stream));
        let whole = reading.await.unwrap();
        assert!(whole > 100, "{whole} requests were sent");
        assert!(matches!(last.await.unwrap(), Err(ClientError::Closed)));
    });
}

/// Reads requests until one asks for counters, and returns how many came before it.
fn read_whole_requests(mut stream: std::os::unix::net::UnixStream) -> usize {
    let (mut bytes, mut piece, mut count) = (Vec::new(), [0; 4096], 0);
    loop {
        let length = std::io::Read::read(&mut stream, &mut piece).unwrap();
        bytes.extend(&piece[..length]);
        while let Some(length) = request_bytes(&bytes).unwrap() {
            if let Request::Counters { .. } = Request::parse(&bytes[..length]).unwrap().1 {
                return count;
            }
            bytes.drain(..length);
            count += 1;
        }
    }
}

#[test]
fn a_client_waits_no_longer_than_it_was_told() {
    with_service(|_, socket| async move {
        let client = connect(&socket).await.with_patience(Duration::from_millis(1));
        let error = client.resolve(None, name(999), EntryFlags::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Silent), "{error}");
        let asking = tokio::task::spawn_blocking(move || {
            let mut client = blocking::Client::connect(&ServiceAddress::Unix(socket)).unwrap();
            client.set_patience(Duration::from_millis(1)).unwrap();
            client.resolve(None, name(999), EntryFlags::default()).unwrap_err()
        });
        assert!(matches!(asking.await.unwrap(), ClientError::Silent));
    });
}
