//! The page that shows a fabric in a browser as one file: HTML, styles and script, all of which are in this program.
//!
//! It stands by itself, with a fabric in it, as a file ([`of_fabric`]), or asks the server of `mapper view` for one ([`of_server`]).
//!
//! Nothing in the page comes from anywhere else, and the policy that stands in it lets nothing else run: script and style are
//! named by their digests. The fabric is in a block of JSON, which no browser executes, and the script puts what it reads there
//! into the page as text.

mod scene;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use scene::Scene;

const BODY: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// The script, whose files stand in the order in which they need each other.
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("model.js"),
    include_str!("camera.js"),
    include_str!("colours.js"),
    include_str!("draw.js"),
    include_str!("server.js"),
    include_str!("panel.js"),
    include_str!("main.js"),
    include_str!("routing.js"),
    include_str!("traffic.js"),
    include_str!("listen.js"),
);

/// The page with a fabric in it, to be kept or mailed.
pub fn of_fabric(fabric: &Fabric, title: &str) -> String {
    page(&json!({ "scene": Scene::new(fabric, title.to_owned()) }), &policy("'none'"))
}

/// The page that asks its server for the fabric, and the policy that its server states for it.
pub fn of_server() -> (String, String) {
    let policy = policy("'self'");
    let page = page(&json!({}), &policy);
    // What a document cannot state of itself stands in the header alone.
    (page, policy + "; frame-ancestors 'none'")
}

/// What a browser may do for the page: run this script, use this style, connect to `connect`.
fn policy(connect: &str) -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src {connect}; base-uri 'none'; \
         form-action 'none'",
        digest(SCRIPT),
        digest(STYLE)
    )
}

fn page(data: &Value, policy: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>mapper</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         {BODY}<script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        embedded(data)
    )
}

/// JSON that can stand in an element of a page: nothing in it ends the element.
fn embedded(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}

/// The SHA-256 of a text in Base64 (RFC 4648), as policies name scripts.
fn digest(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut coded = String::new();
    for bytes in Sha256::digest(text.as_bytes()).chunks(3) {
        let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            coded.push(if at <= bytes.len() { char::from(digit) } else { '=' });
        }
    }
    coded
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn digests_are_as_browsers_compute_them() {
        // From the Content Security Policy specification's examples: `alert('Hello, world.');`.
        assert_eq!(digest("alert('Hello, world.');"), "qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }

    #[test]
    fn names_cannot_end_the_element_that_they_are_in() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.hosts[0].description = "</script><img src=x onerror=alert(1)>".to_owned();
        let page = of_fabric(&fabric, "<b>title");
        assert!(!page.contains("</script><img") && !page.contains("<b>title"));
        assert!(page.contains("\\u003c/script>") && page.contains("\\u003cb>title"));
        assert_eq!(page.matches("</script>").count(), 2, "of the data and of the script");
    }

    #[test]
    fn the_page_loads_nothing() {
        let (page, policy) = of_server();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        for loads in ["src=", "href=\"http", "@import", "url(", "//cdn", "innerHTML", "eval("] {
            assert!(!page.contains(loads), "{loads}");
        }
    }

    #[test]
    fn the_page_of_a_large_fabric_is_small_enough_to_mail() {
        let fabric = generate("clos:hosts=10000,ports=36").unwrap();
        assert!(of_fabric(&fabric, "large").len() < 3 << 20);
    }
}
