//! A real browser without a window, driven by its DevTools protocol over a pair of pipes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Chromium with one page.
pub(super) struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last: u64,
    _folder: tempfile::TempDir,
}

/// Longer than any step takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options that keep a browser from talking to anybody but the page's server.
const OPTIONS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage \
    --disable-background-networking --disable-component-update --disable-sync --window-size=1400,900 \
    --remote-debugging-pipe";

impl Browser {
    /// Opens a page; `None` without a browser on this machine.
    pub(super) fn open(url: &str) -> Option<Self> {
        if !mapper_needs::programs(&["chromium"]) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["to", "from"] {
            assert!(Command::new("mkfifo").arg(path(name)).status().unwrap().success());
        }
        // Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        let start = format!("exec chromium {OPTIONS} --user-data-dir=profile about:blank 3<to 4>from");
        let process = Command::new("sh")
            .args(["-c", &start])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = File::options().write(true).open(path("to")).unwrap();
        let from = BufReader::new(File::open(path("from")).unwrap());
        let mut browser = Self { process, to, from, session: String::new(), last: 0, _folder: folder };
        let target = browser.ask("Target.createTarget", &json!({ "url": url }))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    /// Sends a command, and waits for its answer.
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut command = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let mut message = Vec::new();
            assert!(self.from.read_until(0, &mut message).unwrap() > 0, "the browser ended");
            message.pop();
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == json!(self.last) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// The value of an expression on the page, once what it promises is there.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true on the page.
    pub(super) fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.value(&format!("Boolean({expression})")) == json!(true) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = self.value("document.body.innerText");
        panic!("it never came: {expression}; the page says: {text}");
    }

    /// Waits until the fabric is drawn.
    pub(super) fn wait_until_drawn(&mut self) {
        self.wait_for("document.documentElement && document.documentElement.dataset.ready");
    }

    /// The bytes that the page's script holds once what nobody uses is gone.
    pub(super) fn heap_bytes(&mut self) -> u64 {
        self.ask("HeapProfiler.collectGarbage", &json!({}));
        self.ask("Runtime.getHeapUsage", &json!({}))["usedSize"].as_f64().unwrap() as u64
    }

    /// Takes a picture of the page, which people may look at: `NAME.png` among the temporary files of tests. Returns its bytes.
    pub(super) fn screenshot(&mut self, name: &str) -> usize {
        let taken = self.ask("Page.captureScreenshot", &json!({ "format": "png" }));
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
        let decoded = decode_base64(taken["data"].as_str().unwrap());
        std::fs::write(path, &decoded).unwrap();
        decoded.len()
    }

    /// Lays the page out as on paper.
    pub(super) fn emulate_paper(&mut self) {
        self.ask("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    }

    /// What stands beside the picture.
    pub(super) fn panel(&mut self) -> String {
        self.value("document.getElementById('panel').innerText").as_str().unwrap().to_owned()
    }
}

/// The bytes of a text in Base64 (RFC 4648).
fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter(|&digit| digit != b'=')
        .map(|digit| DIGITS.iter().position(|&it| it == digit).unwrap() as u32)
        .collect();
    digits
        .chunks(4)
        .flat_map(|four| {
            let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
            bits.to_be_bytes()[1..four.len()].to_vec()
        })
        .collect()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This fails only if the browser has ended by itself.
        let _already_gone = self.process.kill();
        let _ended = self.process.wait();
    }
}
