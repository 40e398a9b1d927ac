//! Prints what exploration costs on a few fabrics: frames by kind, frames a port, virtual time, and
//! the least that could do (one frame a cable). Round trips take 100 µs, time-outs 1 ms, nothing is
//! lost, at most 64 frames are under way.

#![expect(clippy::print_stdout, reason = "this program prints a table")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "it shares its fabrics with the tests")]

#[path = "../tests/protocol/explore/fabrics.rs"]
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
mod fabrics;
#[path = "../tests/protocol/explore/oracle.rs"]
mod oracle;

use mapper_proto::map::{Map, is_isomorphic};
use oracle::{OracleFabric, explore, settings};

fn row(name: &str, map: &Map, plain_ports: u8) {
    let mut fabric = OracleFabric::new(map, 0);
    let began = std::time::Instant::now();
    let run = explore(&mut fabric, 0, &settings(plain_ports));
    let wall_ms = began.elapsed().as_millis();
    let verdict = match run.map {
        Ok(found) => {
            is_isomorphic(&found, &fabric.knowable(0)).map_or_else(|why| why.to_string(), |()| "exact".into())
        }
        Err(error) => error.to_string(),
    };
    let ports: u64 = map.xbars.iter().map(|xbar| u64::from(xbar.ports)).sum();
    let least = map.hosts.len() + map.cables.len();
    let cost = run.cost;
    println!(
        "{name:<34} {:>6} {:>6} {:>6} {:>7} {:>7} {:>6} {:>6} {:>6.2} {:>6} {:>9.1} {:>6} {:>7} {:>4}  {verdict}",
        map.hosts.len(),
        map.xbars.len(),
        map.cables.len(),
        cost.loopbacks,
        cost.identifies,
        cost.scouts,
        cost.compares,
        cost.total() as f64 / ports as f64,
        least,
        run.took.as_secs_f64() * 1e3,
        wall_ms,
        run.most_load,
        run.left_out.len(),
    );
}

fn main() {
    println!(
        "{:<34} {:>6} {:>6} {:>6} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>9} {:>6} {:>7} {:>4}",
        "fabric",
        "hosts",
        "xbars",
        "cables",
        "loop",
        "ident",
        "scout",
        "comp",
        "/port",
        "least",
        "virt ms",
        "ms",
        "entries",
        "out"
    );
    row("now, plain", &fabrics::now(), 8);
    row("now, plain, up to 16 ports", &fabrics::now(), 16);
    row("clos 128 x 16 ports, plain", &fabrics::clos2(16, 16, false), 16);
    row("clos 128 x 16 ports, tagged", &fabrics::clos2(16, 16, true), 16);
    row("clos 128 x 8 ports, plain", &fabrics::clos3(8, 8, |_| false), 8);
    row("clos 128 x 8 ports, mixed", &fabrics::clos3(8, 8, |xbar| xbar % 2 == 0), 8);
    row("clos 1024 x 16 ports, plain", &fabrics::clos3(16, 16, |_| false), 16);
    row("clos 1024 x 16 ports, tagged", &fabrics::clos3(16, 16, |_| true), 16);
    row("clos 9216 x 36 ports, tagged", &fabrics::clos3(28, 36, |_| true), 16);
    row("torus 8 x 8, a host each, plain", &fabrics::torus(8, 8, 8, false, true), 8);
    row("torus 6 x 6, one host, plain", &fabrics::torus(6, 6, 8, false, false), 8);
    row("torus 10 x 10, one host, plain", &fabrics::torus(10, 10, 8, false, false), 8);
    row("torus 10 x 10, one host, tagged", &fabrics::torus(10, 10, 8, true, false), 8);
}
