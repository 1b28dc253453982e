// Draws the timeline of an explorer from the traits `commits`, `a` and `b`, and reports which commit is clicked.
// Everything that is seen is drawn from traits, at any time, at any width: no message can be missed.

const INK = "#7b7b7b", GRID = "rgba(128,128,128,0.25)", SHADE = "rgba(128,128,128,0.18)", PURPLE = "#CC79A7";
const MARKERS = [["a", "A", "#D55E00", [7, 5]], ["b", "B", "#0072B2", []]];
const HEIGHT = 310, LEFT = 66, RIGHT = 24, TOP = 6, BOTTOM = 34;
const BARS = 0.36, LINE = 0.28, LETTERS = 0.32;  // shares of the height, from the bottom
const CLICK = 4;  // pixels that a pointer may move between press and release
const READABLE = ["", "only metadata is left", "cannot be loaded"];
const STYLE = `
.sx-timeline { position: relative; width: 100%; color: ${INK}; font: 12px/1.4 var(--jp-ui-font-family, system-ui, sans-serif); }
.sx-timeline > canvas { display: block; width: 100%; height: ${HEIGHT}px; touch-action: pan-y; cursor: pointer; }
.sx-timeline > canvas:focus-visible { outline: 2px solid #0072B2; outline-offset: -2px; }
.sx-timeline .sx-legend { display: flex; flex-wrap: wrap; gap: 0 12px; min-height: 22px; padding-left: ${LEFT}px; }
.sx-timeline button { all: unset; cursor: pointer; display: inline-flex; align-items: center; gap: 5px; padding: 1px 2px; }
.sx-timeline button:focus-visible { outline: 2px solid #0072B2; }
.sx-timeline button[aria-pressed=false] { opacity: 0.4; text-decoration: line-through; }
.sx-timeline [hidden] { display: none; }
.sx-timeline .sx-told { position: absolute; z-index: 10; pointer-events: none; background: #333; color: #fff;
  border: 1px solid ${INK}; padding: 4px 7px; white-space: pre; max-width: 60%; overflow: hidden; }
.sx-timeline .sx-told::first-line { font-weight: bold; }`;

const views = { f: Float64Array, i: BigInt64Array, b: Uint8Array };
function array(kind, view) {
  const { buffer, byteOffset, byteLength } = view;
  return new views[kind](buffer.slice(byteOffset, byteOffset + byteLength));
}

/** Return the commits that Python sent, with places on an axis; null before there are any. */
function unpack(sent) {
  if (!sent || !sent.version) return null;
  const version = array("i", sent.version), added = array("i", sent.added), removed = array("i", sent.removed);
  const first = version.length ? version[0] : 0n;
  return {
    ...sent, version, added, removed, first,
    count: version.length,
    x: Float64Array.from(version, (one) => Number(one - first)),
    up: Float64Array.from(added, Number),
    down: Float64Array.from(removed, Number),
    total: array("f", sent.total),
    kind: array("b", sent.kind),
    unknown: array("b", sent.unknown),
    readable: array("b", sent.readable),
    schema: array("b", sent.schema),
    time: sent.time ? array("f", sent.time) : null,
  };
}

/** Return how many numbers of an ascending array are below a limit. */
function below(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
}

function nearest(sorted, at) {
  const next = Math.min(below(sorted, at), sorted.length - 1);
  return next > 0 && at - sorted[next - 1] < sorted[next] - at ? next - 1 : next;
}

/** Return round numbers between two, about as many as asked for. */
function ticks(low, high, about, least = 0) {
  const rough = Math.max((high - low) / Math.max(1, about), least, 1e-300);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999));
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high; at += 1) found.push(at * step);
  return found;
}

function short(number) {
  const size = Math.abs(number);
  for (const [limit, letter] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= limit) return `${+(number / limit).toPrecision(4)}${letter}`;
  return String(+number.toPrecision(4));
}

