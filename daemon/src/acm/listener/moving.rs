//! How a service that runs takes another place. Who is connected stays connected, and who has come to the old place and was
//! not accepted yet is served as well.

use std::io;

use tokio::net::{TcpStream, UnixStream};
use tracing::warn;

use super::{ListenError, Listener, Listening, Stream, tell};
use crate::acm::options::ListenPlace;

/// What came of a move.
pub(in crate::acm) struct Moved {
    /// Where clients connect now.
    pub(in crate::acm) listener: Listener,
    /// Who waited at the old place.
    pub(in crate::acm) waiting: Vec<Stream>,
    /// Why the service stays where it was, if it does.
    pub(in crate::acm) failed: Option<ListenError>,
}

impl Listener {
    /// Moves from one place of the configuration to another. The old one is given up once clients can connect at the new one.
    ///
    /// # Errors
    /// If the new place cannot be had, and the old one cannot be had any more either.
    pub(in crate::acm) fn move_to(
        mut self,
        from: &ListenPlace,
        to: &ListenPlace,
    ) -> Result<Moved, ListenError> {
        if is_same_socket(from, to) {
            let failed = self.tell_anew(to).err();
            return Ok(if let Some(error) = failed { self.stay(from, error) } else { self.moved() });
        }
        if is_same_port(from, to) {
            // One port cannot have two listeners, not even for different addresses.
            let waiting = self.give_up();
            let (listener, failed) = match Self::open_at(to) {
                Ok(listener) => (listener, None),
                Err(error) => (Self::open_at(from)?, Some(error)),
            };
            return Ok(Moved { listener, waiting, failed });
        }
        Ok(match Self::open_at(to) {
            Ok(listener) => {
                self.told.leave_to(&listener.told);
                Moved { listener, waiting: self.give_up(), failed: None }
            }
            Err(error) => self.stay(from, error),
        })
    }

    fn moved(self) -> Moved {
        Moved { listener: self, waiting: Vec::new(), failed: None }
    }

    /// Stays where it is, and tells clients so again, as some of the files may be those of the place that could not be had.
    fn stay(mut self, place: &ListenPlace, error: ListenError) -> Moved {
        if let Err(also) = self.tell_anew(place) {
            warn!("clients may not find the service: {also}");
        }
        Moved { failed: Some(error), ..self.moved() }
    }

    /// Tells clients in other files where the socket is, which stays.
    fn tell_anew(&mut self, place: &ListenPlace) -> Result<(), ListenError> {
        let told = tell(place)?;
        self.told.leave_to(&told);
        self.told = told;
        Ok(())
    }

    /// Closes the socket, and removes its files. Returns who waits to be accepted.
    fn give_up(self) -> Vec<Stream> {
        let Self { socket, bound, told, is_handed_over: _ } = self;
        // From here on nobody finds it any more.
        drop((told, bound));
        match socket {
            Listening::Unix(socket) => {
                let Ok(socket) = socket.into_std() else { return Vec::new() };
                let accept = || {
                    let (stream, _) = socket.accept()?;
                    stream.set_nonblocking(true)?;
                    UnixStream::from_std(stream).map(Stream::Unix)
                };
                all_that_wait(accept)
            }
            Listening::Tcp(socket) => {
                let Ok(socket) = socket.into_std() else { return Vec::new() };
                let accept = || {
                    let (stream, _) = socket.accept()?;
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    TcpStream::from_std(stream).map(Stream::Tcp)
                };
                all_that_wait(accept)
            }
        }
    }
}

/// Accepts until nobody waits any more, or it fails.
fn all_that_wait(accept: impl Fn() -> io::Result<Stream>) -> Vec<Stream> {
    std::iter::from_fn(|| accept().ok()).collect()
}

