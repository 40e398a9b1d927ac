// Draws the picture. Everything that stands still is drawn into a layer, a slice of a few milliseconds a frame. While the
// reader moves or zooms, the layer that is there is shown moved and stretched, so that this costs one image a frame however
// large the fabric is; what is chosen is drawn upon it at once.

/** How far a layer reaches beyond what is seen, to each side, as part of that. */
const BEYOND = 0.3;
/** Milliseconds of drawing a frame. */
const SLICE_MS = 7;
/** How long the camera rests before a layer is drawn anew, in milliseconds. */
const REST_MS = 90;
/** Lines drawn at once. */
const LINES_AT_ONCE = 400;

class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: false });
    this.layers = [document.createElement('canvas'), document.createElement('canvas')];
    this.layerCamera = null;
    this.work = null;
    this.stale = true;
    this.moved = 0;
    this.frames = 0;
  }

  resize(camera) {
    const { clientWidth, clientHeight } = this.canvas, ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.round((clientWidth || 1) * ratio), height = Math.round((clientHeight || 1) * ratio);
    if (width === this.canvas.width && height === this.canvas.height && ratio === this.ratio) return false;
    // What the layer shows stays right: it has a camera of its own.
    if (this.ratio !== ratio) this.layerCamera = null;
    Object.assign(this, { ratio, stale: true });
    Object.assign(camera, { width: clientWidth || 1, height: clientHeight || 1 });
    Object.assign(this.canvas, { width, height });
    return true;
  }

  /** Shows a frame. Says whether there is more to do. */
  frame(state, now) {
    this.frames++;
    const { camera } = state;
    const rests = now - this.moved > REST_MS;
    if (!this.layerCamera || (this.stale && rests) || (rests && !this.work && this.isPoor(camera))) this.begin(state);
    if (this.work && (rests || !this.layerCamera)) this.goOn();
    this.show(state);
    return this.work !== null || this.stale || this.isPoor(camera);
  }

  /** Whether the layer lacks some of what is seen, or is stretched. */
  isPoor(camera) {
    const layer = this.layerCamera;
    if (!layer) return true;
    const stretch = camera.scale / layer.scale;
    if (Math.abs(stretch - 1) > 1e-6) return true;
    const [x, y] = layer.toPicture(-layer.width * BEYOND, -layer.height * BEYOND);
    const [right, bottom] = layer.toPicture(layer.width * (1 + BEYOND), layer.height * (1 + BEYOND));
    const [seenX, seenY] = camera.toPicture(0, 0), [seenRight, seenBottom] = camera.toPicture(camera.width, camera.height);
    return seenX < x || seenY < y || seenRight > right || seenBottom > bottom;
  }

  begin(state) {
    const { camera } = state, layer = this.layers[1];
    const width = Math.ceil(camera.width * (1 + 2 * BEYOND) * this.ratio), height = Math.ceil(camera.height * (1 + 2 * BEYOND) * this.ratio);
    if (layer.width !== width || layer.height !== height) { layer.width = width; layer.height = height; }
    const context = layer.getContext('2d', { alpha: false });
    const own = camera.copy();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.now.back;
    context.fillRect(0, 0, width, height);
    const scale = own.scale * this.ratio;
    context.setTransform(scale, 0, 0, scale, (own.width * BEYOND - own.x * own.scale) * this.ratio, (own.height * BEYOND - own.y * own.scale) * this.ratio);
    const [x, y] = own.toPicture(-own.width * BEYOND, -own.height * BEYOND);
    const [right, bottom] = own.toPicture(own.width * (1 + BEYOND), own.height * (1 + BEYOND));
    this.stale = false;
    this.work = { camera: own, steps: paint(context, state, own.scale, { x, y, right, bottom }) };
  }

  goOn() {
    const until = performance.now() + (this.layerCamera ? SLICE_MS : 3 * SLICE_MS);
    do {
      if (this.work.steps.next().done) {
        this.layers.reverse();
        this.layerCamera = this.work.camera;
        this.work = null;
        return;
      }
    } while (performance.now() < until);
  }

  /** Draws a layer to its end, at once. */
  finish(state) {
    if (!this.work) this.begin(state);
    while (this.work && !this.work.steps.next().done);
    if (this.work) { this.layers.reverse(); this.layerCamera = this.work.camera; this.work = null; }
    this.show(state);
  }

  show(state) {
    const { context, ratio } = this, { camera } = state;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.now.back;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.layerCamera) {
      const layer = this.layerCamera, stretch = camera.scale / layer.scale;
      const [x, y] = layer.toPicture(-layer.width * BEYOND, -layer.height * BEYOND);
      context.imageSmoothingEnabled = stretch < 1;
      context.drawImage(this.layers[0], (x - camera.x) * camera.scale * ratio, (y - camera.y) * camera.scale * ratio, this.layers[0].width * stretch, this.layers[0].height * stretch);
    }
    context.setTransform(camera.scale * ratio, 0, 0, camera.scale * ratio, -camera.x * camera.scale * ratio, -camera.y * camera.scale * ratio);
    overlay(context, state);
  }
}

