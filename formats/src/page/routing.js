// What engines make of the fabric, as the server has them compute it: routes, loads, and what would follow if cables were cut.

Object.assign(view, {
  // ---- routes ----
  routeFrom(host) { this.from = host; this.routes = null; panel.fill(); this.wake(); },

  async routeTo(host) {
    if (this.from === null) return;
    await this.ask('api/routes', { scene: this.sceneNumber, engine: this.engine, from: this.from, to: host, cuts: [...this.cuts] }, answer => {
      const { model } = this;
      this.routes = this.linesOf(answer, [this.from, host]);
      this.routes.title = `${counted(answer.routes.length, 'route')} of ${answer.engine} from ${model.hosts.name[this.from]} to ${model.hosts.name[host]}`;
      this.routes.lists = answer.routes.map(hops => hops.map(([xbar, port]) => `${model.xbars.name[xbar]}:${port}`).join(' → '));
    });
  },

  async routesOf(host) {
    await this.ask('api/routes', { scene: this.sceneNumber, engine: this.engine, from: host, to: null, cuts: [...this.cuts] }, answer => {
      this.routes = this.linesOf(answer, [host]);
      this.routes.title = `All routes of ${answer.engine} from ${this.model.hosts.name[host]}: ${counted(answer.reached, 'host')} reached`;
      this.routes.lists = [];
    });
  },

  /** Lines as wide as many routes go over them. `loads` are pairs of a cable and a count. */
  linesOf(answer, ends) {
    const byBundle = new Map();
    let most = 1;
    for (const [cable, count] of answer.cables) {
      const bundle = this.model.cables.bundle[cable];
      const sum = (byBundle.get(bundle) || 0) + count;
      byBundle.set(bundle, sum);
      most = Math.max(most, sum);
    }
    return { ends, lines: [...byBundle].map(([bundle, count]) => ({ bundle, width: 1.5 + 4.5 * count / most })) };
  },

  clearRoutes() { this.routes = null; this.from = null; panel.fill(); this.wake(); },

  // ---- what if ----
  toggleCut(cable) {
    if (CABLE_STATES[this.model.cableState[cable]] === 'missing') return;
    if (this.cuts.has(cable)) this.cuts.delete(cable); else this.cuts.add(cable);
    this.recompute();
  },

  mendAll() { this.cuts.clear(); this.recompute(); },

  async recompute() {
    this.routes = null;
    this.isCutOff = null;
    this.cutOff = new Set();
    this.consequences = null;
    this.entries = null;
    this.redraw();
    if (!this.cuts.size && this.mode !== 'load' && this.mode !== 'change') { this.loads = null; panel.fill(); return; }
    await this.compute();
  },

  async compute() {
    this.computing = true;
    panel.fill();
    const cuts = [...this.cuts];
    if (cuts.length && (!this.before || this.before.engine !== this.engine || this.before.scene !== this.sceneNumber)) {
      await this.ask('api/routing', { scene: this.sceneNumber, engine: this.engine, cuts: [] }, answer => { this.before = { ...answer, scene: this.sceneNumber }; });
    }
    await this.ask('api/routing', { scene: this.sceneNumber, engine: this.engine, cuts }, answer => {
      this.computing = false;
      this.loads = answer.why_not ? null : answer;
      if (answer.why_not && !cuts.length) banner(`${answer.engine} does not serve this fabric: ${answer.why_not}`); else if (!server.lost) banner('');
      if (cuts.length) {
        this.consequences = answer;
        this.isCutOff = new Set(answer.cut_off);
        this.cutOff = new Set(answer.cut_off.map(host => this.model.hosts.xbar[host]).filter(xbar => xbar >= 0));
      } else this.before = { ...answer, scene: this.sceneNumber };
    });
    if (this.mode === 'change') {
      const other = document.getElementById('other').value;
      await this.ask('api/routing', { scene: this.sceneNumber, engine: other, cuts }, answer => {
        this.otherLoads = answer.why_not ? null : answer;
        if (answer.why_not) banner(`${answer.engine} does not serve this fabric: ${answer.why_not}`);
      });
    }
    this.computing = false;
    this.most = Math.max(1, this.loads ? this.loads.most : 0, this.mode === 'change' && this.otherLoads ? this.otherLoads.most : 0);
    panel.fill();
    this.legend();
    this.redraw();
  },

  async ask(path, body, take) {
    const number = this.sceneNumber;
    try {
      const answer = await server.post(path, body);
      // What belongs to a fabric that is no longer shown is not taken.
      if (number === this.sceneNumber) take(answer);
    } catch (error) {
      this.computing = false;
      if (error instanceof Refused) await this.askToken();
      else if (error instanceof TypeError) server.lose();
      else banner(error.message);
    }
    panel.fill();
    this.wake();
  },

  /** Asks which entries of an xbar's table the cuts change. */
  async entriesOf(xbar) {
    await this.ask('api/entries', { scene: this.sceneNumber, engine: this.engine, xbar, cuts: [...this.cuts] }, answer => { this.entries = answer; });
  },
});

