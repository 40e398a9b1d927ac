//! Tori, meshes, rings and hypercubes. A direction has the same port at every xbar, as dimension-ordered
//! routing needs it.

use mapper_proto::map::Fabric;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::{MAX_PORTS, MAX_XBARS};

/// `torus:x=X,y=Y,z=Z,hosts=H`: one to three dimensions, H hosts an xbar.
///
/// Port 1 leads to x+1, port 2 to x-1, ports 3 and 4 along y, 5 and 6 along z; hosts follow. A
/// dimension of two xbars has one cable between them, not two.
pub(super) fn torus(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    grid(spec, true)
}

/// `mesh:..`: a torus without the cables that close its rings.
pub(super) fn mesh(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    grid(spec, false)
}

fn grid(spec: &Spec<'_>, wraps: bool) -> Result<Fabric, SpecError> {
    spec.only(&["x", "y", "z", "hosts", "ports"])?;
    let mut sizes = vec![spec.number("x", 1..=MAX_XBARS)?];
    let y = spec.optional("y", 1..=MAX_XBARS)?;
    let z = spec.optional("z", 1..=MAX_XBARS)?;
    if y.is_none() && z.is_some() {
        return Err(spec.bad("z", "given", "y as well"));
    }
    sizes.extend(y.into_iter().chain(z));
    build(spec, &sizes, wraps, |coordinates| {
        let text: Vec<_> = coordinates.iter().map(u64::to_string).collect();
        format!("n{}", text.join("-"))
    })
}

/// `ring:n=N,hosts=H`: a torus of one dimension.
pub(super) fn ring(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["n", "hosts", "ports"])?;
    let n = spec.number("n", 1..=MAX_XBARS)?;
    build(spec, &[n], true, |coordinates| format!("xbar{}", coordinates[0] + 1))
}

fn build(
    spec: &Spec<'_>,
    sizes: &[u64],
    wraps: bool,
    name: impl Fn(&[u64]) -> String,
) -> Result<Fabric, SpecError> {
    let hosts = spec.optional("hosts", 0..=MAX_PORTS)?.unwrap_or(1);
    let directions = 2 * sizes.len() as u64;
    let ports = spec.ports(directions + hosts)?;
    let xbars = sizes.iter().fold(1_u64, |product, &size| product.saturating_mul(size));
    spec.check_size(xbars, xbars.saturating_mul(hosts))?;
    let mut builder = Builder::default();
    for index in 0..xbars {
        let xbar = builder.xbar(name(&coordinates(index, sizes)), ports);
        builder.hosts(xbar, directions + 1, hosts);
    }
    for index in 0..xbars {
        let mut stride = 1;
        for (dimension, (&size, at)) in sizes.iter().zip(coordinates(index, sizes)).enumerate() {
            let next = match (at + 1 < size, wraps && size > 2) {
                (true, _) => Some(index + stride),
                (false, true) => Some(index - at * stride),
                (false, false) => None,
            };
            let plus = 2 * dimension as u64 + 1;
            if let Some(next) = next {
                builder.cable((index as u32, plus), (next as u32, plus + 1));
            }
            stride *= size;
        }
    }
    Ok(builder.finish())
}

/// The coordinates of an xbar, x first. Xbars next to each other in number differ in x.
fn coordinates(index: u64, sizes: &[u64]) -> Vec<u64> {
    let mut rest = index;
    let digit = |&size: &u64| {
        let digit = rest % size;
        rest /= size;
        digit
    };
    sizes.iter().map(digit).collect()
}

/// `hypercube:d=D,hosts=H`: 2^D xbars; port k leads to the xbar whose number differs in bit k-1.
pub(super) fn hypercube(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["d", "hosts", "ports"])?;
    let dimensions = spec.number("d", 0..=15)?;
    let hosts = spec.optional("hosts", 0..=MAX_PORTS)?.unwrap_or(1);
    let ports = spec.ports((dimensions + hosts).max(1))?;
    let xbars = 1_u64 << dimensions;
    spec.check_size(xbars, xbars * hosts)?;
    let mut builder = Builder::default();
    for index in 0..xbars {
        let xbar = builder.xbar(format!("n{index}"), ports);
        builder.hosts(xbar, dimensions + 1, hosts);
    }
    for index in 0..xbars {
        for bit in (0..dimensions).filter(|bit| index >> bit & 1 == 0) {
            builder.cable((index as u32, bit + 1), ((index | 1 << bit) as u32, bit + 1));
        }
    }
    Ok(builder.finish())
}
