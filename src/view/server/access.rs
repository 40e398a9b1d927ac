//! Who is answered.
//!
//! On the loopback address everybody on the machine is, and so is a page of any site that a browser on the machine shows, if that
//! site's name is made to lead to 127.0.0.1 (DNS rebinding). Such a page names its own site as host, and is refused by that.
//! On any other address a token is needed besides.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use sha2::{Digest, Sha256};

/// Who is answered.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// The address that is listened on.
    pub(crate) address: SocketAddr,
    /// The digest of the token that callers must have.
    pub(crate) token: Option<[u8; 32]>,
    /// What this machine is called.
    pub(crate) machine: String,
}

/// Why somebody is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// They ask another host than this.
    ForeignHost,
    /// A page of another site asks.
    ForeignOrigin,
    /// They have no token, or the wrong one.
    NoToken,
}

impl Access {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>, machine: String) -> Self {
        Self { address, token: token.map(digest), machine }
    }

    /// Whether a request may be answered; `needs_token` is false for the page itself, which holds nothing of the fabric.
    pub(crate) fn check(&self, headers: &HeaderMap, needs_token: bool) -> Result<(), Refusal> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.is_own(host) || headers.get_all(HOST).iter().count() != 1 {
            return Err(Refusal::ForeignHost);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let site = origin.split_once("://").map_or("", |(_, site)| site);
            if !self.is_own(site) {
                return Err(Refusal::ForeignOrigin);
            }
        }
        match self.token {
            Some(token) if needs_token => {
                let given = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
                let given = digest(given.strip_prefix("Bearer ").unwrap_or_default());
                if same(&given, &token) { Ok(()) } else { Err(Refusal::NoToken) }
            }
            _ => Ok(()),
        }
    }

    /// Whether a name with or without a port means this server. Ports may differ, as ssh forwards them.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let address: Option<IpAddr> = name.parse().ok();
        if name.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|it| it.is_loopback() || it == self.address.ip())
        {
            return true;
        }
        // Whoever leads a name of theirs to this machine has that name in the header, never a bare address.
        let is_machine = name.len() >= self.machine.len()
            && name.is_char_boundary(self.machine.len())
            && name[..self.machine.len()].eq_ignore_ascii_case(&self.machine)
            && matches!(name.as_bytes().get(self.machine.len()), None | Some(b'.'));
        !self.address.ip().is_loopback() && (address.is_some() || (is_machine && !self.machine.is_empty()))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Whether two digests are the same, in a time that does not tell where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let local = Access::new("127.0.0.1:8642".parse().unwrap(), None, "node7".to_owned());
        for host in ["127.0.0.1:8642", "localhost:9000", "[::1]:1", "LOCALHOST", "127.0.0.2"] {
            assert_eq!(
                local.check(&headers(&[("host", Box::leak(host.to_owned().into_boxed_str()))]), true),
                Ok(())
            );
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8642", "10.0.0.1", "node7"]
        {
            let host = Box::leak(host.to_owned().into_boxed_str());
            assert_eq!(local.check(&headers(&[("host", host)]), true), Err(Refusal::ForeignHost), "{host}");
        }
        assert_eq!(local.check(&HeaderMap::new(), true), Err(Refusal::ForeignHost));
        let foreign = headers(&[("host", "localhost"), ("origin", "https://evil.example")]);
        assert_eq!(local.check(&foreign, true), Err(Refusal::ForeignOrigin));
        let own = headers(&[("host", "localhost"), ("origin", "http://localhost:8642")]);
        assert_eq!(local.check(&own, true), Ok(()));
    }

    #[test]
    fn elsewhere_a_token_is_needed() {
        let open =
            Access::new("0.0.0.0:8642".parse().unwrap(), Some("secret-of-sixteen"), "node7".to_owned());
        let with = |token| headers(&[("host", "node7.fabric:8642"), ("authorization", token)]);
        assert_eq!(open.check(&with("Bearer secret-of-sixteen"), true), Ok(()));
        for wrong in ["Bearer secret-of-sixtee", "secret-of-sixteen", "Bearer ", "Basic secret-of-sixteen"] {
            assert_eq!(open.check(&with(wrong), true), Err(Refusal::NoToken), "{wrong}");
        }
        assert_eq!(open.check(&headers(&[("host", "10.0.0.7")]), true), Err(Refusal::NoToken));
        assert_eq!(open.check(&headers(&[("host", "10.0.0.7")]), false), Ok(()), "the page itself");
        for foreign in ["evil.example", "node7evil.example", "node"] {
            let foreign = headers(&[("host", Box::leak(foreign.to_owned().into_boxed_str()))]);
            assert_eq!(open.check(&foreign, false), Err(Refusal::ForeignHost));
        }
    }
}