function addLine(context, line, bundle) {
  const at = bundle * 6;
  context.moveTo(line[at], line[at + 1]);
  context.quadraticCurveTo(line[at + 2], line[at + 3], line[at + 4], line[at + 5]);
}

/** Draws what stands still, with pauses. */
function* paint(context, state, scale, seen) {
  const { model } = state, theme = colours.now;
  context.lineJoin = 'round';
  yield* paintFrames(context, model, scale);
  // Lines of each look together, the plain ones beneath.
  const looks = state.looks();
  const byLook = looks.map(() => []);
  const { line } = model;
  for (let bundle = 0; bundle < model.bundleCount; bundle++) {
    const at = bundle * 6;
    const left = Math.min(line[at], line[at + 2], line[at + 4]), right = Math.max(line[at], line[at + 2], line[at + 4]);
    const top = Math.min(line[at + 1], line[at + 3], line[at + 5]), bottom = Math.max(line[at + 1], line[at + 3], line[at + 5]);
    if (right < seen.x || left > seen.right || bottom < seen.y || top > seen.bottom) continue;
    byLook[state.lookOf(bundle)].push(bundle);
  }
  yield;
  // Many lines are thin and faint, so that together they show where they run.
  const crowd = Math.min(1, 11 / Math.sqrt(model.bundleCount * Math.min(1, scale * 2) + 1));
  for (let look = 0; look < looks.length; look++) {
    const { colour, width, dash, plain } = looks[look];
    context.strokeStyle = colour;
    context.globalAlpha = plain ? 0.1 + 0.65 * crowd : 0.95;
    context.setLineDash((dash || []).map(length => length / scale));
    for (let from = 0; from < byLook[look].length; from += LINES_AT_ONCE) {
      const some = byLook[look].slice(from, from + LINES_AT_ONCE);
      // Bundles of several cables are thicker.
      for (const several of [false, true]) {
        context.lineWidth = Math.max(width * (plain ? Math.max(0.5, crowd) : 1), 0.4) * (several ? 1.4 : 1) / Math.max(scale, 0.02);
        context.beginPath();
        for (const bundle of some) if ((model.cablesOf[bundle].length > 1) === several) addLine(context, line, bundle);
        context.stroke();
      }
      yield;
    }
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
  if (scale > 0.55) yield* paintCounts(context, model, scale, seen);
  yield* paintBoxes(context, state, scale, seen, theme);
  yield* paintHosts(context, state, scale, seen, theme);
}

function* paintFrames(context, model, scale) {
  const theme = colours.now;
  for (const [x, y, width, height, title] of model.frames) {
    context.strokeStyle = theme.frame;
    context.lineWidth = 1 / scale;
    context.strokeRect(x, y, width, height);
    const size = Math.min(24, Math.max(13, 11 / scale));
    if (size * scale < 7 || size > height / 2) continue;
    context.fillStyle = theme.frameText;
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textAlign = 'left';
    context.textBaseline = 'alphabetic';
    context.fillText(clip(title, width, size), x + 10, y + size + 4);
  }
  yield;
}

/** How many cables a line stands for, in the middle of it. */
function* paintCounts(context, model, scale, seen) {
  const theme = colours.now, { line } = model;
  context.font = '600 9px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  let drawn = 0;
  for (let bundle = 0; bundle < model.bundleCount && drawn < 600; bundle++) {
    const count = model.cablesOf[bundle].length;
    if (count < 2) continue;
    const [x, y] = nearStart(line, bundle);
    if (x < seen.x || x > seen.right || y < seen.y || y > seen.bottom) continue;
    drawn++;
    context.fillStyle = theme.back;
    context.beginPath();
    context.arc(x, y, 6.5, 0, 7);
    context.fill();
    context.fillStyle = theme.faint;
    context.fillText(String(count), x, y + 0.5);
  }
  yield;
}

/** A point on a line, a fifth of the way along it, where lines to one xbar are apart and lines from it are too. */
function nearStart(line, bundle) {
  const at = bundle * 6, t = 0.22 + 0.11 * (bundle % 3), u = 1 - t;
  const along = i => u * u * line[at + i] + 2 * u * t * line[at + 2 + i] + t * t * line[at + 4 + i];
  return [along(0), along(1)];
}

/** As much of a name as fits: its end, as names of one fabric mostly begin alike. Letters are about half as wide as high. */
function clip(text, width, size) {
  const most = Math.floor(width / (size * 0.62));
  return text.length <= most ? text : '…' + text.slice(text.length - Math.max(1, most - 1));
}

function* paintBoxes(context, state, scale, seen, theme) {
  const { model } = state, { x, y, w, h, tier, name } = model.xbars;
  const shown = [];
  for (let xbar = 0; xbar < model.xbarCount; xbar++) {
    if (x[xbar] + w[xbar] >= seen.x && x[xbar] <= seen.right && y[xbar] + h[xbar] >= seen.y && y[xbar] <= seen.bottom) shown.push(xbar);
  }
  const rounded = scale > 0.12;
  for (let from = 0; from < shown.length; from += 150) {
    for (const xbar of shown.slice(from, from + 150)) {
      context.fillStyle = theme.tiers[Math.min(tier[xbar], theme.tiers.length - 1)];
      context.strokeStyle = state.cutOff.has(xbar) ? theme.cut : theme.edge;
      context.lineWidth = (state.cutOff.has(xbar) ? 2.5 : 0.9) / Math.max(scale, 0.06);
      context.beginPath();
      if (rounded) context.roundRect(x[xbar], y[xbar], w[xbar], h[xbar], 4); else context.rect(x[xbar], y[xbar], w[xbar], h[xbar]);
      context.fill();
      context.stroke();
    }
    yield;
  }
  const size = Math.min(20, Math.max(11, 8 / scale));
  if (size * scale < 6.5) return;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = theme.ink;
  let since = 0;
  for (const xbar of shown) {
    // Where boxes are small, the name takes the room of the hosts.
    const middle = size > 12 ? y[xbar] + h[xbar] / 2 : y[xbar] + Math.min(h[xbar], model.cells.top) / 2;
    if (size > 12 && model.hostsOf[xbar].length && h[xbar] < size + 4) continue;
    context.fillText(clip(name[xbar], w[xbar] + 4, size), x[xbar] + w[xbar] / 2, middle);
    if (++since % 100 === 0) yield;
  }
}

function* paintHosts(context, state, scale, seen, theme) {
  const { model } = state, { width, height } = model.cells;
  if (height * scale < 1.6) return;
  const size = Math.min(20, Math.max(11, 8 / scale));
  const namesInTheWay = size > 12 && size * scale >= 6.5;
  const byColour = new Map();
  const named = [];
  for (let host = 0; host < model.hostCount; host++) {
    const x = model.hostX[host], y = model.hostY[host];
    if (x + width < seen.x || x > seen.right || y + height < seen.y || y > seen.bottom) continue;
    const colour = state.hostColour(host, theme);
    if (!byColour.has(colour)) byColour.set(colour, []);
    byColour.get(colour).push(host);
    named.push(host);
  }
  yield;
  context.globalAlpha = namesInTheWay ? 0.35 : 1;
  for (const [colour, hosts] of byColour) {
    context.fillStyle = colour;
    for (let from = 0; from < hosts.length; from += 1500) {
      context.beginPath();
      for (const host of hosts.slice(from, from + 1500)) context.rect(model.hostX[host] + 0.7, model.hostY[host] + 0.7, width - 1.4, height - 1.4);
      context.fill();
      yield;
    }
  }
  context.globalAlpha = 1;
  yield* markHosts(context, state, scale, named, theme);
  if (scale < 2.2) return;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.font = '3.4px system-ui, sans-serif';
  let since = 0;
  for (const host of named) {
    context.fillStyle = model.hostState[host] === 0 || model.hostState[host] === 4 ? theme.ink : colours.name === 'dark' ? '#000' : '#fff';
    context.fillText(clip(model.hosts.name[host], width - 1, 3.4), model.hostX[host] + width / 2, model.hostY[host] + height / 2);
    if (++since % 200 === 0) yield;
  }
}

/**
 * States are told by marks too, not by colours alone: a tick for who is configured, a stroke for who is at work, a cross for who is
 * silent, an outline for who is missing, a bar for who is isolated; who is unknown has none.
 */
const MARKS = [
  () => {},
  (context, left, top, right, bottom) => { context.moveTo(left, (top + bottom) / 2); context.lineTo(left + (right - left) * 0.35, bottom); context.lineTo(right, top); },
  (context, left, top, right, bottom) => { context.moveTo(left, bottom); context.lineTo(right, top); },
  (context, left, top, right, bottom) => { context.moveTo(left, top); context.lineTo(right, bottom); context.moveTo(right, top); context.lineTo(left, bottom); },
  (context, left, top, right, bottom) => { context.rect(left, top, right - left, bottom - top); },
  (context, left, top, right, bottom) => { context.moveTo(left, (top + bottom) / 2); context.lineTo(right, (top + bottom) / 2); },
];

function* markHosts(context, state, scale, hosts, theme) {
  const { model } = state, { width, height } = model.cells;
  if (height * scale < 5) return;
  context.lineWidth = 1 / scale;
  context.strokeStyle = theme.ink;
  context.beginPath();
  for (const host of hosts) {
    const x = model.hostX[host], y = model.hostY[host], kind = model.hostState[host];
    // Marks stand at the left, where they leave room for a name; only who is missing is wholly outlined.
    const side = Math.min(width, height) - 4;
    MARKS[kind](context, x + 2, y + 2, kind === 4 ? x + width - 2 : x + 2 + side, y + 2 + side);
  }
  context.stroke();
  yield;
}

/** What is chosen, found, pointed at or drawn as a route: all of it is few. */
function overlay(context, state) {
  const { model, camera } = state, theme = colours.now, thin = 1 / camera.scale;
  const stroke = (bundles, colour, width, dash) => {
    if (!bundles.length) return;
    context.strokeStyle = colour;
    context.lineWidth = width * thin;
    context.setLineDash((dash || []).map(length => length * thin));
    context.beginPath();
    for (const bundle of bundles) addLine(context, model.line, bundle);
    context.stroke();
    context.setLineDash([]);
  };
  const box = (xbar, colour, width) => {
    context.strokeStyle = colour;
    context.lineWidth = width * thin;
    context.beginPath();
    context.roundRect(model.xbars.x[xbar] - 2 * thin, model.xbars.y[xbar] - 2 * thin, model.xbars.w[xbar] + 4 * thin, model.xbars.h[xbar] + 4 * thin, 4);
    context.stroke();
  };
  const cell = (host, colour, width) => {
    context.strokeStyle = colour;
    context.lineWidth = width * thin;
    const { width: w, height: h } = model.cells;
    context.strokeRect(model.hostX[host] - thin, model.hostY[host] - thin, w + 2 * thin, h + 2 * thin);
  };
  const { chosen, pointed, routes } = state;
  if (chosen) {
    const xbar = chosen.kind === 'xbar' ? chosen.index : chosen.kind === 'host' ? model.hosts.xbar[chosen.index] : -1;
    if (chosen.kind === 'xbar') stroke(model.bundlesOf[chosen.index], theme.accent, 1.8);
    if (xbar >= 0) box(xbar, theme.accent, 3);
    if (chosen.kind === 'host') cell(chosen.index, theme.accent, 3);
    if (chosen.kind === 'bundle') stroke([chosen.index], theme.accent, 4);
  }
  if (routes) {
    for (const { bundle, width } of routes.lines) stroke([bundle], theme.route, width);
    for (const host of routes.ends) if (model.hosts.xbar[host] >= 0) { cell(host, theme.route, 3); box(model.hosts.xbar[host], theme.route, 2); }
  }
  for (const { kind, index } of state.found) {
    if (kind === 'xbar') box(index, theme.found, 3);
    else if (kind === 'host') cell(index, theme.found, 2.5);
  }
  if (pointed) {
    if (pointed.kind === 'bundle') stroke([pointed.index], theme.ink, 3);
    if (pointed.kind === 'xbar') box(pointed.index, theme.ink, 2);
    if (pointed.kind === 'host') cell(pointed.index, theme.ink, 2);
  }
}
