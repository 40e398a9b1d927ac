//! Sends frames out of an interface as fast as it takes them, for `scripts/bench/throughput`.
//!
//! usage: flood INTERFACE ETHERTYPE DESTINATION PAYLOAD BYTES SECONDS
//!
//! ETHERTYPE and PAYLOAD in hexadecimal; the payload is filled up with zeros to BYTES. Prints how
//! many frames were sent.
#![allow(clippy::print_stdout, reason = "the result goes to standard output")]

use std::error::Error;
use std::time::{Duration, Instant};

use mapper_machine::link::batch::BATCH_FRAMES;
use mapper_machine::link::ethernet::Marking;
use mapper_machine::link::port::{EthernetPort, LinkCount};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, ethertype, destination, payload, bytes, seconds] = arguments.as_slice() else {
        return Err("usage: flood INTERFACE ETHERTYPE DESTINATION PAYLOAD BYTES SECONDS".into());
    };
    let marking =
        Marking { ethertype: u16::from_str_radix(ethertype, 16)?, destination: destination.parse()? };
    let mut payload = from_hex(payload)?;
    payload.resize(bytes.parse()?, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let port = EthernetPort::open(interface, marking)?;
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    while Instant::now() < end {
        (0..BATCH_FRAMES).for_each(|_| port.queue(&[], &payload));
        port.flush();
    }
    println!("{}", port.counts()[LinkCount::Sent]);
    Ok(())
}

fn from_hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits = text.as_bytes().chunks(2).map(std::str::from_utf8);
    digits.map(|digits| Ok(u8::from_str_radix(digits?, 16)?)).collect()
}