const TILE = 8;
/** Return a tile of a colour with lines or dots on it, as plotly's patterns of bars. */
function tile(shape, colour, lines = "rgba(255,255,255,0.75)") {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = TILE;
  const ink = canvas.getContext("2d");
  ink.fillStyle = colour;
  ink.fillRect(0, 0, TILE, TILE);
  ink.strokeStyle = ink.fillStyle = lines;
  ink.lineWidth = 1.5;
  const line = (...ends) => { ink.beginPath(); ink.moveTo(ends[0], ends[1]); ink.lineTo(ends[2], ends[3]); ink.stroke(); };
  const half = TILE / 2;
  if ("/x".includes(shape)) for (const by of [-TILE, 0, TILE]) line(by - 1, TILE + 1, by + TILE + 1, -1);
  if ("\\x".includes(shape)) for (const by of [-TILE, 0, TILE]) line(by - 1, -1, by + TILE + 1, TILE + 1);
  if ("-+".includes(shape)) line(0, half, TILE, half);
  if ("|+".includes(shape)) line(half, 0, half, TILE);
  if (shape === ".") { ink.beginPath(); ink.arc(half, half, 1.4, 0, 7); ink.fill(); }
  return canvas;
}

function filling(ink, { pattern, colour }, ratio) {
  if (!pattern) return colour;
  const made = ink.createPattern(tile(pattern, colour), "repeat");
  made.setTransform(new DOMMatrix().scale(1 / ratio));
  return made;
}

