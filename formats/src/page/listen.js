// Mouse, fingers and keys.

function fillEngines() {
  for (const id of ['engine', 'other']) {
    const select = document.getElementById(id);
    select.replaceChildren(...view.engines.map(({ name, summary }) => element('option', { value: name, title: summary }, name)));
  }
  document.getElementById('other').selectedIndex = Math.min(1, view.engines.length - 1);
}

function listen() {
  const canvas = document.getElementById('picture'), colour = document.getElementById('colour');
  fillModes();
  colour.addEventListener('change', () => {
    if (!server.exists && colour.value !== 'state') {
      colour.value = 'state';
      banner('This file has no engines in it. Loads are computed by: mapper view FABRIC');
      return;
    }
    view.setMode(colour.value);
  });
  document.getElementById('engine').addEventListener('change', event => { view.engine = event.target.value; view.recompute(); });
  document.getElementById('other').addEventListener('change', () => view.recompute());
  document.getElementById('fit').addEventListener('click', () => view.fit());
  document.getElementById('theme').addEventListener('click', toggleTheme);
  document.getElementById('help').addEventListener('click', () => document.getElementById('keys').showModal());
  document.getElementById('now').addEventListener('click', () => view.showPast(view.updates.length - 1));
  document.getElementById('slider').addEventListener('input', event => view.showPast(Number(event.target.value)));
  new ResizeObserver(() => view.resize()).observe(canvas);
  printing();
  pointers(canvas);
  search();
  document.addEventListener('keydown', key);
}

/** Paper is light, whatever the screen is. */
function printing() {
  let before = null;
  const show = name => {
    colours.set(name);
    if (!view.model) return;
    view.legend();
    view.redraw();
    view.drawing.finish(view);
  };
  window.addEventListener('beforeprint', () => { before ??= colours.name; show('light'); });
  window.addEventListener('afterprint', () => { if (before) show(before); before = null; });
}

function toggleTheme() {
  colours.set(colours.name === 'dark' ? 'light' : 'dark');
  view.legend();
  view.redraw();
}

function pointers(canvas) {
  const down = new Map();
  let travelled = 0, spread = 0;
  const place = event => { const at = canvas.getBoundingClientRect(); return [event.clientX - at.left, event.clientY - at.top]; };
  canvas.addEventListener('pointerdown', event => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, place(event));
    if (down.size === 1) travelled = 0;
    canvas.classList.add('dragging');
  });
  canvas.addEventListener('pointermove', event => {
    const [x, y] = place(event);
    const last = down.get(event.pointerId);
    if (!last) { point(x, y); return; }
    if (down.size === 1) {
      travelled += Math.abs(x - last[0]) + Math.abs(y - last[1]);
      if (travelled > 3) { view.camera.move(x - last[0], y - last[1]); view.moved(); hideTip(); }
    }
    down.set(event.pointerId, [x, y]);
    if (down.size === 2) {
      const [one, other] = [...down.values()];
      const now = Math.hypot(one[0] - other[0], one[1] - other[1]);
      if (spread) view.camera.zoom(now / spread, (one[0] + other[0]) / 2, (one[1] + other[1]) / 2);
      spread = now;
      travelled = 99;
      view.moved();
    }
  });
  const up = event => {
    const was = down.delete(event.pointerId);
    spread = 0;
    canvas.classList.toggle('dragging', down.size > 0);
    if (was && event.type === 'pointerup' && travelled <= 3) view.choose(view.pick(...place(event)));
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => { view.pointed = null; hideTip(); view.wake(); });
  canvas.addEventListener('dblclick', event => { view.camera.zoom(2, ...place(event)); view.moved(); });
  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    view.camera.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...place(event));
    hideTip();
    view.moved();
  }, { passive: false });
}

/** Shows what is under the pointer, at most once a frame. */
function point(x, y) {
  point.at = [x, y];
  if (point.waits) return;
  point.waits = true;
  requestAnimationFrame(() => {
    point.waits = false;
    if (!view.model) return;
    const what = view.pick(...point.at), tip = document.getElementById('tip');
    view.pointed = what;
    view.wake();
    tip.hidden = !what;
    if (!what) return;
    tip.textContent = view.nameOf(what);
    const [left, top] = point.at;
    tip.style.left = `${Math.min(left + 14, view.camera.width - tip.offsetWidth - 6)}px`;
    tip.style.top = `${Math.min(top + 16, view.camera.height - tip.offsetHeight - 6)}px`;
  });
}

