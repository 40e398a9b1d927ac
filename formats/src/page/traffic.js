// What goes over cables, as far as this machine's agents and crossbars count it, and the routes in force of its hosts.

const traffic = {
  /** What can be shown by colour, if the server tells it. */
  modes: {
    use: { text: 'by utilisation', legend: 'of what a cable carries, the busier way; where its speed is unknown, of the busiest cable' },
    lost: { text: 'by frames lost', legend: 'frames lost at either end since its daemon began' },
    force: { text: 'by routes in force', legend: 'routes in force of the hosts of this machine over a cable, the busier way' },
  },
  scene: -1, cables: new Map(), hosts: new Map(), force: new Map(), forceHosts: 0, mostBits: 0, mostLost: 0, mostForce: 0,

  forget() { this.take({ scene: -1, cables: [], hosts: [], force: null }); },

  take({ scene, cables, hosts, force }) {
    const flow = ([number, one, other, lost, mbps]) => [number, { one, other, lost, mbps }];
    const loads = force ? force.loads : [];
    Object.assign(this, {
      scene, cables: new Map(cables.map(flow)), hosts: new Map(hosts.map(flow)),
      force: new Map(loads.map(([cable, one, other]) => [cable, { one, other }])), forceHosts: force ? force.hosts : 0,
    });
    const flows = [...this.cables.values(), ...this.hosts.values()];
    this.mostBits = flows.reduce((most, it) => Math.max(most, it.one, it.other), 1);
    this.mostLost = flows.reduce((most, it) => Math.max(most, it.lost), 1);
    this.mostForce = loads.reduce((most, [, one, other]) => Math.max(most, one, other), 1);
    fillModes();
    if (!view.model) return;
    if (this.modes[view.mode]) { view.legend(); view.redraw(); }
    if (view.chosen) panel.fill();
  },

  /** Whether there is anything to show so. */
  has(mode) { return mode === 'force' ? this.force.size > 0 : this.cables.size + this.hosts.size > 0; },

  /** What is told belongs to one fabric, and is not shown on another. */
  get isShown() { return this.scene === view.sceneNumber; },

  share(mode, flow) {
    if (mode === 'lost') return flow.lost / this.mostLost;
    return Math.max(flow.one, flow.other) / (flow.mbps ? flow.mbps * 1e6 : this.mostBits);
  },

  /** The largest part of what there can be, of cables side by side; null where nothing is known. */
  shareOf(mode, cables) {
    if (!this.isShown) return null;
    let most = null;
    for (const cable of cables) {
      const flow = (mode === 'force' ? this.force : this.cables).get(cable);
      if (flow) most = Math.max(most || 0, mode === 'force' ? Math.max(flow.one, flow.other) / this.mostForce : this.share(mode, flow));
    }
    return most;
  },

  shareOfHost(mode, host) {
    const flow = this.isShown && mode !== 'force' ? this.hosts.get(host) : undefined;
    return flow ? this.share(mode, flow) : null;
  },

  classText(mode, part) {
    if (mode === 'use') return `≤ ${round(part * 100)} %`;
    return `≤ ${round(part * (mode === 'lost' ? this.mostLost : this.mostForce))}`;
  },

  /** What goes over cables, for a tip. */
  tipOf(cables) {
    const lines = this.isShown ? cables.flatMap(cable => [this.flowText(this.cables.get(cable)), this.forceText(this.force.get(cable))]) : [];
    return lines.filter(Boolean).slice(0, 4).map(line => `\n${line}`).join('');
  },

  flowText(flow) { return flow && `${rate(flow.one)} there, ${rate(flow.other)} back${flow.mbps ? ` of ${rate(flow.mbps * 1e6)}` : ''}, ${counted(flow.lost, 'frame')} lost`; },

  forceText(flow) { return flow && `${counted(flow.one, 'route')} in force there, ${flow.other.toLocaleString('en')} back`; },

  /** Rows about a cable or a host, for its details. */
  rowsOf(cable) {
    if (!this.isShown) return [];
    return [['now', this.flowText(this.cables.get(cable))], ['routes', this.forceText(this.force.get(cable))]];
  },

  rowsOfHost(host) {
    const flow = this.isShown && this.hosts.get(host);
    return flow ? [['receives', rate(flow.one)], ['sends', rate(flow.other)], ['speed', flow.mbps ? rate(flow.mbps * 1e6) : ''], ['frames lost', flow.lost.toLocaleString('en')]] : [];
  },
};

/** Bits a second, for people. */
function rate(bits) {
  const units = ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'];
  let at = 0;
  while (bits >= 1000 && at < units.length - 1) { bits /= 1000; at++; }
  return `${round(bits)} ${units[at]}`;
}

/** Offers what can be shown by colour. What the reader chose stays chosen while there is anything to show so. */
function fillModes() {
  const select = document.getElementById('colour');
  const modes = [['state', 'by state'], ['load', 'by load'], ['change', 'by load, two engines']];
  for (const [mode, { text }] of Object.entries(traffic.modes)) if (traffic.has(mode)) modes.push([mode, text]);
  if (modes.length === select.options.length && modes.every(([mode], at) => select.options[at].value === mode)) return;
  select.replaceChildren(...modes.map(([value, text]) => element('option', { value }, text)));
  const stays = modes.some(([mode]) => mode === view.mode);
  select.value = stays ? view.mode : 'state';
  if (!stays && view.model) view.setMode('state');
}

