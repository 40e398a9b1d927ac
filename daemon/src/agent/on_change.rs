//! Tells a command or a URL of a change, by JSON.
//!
//! A thread of its own tells them, which has given up all privileges, so commands that it starts have none,
//! either. It tells one change after the other. If several come meanwhile, only the newest is told.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use mapper_machine::options::OnChange;
use mapper_machine::privileges;
use tracing::{error, info, warn};

/// How long a command may run, and a server take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the thread looks whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many bytes of an answer are read.
const MOST_ANSWERED: u64 = 64 << 10;

/// The thread that tells of changes, and the way to hand it something to tell.
#[derive(Debug)]
pub(super) struct Teller {
    changes: Sender<String>,
}

impl Teller {
    /// Starts the thread that tells. It ends with the teller.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub(super) fn start(on_change: OnChange) -> io::Result<Self> {
        let (changes, told) = channel();
        thread::Builder::new().name("on-change".to_owned()).spawn(move || serve(&on_change, &told))?;
        Ok(Self { changes })
    }

    /// Has the thread tell this text.
    pub(super) fn tell(&self, text: String) {
        if self.changes.send(text).is_err() {
            error!("nobody is told of a change: the thread that does so has ended");
        }
    }
}

fn serve(on_change: &OnChange, changes: &Receiver<String>) {
    if let Err(error) = privileges::give_up_of_this_thread() {
        return error!(%error, "nobody is told of changes");
    }
    while let Ok(first) = changes.recv() {
        let newest = changes.try_iter().last().unwrap_or(first);
        match tell(on_change, &newest) {
            Ok(()) => info!(on_change = %on_change, "told of a change"),
            Err(error) => warn!(on_change = %on_change, "could not tell of a change: {error}"),
        }
    }
}

fn tell(on_change: &OnChange, text: &str) -> io::Result<()> {
    match on_change {
        OnChange::Command(command) => run(command, text),
        OnChange::Url { host, port, path } => post((host, *port), path, text),
    }
}

/// Runs a command with the text on its standard input.
fn run(command: &str, text: &str) -> io::Result<()> {
    let mut child =
        Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // A command need not read its input. If it does not, its pipe may fill up, which must not hold up this
    // thread.
    let (input, text) = (child.stdin.take(), text.to_owned());
    thread::Builder::new().spawn(move || input.map(|mut input| input.write_all(text.as_bytes())))?;
    let ended = wait(&mut child)?;
    if ended.success() { Ok(()) } else { Err(io::Error::other(format!("the command ended with {ended}"))) }
}

/// Waits for a command, and ends it when its time is over.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the command took too long and was ended"));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Posts the text to a URL of `http`, by HTTP/1.1 (RFC 9112).
fn post((host, port): (&str, u16), path: &str, text: &str) -> io::Result<()> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return exchange(stream, (host, port), path, text),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn exchange(mut stream: TcpStream, (host, port): (&str, u16), path: &str, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MOST_ANSWERED).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()) {
        Some(200..=299) => Ok(()),
        _ => Err(io::Error::other(format!("the server answered `{}`", line.escape_debug()))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_command_gets_the_text_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told");
        let command = OnChange::Command(format!("cat > {}", file.display()));
        // The text is longer than what a pipe holds.
        let text = "x".repeat(1 << 20);
        tell(&command, &text).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        tell(&OnChange::Command("exec true".to_owned()), &text).unwrap();
        let failure = tell(&OnChange::Command("exit 7".to_owned()), "").unwrap_err();
        assert!(failure.to_string().contains('7'), "{failure}");
    }

    #[test]
    fn a_url_gets_the_text_and_its_refusal_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            ["204 No Content", "503 Service Unavailable"].map(|status| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut heard = Vec::new();
                while !heard.ends_with(b"{}\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    heard.push(byte[0]);
                }
                stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
                String::from_utf8(heard).unwrap()
            })
        });
        let url = OnChange::Url { host: "127.0.0.1".to_owned(), port, path: "/wiring".to_owned() };
        tell(&url, "{}\n").unwrap();
        let refused = tell(&url, "{}\n").unwrap_err().to_string();
        assert_eq!(refused, "the server answered `HTTP/1.1 503 Service Unavailable`");
        let [heard, _] = server.join().unwrap();
        assert!(
            heard.starts_with(&format!("POST /wiring HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n")),
            "{heard}"
        );
    }
}