class Timeline {
  constructor(model, root) {
    this.model = model;
    this.hidden = new Set();
    this.view = null;    // the first and the last place that are shown, if not all are
    this.cursor = null;  // the commit that is told
    this.drag = null;
    root.classList.add("sx-timeline");
    const style = document.createElement("style");
    style.textContent = STYLE;
    this.root = root;
    this.legend = element("div", "sx-legend");
    this.canvas = element("canvas");
    this.told = element("div", "sx-told");
    this.told.hidden = true;
    this.told.setAttribute("role", "status");
    Object.assign(this.canvas, { tabIndex: 0 });
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "timeline");
    this.canvas.dataset.lmSuppressShortcuts = "true";  // JupyterLab leaves its keys to what has the focus
    root.append(style, this.legend, this.canvas, this.told);
    this.ink = this.canvas.getContext("2d");
    this.take();
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(root);
    for (const [name, act] of [["pointermove", "move"], ["pointerdown", "press"], ["pointerup", "release"],
      ["pointerleave", "leave"], ["pointercancel", "leave"], ["blur", "leave"], ["keydown", "key"],
      ["dblclick", "reset"]])
      this.canvas.addEventListener(name, (event) => this[act](event));
  }

  /** Take what the kernel sent, and draw it. */
  take() {
    const before = this.data;
    this.data = unpack(this.model.get("commits"));
    const { data } = this;
    if (!data || !before || before.first !== data.first || before.count !== data.count) this.view = null;
    this.cursor = null;
    this.told.hidden = true;
    this.name();
    this.list();
    this.draw();
  }

  name() {
    const { data } = this;
    const some = data?.count ? `, versions ${data.version[0]} to ${data.version[data.count - 1]}` : "";
    const marked = MARKERS.map(([name, letter]) => this.model.get(name) && `, ${letter} at ${this.model.get(name)}`);
    this.canvas.setAttribute("aria-label", `Timeline of commits${some}${marked.join("")}. ` +
      "Arrow keys move along commits, Enter sets the marker, Shift+Enter the other one, + and - zoom.");
  }

  /** List what is drawn; a kind can be hidden. */
  list() {
    this.legend.replaceChildren();
    const { data } = this;
    if (!data?.count) return;
    data.kinds.forEach((kind, at) => {
      const button = element("button");
      button.type = "button";
      button.title = "Hide or show these commits";
      button.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
      button.append(swatch((ink, ratio) => {
        ink.fillStyle = filling(ink, kind, ratio);
        ink.fillRect(0, 0, 12, 12);
      }), `${kind.sign} ${kind.name}`.trim());
      button.addEventListener("click", () => {
        this.hidden.delete(kind.name) || this.hidden.add(kind.name);
        button.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
        this.draw();
      });
      this.legend.append(button);
    });
    const note = (draw, text) => {
      const item = element("span");
      item.append(swatch(draw), ` ${text}`);
      this.legend.append(item);
    };
    if (data.unknown.includes(1)) note((ink) => unknown(ink, 6, 6), `? ${data.measure} not known`);
    note((ink) => stroke(ink, INK, 2, [], 0, 6, 12, 6), data.line);
    if (data.schema.includes(1)) note((ink) => stroke(ink, PURPLE, 1.5, [2, 2], 6, 0, 6, 12), "schema changed");
    READABLE.forEach((text, at) => at && data.readable.includes(at) && note((ink) => {
      ink.fillStyle = at === 2 ? ink.createPattern(tile("/", SHADE, INK), "repeat") : SHADE;
      ink.fillRect(0, 0, 12, 12);
    }, text));
    for (const flags of data.flags) note((ink) => flag(ink, flags, 4, 6), flags.noun);
    this.all = element("button");
    Object.assign(this.all, { type: "button", textContent: "Show all", title: "Zoom out (double-click, or Escape)" });
    this.all.style.textDecoration = "underline";
    this.all.hidden = true;
    this.all.addEventListener("click", () => this.reset());
    this.legend.append(this.all);
  }

  bounds() {
    const { x, count } = this.data;
    const margin = Math.max(0.6, (x[count - 1] - x[0]) * 0.01);
    return this.view ?? [x[0] - margin, x[count - 1] + margin];
  }

  /** Draw everything, as wide as the place is; nothing while there is no place. */
  draw() {
    const width = Math.floor(this.root.clientWidth), ratio = window.devicePixelRatio || 1;
    if (width < LEFT + RIGHT + 20) return;
    const { canvas, ink, data } = this;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.font = `12px ${getComputedStyle(this.root).fontFamily}`;
    ink.fillStyle = INK;
    delete canvas.dataset.drawn;
    if (!data) return;
    if (!data.count) {
      ink.textAlign = "center";
      ink.fillText("no commits", width / 2, HEIGHT / 2);
      return;
    }
    const [low, high] = this.bounds();
    const left = LEFT, right = width - RIGHT, bottom = HEIGHT - BOTTOM, height = bottom - TOP;
    const at = (place) => left + ((place - low) / (high - low)) * (right - left);
    const share = (part) => bottom - part * height;
    this.at = at;
    this.place = (pixel) => low + ((pixel - left) / (right - left)) * (high - low);
    const from = below(data.x, low - 0.5), to = below(data.x, high + 0.5);
    const step = at(1) - at(0);
    const plot = { at, share, from, to, step, left, right, bottom, ratio };
    this.axes(plot, low, high);
    ink.save();
    ink.beginPath();
    ink.rect(left, 0, right - left, bottom + 1);
    ink.clip();
    this.shades(plot);
    this.bars(plot);
    this.line(plot);
    for (let i = from; i < to; i += 1)
      if (data.schema[i]) stroke(ink, PURPLE, 1.5, [2, 3], at(data.x[i]), TOP, at(data.x[i]), bottom);
    ink.restore();
    this.flags(plot);
    this.markers(plot);
    if (this.cursor !== null) stroke(ink, INK, 1, [], at(data.x[this.cursor]), TOP, at(data.x[this.cursor]), bottom);
    if (this.drag?.moved) {
      ink.fillStyle = "rgba(0,114,178,0.2)";
      ink.fillRect(Math.min(this.drag.from, this.drag.to), TOP, Math.abs(this.drag.to - this.drag.from), height);
    }
    if (this.all) this.all.hidden = !this.view;
    canvas.dataset.drawn = String(to - from);
  }

  axes({ at, share, from, to, left, right, bottom }, low, high) {
    const { ink, data } = this;
    let up = 0, down = 0, most = 0, least = 0;
    for (let i = from; i < to; i += 1) {
      if (!this.hidden.has(data.kinds[data.kind[i]].name)) {
        up = Math.max(up, data.up[i]);
        down = Math.max(down, data.down[i]);
      }
      if (data.total[i] > most) most = data.total[i];
      if (data.total[i] < least) least = data.total[i];
    }
    const zero = -1.05 * down, top = up || down ? zero + (1.03 * up - zero) / data.room : 1;
    this.bar = (value) => share(BARS + ((value - zero) / (top - zero)) * (1 - BARS));
    const peak = most || least ? most + 0.05 * (most - least) : 1;
    this.height = (value) => share(((value - least) / (peak - least)) * LINE);
    ink.textBaseline = "middle";
    ink.textAlign = "right";
    for (const [scale, first, last, about, title, middle] of [
      [this.bar, zero, top, 6, `${data.measure} added, removed`, (1 + BARS) / 2],
      [this.height, least, peak, 2, data.line, LINE / 2]]) {
      for (const tick of ticks(first, last, about, 1)) {
        stroke(ink, tick ? GRID : INK, 1, [], left, scale(tick), right, scale(tick));
        ink.fillText(short(tick), left - 6, scale(tick));
      }
      ink.save();
      ink.translate(10, share(middle));
      ink.rotate(-Math.PI / 2);
      ink.textAlign = "center";
      ink.fillText(title, 0, 0);
      ink.restore();
    }
    ink.textAlign = "center";
    const longest = ink.measureText(String(data.version[data.count - 1])).width + 20;
    const first = Number(data.first % 10000n);  // so that ticks stand at round versions
    for (const tick of ticks(low + first, high + first, (right - left) / Math.max(70, longest), 1)) {
      const x = tick - first;
      stroke(ink, GRID, 1, [], at(x), bottom, at(x), bottom + 4);
      ink.fillText(String(data.first + BigInt(Math.round(x))), at(x), bottom + 12);
    }
    ink.fillText("version", (left + right) / 2, HEIGHT - 7);
  }

  bars({ at, from, to, step, ratio }) {
    const { ink, data } = this;
    const width = Math.max(1, step * 0.85);
    data.kinds.forEach((kind, which) => {
      if (this.hidden.has(kind.name)) return;
      // Fine lines between many bars would grey them all.
      ink.fillStyle = width < 5 ? kind.colour : filling(ink, kind, ratio);
      const zero = this.bar(0);
      for (let i = from; i < to; i += 1) {
        if (data.kind[i] !== which) continue;
        const x = at(data.x[i]) - width / 2;
        if (data.up[i]) ink.fillRect(x, this.bar(data.up[i]), width, Math.max(1, zero - this.bar(data.up[i])));
        if (data.down[i]) ink.fillRect(x, zero, width, Math.max(1, this.bar(-data.down[i]) - zero));
      }
    });
    for (let i = from; i < to; i += 1) if (data.unknown[i]) unknown(ink, at(data.x[i]), this.bar(0));
  }

  /** Draw the totals as steps, with a gap where they are not known. */
  line({ at, from, to }) {
    const { ink, data } = this;
    const first = Math.max(0, from - 1), last = Math.min(data.count, to + 1);
    ink.strokeStyle = ink.fillStyle = INK;
    ink.lineWidth = 2;
    ink.setLineDash([]);
    ink.beginPath();
    for (let i = first; i < last; i += 1) {
      const x = at(data.x[i]), y = this.height(data.total[i]);
      if (Number.isNaN(data.total[i])) continue;
      if (i === first || Number.isNaN(data.total[i - 1])) {
        ink.moveTo(x, y);
        if (i + 1 >= last || Number.isNaN(data.total[i + 1])) ink.arc(x, y, 2, 0, 7);
        continue;
      }
      const middle = (at(data.x[i - 1]) + x) / 2;
      ink.lineTo(middle, this.height(data.total[i - 1]));
      ink.lineTo(middle, y);
      ink.lineTo(x, y);
    }
    ink.stroke();
  }

  /** Draw grey behind versions that cannot be loaded any more. */
  shades({ at, from, to, bottom }) {
    const { ink, data } = this;
    for (let i = from; i < to; i += 1) {
      const word = data.readable[i];
      if (!word) continue;
      let end = i;
      while (end + 1 < to && data.readable[end + 1] === word && data.x[end + 1] - data.x[end] === 1) end += 1;
      ink.fillStyle = word === 2 ? ink.createPattern(tile("/", SHADE, INK), "repeat") : SHADE;
      ink.fillRect(at(data.x[i] - 0.5), TOP, at(data.x[end] + 0.5) - at(data.x[i] - 0.5), bottom - TOP);
      i = end;
    }
  }

  flags({ at, share, left, right }) {
    const { ink, data } = this;
    ink.textAlign = "left";
    ink.textBaseline = "middle";
    for (const flags of data.flags)
      flags.at.forEach((index, i) => {
        const x = at(data.x[index]), y = share(BARS + flags.y[i] * (1 - BARS));
        if (x < left || x > right) return;
        flag(ink, flags, x, y);
        ink.fillStyle = INK;
        if (flags.labels) ink.fillText(flags.labels[i], x + 8, y);
      });
  }

  markers({ at, share, left, right, bottom }) {
    const { ink, data } = this;
    for (const [name, letter, colour, dash] of MARKERS) {
      const index = this.index(this.model.get(name));
      const x = index < 0 ? -1 : at(data.x[index]);
      if (x < left || x > right) continue;
      stroke(ink, colour, 2, dash, x, TOP, x, bottom);
      const side = letter === "A" ? x - 15 : x + 1, y = share(LETTERS);
      ink.fillStyle = colour;
      ink.fillRect(side, y - 8, 14, 16);
      ink.fillStyle = "#fff";
      ink.textAlign = "center";
      ink.fillText(letter, side + 7, y + 1);
    }
  }

  /** Return where a version stands among the commits, -1 if it is not among them. */
  index(version) {
    if (!version) return -1;
    const wanted = BigInt(version), at = below(this.data.version, wanted);
    return this.data.version[at] === wanted ? at : -1;
  }

  lines(i) {
    const { data } = this;
    if (data.told) return data.told[i];
    const kind = data.kinds[data.kind[i]], thousands = (number) => number.toLocaleString("en-US");
    const time = Number.isNaN(data.time[i]) ? "?" : new Date(data.time[i]).toISOString().slice(0, 19).replace("T", " ");
    const counts = data.unknown[i] ? " not known" : ` +${thousands(data.added[i])} -${thousands(data.removed[i])}`;
    return [`version ${data.version[i]}`, `${time} UTC`, `${kind.sign} ${kind.name}`.trim(), data.measure + counts,
      ...(Number.isNaN(data.total[i]) ? [] : [`${data.line} ${thousands(data.total[i])}`]),
      ...(data.schema[i] ? ["schema changed"] : []), ...(data.names[i] ?? []),
      ...(READABLE[data.readable[i]] ? [READABLE[data.readable[i]]] : [])].join("\n");
  }

  /** Show what is known of a commit beside it. */
  tell(i) {
    this.cursor = i;
    this.draw();
    this.told.hidden = i === null;
    if (i === null || !this.at) return;
    this.told.textContent = this.lines(i);
    const x = this.at(this.data.x[i]), isRight = x > this.root.clientWidth / 2;
    Object.assign(this.told.style, {
      top: `${this.canvas.offsetTop + 24}px`,
      left: isRight ? "auto" : `${x + 14}px`,
      right: isRight ? `${this.root.clientWidth - x + 14}px` : "auto",
    });
  }

  pick(i, isOther) {
    this.model.send({ click: String(this.data.version[i]), other: isOther });
  }

  zoom(low, high) {
    if (high - low < 1) [low, high] = [(low + high) / 2 - 0.6, (low + high) / 2 + 0.6];
    const { x, count } = this.data;
    this.view = low <= x[0] && high >= x[count - 1] ? null : [low, high];
    this.draw();
  }

  reset() {
    this.view = null;
    this.draw();
  }

  // What a pointer and keys do

  move(event) {
    if (!this.data?.count || !this.at) return;
    if (this.drag) {
      this.drag.to = event.offsetX;
      this.drag.moved ||= Math.abs(this.drag.to - this.drag.from) > CLICK;
    }
    this.tell(this.drag?.moved ? null : nearest(this.data.x, this.place(event.offsetX)));
  }

  press(event) {
    if (event.button || !this.data?.count) return;
    this.drag = { from: event.offsetX, to: event.offsetX, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  release(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag || !this.data?.count) return;
    if (drag.moved) this.zoom(...[drag.from, drag.to].map(this.place).sort((one, other) => one - other));
    else this.pick(nearest(this.data.x, this.place(event.offsetX)), event.shiftKey);
  }

  leave() {
    if (this.drag || this.cursor === null) return;
    this.tell(null);
  }

  key(event) {
    const { data } = this;
    if (!data?.count || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = data.count - 1;
    const here = this.cursor ?? Math.max(0, this.index(this.model.get("b")));
    const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last };
    const [low, high] = this.bounds(), middle = data.x[here];
    if (event.key in steps) {
      const next = Math.max(0, Math.min(last, steps[event.key]));
      const by = data.x[next] < low ? data.x[next] - low - 0.6 : data.x[next] > high ? data.x[next] - high + 0.6 : 0;
      if (by) this.zoom(low + by, high + by);
      this.tell(next);
    } else if (event.key === "Enter" || event.key === " ") this.pick(here, event.shiftKey);
    else if (event.key === "+") this.zoom(middle - (high - low) / 4, middle + (high - low) / 4);
    else if (event.key === "-") this.zoom(middle - (high - low), middle + (high - low));
    else if (event.key === "Escape" || event.key === "0") this.reset();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function element(name, style = "") {
  const made = document.createElement(name);
  if (style) made.className = style;
  return made;
}

/** Return a small picture for the list of what is drawn. */
function swatch(draw) {
  const made = element("canvas"), ratio = window.devicePixelRatio || 1;
  made.width = made.height = Math.round(12 * ratio);
  Object.assign(made.style, { width: "12px", height: "12px", display: "inline-block", verticalAlign: "-1px" });
  const ink = made.getContext("2d");
  ink.scale(ratio, ratio);
  draw(ink, ratio);
  return made;
}

function stroke(ink, colour, width, dash, x0, y0, x1, y1) {
  ink.strokeStyle = colour;
  ink.lineWidth = width;
  ink.setLineDash(dash);
  ink.beginPath();
  ink.moveTo(x0, y0);
  ink.lineTo(x1, y1);
  ink.stroke();
  ink.setLineDash([]);
}

/** Draw a circle with a cross in it: what a commit did is not known. */
function unknown(ink, x, y) {
  ink.strokeStyle = INK;
  ink.lineWidth = 1.5;
  ink.beginPath();
  ink.arc(x, y, 4, 0, 7);
  for (const [dx, dy] of [[2.8, 2.8], [2.8, -2.8]]) {
    ink.moveTo(x - dx, y - dy);
    ink.lineTo(x + dx, y + dy);
  }
  ink.stroke();
}

/** Draw a tag as a triangle, the beginning of a branch as a fork. */
function flag(ink, { noun, colour }, x, y) {
  ink.fillStyle = ink.strokeStyle = colour;
  ink.lineWidth = 2;
  ink.beginPath();
  if (noun === "tags") {
    ink.moveTo(x - 3, y - 5);
    ink.lineTo(x + 5, y);
    ink.lineTo(x - 3, y + 5);
    ink.fill();
  } else {
    ink.moveTo(x, y - 5);
    ink.lineTo(x, y);
    ink.lineTo(x - 5, y + 5);
    ink.moveTo(x, y);
    ink.lineTo(x + 5, y + 5);
    ink.stroke();
  }
}

function render({ model, el }) {
  const root = element("div");
  el.append(root);
  const timeline = new Timeline(model, root);
  const take = () => timeline.take(), mark = () => { timeline.name(); timeline.draw(); };
  model.on("change:commits", take);
  model.on("change:a", mark);
  model.on("change:b", mark);
  return () => {
    timeline.sizes.disconnect();
    model.off("change:commits", take);
    model.off("change:a", mark);
    model.off("change:b", mark);
  };
}

export default { render };
