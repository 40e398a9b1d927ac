//! Computes tables for the OpenSM that started it: a request on standard input, the outcome on standard
//! output. Nobody else runs it.

use std::process::ExitCode;

use mapper_opensm::{TransferError, answer, receive, send};

fn main() -> ExitCode {
    give_way();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "what the plugin writes into OpenSM's log")]
            {
                eprintln!("the message {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), TransferError> {
    let request = receive(&mut std::io::stdin().lock())?;
    send(&mut std::io::stdout().lock(), &answer(&request))
}

/// Has the system end this process rather than OpenSM when memory runs out, and end it with OpenSM.
fn give_way() {
    // If the system allows neither, the computation is still worth doing.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}
