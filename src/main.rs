//! The command `mapper`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mapper::cli::main()
}
