//! Connections that stutter: what a service does with its answers is tested with the service.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;

use mapper_acm::wire::Status;

use super::*;

/// What happens at a connection when it is next read from or written to.
#[derive(Debug)]
enum Step {
    /// So many bytes of what is written are taken.
    Takes(usize),
    /// These bytes are there to be read.
    Brings(Vec<u8>),
    Fails(io::ErrorKind),
}

/// A connection that goes by a script, and keeps what was written to it.
#[derive(Debug)]
struct Scripted {
    steps: VecDeque<Step>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Read for Scripted {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self.steps.pop_front() {
            Some(Step::Brings(bytes)) => {
                piece[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            Some(Step::Fails(kind)) => Err(kind.into()),
            step => panic!("read at {step:?}"),
        }
    }
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.steps.pop_front() {
            Some(Step::Takes(most)) => {
                let taken = most.min(bytes.len());
                self.written.lock().unwrap().extend(&bytes[..taken]);
                Ok(taken)
            }
            Some(Step::Fails(kind)) => Err(kind.into()),
            step => panic!("written at {step:?}"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for Scripted {
    fn set_time_out(&self, _time_out: Duration) -> io::Result<()> {
        Ok(())
    }
}

/// A client of a service that goes by a script, and what is written to that.
fn client(steps: impl IntoIterator<Item = Step>) -> (Client, Arc<Mutex<Vec<u8>>>) {
    let written = Arc::default();
    let scripted = Scripted { steps: steps.into_iter().collect(), written: Arc::clone(&written) };
    (Client::new(Box::new(scripted)), written)
}

fn no_data(tid: u64) -> Vec<u8> {
    let question = Request::Counters { endpoint: 0, source: None }.to_bytes(tid).unwrap();
    let (header, _) = Request::parse(&question).unwrap();
    let mut reply = Vec::new();
    Reply::Failed(Status::NO_DATA).emit(header, &mut reply);
    reply
}

fn ask(client: &mut Client) -> ClientError {
    client.counters(0).unwrap_err()
}

#[test]
fn a_signal_breaks_off_neither_question_nor_answer() {
    let interrupted = || Step::Fails(io::ErrorKind::Interrupted);
    let [head, tail] = [no_data(1)[..5].to_vec(), no_data(1)[5..].to_vec()];
    let (mut client, written) = client([
        interrupted(),
        Step::Takes(5),
        interrupted(),
        Step::Takes(usize::MAX),
        interrupted(),
        Step::Brings(head),
        interrupted(),
        Step::Brings(tail),
    ]);
    assert!(matches!(ask(&mut client), ClientError::Refused(Status::NO_DATA)));
    let question = Request::Counters { endpoint: 0, source: None }.to_bytes(1).unwrap();
    assert_eq!(*written.lock().unwrap(), question);
}

#[test]
fn nothing_follows_a_part_of_a_request() {
    let (mut client, written) = client([Step::Takes(5), Step::Fails(io::ErrorKind::WouldBlock)]);
    assert!(matches!(ask(&mut client), ClientError::Silent));
    assert!(matches!(ask(&mut client), ClientError::Closed));
    assert_eq!(written.lock().unwrap().len(), 5);
}

#[test]
fn a_request_of_which_nothing_went_out_leaves_the_connection_open() {
    let (mut client, _) =
        client([Step::Fails(io::ErrorKind::WouldBlock), Step::Takes(usize::MAX), Step::Brings(no_data(2))]);
    assert!(matches!(ask(&mut client), ClientError::Silent));
    assert!(matches!(ask(&mut client), ClientError::Refused(Status::NO_DATA)));
}

/// Replies to questions that were given up must not make the client wait for longer than it has patience.
#[test]
fn late_replies_do_not_prolong_the_patience() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let late = thread::spawn(move || {
        // Until the client hangs up.
        while theirs.write_all(&no_data(0)).is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut client = Client::new(Box::new(ours));
    client.set_patience(Duration::from_millis(300)).unwrap();
    let began = Instant::now();
    assert!(matches!(ask(&mut client), ClientError::Silent));
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    drop(client);
    late.join().unwrap();
}

#[test]
fn no_patience_at_all_is_refused() {
    let (mut client, _) = client([]);
    assert!(matches!(client.set_patience(Duration::ZERO), Err(ClientError::Io(_))));
    // Longer than clocks can tell.
    client.set_patience(Duration::MAX).unwrap();
}
