//! Tests of `mapper view`, of the page in a real browser, and of who its server answers.

mod browser;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use browser::Browser;

const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// A server of the page, which ends with this.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(MAPPER)
            .args(["view", "--format", "json", "--listen", address])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["schema"], "mapper.view/1");
        Self { process, url: told["url"].as_str().unwrap().to_owned() }
    }

    fn address(&self) -> String {
        self.url.trim_start_matches("http://").split('/').next().unwrap().to_owned()
    }

    /// The number of the fabric that is told first.
    fn scene(&self) -> u64 {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let told = BufReader::new(stream).lines().map(Result::unwrap);
        let mut updates = told.filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
        let update: Value = serde_json::from_str(&updates.next().unwrap()).unwrap();
        update["scene"].as_u64().unwrap()
    }

    /// What is answered to a request, head and body.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn stop(&mut self) {
        let _already_gone = self.process.kill();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn a_page_in_a_file_shows_names_as_text_and_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let (map, page) = (folder.path().join("fabric.json"), folder.path().join("fabric.html"));
    let mut fabric = mapper::formats::resolve("clos:hosts=16,ports=8").unwrap();
    let evil = "<img src=x onerror=\"document.title='broken in'\"></script><b>h1</b>";
    fabric.hosts[0].description = evil.to_owned();
    fabric.xbars[0].description = "<i>leaf</i>".to_owned();
    std::fs::write(&map, mapper::formats::write(&fabric, mapper::formats::FileFormat::Json)).unwrap();
    let output =
        Command::new(MAPPER).args(["topology", "convert"]).arg(&map).arg("-o").arg(&page).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let Some(mut browser) = Browser::open(&format!("file://{}", page.display())) else { return };
    browser.wait_until_drawn();
    assert_eq!(browser.value("document.title"), json!("fabric.json – mapper"));
    assert_eq!(
        browser.value("document.getElementById('counts').textContent"),
        json!("16 hosts, 6 crossbars, 16 cables")
    );
    browser.value("view.choose({ kind: 'host', index: 0 })");
    let panel = browser.panel();
    assert!(panel.contains("<img src=x onerror=") && panel.contains("<i>leaf</i>"), "{panel}");
    assert!(panel.contains("no engines in it") && !panel.contains("Routes from here"), "{panel}");
    browser.value("view.choose({ kind: 'xbar', index: 0 })");
    browser.value("document.getElementById('query').value = '<img'; document.getElementById('query').dispatchEvent(new Event('input'))");
    assert!(browser.value("document.getElementById('found').innerText").as_str().unwrap().contains("<img"));
    assert_eq!(browser.value("document.querySelectorAll('img, main b, main i, header b').length"), json!(0));
    assert_ne!(browser.value("document.title"), json!("broken in"));
    // Something is drawn: the picture has many colours.
    let colours = "new Set(new Uint32Array(view.drawing.context.getImageData(0, 0, view.drawing.canvas.width, view.drawing.canvas.height).data.buffer)).size";
    assert!(browser.value(colours).as_u64().unwrap() > 20);
}

