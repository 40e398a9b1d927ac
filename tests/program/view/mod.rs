//! Tests of `mapper view`, of the page in a real browser, and of who its server answers.

mod access;
mod browser;
mod load;
mod moments;

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

    /// The memory that it holds, in bytes.
    fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
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
    let mut fabric = mapper_formats::resolve("clos:hosts=16,ports=8").unwrap();
    let evil = "<img src=x onerror=\"document.title='broken in'\"></script><b>h1</b>";
    fabric.hosts[0].description = evil.to_owned();
    fabric.xbars[0].description = "<i>leaf</i>".to_owned();
    std::fs::write(&map, mapper_formats::write(&fabric, mapper_formats::FileFormat::Json)).unwrap();
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
    // The picture has many colours, so something is drawn.
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
    assert!(panel.contains("bisection") && panel.contains("(was "), "{panel}");
    // The page lists the tables that change, and which entries of them.
    let tables = "[document.querySelectorAll('#tables tr').length, view.consequences.tables.length]";
    let tables = browser.value(tables);
    assert!(tables[0] == tables[1] && tables[0].as_u64() > Some(0), "{tables}");
    browser.value("document.querySelector('#tables button').click()");
    browser.wait_for("view.entries");
    let entries = "[document.querySelectorAll('#entries tr').length, view.consequences.tables[0][1]]";
    let entries = browser.value(entries);
    assert_eq!(entries[0], entries[1]);
    assert!(
        browser.panel().contains("Entries of ") && browser.panel().contains("→ port "),
        "{}",
        browser.panel()
    );
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
    // The keyboard alone chooses the next xbar, which is described then.
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
fn fabrics_of_16_to_10000_hosts_are_shown_dark_and_light() {
    for (spec, hosts) in [
        ("clos:hosts=16,ports=8", 16),
        ("clos:hosts=128,ports=16", 128),
        ("clos:hosts=1024,ports=32", 1024),
        ("clos:hosts=10000,ports=36", 10_000),
    ] {
        let server = Server::start(&[spec]);
        let Some(mut browser) = Browser::open(&server.url) else { return };
        browser.wait_until_drawn();
        assert_eq!(browser.value("view.model.hostCount"), json!(hosts));
        for theme in ["light", "dark"] {
            browser.value(&format!(
                "colours.set('{theme}'); view.legend(); view.redraw(); view.drawing.finish(view)"
            ));
            let bytes = browser.screenshot(&format!("page-{hosts}-{theme}"));
            assert!(bytes > 10_000, "an empty page is smaller than {bytes} bytes");
        }
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
fn what_goes_over_cables_is_coloured_and_told_beside_them() {
    let server = Server::start(&["clos:hosts=8,ports=4"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    let modes = "[...document.getElementById('colour').options].map(option => option.value)";
    assert_eq!(browser.value(modes), json!(["state", "load", "change"]), "nothing is counted");
    browser.value(
        "traffic.take({ scene: view.sceneNumber, cables: [[0, 5e8, 1e8, 3, 1000], [1, 1e7, 0, 0, 1000]], \
         hosts: [[0, 2e3, 9e8, 1, 1000]], force: { hosts: 1, loads: [[0, 2, 1]] } })",
    );
    assert_eq!(browser.value(modes), json!(["state", "load", "change", "use", "lost", "force"]));
    let looks = "[0, 1, 2].map(cable => view.lookOf(view.model.cables.bundle[cable]))";
    let legend = "document.getElementById('legend').innerText";
    browser.value("view.setMode('use')");
    let used = browser.value(looks);
    assert!(
        used[0].as_u64() > used[1].as_u64() && used[2] == json!(0),
        "who is not counted is plain: {used}"
    );
    assert!(browser.value(legend).as_str().unwrap().contains("≤ 100 %"));
    assert_ne!(
        browser.value("view.hostColour(0, colours.now)"),
        browser.value("view.hostColour(1, colours.now)")
    );
    browser.value("view.choose({ kind: 'bundle', index: view.model.cables.bundle[0] })");
    let panel = browser.panel();
    assert!(panel.contains("500 Mb/s there, 100 Mb/s back of 1 Gb/s, 3 frames lost"), "{panel}");
    assert!(panel.contains("2 routes in force there, 1 back"), "{panel}");
    browser.value("view.choose({ kind: 'host', index: 0 })");
    assert!(browser.panel().contains("900 Mb/s"), "{}", browser.panel());
    browser.value("view.setMode('force')");
    let used = browser.value(looks);
    assert!(used[0].as_u64() > Some(0) && used[1] == json!(0), "{used}");
    // Where nothing is counted any more, it is coloured by state again.
    browser.value("traffic.forget()");
    assert_eq!(
        browser.value("[view.mode, document.getElementById('colour').value]"),
        json!(["state", "state"])
    );
}
