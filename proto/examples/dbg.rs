#[path = "../tests/explore/fabrics.rs"]
mod fabrics;
#[path = "../tests/explore/oracle.rs"]
mod oracle;
fn main() {
    let map = fabrics::clos3(8, 8, |xbar| xbar % 2 == 0);
    let mut fabric = oracle::OracleFabric::new(&map, 0);
    let run = oracle::explore(&mut fabric, 0, &oracle::settings(8));
    eprintln!("{:?}", run.cost);
}
