// The fabric as it was told, and what is looked up in it.

/** States of hosts and cables, by the digit that tells them. */
const HOST_STATES = ['unknown', 'configured', 'at work', 'silent', 'missing', 'isolated'];
const CABLE_STATES = ['whole', 'dead', 'missing', 'carries short frames only'];

class Model {
  constructor(scene) {
    this.scene = scene;
    this.title = scene.title;
    this.size = scene.size;
    this.cells = scene.cells;
    this.xbars = scene.xbars;
    this.hosts = scene.hosts;
    this.cables = scene.cables;
    this.bundles = scene.bundles;
    this.frames = scene.frames;
    this.xbarCount = scene.xbars.name.length;
    this.hostCount = scene.hosts.name.length;
    this.cableCount = scene.cables.a.length;
    this.bundleCount = scene.bundles.a.length;
    this.hostState = new Uint8Array(this.hostCount);
    this.cableState = new Uint8Array(this.cableCount);
    this.group();
    this.place();
  }

  /** Lists what belongs to each xbar and bundle. */
  group() {
    this.hostsOf = Array.from({ length: this.xbarCount }, () => []);
    this.loose = [];
    for (let host = 0; host < this.hostCount; host++) {
      const xbar = this.hosts.xbar[host];
      (xbar < 0 ? this.loose : this.hostsOf[xbar]).push(host);
    }
    for (const hosts of this.hostsOf) hosts.sort((a, b) => this.hosts.port[a] - this.hosts.port[b]);
    this.cablesOf = Array.from({ length: this.bundleCount }, () => []);
    this.bundlesOf = Array.from({ length: this.xbarCount }, () => []);
    for (let cable = 0; cable < this.cableCount; cable++) this.cablesOf[this.cables.bundle[cable]].push(cable);
    for (let bundle = 0; bundle < this.bundleCount; bundle++) {
      const a = this.bundles.a[bundle], b = this.bundles.b[bundle];
      this.bundlesOf[a].push(bundle);
      if (b !== a) this.bundlesOf[b].push(bundle);
    }
  }

  /** Finds the ends and the bend of each line, and the cell of each host. */
  place() {
    const { x, y, w, h } = this.xbars, { width, height, in_line, top, left } = this.cells;
    this.line = new Float32Array(this.bundleCount * 6);
    for (let bundle = 0; bundle < this.bundleCount; bundle++) {
      const a = this.bundles.a[bundle], b = this.bundles.b[bundle];
      const x1 = x[a] + w[a] / 2, y1 = y[a] + h[a] / 2, x2 = x[b] + w[b] / 2, y2 = y[b] + h[b] / 2;
      const bend = this.bundles.bend[bundle] * 2;
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const cx = (x1 + x2) / 2 + (y2 - y1) / length * bend, cy = (y1 + y2) / 2 - (x2 - x1) / length * bend;
      this.line.set([x1, y1, a === b ? x1 + w[a] : cx, a === b ? y1 - 2 * h[a] : cy, x2, y2], bundle * 6);
    }
    this.hostX = new Float32Array(this.hostCount);
    this.hostY = new Float32Array(this.hostCount);
    for (let xbar = 0; xbar < this.xbarCount; xbar++) {
      this.hostsOf[xbar].forEach((host, at) => {
        this.hostX[host] = x[xbar] + left + at % in_line * width;
        this.hostY[host] = y[xbar] + top + Math.floor(at / in_line) * height;
      });
    }
    // Hosts without an xbar stand below the picture, in lines.
    const columns = Math.max(1, Math.floor(this.size[0] / (width * 6)));
    this.loose.forEach((host, at) => {
      this.hostX[host] = at % columns * width * 6;
      this.hostY[host] = this.size[1] + 40 + Math.floor(at / columns) * height * 2;
    });
    this.extent = [this.size[0], this.size[1] + (this.loose.length ? 40 + Math.ceil(this.loose.length / columns) * height * 2 : 0)];
  }

  /** Takes states as digits. */
  setStates(hosts, cables) {
    for (let i = 0; i < this.hostCount; i++) this.hostState[i] = i < hosts.length ? hosts.charCodeAt(i) - 48 : 0;
    for (let i = 0; i < this.cableCount; i++) this.cableState[i] = i < cables.length ? cables.charCodeAt(i) - 48 : 0;
  }

  cableName(cable) {
    const { a, a_port, b, b_port } = this.cables;
    return `${this.xbars.name[a[cable]]}:${a_port[cable]} – ${this.xbars.name[b[cable]]}:${b_port[cable]}`;
  }

  /** The bundle between two xbars, if there is one. */
  bundleBetween(a, b) {
    return this.bundlesOf[a].find(bundle => this.bundles.a[bundle] === b || this.bundles.b[bundle] === b);
  }

  /** What a text finds: nodes whose name, id or address has it in it, those that begin with it first. */
  find(text, most) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const port = /^(.+):(\d+)$/.exec(wanted);
    const first = [], then = [];
    const look = (kind, index, ...names) => {
      for (const name of names) {
        const at = name === undefined || name === null ? -1 : String(name).toLowerCase().indexOf(wanted);
        if (at >= 0) { (at === 0 ? first : then).push({ kind, index }); return; }
      }
    };
    for (let i = 0; i < this.xbarCount && first.length < most; i++) look('xbar', i, this.xbars.name[i], this.xbars.id[i], this.xbars.tag[i]);
    for (let i = 0; i < this.hostCount && first.length < most; i++) look('host', i, this.hosts.name[i], this.hosts.mac[i]);
    if (port && !wanted.includes('::')) {
      for (let cable = 0; cable < this.cableCount; cable++) {
        const { a, a_port, b, b_port } = this.cables;
        const is = (xbar, number) => number === Number(port[2]) && this.xbars.name[xbar].toLowerCase() === port[1];
        if (is(a[cable], a_port[cable]) || is(b[cable], b_port[cable])) first.unshift({ kind: 'bundle', index: this.cables.bundle[cable], cable });
      }
    }
    return first.concat(then).slice(0, most);
  }
}