#[test]
fn cables_are_cut_on_the_page_and_the_engines_say_what_follows() {
    let mut server = Server::start(&["clos:hosts=8,ports=4"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.value("view.setMode('load')");
    browser.wait_for("view.loads && view.loads.engine === 'minhop'");
    assert!(
        browser
            .value("document.getElementById('legend').innerText")
            .as_str()
            .unwrap()
            .contains("routes of minhop")
    );
    browser.value("view.engine = 'updn'; view.toggleCut(view.model.cablesOf[view.model.bundlesOf[0][0]][0])");
    browser.wait_for("view.consequences");
    let panel = browser.panel();
    assert!(panel.contains("What if 1 cable were cut") && panel.contains("No host is cut off."), "{panel}");
    browser.value("view.toggleCut(view.model.cablesOf[view.model.bundlesOf[0][1]][0])");
    browser.wait_for("view.consequences && view.consequences.cut_off.length === 2");
    assert!(browser.panel().contains("2 hosts cut off"), "{}", browser.panel());
    browser.value("view.mendAll()");
    browser.wait_for("!view.computing && view.loads");
    browser.value("view.routeFrom(0)");
    browser.value("view.routeTo(7)");
    browser.wait_for("view.routes");
    assert!(browser.panel().contains("1 route of updn from h1 to h8"), "{}", browser.panel());
    browser.value("view.routesOf(3)");
    browser.wait_for("view.routes.title.includes('7 hosts reached')");
    // By the keyboard alone: the next xbar, which is described.
    let press = |key: &str| {
        format!(
            "document.getElementById('picture').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        )
    };
    browser.value(&press("Escape"));
    browser.value(&press("n"));
    assert!(browser.panel().contains("leaf1") && browser.panel().contains("Ports in use"));
    assert_eq!(browser.value("document.getElementById('banner').hidden"), json!(true));
    server.stop();
    browser
        .wait_for("document.getElementById('banner').innerText.includes('The server does not answer since')");
}

#[test]
fn an_engine_that_serves_no_more_is_told_with_one_that_does() {
    // Shortest routes make circles on a torus, which engines with layers take apart.
    let server = Server::start(&["torus:x=6,y=6,hosts=1"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.value("view.engine = 'minhop'; view.toggleCut(0)");
    browser.wait_for("view.consequences");
    let panel = browser.panel();
    assert!(
        panel.contains("minhop does not serve") && panel.contains("dfsssp serves what is left."),
        "{panel}"
    );
}

#[test]
fn paper_is_light_and_has_the_shape_of_the_picture_and_the_screen_is_as_before() {
    let server = Server::start(&["clos:hosts=8,ports=4"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.value("colours.set('dark'); window.dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.value("colours.name"), json!("light"));
    browser.value("window.dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.value("colours.name"), json!("dark"));
    browser.emulate_paper();
    let fit = "getComputedStyle(document.getElementById('picture')).objectFit";
    assert_eq!(browser.value(fit), json!("contain"));
}

#[test]
fn every_state_of_a_host_has_a_mark_of_its_own() {
    let server = Server::start(&["clos:hosts=8,ports=4"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    let drawn = "(() => HOST_STATES.map((_, state) => { \
                 const canvas = document.createElement('canvas'), context = canvas.getContext('2d'); \
                 context.beginPath(); MARKS[state](context, 2, 2, 40, 30); context.stroke(); \
                 return canvas.toDataURL(); }))()";
    let marks: std::collections::BTreeSet<String> =
        browser.value(drawn).as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(marks.len(), 6);
}

#[test]
fn fabrics_of_a_thousand_and_of_ten_thousand_hosts_are_shown() {
    for (spec, hosts) in [("clos:hosts=1024,ports=32", 1024), ("clos:hosts=10000,ports=36", 10_000)] {
        let server = Server::start(&[spec]);
        let Some(mut browser) = Browser::open(&server.url) else { return };
        browser.wait_until_drawn();
        assert_eq!(browser.value("view.model.hostCount"), json!(hosts));
        browser.value("view.choose({ kind: 'host', index: view.model.hostCount - 1 }, true)");
        assert!(browser.panel().contains(&format!("h{hosts}")), "{}", browser.panel());
    }
}

#[test]
#[ignore = "it measures; scripts/bench/view runs it"]
fn how_soon_the_page_is_ready_and_what_frames_take() {
    for spec in ["clos:hosts=128,ports=16", "clos:hosts=1024,ports=32", "clos:hosts=10000,ports=36"] {
        let server = Server::start(&[spec]);
        let mut browser = Browser::open(&server.url).expect("Chromium");
        browser.wait_until_drawn();
        let ready = browser.value("Number(document.documentElement.dataset.ready)");
        // Two seconds of moving to and fro, and of zooming, as by a hand that never rests.
        let gaps = browser.value(
            "new Promise(resolve => { const gaps = [], began = performance.now(); let last = began; \
             const tick = now => { gaps.push(now - last); last = now; \
             const phase = (now - began) / 300; view.camera.move(12 * Math.sin(phase), 7 * Math.cos(phase)); \
             view.camera.zoom(1 + 0.02 * Math.sin(phase)); view.moved(); \
             if (now - began < 2000) requestAnimationFrame(tick); else resolve(gaps.slice(1)); }; \
             requestAnimationFrame(tick); })",
        );
        let mut gaps: Vec<f64> = gaps.as_array().unwrap().iter().map(|gap| gap.as_f64().unwrap()).collect();
        gaps.sort_by(f64::total_cmp);
        let part = |part: f64| gaps[((gaps.len() - 1) as f64 * part) as usize];
        println!(
            "{spec:<28} ready {ready:>6} ms   frames {:>4}   gap: half {:>5.1} ms, 99 % {:>5.1} ms, longest {:>5.1} ms",
            gaps.len(),
            part(0.5),
            part(0.99),
            part(1.0)
        );
    }
}

#[test]
fn a_simulation_is_followed_and_its_history_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let faults = folder.path().join("faults.txt");
    std::fs::write(&faults, "at 200ms cut leaf1:3\nat 201ms kill h1\n").unwrap();
    let faults = faults.to_str().unwrap();
    let server = Server::start(&[
        "clos:hosts=8,ports=4",
        "--sim",
        "--faults",
        faults,
        "--speed",
        "1000",
        "--limit-ms",
        "8000",
    ]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.wait_for("view.updates.some(update => (update.what || '').includes('cut leaf1:3'))");
    browser.wait_for("document.getElementById('counts').textContent.includes('7 of 8 configured')");
    browser.wait_for("view.model.hostState[0] === 4 && view.model.cableState.includes(1)");
    assert!(
        browser.value("document.getElementById('legend').innerText").as_str().unwrap().contains("missing")
    );
    browser.wait_for("!document.getElementById('history').hidden");
    browser.value("view.showPast(0)");
    assert_eq!(browser.value("view.following"), json!(false));
    assert_eq!(browser.value("view.model.cableState.includes(1)"), json!(false), "then no cable was cut");
    browser.value("view.showPast(view.updates.length - 1)");
    assert_eq!(browser.value("view.following"), json!(true));
}

#[test]
fn a_page_that_finds_another_server_at_its_address_forgets_what_the_former_one_told() {
    let mut server = Server::start(&["clos:hosts=8,ports=4"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.value("view.setMode('load')");
    browser.wait_for("view.loads");
    let address = server.address();
    server.stop();
    browser.wait_for("!document.getElementById('banner').hidden");
    let _other = Server::start_at(&address, &["clos:hosts=16,ports=8"]);
    browser.wait_for("view.model.hostCount === 16 && view.loads && view.loads.loads.length === 32");
    assert_eq!(browser.value("[view.updates.length, view.following]"), json!([1, true]));
    browser.wait_for("document.getElementById('banner').hidden");
}

#[test]
fn a_moment_that_is_looked_at_stays_while_new_ones_come() {
    let server = Server::start(&["ring:n=5"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    let take = |from: u32, to: u32| {
        format!(
            "(async () => {{ for (let seq = {from}; seq < {to}; seq++) \
             await view.take({{ ...view.updates[0], seq, history: undefined, what: `moment ${{seq}}` }}); }})()"
        )
    };
    browser.value(&take(100, 350));
    browser.value("view.showPast(view.updates.findIndex(({ seq }) => seq === 250))");
    browser.value(&take(350, 400));
    let shown = "[document.getElementById('moment').textContent.includes('moment 250'), \
                 view.updates[document.getElementById('slider').value].seq]";
    assert_eq!(browser.value(shown), json!([true, 250]));
    browser.value(&take(400, 500));
    let forgotten = "[document.getElementById('moment').textContent.includes('moment 250'), \
                     document.getElementById('slider').value]";
    assert_eq!(browser.value(forgotten), json!([true, "0"]), "it is forgotten, and shown all the same");
    // A fabric that is kept no more when the page asks for it is no sign that the server is gone.
    browser.value("view.showPast(view.updates.length - 1)");
    browser.value("view.take({ ...view.updates[0], seq: 600, scene: view.sceneNumber + 9 })");
    assert_eq!(browser.value("document.getElementById('banner').hidden"), json!(true));
    assert_eq!(browser.value("view.updates.some(({ seq }) => seq === 600)"), json!(false));
}

#[test]
fn a_file_that_changes_is_shown_anew() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("fabric.json");
    let write = |spec: &str| {
        let fabric = mapper::formats::resolve(spec).unwrap();
        std::fs::write(&map, mapper::formats::write(&fabric, mapper::formats::FileFormat::Json)).unwrap();
    };
    write("ring:n=5");
    let server = Server::start(&[map.to_str().unwrap()]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    write("ring:n=7");
    browser.wait_for("view.model.xbarCount === 7");
    std::fs::write(&map, "{").unwrap();
    browser.wait_for("document.getElementById('counts').textContent.includes('cannot be read')");
    assert_eq!(browser.value("view.model.xbarCount"), json!(7));
}

#[test]
fn other_hosts_and_other_sites_are_refused() {
    let server = Server::start(&["ring:n=3"]);
    let status = |request: &str| server.ask(request).split(' ').nth(1).unwrap().to_owned();
    assert_eq!(status("GET / HTTP/1.1\nHost: localhost\n\n"), "200");
    assert_eq!(status("GET / HTTP/1.1\nHost: evil.example\n\n"), "421");
    assert_eq!(status("GET /api/engines HTTP/1.1\nHost: 127.0.0.1.evil.example\n\n"), "421");
    assert_eq!(status("GET /api/engines HTTP/1.1\n\n"), "421");
    let foreign = "GET /api/engines HTTP/1.1\nHost: localhost\nOrigin: https://evil.example\n\n";
    assert_eq!(status(foreign), "403");
    assert_eq!(status("POST /api/routing HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}"), "415");
    let post = |body: &str| {
        let length = body.len();
        status(&format!(
            "POST /api/routing HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: {length}\n\n{body}"
        ))
    };
    let scene = server.scene();
    let routing = |scene: u64, engine: &str, cuts: &[u32]| {
        post(&json!({ "scene": scene, "engine": engine, "cuts": cuts }).to_string())
    };
    assert_eq!(routing(scene, "minhop", &[]), "200");
    assert_eq!(routing(scene, "minhop", &[3]), "400", "there are cables 0 to 2");
    assert_eq!(routing(scene, "no-such", &[]), "400");
    assert_eq!(routing(scene + 1, "minhop", &[]), "410");
    assert_eq!(post(&format!("{{\"scene\":{}", "1".repeat(70_000))), "413");
    assert_eq!(status("DELETE /api/engines HTTP/1.1\nHost: localhost\n\n"), "405");
    assert_eq!(status("GET /etc/passwd HTTP/1.1\nHost: localhost\n\n"), "404");
    let head = server.ask("GET / HTTP/1.1\nHost: localhost\n\n");
    for wanted in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "nosniff",
    ] {
        assert!(head.contains(wanted), "{wanted}");
    }
}

#[test]
fn elsewhere_than_on_the_loopback_address_a_token_is_needed() {
    let open = Command::new(MAPPER).args(["view", "ring:n=3", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(open.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&open.stderr).contains("--token is needed"));
    let server = Server::start(&["ring:n=3", "--token", "new"]);
    let token = server.url.split("#token=").nth(1).unwrap().to_owned();
    let engines =
        |header: &str| server.ask(&format!("GET /api/engines HTTP/1.1\nHost: localhost\n{header}\n"));
    assert!(engines("").starts_with("HTTP/1.1 401 "));
    assert!(engines("Authorization: Bearer 0123456789abcdef\n").starts_with("HTTP/1.1 401 "));
    assert!(engines(&format!("Authorization: Bearer {token}\n")).starts_with("HTTP/1.1 200 "));
    let page = server.ask("GET / HTTP/1.1\nHost: localhost\n\n");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && !page.contains("xbar1"),
        "the page holds nothing of the fabric"
    );
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    assert_eq!(browser.value("location.hash"), json!(""), "it is not left in the address");
    let mut stranger = Browser::open(server.url.split('#').next().unwrap()).unwrap();
    stranger.wait_for("document.getElementById('ask-token') && document.getElementById('ask-token').open");
    stranger.value("document.getElementById('token').value = 'wrong'; document.querySelector('#ask-token button').click()");
    stranger.wait_for("document.getElementById('ask-token').open");
    stranger.value(&format!(
        "document.getElementById('token').value = '{token}'; document.querySelector('#ask-token button').click()"
    ));
    stranger.wait_until_drawn();
}

#[test]
fn who_does_not_ask_keeps_nobody_out() {
    let server = Server::start(&["ring:n=3"]);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let answer = server.ask("GET /api/engines HTTP/1.1\nHost: localhost\n\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(silent);
    // A request that goes on and on is refused too.
    let mut endless = TcpStream::connect(server.address()).unwrap();
    let mut sent = endless.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    for _ in 0..1000 {
        sent = sent.and_then(|()| endless.write_all(&[b'a'; 1024]));
    }
    let mut answer = Vec::new();
    // The server may have hung up while this was still sending.
    let _hung_up = endless.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}