function hideTip() { document.getElementById('tip').hidden = true; }

function search() {
  const query = document.getElementById('query'), list = document.getElementById('found');
  let hits = [], at = 0;
  const show = () => {
    list.hidden = !hits.length && !query.value.trim();
    const words = { xbar: 'crossbar', host: 'host', bundle: 'cable' };
    list.replaceChildren(...hits.slice(0, 12).map((hit, number) => element('li', {
      'aria-selected': String(number === at), onpointerdown: event => { event.preventDefault(); take(number); },
    }, hit.cable === undefined ? view.nameOf(hit).split('\n')[0] : view.model.cableName(hit.cable), element('small', {}, words[hit.kind]))),
    ...(hits.length ? [] : [element('li', {}, 'nothing is called so')]));
  };
  const take = number => { if (hits[number]) { view.choose({ kind: hits[number].kind, index: hits[number].index }, true); list.hidden = true; } };
  query.addEventListener('input', () => {
    hits = view.model ? view.model.find(query.value, 200) : [];
    view.found = query.value.trim() ? hits : [];
    at = 0;
    show();
    view.wake();
  });
  query.addEventListener('focus', () => { if (query.value.trim()) show(); });
  query.addEventListener('blur', () => { list.hidden = true; });
  query.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      at = Math.max(0, Math.min(Math.min(hits.length, 12) - 1, at + (event.key === 'ArrowDown' ? 1 : -1)));
      show();
    } else if (event.key === 'Escape') {
      query.value = ''; hits = []; view.found = []; list.hidden = true; document.getElementById('picture').focus(); view.wake();
      event.stopPropagation();
    }
  });
  document.getElementById('search').addEventListener('submit', event => { event.preventDefault(); take(at); });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.model) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || document.querySelector('dialog[open]')) return;
  if (event.target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ')) return;
  const { chosen, camera } = view, step = 80;
  const isHost = chosen && chosen.kind === 'host' && server.exists;
  const actions = {
    ArrowLeft: () => { camera.move(step, 0); view.moved(); },
    ArrowRight: () => { camera.move(-step, 0); view.moved(); },
    ArrowUp: () => { camera.move(0, step); view.moved(); },
    ArrowDown: () => { camera.move(0, -step); view.moved(); },
    '+': () => { camera.zoom(1.25); view.moved(); },
    '=': () => { camera.zoom(1.25); view.moved(); },
    '-': () => { camera.zoom(0.8); view.moved(); },
    0: () => view.fit(),
    '/': () => document.getElementById('query').focus(),
    '?': () => document.getElementById('keys').showModal(),
    d: toggleTheme,
    n: () => stepXbar(1),
    p: () => stepXbar(-1),
    Enter: () => { if (chosen) view.goTo(chosen); },
    f: () => { if (isHost) view.routeFrom(chosen.index); },
    t: () => { if (isHost) view.routeTo(chosen.index); },
    a: () => { if (isHost) view.routesOf(chosen.index); },
    c: () => { if (chosen && chosen.kind === 'bundle' && server.exists) view.toggleCut(view.model.cablesOf[chosen.index].find(cable => !view.cuts.has(cable)) ?? view.model.cablesOf[chosen.index][0]); },
    Escape: () => { view.choose(null); view.clearRoutes(); },
  };
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
}

function stepXbar(by) {
  const count = view.model.xbarCount;
  if (!count) return;
  const at = view.chosen && view.chosen.kind === 'xbar' ? view.chosen.index + by : by > 0 ? 0 : count - 1;
  view.choose({ kind: 'xbar', index: (at + count) % count });
  const { x, y } = view.model.xbars, xbar = view.chosen.index;
  const [left, top] = [(x[xbar] - view.camera.x) * view.camera.scale, (y[xbar] - view.camera.y) * view.camera.scale];
  if (left < 0 || top < 0 || left > view.camera.width || top > view.camera.height) view.goTo(view.chosen);
}

begin();
