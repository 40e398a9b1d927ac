// The page: what is shown, and what the reader does.

const LOAD_CLASSES = 8;

const view = {
  model: null, camera: new Camera(), drawing: null,
  chosen: null, pointed: null, found: [], routes: null, from: null,
  cuts: new Set(), cutOff: new Set(), consequences: null, entries: null, before: null, computing: false,
  mode: 'state', engine: null, engines: [], loads: null, otherLoads: null, most: 1,
  troubles: [], reasons: {}, updates: [], shown: null, following: true, serverId: null, serverStart: 0, scenes: new Map(), sceneNumber: -1, waiting: 0,

  // ---- what is drawn ----
  looks() {
    const theme = colours.now;
    const looks = theme.cable.map((colour, at) => ({ colour, width: at ? 2.4 : 1, dash: at === 2 ? [6, 4] : at === 3 ? [2, 3] : null, plain: at === 0 }));
    looks.push({ colour: theme.cut, width: 2.6, dash: [7, 4] });
    const scale = this.mode === 'change' ? theme.change : theme.loads;
    scale.forEach((colour, at) => looks.push({ colour, width: this.mode === 'change' ? 0.8 + Math.abs(at - 3) * 0.5 : 0.8 + at * 0.22, plain: this.mode === 'change' ? at === 3 : at < 2 }));
    return looks;
  },

  lookOf(bundle) {
    const { model } = this;
    let worst = 0;
    for (const cable of model.cablesOf[bundle]) {
      if (this.cuts.has(cable)) return CABLE_STATES.length;
      const kind = model.cableState[cable];
      if (kind === 1 || (kind && worst !== 1)) worst = kind;
    }
    if (worst) return worst;
    const first = CABLE_STATES.length + 1;
    if (traffic.modes[this.mode]) {
      const share = traffic.shareOf(this.mode, model.cablesOf[bundle]);
      return share === null ? 0 : first + this.classOf(share * this.most);
    }
    if (this.mode === 'load' && this.loads) return first + this.classOf(this.loadOf(this.loads, bundle));
    if (this.mode === 'change' && this.loads && this.otherLoads) {
      const one = this.loadOf(this.loads, bundle), other = this.loadOf(this.otherLoads, bundle);
      const part = (other - one) / (this.most || 1);
      return first + 3 + Math.sign(part) * (Math.abs(part) < 0.02 ? 0 : Math.abs(part) < 0.12 ? 1 : Math.abs(part) < 0.35 ? 2 : 3);
    }
    return 0;
  },

  loadOf(loads, bundle) {
    let most = 0;
    for (const cable of this.model.cablesOf[bundle]) most = Math.max(most, loads.loads[2 * cable] ?? 0, loads.loads[2 * cable + 1] ?? 0);
    return most;
  },

  classOf(load) { return Math.max(0, Math.min(LOAD_CLASSES - 1, Math.ceil(load / (this.most || 1) * LOAD_CLASSES) - 1)); },

  hostColour(host, theme) {
    if (this.isCutOff && this.isCutOff.has(host)) return theme.cut;
    const share = traffic.modes[this.mode] ? traffic.shareOfHost(this.mode, host) : null;
    return share === null ? theme.host[this.model.hostState[host]] || theme.cell : theme.loads[this.classOf(share * this.most)];
  },

  cableWord(cable) { return this.cuts.has(cable) ? 'cut' : this.model.cableState[cable] ? CABLE_STATES[this.model.cableState[cable]] : ''; },

  whyOf(mac) { return this.reasons[mac]; },

  get hasTiers() { return this.model.xbars.tier.some(tier => tier > 0); },

  // ---- frames ----
  redraw() { if (this.drawing) { this.drawing.stale = true; this.wake(); } },

  wake() {
    if (this.awake || !this.model) return;
    this.awake = true;
    const tick = now => {
      const more = this.drawing.frame(this, now);
      if (more || now - this.drawing.moved < 400) requestAnimationFrame(tick); else this.awake = false;
    };
    requestAnimationFrame(tick);
  },

  moved() { this.fitted = false; this.drawing.moved = performance.now(); this.wake(); },

  fit() {
    const wide = document.getElementById('panel').childElementCount && this.camera.width > 900 ? 324 : 0;
    this.camera.show(0, 0, this.model.extent[0], this.model.extent[1], wide);
    this.moved();
    this.fitted = true;
  },

  // ---- choosing ----
  pick(x, y) {
    const { model, camera } = this;
    const [px, py] = camera.toPicture(x, y);
    const { width, height } = model.cells;
    for (const host of model.loose) if (px >= model.hostX[host] && px < model.hostX[host] + width && py >= model.hostY[host] && py < model.hostY[host] + height) return { kind: 'host', index: host };
    const { x: bx, y: by, w, h } = model.xbars;
    for (let xbar = 0; xbar < model.xbarCount; xbar++) {
      if (px < bx[xbar] || py < by[xbar] || px > bx[xbar] + w[xbar] || py > by[xbar] + h[xbar]) continue;
      if (height * camera.scale > 5) {
        const host = model.hostsOf[xbar].find(one => px >= model.hostX[one] && px < model.hostX[one] + width && py >= model.hostY[one] && py < model.hostY[one] + height);
        if (host !== undefined) return { kind: 'host', index: host };
      }
      return { kind: 'xbar', index: xbar };
    }
    return this.pickLine(px, py, 5 / camera.scale);
  },

  pickLine(px, py, reach) {
    const { line, bundleCount } = this.model;
    let best = null, nearest = reach * reach;
    for (let bundle = 0; bundle < bundleCount; bundle++) {
      const at = bundle * 6;
      const x1 = line[at], y1 = line[at + 1], cx = line[at + 2], cy = line[at + 3], x2 = line[at + 4], y2 = line[at + 5];
      if (px < Math.min(x1, cx, x2) - reach || px > Math.max(x1, cx, x2) + reach || py < Math.min(y1, cy, y2) - reach || py > Math.max(y1, cy, y2) + reach) continue;
      // A curve is taken as eight straight pieces.
      let fromX = x1, fromY = y1;
      for (let step = 1; step <= 8; step++) {
        const t = step / 8, u = 1 - t;
        const toX = u * u * x1 + 2 * u * t * cx + t * t * x2, toY = u * u * y1 + 2 * u * t * cy + t * t * y2;
        const dx = toX - fromX, dy = toY - fromY;
        const part = Math.max(0, Math.min(1, ((px - fromX) * dx + (py - fromY) * dy) / (dx * dx + dy * dy || 1)));
        const far = (px - fromX - part * dx) ** 2 + (py - fromY - part * dy) ** 2;
        if (far < nearest) { nearest = far; best = bundle; }
        fromX = toX; fromY = toY;
      }
    }
    return best === null ? null : { kind: 'bundle', index: best };
  },

  choose(what, goThere = false) {
    this.chosen = what;
    panel.fill();
    if (what && goThere) this.goTo(what);
    this.wake();
  },

  /** Moves what is chosen into sight, and nearer if it is too small to be read. */
  goTo({ kind, index }) {
    const { model, camera } = this;
    const xbar = kind === 'xbar' ? index : kind === 'host' ? model.hosts.xbar[index] : model.bundles.a[index];
    let x, y;
    if (kind === 'bundle') { x = model.line[index * 6 + 2]; y = model.line[index * 6 + 3]; }
    else if (xbar >= 0) { x = model.xbars.x[xbar] + model.xbars.w[xbar] / 2; y = model.xbars.y[xbar] + model.xbars.h[xbar] / 2; }
    else { x = model.hostX[index]; y = model.hostY[index]; }
    if (kind !== 'bundle') camera.scale = Math.max(camera.scale, kind === 'host' ? 1.6 : 0.8);
    camera.x = x - camera.width / 2 / camera.scale;
    camera.y = y - camera.height / 2 / camera.scale;
    this.moved();
  },

  nameOf({ kind, index }) {
    const { model } = this;
    if (kind === 'xbar') {
      const hosts = model.hostsOf[index].length;
      return model.xbars.name[index] + (hosts ? `\n${counted(hosts, 'host')}` : '');
    }
    if (kind === 'host') return `${model.hosts.name[index]}\n${model.hosts.mac[index]}${model.hostState[index] ? '\n' + HOST_STATES[model.hostState[index]] : ''}`;
    const cables = model.cablesOf[index];
    const load = traffic.modes[this.mode] ? traffic.tipOf(cables) : this.loads ? `\n${round(this.loadOf(this.loads, index))} routes at most (${this.loads.engine})` : '';
    return (cables.length === 1 ? model.cableName(cables[0]) : `${model.xbars.name[model.bundles.a[index]]} – ${model.xbars.name[model.bundles.b[index]]}, ${cables.length} cables`) + load;
  },

  // ---- colours ----
  setMode(mode) {
    this.mode = mode;
    document.getElementById('engine-label').hidden = mode !== 'load' && mode !== 'change';
    document.getElementById('other-label').hidden = mode !== 'change';
    if (mode !== 'load' && mode !== 'change') { this.loads = null; this.legend(); panel.fill(); this.redraw(); if (this.cuts.size) this.compute(); } else this.compute();
  },

  legend() {
    const theme = colours.now, legend = document.getElementById('legend');
    const swatch = (colour, text, mark = MARKS[0]) => {
      const square = element('canvas', { width: 14, height: 10, 'aria-hidden': 'true' });
      const context = square.getContext('2d');
      context.fillStyle = colour;
      context.fillRect(0, 0, 14, 10);
      context.strokeStyle = theme.edge;
      context.strokeRect(0.5, 0.5, 13, 9);
      context.strokeStyle = theme.ink;
      context.beginPath();
      mark(context, 3, 2, 11, 8);
      context.stroke();
      return element('span', {}, square, text);
    };
    const parts = [];
    if (traffic.modes[this.mode]) {
      theme.loads.forEach((colour, at) => parts.push(swatch(colour, traffic.classText(this.mode, (at + 1) / LOAD_CLASSES))));
      parts.push(element('span', { class: 'faint' }, traffic.modes[this.mode].legend));
    } else if (this.mode === 'load' && this.loads) {
      theme.loads.forEach((colour, at) => parts.push(swatch(colour, `≤ ${round(this.most * (at + 1) / LOAD_CLASSES)}`)));
      parts.push(element('span', { class: 'faint' }, `routes of ${this.loads.engine} over a cable, the busier way`));
    } else if (this.mode === 'change' && this.loads && this.otherLoads) {
      const { engine } = this.loads, other = this.otherLoads.engine;
      parts.push(swatch(theme.change[0], `far more by ${engine}`), swatch(theme.change[1], `more by ${engine}`), swatch(theme.change[3], 'alike'), swatch(theme.change[5], `more by ${other}`), swatch(theme.change[6], `far more by ${other}`));
    } else {
      const seen = new Set(this.model.hostState);
      HOST_STATES.forEach((state, at) => { if (at && seen.has(at)) parts.push(swatch(theme.host[at], state, MARKS[at])); });
      const cables = new Set(this.model.cableState);
      CABLE_STATES.forEach((state, at) => { if (at && cables.has(at)) parts.push(swatch(theme.cable[at], `cable ${state}`)); });
    }
    legend.replaceChildren(...parts);
  },

  // ---- what the server tells ----
  async take(update) {
    if (update.server !== this.serverId) await this.meet(update.server);
    if (update.traffic) { traffic.take(update.traffic); return; }
    try {
      if (update.scene !== this.sceneNumber && this.following) await this.loadScene(update.scene);
    } catch (error) {
      // The fabric was replaced while this page asked for it; what is shown now is told next.
      if (error instanceof Gone) return;
      throw error;
    }
    const last = this.updates[this.updates.length - 1];
    // After a break the server tells again what it knows.
    if (update.history) this.updates = update.history;
    else if (!last || update.seq !== last.seq) this.updates.push(update);
    // Servers count from their start, which this machine's clock puts on a day and an hour.
    if (update.now_ms !== undefined) this.serverStart = Date.now() - update.now_ms;
    if (this.updates.length > MOST_UPDATES) this.updates.splice(0, this.updates.length - MOST_UPDATES);
    if (this.following) this.showUpdate(update);
    this.slider();
  },

  /** Begins anew with a server that is not the one which told what this page knows. */
  async meet(id) {
    await this.loadEngines();
    if (this.serverId !== null) {
      this.scenes.clear();
      traffic.forget();
      Object.assign(this, { updates: [], shown: null, following: true, sceneNumber: -1 });
      banner('');
    }
    this.serverId = id;
  },

  /** Asks which engines there are. The one that the reader chose stays chosen. */
  async loadEngines() {
    const { engines } = await server.get('api/engines');
    this.engines = engines;
    fillEngines();
    if (!engines.some(({ name }) => name === this.engine)) this.engine = engines[0].name;
    document.getElementById('engine').value = this.engine;
  },

  async loadScene(number) {
    let scene = this.scenes.get(number);
    if (!scene) {
      scene = await server.get(`api/scene/${number}`);
      this.scenes.set(number, scene);
      if (this.scenes.size > 8) this.scenes.delete(this.scenes.keys().next().value);
    }
    this.setScene(scene, number);
  },

  setScene(scene, number) {
    const fresh = !this.model;
    this.model = new Model(scene);
    this.sceneNumber = number;
    Object.assign(this, { chosen: null, pointed: null, found: [], routes: null, from: null, consequences: null, entries: null, before: null, loads: null, otherLoads: null, isCutOff: null, cutOff: new Set(), cuts: new Set() });
    document.getElementById('title').textContent = scene.title;
    document.title = `${scene.title} – mapper`;
    panel.fill();
    this.counts();
    this.legend();
    if (fresh) this.fit();
    this.redraw();
    if ((this.mode === 'load' || this.mode === 'change') && server.exists) this.compute();
  },

  counts(said = '') {
    const { model } = this;
    const parts = [counted(model.hostCount, 'host'), counted(model.xbarCount, 'crossbar'), counted(model.cableCount, 'cable')].join(', ');
    document.getElementById('counts').textContent = said ? `${parts} · ${said}` : parts;
  },

  showUpdate(update) {
    this.shown = update;
    this.model.setStates(update.hosts || '', update.cables || '');
    this.troubles = update.troubles || [];
    this.reasons = update.reasons || {};
    this.counts(update.says);
    this.legend();
    panel.fill();
    this.redraw();
  },

  slider() {
    const footer = document.getElementById('history'), range = document.getElementById('slider');
    const date = ({ at, at_ms, unix_ms }) => unix_ms !== undefined ? new Date(unix_ms).toLocaleString() : at_ms !== undefined ? new Date(this.serverStart + at_ms).toLocaleString() : at;
    const moment = update => [date(update), update.what].filter(Boolean).join('   ');
    footer.hidden = this.updates.length < 2;
    range.max = this.updates.length - 1;
    // The first moments are forgotten as new ones come; one that was forgotten while it is looked at stands first.
    const { shown } = this;
    range.value = this.following || !shown ? range.max : Math.max(0, this.updates.findIndex(({ seq }) => seq === shown.seq));
    document.getElementById('now').setAttribute('aria-pressed', String(this.following));
    if (shown) document.getElementById('moment').textContent = moment(shown);
  },

  async showPast(at) {
    const update = this.updates[at];
    if (!update) return;
    this.following = at === this.updates.length - 1;
    try {
      if (update.scene !== this.sceneNumber) await this.loadScene(update.scene);
      this.showUpdate(update);
    } catch (error) {
      if (!(error instanceof Gone)) { banner(error.message); return; }
      // What happened then is known all the same.
      this.showUpdate({ ...update, hosts: '', cables: '', says: error.message });
    }
    this.slider();
  },

  async askToken() {
    const dialog = document.getElementById('ask-token');
    if (!dialog.open) dialog.showModal();
    await new Promise(resolve => dialog.addEventListener('close', resolve, { once: true }));
    server.token = document.getElementById('token').value;
  },

  resize() {
    if (!this.drawing) return;
    // A canvas that gets another size is empty.
    if (this.drawing.resize(this.camera) && this.model) {
      // A reader who has not moved anything sees all, however large the window is.
      if (this.fitted) this.fit();
      this.drawing.show(this);
    }
    if (this.model) this.wake();
  },
};

/** Most moments of the history that a page keeps. */
const MOST_UPDATES = 200;

async function begin() {
  colours.begin();
  const data = JSON.parse(document.getElementById('data').textContent);
  view.drawing = new Drawing(document.getElementById('picture'));
  view.resize();
  listen();
  if (data.scene) {
    view.setScene(data.scene, 0);
    ready();
    return;
  }
  server.exists = true;
  server.begin();
  let first = true;
  server.follow(async update => {
    await view.take(update);
    if (first) { first = false; ready(); }
  });
}

/** Says, to whoever measures, that the fabric is drawn. */
function ready() {
  view.drawing.finish(view);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
