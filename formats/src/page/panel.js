// What stands beside the picture: details of what is chosen, routes, and what was cut. All text from outside, names of hosts
// above all, is put in as text and never as HTML.

/** Most lines of a list, and most tables of which it is said how many entries change. */
const MOST_LISTED = 400;
const MOST_TABLES = 24;

/** An element with attributes, text or other elements in it. */
function element(tag, attributes, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...inside.filter(part => part !== undefined && part !== null));
  return made;
}

const counted = (count, thing) => `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`;
const round = number => Number(number.toFixed(number < 10 ? 1 : 0)).toLocaleString('en');

const panel = {
  fill() {
    const aside = document.getElementById('panel');
    const parts = [...this.chosen(), ...this.routes(), ...this.cuts(), ...this.note()];
    aside.replaceChildren(...parts);
  },

  link(kind, index, text) {
    return element('a', { href: '#', onclick: event => { event.preventDefault(); view.choose({ kind, index }, true); } }, text);
  },

  chosen() {
    const { chosen } = view;
    if (!chosen) return [];
    return { xbar: this.xbar, host: this.host, bundle: this.bundle }[chosen.kind].call(this, chosen.index);
  },

  facts(rows) {
    return element('table', {}, ...rows.filter(row => row[1] !== undefined && row[1] !== null && row[1] !== '').map(([name, value]) =>
      element('tr', {}, element('th', { scope: 'row' }, name), element('td', {}, value))));
  },

  xbar(xbar) {
    const { model } = view, { name, id, tag, ports, tier } = model.xbars;
    const rows = [];
    for (const host of model.hostsOf[xbar]) {
      const state = HOST_STATES[model.hostState[host]];
      rows.push([model.hosts.port[host], this.link('host', host, model.hosts.name[host]), state === 'unknown' ? '' : state]);
    }
    for (const bundle of model.bundlesOf[xbar]) {
      for (const cable of model.cablesOf[bundle]) {
        const { a, a_port, b, b_port } = model.cables;
        const near = a[cable] === xbar;
        const far = near ? b[cable] : a[cable];
        const text = `${name[far]}:${near ? b_port[cable] : a_port[cable]}`;
        rows.push([near ? a_port[cable] : b_port[cable], this.link('bundle', bundle, text), view.cableWord(cable)]);
      }
    }
    rows.sort((one, other) => one[0] - other[0]);
    const cables = model.bundlesOf[xbar].reduce((sum, bundle) => sum + model.cablesOf[bundle].length, 0);
    return [
      element('h2', {}, name[xbar]),
      this.facts([['id', id[xbar]], ['tag', tag[xbar]], ['tier', view.hasTiers ? String(tier[xbar] + 1) : ''], ['ports', `${ports[xbar]}, ${model.hostsOf[xbar].length} to hosts, ${cables} to crossbars`]]),
      element('h3', {}, 'Ports in use'),
      element('table', {}, ...rows.slice(0, MOST_LISTED).map(([port, far, state]) => element('tr', {}, element('th', { scope: 'row' }, String(port)), element('td', {}, far), element('td', { class: 'faint' }, state)))),
    ];
  },

  host(host) {
    const { model } = view, { name, mac, xbar, port } = model.hosts;
    const at = xbar[host] < 0 ? 'no crossbar' : this.link('xbar', xbar[host], `${model.xbars.name[xbar[host]]}:${port[host]}`);
    const state = HOST_STATES[model.hostState[host]];
    return [
      element('h2', {}, name[host]),
      this.facts([['MAC', mac[host]], ['cabled to', at], ['state', state === 'unknown' ? '' : state], ['why', view.whyOf(mac[host])], ...traffic.rowsOfHost(host)]),
      server.exists ? element('div', { class: 'row' },
        element('button', { onclick: () => view.routeFrom(host) }, 'Routes from here'),
        element('button', { onclick: () => view.routeTo(host), disabled: view.from === null || view.from === host }, 'Routes to here'),
        element('button', { onclick: () => view.routesOf(host) }, 'All routes from here')) : undefined,
    ];
  },

  bundle(bundle) {
    const { model } = view, { a, b } = model.bundles;
    const cables = model.cablesOf[bundle];
    const parts = [
      element('h2', {}, `${model.xbars.name[a[bundle]]} – ${model.xbars.name[b[bundle]]}`),
      element('p', { class: 'faint' }, counted(cables.length, 'cable'), ' · ', this.link('xbar', a[bundle], model.xbars.name[a[bundle]]), ' · ', this.link('xbar', b[bundle], model.xbars.name[b[bundle]])),
    ];
    const loads = view.loads;
    const table = element('table', {}, element('tr', {}, element('th', {}, 'ports'), loads ? element('th', {}, '→') : undefined, loads ? element('th', {}, '←') : undefined, element('th', {}, ''), element('th', {}, '')));
    for (const cable of cables) {
      const isCut = view.cuts.has(cable);
      const speed = model.cables.speed[cable];
      table.append(element('tr', {},
        element('td', {}, `${model.cables.a_port[cable]} – ${model.cables.b_port[cable]}`),
        loads ? element('td', { class: 'number' }, round(loads.loads[2 * cable] ?? 0)) : undefined,
        loads ? element('td', { class: 'number' }, round(loads.loads[2 * cable + 1] ?? 0)) : undefined,
        element('td', { class: 'faint' }, [speed, view.cableWord(cable)].filter(Boolean).join(', ')),
        element('td', {}, server.exists && CABLE_STATES[model.cableState[cable]] !== 'missing' ? element('button', { 'aria-pressed': String(isCut), onclick: () => view.toggleCut(cable) }, isCut ? 'Mend' : 'Cut') : undefined)));
    }
    parts.push(table);
    for (const cable of cables) {
      const rows = traffic.rowsOf(cable).filter(([, value]) => value);
      if (rows.length) parts.push(element('h3', {}, model.cableName(cable)), this.facts(rows));
    }
    if (loads) parts.push(element('p', { class: 'faint' }, `Routes of ${loads.engine} over each cable, from the first to the second crossbar and back.`));
    return parts;
  },

  routes() {
    const { routes } = view;
    if (!routes && view.from !== null && view.chosen && view.chosen.kind === 'host') {
      return view.chosen.index === view.from ? [element('p', { class: 'faint' }, 'Choose another host, and then Routes to here.')] : [];
    }
    if (!routes) return [];
    return [
      element('h3', {}, routes.title),
      ...routes.lists.slice(0, 16).map(hops => element('p', {}, hops)),
      routes.lists.length > 16 ? element('p', { class: 'faint' }, `and ${routes.lists.length - 16} more`) : undefined,
      element('div', { class: 'row' }, element('button', { onclick: () => view.clearRoutes() }, 'Hide routes')),
    ].filter(Boolean);
  },

  cuts() {
    if (!view.cuts.size) return [];
    const { model } = view, result = view.consequences;
    const parts = [element('h2', {}, `What if ${counted(view.cuts.size, 'cable')} ${view.cuts.size === 1 ? 'were' : 'were all'} cut`)];
    for (const cable of [...view.cuts].slice(0, 12)) {
      parts.push(element('p', {}, this.link('bundle', model.cables.bundle[cable], model.cableName(cable))));
    }
    if (view.computing) parts.push(element('p', { class: 'faint' }, `${view.engine} computes…`));
    else if (result) {
      if (result.why_not) parts.push(element('p', { class: 'warning' }, `${result.engine} does not serve: ${result.why_not}`));
      if (result.why_not) parts.push(element('p', {}, result.fallback ? `${result.fallback} serves what is left.` : 'No engine that was tried serves what is left.'));
      const off = result.cut_off;
      parts.push(element('p', off.length ? { class: 'warning' } : {}, off.length ? `${counted(off.length, 'host')} cut off` : 'No host is cut off.'));
      if (off.length) parts.push(element('p', {}, ...off.slice(0, 24).flatMap((host, at) => [at ? ', ' : '', this.link('host', host, model.hosts.name[host])]), off.length > 24 ? ` and ${off.length - 24} more` : ''));
      if (!result.why_not && view.before) parts.push(...this.costs(result));
    }
    parts.push(element('div', { class: 'row' }, element('button', { onclick: () => view.mendAll() }, 'Mend all')));
    return parts;
  },

  /** Loads, bisection and tables before and after. */
  costs(result) {
    const { model } = view;
    const [before, after] = result.bisection.map(part => part === null ? 'none' : part.toFixed(3));
    const parts = [this.facts([
      ['engine', result.engine],
      ['bisection', `${after} (was ${before})`],
      ['routes over the busiest cable', `${round(result.most)} (was ${round(view.before.most)})`],
      ['entries of tables that change', result.changed === null ? null : `${result.changed.toLocaleString('en')} of ${result.entries.toLocaleString('en')}`],
    ])];
    if (!result.tables.length) return parts;
    const row = ([xbar, count]) => element('tr', {},
      element('td', {}, this.link('xbar', xbar, model.xbars.name[xbar])),
      element('td', { class: 'number' }, count.toLocaleString('en')),
      element('td', {}, element('button', { onclick: () => view.entriesOf(xbar), 'aria-pressed': String(view.entries !== null && view.entries.xbar === xbar) }, 'Show')));
    parts.push(element('h3', {}, 'Tables that change'), element('table', { id: 'tables' }, ...result.tables.slice(0, MOST_TABLES).map(row)));
    if (result.tables.length > MOST_TABLES) parts.push(element('p', { class: 'faint' }, `and ${result.tables.length - MOST_TABLES} more`));
    return view.entries ? [...parts, ...this.entries(view.entries)] : parts;
  },

  /** The entries of a table that change. */
  entries({ xbar, entries }) {
    const { model } = view;
    const port = number => number === null ? 'nowhere' : `port ${number}`;
    const to = ({ host, path, xbar }) => host === undefined ? model.xbars.name[xbar] : model.hosts.name[host] + (path ? ` (${path + 1})` : '');
    const row = entry => element('tr', {}, element('th', { scope: 'row' }, to(entry.to)), element('td', {}, `${port(entry.was)} → ${port(entry.now)}`));
    return [element('h3', {}, `Entries of ${model.xbars.name[xbar]} that change`), element('table', { id: 'entries' }, ...entries.map(row))];
  },

  note() {
    if (view.chosen || view.routes || view.cuts.size) {
      return !server.exists && view.chosen ? [element('p', { class: 'faint' }, 'This file has no engines in it. Routes, loads and what a cut cable would do are computed by: mapper view FABRIC')] : [];
    }
    const left = view.model.scene.left_out;
    const trouble = view.troubles.slice(0, 30).map(text => element('p', {}, text));
    const parts = [];
    if (trouble.length) parts.push(element('h3', {}, 'What is wrong'), ...trouble);
    if (left.length) parts.push(element('h3', {}, 'Left out of the file'), ...left.slice(0, 20).map(text => element('p', {}, text)));
    return parts;
  },
};
