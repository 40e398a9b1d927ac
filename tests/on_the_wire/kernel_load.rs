//! What is on its way through the kernels when an agent is killed.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::can_carry_ip;
use crate::lab::wait_for;
use crate::ring::Ring;

/// No byte is waited for longer: then the connection is dead.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says that the sender is to end, also when the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn tcp_under_way_goes_on_when_the_agent_at_its_end_is_killed_and_when_it_starts_again() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let mut daemons = ring.start_all(&[], "srv6");
    let listener = ring.machines[1].enter(|| TcpListener::bind("10.1.0.2:0").unwrap());
    let address = listener.local_addr().unwrap();
    let mut sender = ring.machines[0].enter(|| TcpStream::connect(address).unwrap());
    let (mut receiver, _) = listener.accept().unwrap();
    sender.set_write_timeout(Some(PATIENCE)).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let (ends, sent, received) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                sender.write_all(&[7; 16 * 1024]).unwrap();
                sent.fetch_add(16 * 1024, Ordering::Relaxed);
                // This makes about 130 Mbit/s, which leaves agents time as well.
                std::thread::sleep(Duration::from_millis(1));
            }
            sender.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let receiving = threads.spawn(|| {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match receiver.read(&mut buffer).unwrap() {
                    0 => break,
                    bytes => received.fetch_add(bytes as u64, Ordering::Relaxed),
                };
            }
        });
        let ending = Ending(&ends);
        let goes_on = |when: &str| {
            let before = received.load(Ordering::Relaxed);
            wait_for(&format!("TCP goes on {when}"), || {
                (received.load(Ordering::Relaxed) > before + 1_000_000).then_some(())
            });
        };
        goes_on("before the crash");
        // It is kept, as it tells its log if the test fails.
        let crashed = daemons.remove(1);
        crashed.signal(Signal::KILL);
        goes_on("while the others hold the agent for alive, or its cables for dead");
        wait_for("the others have a map without it", || (ring.board(0, &[])["hosts"] == 2).then_some(()));
        goes_on("by a map without the host");
        let _again = ring.start_addressed(1, &[]);
        ring.wait_for_kind(1, "srv6");
        ring.wait_for_kind(0, "srv6");
        goes_on("by what the next run has installed");
        drop(ending);
        receiving.join().unwrap();
    });
    assert_eq!(sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
}

#[test]
fn the_path_of_a_connection_is_watched_as_long_as_it_sends() {
    if !can_carry_ip() {
        return;
    }
    for (kind, of_v6) in [("srv6", false), ("routes", false), ("routes", true)] {
        let ring = Ring::new(3);
        let _daemons = ring.start_all(&["--data-path", kind], kind);
        let board = ring.board(1, &[]);
        let addresses = board["addresses"].as_array().into_iter().flatten().filter_map(|it| it.as_str());
        let ips = addresses.filter_map(|it| it.split('/').next()?.parse::<IpAddr>().ok());
        let to = ips.into_iter().find(|ip| ip.is_ipv6() == of_v6).unwrap();
        let listener = ring.machines[1].enter(|| TcpListener::bind((to, 0)).unwrap());
        let address = listener.local_addr().unwrap();
        let mut sender = ring.machines[0].enter(|| TcpStream::connect(address).unwrap());
        let (mut receiver, _) = listener.accept().unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let ending = Ending(&ends);
            threads.spawn(|| {
                while !ends.load(Ordering::Relaxed) && sender.write_all(&[7; 1024]).is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                drop(sender.shutdown(std::net::Shutdown::Both));
            });
            threads.spawn(|| {
                let mut buffer = vec![0; 64 * 1024];
                while receiver.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
            });
            // A path that is seen to be used at the beginning alone is checked a hundred times.
            let checks = || ring.board(0, &[])["counters"]["liveness"]["checks_sent"].as_u64();
            wait_for("the path is checked on and on", || checks().filter(|&checks| checks > 500).map(drop));
            drop(ending);
        });
        // Probes of ways pass on and on, and make no path worth watching.
        let watched = |at: usize| ring.board(at, &[])["counters"]["liveness"]["watched"].as_u64();
        wait_for("nobody sends any more, and no path is watched", || {
            (0..3).all(|at| watched(at) == Some(0)).then_some(())
        });
    }
}