/// Whether the socket can stay, as only the files differ by which clients find it.
fn is_same_socket(from: &ListenPlace, to: &ListenPlace) -> bool {
    match (from, to) {
        (ListenPlace::Unix { socket: before, .. }, ListenPlace::Unix { socket: after, .. }) => {
            before == after
        }
        (ListenPlace::Tcp { is_open: was_open, .. }, ListenPlace::Tcp { is_open, .. }) => {
            is_same_port(from, to) && was_open == is_open
        }
        _ => false,
    }
}

fn is_same_port(from: &ListenPlace, to: &ListenPlace) -> bool {
    matches!((from, to), (ListenPlace::Tcp { port: before, .. }, ListenPlace::Tcp { port: after, .. }) if before == after)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::path::Path;

    use super::*;

    /// Moves, and says how many waited and whether it failed.
    fn moved(listener: Listener, from: &ListenPlace, to: &ListenPlace) -> (Listener, usize, Option<String>) {
        let Moved { listener, waiting, failed } = listener.move_to(from, to).unwrap();
        (listener, waiting.len(), failed.map(|error| error.to_string()))
    }

    fn on_a_runtime(test: impl AsyncFnOnce(&Path)) {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(dir.path()));
    }

    #[test]
    fn who_waits_at_the_old_socket_is_served_and_its_files_go() {
        on_a_runtime(async |dir| {
            let [a, b, link] = ["a", "b", "link"].map(|name| dir.join(name));
            let place =
                |socket: &Path| ListenPlace::Unix { socket: socket.to_owned(), link: Some(link.clone()) };
            let listener = Listener::open_at(&place(&a)).unwrap();
            let _waits = UnixStream::connect(&a).await.unwrap();
            let (listener, waiting, failed) = moved(listener, &place(&a), &place(&b));
            assert_eq!((waiting, failed, a.exists()), (1, None, false));
            assert_eq!(std::fs::read_link(&link).unwrap(), b);
            let _connected = UnixStream::connect(&link).await.unwrap();
            assert!(matches!(listener.accept().await, Ok(Stream::Unix(_))));
            // Another link alone leaves the socket as it is.
            let other = dir.join("other");
            let renamed = ListenPlace::Unix { socket: b.clone(), link: Some(other.clone()) };
            let (listener, _, failed) = moved(listener, &place(&b), &renamed);
            assert_eq!((failed, link.is_symlink(), other.is_symlink()), (None, false, true));
            drop(listener);
            assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
        });
    }

    #[test]
    fn a_place_that_cannot_be_had_leaves_the_service_where_it_is() {
        on_a_runtime(async |dir| {
            let [a, port_file] = ["a", "port"].map(|name| dir.join(name));
            let here = ListenPlace::Unix { socket: a.clone(), link: None };
            let listener = Listener::open_at(&here).unwrap();
            let nowhere = ListenPlace::Unix { socket: dir.join("none/b"), link: None };
            let (listener, _, failed) = moved(listener, &here, &nowhere);
            assert!(failed.is_some_and(|why| why.contains("none/b; choose another with --socket")));
            let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = taken.local_addr().unwrap().port();
            let tcp = |is_open| ListenPlace::Tcp { port, is_open, file: port_file.clone(), link: None };
            let (listener, _, failed) = moved(listener, &here, &tcp(false));
            assert!(failed.is_some_and(|why| why.contains("another service answers on port")));
            assert!(!port_file.exists());
            let _connected = UnixStream::connect(&a).await.unwrap();
            assert!(matches!(listener.accept().await, Ok(Stream::Unix(_))));
            // When the port is free, it moves there, and opens it to other machines later.
            drop(taken);
            let (listener, _, failed) = moved(listener, &here, &tcp(false));
            assert_eq!((failed, a.exists()), (None, false));
            let _waits = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            let (listener, waiting, failed) = moved(listener, &tcp(false), &tcp(true));
            assert_eq!((waiting, failed), (1, None));
            assert_eq!(std::fs::read_to_string(&port_file).unwrap(), format!("{port}\n"));
            let _connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            assert!(matches!(listener.accept().await, Ok(Stream::Tcp(_))));
        });
    }
}
