//! Tests of what the page shows as time goes on, and of looking back.

use serde_json::json;

use super::{Browser, Server};

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
fn a_moment_whose_picture_is_not_to_be_had_is_told_all_the_same() {
    let server = Server::start(&["ring:n=3"]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    browser.value(
        "view.updates.unshift({ ...view.updates[0], seq: -1, scene: view.sceneNumber + 9, what: 'long ago' }); \
         view.showPast(0)",
    );
    browser.wait_for("document.getElementById('counts').textContent.includes('no picture of then')");
    assert!(
        browser.value("document.getElementById('moment').textContent").as_str().unwrap().contains("long ago")
    );
    browser.value("view.showPast(view.updates.length - 1)");
    assert_eq!(
        browser.value("[view.following, document.getElementById('banner').hidden]"),
        json!([true, true])
    );
}

#[test]
fn a_file_that_changes_is_shown_anew() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("fabric.json");
    let write = |spec: &str| {
        let fabric = mapper_formats::resolve(spec).unwrap();
        std::fs::write(&map, mapper_formats::write(&fabric, mapper_formats::FileFormat::Json)).unwrap();
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
