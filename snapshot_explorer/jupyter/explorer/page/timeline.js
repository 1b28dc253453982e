// Draws the timeline of an explorer from the traits `commits`, `facts` and `page`, and reports which commit is clicked.
// Everything that is seen is drawn from traits, at any time, at any width: no message can be missed.

import { Key, draw, html, shapeOf } from "./pictures.js";

const GRID = "rgba(128,128,128,0.25)", SHADE = "rgba(128,128,128,0.18)", PURPLE = "#C46A9C", JUMP = "#D55E00";
// White letters stand out from both colors by 4.5 to 1.
const MARKERS = [["A", "#B85000", [7, 5]], ["B", "#0072B2", []]];
const HEIGHT = 252, LEFT = 62, RIGHT = 16, TOP = 20, BOTTOM = 34;
const BARS = 0.32, LINE = 0.26;  // shares of the height, from the bottom
const CLICK = 4;  // pixels that a pointer may move between press and release
const DENSE = 2.5, BAR = 4;  // pixels of a commit below which several share a bar, and pixels that such a bar has
const SECOND = 1000, HOUR = 3600 * SECOND, DAY = 24 * HOUR;
const UNITS = [["a minute", 60 * SECOND], ["10 minutes", HOUR / 6], ["an hour", HOUR], ["6 hours", HOUR * 6], ["a day", DAY],
  ["a week", DAY * 7], ["4 weeks", DAY * 28], ["a year", DAY * 365]];
const MONDAY = 3 * DAY;  // from the Monday before the epoch
const USUAL = 0.95, OUTLIER = 4, ROOM = 1.5;  // a bar is cut that is so many times as high as this share of all bars
const FLAT = 0.8;  // of the highest total: above it the line begins at the lowest instead of 0
const WIDEST = 56, NEAR = 6;  // pixels of the widest bar, and of a pointer beside a marker
const FEWEST_BARS = 8, MARK = 9;
const LABELED = 1.22;  // the room on the side of cut bars, whose heights are beyond them
const READABLE = ["", "only metadata is left", "cannot be loaded"];
const KINDS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float64: Float64Array, int64: BigInt64Array };

/** Return the numbers that Python packed: as they are, or each by how far it is above the one before it. */
export function numbers({ type, data: { buffer, byteOffset, byteLength }, count, first, step, gaps }) {
  const sent = new KINDS[type](buffer.slice(byteOffset, byteOffset + byteLength));
  if (first === undefined) return sent;
  const values = new Float64Array(count);
  for (let i = 0, at = first; i < count; at += step + (sent[i] ?? 0), i += 1) values[i] = at;
  for (let i = 0; i < gaps.length; i += 2) values.fill(NaN, gaps[i], gaps[i + 1]);
  return values;
}

/** Return the commits that Python sent, with places on an axis; null before there are any. */
function unpack(sent, facts) {
  if (!sent || !sent.version) return null;
  const version = BigInt64Array.from(numbers(sent.version), BigInt), added = numbers(sent.added), removed = numbers(sent.removed);
  const first = version.length ? version[0] : 0n;
  return {
    ...sent, version, added, removed, first,
    count: version.length,
    x: Float64Array.from(version, (number, i) => sent.isCounted ? i : Number(number - first)),
    up: Float64Array.from(added, Number),
    down: Float64Array.from(removed, Number),
    line: facts.line,
    total: numbers(facts.total),
    kind: numbers(sent.kind),
    unknown: numbers(sent.unknown),
    quiet: numbers(sent.quiet),
    readable: numbers(sent.readable),
    schema: numbers(sent.schema),
    time: numbers(sent.time),
    operations: { ...sent.operations, at: numbers(sent.operations.at) },
    users: { ...sent.users, at: numbers(sent.users.at) },
    changes: { ...sent.changes, at: numbers(sent.changes.at) },
    jumps: new Map((facts.jumps ?? []).map(({ at, text }) => [at, text])),
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

/** Return round numbers between two, about as many as requested. */
function ticks(low, high, about, minStep = 0) {
  const rough = Math.max((high - low) / Math.max(1, about), minStep, 1e-300);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(minStep, [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999));
  const marks = [];
  for (let at = Math.ceil(low / step); at * step <= high; at += 1) marks.push(at * step);
  return marks;
}

const minus = (text) => text.replace("-", "\u2212");

/** Return a number as text, so exact that numbers which are a step apart differ. */
export function short(number, step = Infinity) {
  const size = Math.abs(number), digits = Math.min(15, Math.max(4, Math.ceil(Math.log10(size / step)) + 1));
  for (const [limit, letter] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= limit) return minus(`${+(number / limit).toPrecision(digits)}${letter}`);
  return minus(String(+number.toPrecision(digits)));
}

const TILE = 8;
/** Return a tile of a color with lines or dots on it, as plotly's patterns of bars. */
function tile(shape, color, lines = "rgba(255,255,255,0.75)") {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = TILE;
  const ink = canvas.getContext("2d");
  ink.fillStyle = color;
  ink.fillRect(0, 0, TILE, TILE);
  const half = TILE / 2, slant = [-TILE, 0, TILE];
  if ("/x".includes(shape)) for (const by of slant) trace(ink, `M${by - 1},${TILE + 1}L${by + TILE + 1},-1`, lines, 1.5);
  if ("\\x".includes(shape)) for (const by of slant) trace(ink, `M${by - 1},-1L${by + TILE + 1},${TILE + 1}`, lines, 1.5);
  if ("-+".includes(shape)) trace(ink, `M0,${half}h${TILE}`, lines, 1.5);
  if ("|+".includes(shape)) trace(ink, `M${half},0v${TILE}`, lines, 1.5);
  if (shape === ".") trace(ink, `M${half - 1},${half - 1}h2v2h-2z`, lines);
  return canvas;
}

function filling(ink, pattern, color, ratio) {
  if (!pattern || !ratio) return color;
  const made = ink.createPattern(tile(pattern, color), "repeat");
  made.setTransform(new DOMMatrix().scale(1 / ratio));
  return made;
}

export class Timeline {
  constructor(model, root) {
    this.model = model;
    this.hidden = new Set();
    this.cursor = null;  // the commit whose tooltip is shown
    this.drag = null;
    root.classList.add("sx-timeline");
    this.root = root;
    draw(html`<canvas tabIndex="0" role="application" aria-roledescription="timeline"></canvas><div class="sx-legend"></div><div class="sx-tooltip" role="status" hidden></div>`, root);
    [this.canvas, this.legend, this.tooltip] = root.children;
    this.ink = this.canvas.getContext("2d");
    this.take();
    this.heard = { "change:commits": () => this.take(), "change:facts": () => this.take(), "change:zone": () => this.draw(),
      "change:page": () => this.mark() };
    for (const [name, listener] of Object.entries(this.heard)) model.on(name, listener);
    this.themes = new MutationObserver(() => { this.fillings = null; this.list(); this.draw(); });
    this.themes.observe(document.body, { attributes: true });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(root);
    for (const [name, act] of [["pointermove", "move"], ["pointerdown", "press"], ["pointerup", "release"],
      ["pointerleave", "leave"], ["pointercancel", "leave"], ["blur", "leave"], ["keydown", "key"], ["dblclick", "widen"]])
      this.canvas.addEventListener(name, (event) => this[act](event));
  }

  end() {
    this.sizes.disconnect();
    this.themes.disconnect();
    for (const [name, listener] of Object.entries(this.heard)) this.model.off(name, listener);
    draw(null, this.legend);
    draw(null, this.root);
  }

  /** The versions of A and B, as text. */
  get versions() {
    return this.model.get("page")?.markers ?? [];
  }

  /** Draw the markers anew if they have moved. */
  mark() {
    if (this.marked === this.versions.join()) return;
    this.name();
    this.draw();
  }

  /** Take what the kernel sent, and draw it. */
  take() {
    const data = unpack(this.model.get("commits"), this.model.get("facts"));
    if (data && data.total.length !== data.count) return;  // the rest is about to come
    this.data = data;
    this.cursor = null;
    this.fillings = null;
    this.tooltip.hidden = true;
    this.name();
    this.list();
    this.draw();
  }

  name() {
    const { data } = this;
    const range = data?.count ? `, versions ${data.version[0]} to ${data.version[data.count - 1]}` : "";
    const marked = this.versions.map((version, i) => version && `, ${MARKERS[i][0]} at ${version}`);
    this.marked = this.versions.join();
    this.canvas.setAttribute("aria-label", `Timeline of commits${range}${marked.join("")}. ` +
      "Arrow keys move along commits, Enter sets the marker, Shift+Enter the other one.");
  }

  /** List what is drawn; a kind can be hidden. */
  list() {
    this.faint = getComputedStyle(this.root).color || "#767676";
    const { data, faint, stacks, cuts = 0 } = this, shade = (shape) => ({ background: shape ? `url(${tile(shape, SHADE, faint).toDataURL()})` : SHADE });
    const toggle = (name) => {
      this.hidden.delete(name) || this.hidden.add(name);
      this.draw();
      this.list();
    };
    const fold = () => {
      this.isFull = !this.isFull;
      this.draw();
    };
    draw(data?.count ? html`${data.kinds.map(({ name, sign, color, pattern }) => html`<button type="button" title="Hide or show these commits" aria-pressed=${String(!this.hidden.has(name))}
        onClick=${() => toggle(name)}><i data-color=${this.color({ color })} style=${{ background: pattern ? `url(${tile(pattern, this.color({ color })).toDataURL()})` : color }}></i>${`${sign} ${name}`.trim()}</button>`)}
      ${data.unknown.includes(1) && html`<${Key} path=${shapeOf("unknown", 7, 7)} color=${faint} isLine>? ${data.measure} ${data.unknownWord}</${Key}>`}
      <${Key} path="M0,7h14" color=${faint} isLine>${data.line}</${Key}>
      ${data.jumps.size > 0 && html`<${Key} path=${shapeOf("diamond", 7, 7)} color=${JUMP}>anomalies</${Key}>`}
      ${data.schema.includes(1) && html`<${Key} path="M7,0v14" color=${PURPLE} isLine dash="2 2">schema changed</${Key}>`}
      ${READABLE.map((text, i) => i > 0 && data.readable.includes(i) && html`<span><i style=${shade(i === 2 && "/")}></i>${text}</span>`)}
      ${data.flags.map(({ noun, color }) => html`<${Key} path=${flagOf(noun, 7, 7)} color=${color} isLine=${noun !== "tags"}>${noun}</${Key}>`)}
      ${(data.notes ?? []).map((text) => html`<span class="sx-note">${text}</span>`)}${stacks?.name && html`<span>a bar is ${stacks.name}</span>`}
      ${(cuts > 0 || this.isFull) && html`<button type="button" class="sx-cuts" title="Draw the highest bars in full, or cut them so that the others are seen"
        onClick=${fold}>${this.isFull ? "Cut the highest bars" : `${cuts} cut: draw in full`}</button>`}` : null, this.legend);
  }

  /** Draw everything, as wide as the place is; nothing while there is no place. */
  draw() {
    const width = Math.floor(this.root.clientWidth), ratio = window.devicePixelRatio || 1;
    if (width < LEFT + RIGHT + 20) return;
    const { canvas, ink, data } = this;
    this.faint = getComputedStyle(this.root).color || "#767676";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.font = `12px ${getComputedStyle(this.root).fontFamily}`;
    ink.fillStyle = this.faint;
    delete canvas.dataset.drawn;
    if (!data) return;
    if (!data.count) {
      ink.textAlign = "center";
      ink.fillText("no commits", width / 2, HEIGHT / 2);
      return;
    }
    const { x, count } = data, margin = Math.max(0.6, (x[count - 1] - x[0]) * 0.01), low = x[0] - margin, high = x[count - 1] + margin;
    const left = LEFT, right = width - RIGHT, bottom = HEIGHT - BOTTOM, height = bottom - TOP;
    const at = (place) => left + ((place - low) / (high - low)) * (right - left);
    const share = (part) => bottom - part * height;
    this.at = at;
    this.place = (pixel) => low + ((pixel - left) / (right - left)) * (high - low);
    const plot = { at, share, step: at(1) - at(0), left, right, bottom, ratio };
    this.stacks = this.stacked(plot);
    this.axes(plot, low, high);
    this.shades(plot);
    this.bars(plot);
    this.line(plot);
    for (const x of this.apart(plot, (i) => data.schema[i], 3)) trace(ink, `M${x},${TOP}V${bottom}`, PURPLE, 1.5, [2, 3]);
    const room = this.stacks.name ? 4 * MARK : MARK;  // nearly every bar of many commits has one that is not known
    for (const x of this.apart(plot, (i) => data.unknown[i], room)) trace(ink, shapeOf("unknown", x, this.bar(0)), this.faint, 1.5);
    for (const x of this.apart(plot, (i) => data.jumps.has(i), MARK)) trace(ink, shapeOf("diamond", x, share((BARS + LINE) / 2)), JUMP);  // below the labels of cut bars
    this.flags(plot);
    this.markers(plot);
    if (this.cursor !== null) trace(ink, `M${at(data.x[this.cursor])},${TOP}V${bottom}`, this.faint, 1);
    if (this.drag?.moved && !(this.drag.marker >= 0)) {
      ink.fillStyle = "rgba(0,114,178,0.2)";
      ink.fillRect(Math.min(this.drag.from, this.drag.to), TOP, Math.abs(this.drag.to - this.drag.from), height);
    }
    canvas.dataset.drawn = String(count);
  }

  /** Return the places of commits of a kind, at least so many pixels from each other. */
  * apart({ at }, is, pixels) {
    for (let i = 0, last = -Infinity; i < this.data.count; i += 1) {
      if (!is(i)) continue;
      const x = at(this.data.x[i]);
      if (x - last < pixels) continue;
      last = x;
      yield x;
    }
  }

  /** Return where each bar begins: one for each commit, or for all of an hour, a day, ... where they lie dense. */
  edges({ step, left, right }) {
    const { time, count } = this.data, most = (right - left) / BAR;
    if (step >= DENSE || count <= most) return { starts: Array.from({ length: count }, (_, i) => i) };
    for (const [name, length] of UNITS) {
      const starts = [];
      for (let i = 0, last = NaN; i < count && starts.length <= most; i += 1) {
        const slot = Math.floor((time[i] + MONDAY) / length);
        if (i === 0 || slot > last) starts.push(i);
        if (i === 0 || slot > last || Number.isNaN(last)) last = slot;
      }
      if (starts.length < FEWEST_BARS) break;
      if (starts.length <= most) return { starts, name };
    }
    const rough = count / most, power = 10 ** Math.floor(Math.log10(rough));
    const each = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    return { starts: Array.from({ length: Math.ceil(count / each) }, (_, i) => i * each), name: `${each} versions` };
  }

  /**
   * Return the bars: what the commits of each added and removed, by kind, and how high both are. What commits rewrote
   * that change no row is apart: it only sets the scale where nothing else is.
   */
  stacked(plot) {
    const { data } = this, { starts, name } = this.edges(plot), count = starts.length, kinds = data.kinds.length;
    const byKind = [new Float64Array(count * kinds), new Float64Array(count * kinds)];
    const heights = [new Float64Array(count), new Float64Array(count)], quiet = [new Float64Array(count), new Float64Array(count)];
    const shown = data.kinds.map((kind) => !this.hidden.has(kind.name));
    for (let bar = 0; bar < count; bar += 1)
      for (let i = starts[bar]; i < (starts[bar + 1] ?? data.count); i += 1)
        [data.up, data.down].forEach((side, way) => {
          if (!shown[data.kind[i]]) return;
          if (data.quiet[i]) {
            quiet[way][bar] += side[i];
            return;
          }
          byKind[way][bar * kinds + data.kind[i]] += side[i];
          heights[way][bar] += side[i];
        });
    const isQuiet = !heights.some((side) => side.some(Boolean));
    return { starts, name, count, kinds, byKind, heights, quiet, tops: this.tops(isQuiet ? quiet : heights) };
  }

  /** Return how high bars are drawn up and down: a few that are far higher than all others are cut, on both sides alike. */
  tops(heights) {
    const all = Float64Array.from(heights.flatMap((side) => [...side.filter((height) => height > 0)])).sort();
    const usual = all[Math.floor((all.length - 1) * USUAL)] ?? 0, most = all[all.length - 1] ?? 0;
    const limit = !this.isFull && all.length >= FEWEST_BARS && most > OUTLIER * usual ? ROOM * usual : most;
    return heights.map((side) => side.reduce((highest, height) => Math.max(highest, Math.min(limit, height)), 0));
  }

  axes({ at, share, left, right, bottom }, low, high) {
    const { ink, data } = this;
    let max = 0, min = Infinity;
    for (const total of data.total) {
      if (total > max) max = total;
      if (total < min) min = total;
    }
    if (min === max || min < max * FLAT) min = Math.min(min, 0);
    const [up, down] = this.stacks.tops;
    const [above, under] = this.stacks.tops.map((most, way) => this.stacks.heights[way].some((height) => height > most) ? LABELED : 1.04);
    const zero = -under * down, top = up || down ? zero + (above * up - zero) / data.room : 1;
    this.bar = (value) => share(BARS + ((value - zero) / (top - zero)) * (1 - BARS));
    const peak = max || min ? max + 0.05 * (max - min) : 1;
    this.height = (value) => share(((value - min) / (peak - min)) * LINE);
    ink.textBaseline = "middle";
    ink.textAlign = "right";
    // Long titles leave the gap between bars and line free, and end beside the dates.
    const half = (title) => ink.measureText(title).width / 2;
    for (const [scale, first, last, about, title, middle] of [
      [this.bar, zero, top, 6, data.sides, Math.min(share((1 + BARS) / 2), share(BARS) - half(data.sides))],
      [this.height, min, peak, 3, data.line, Math.max(share(LINE / 2), share(LINE) + half(data.line))]]) {
      const marked = ticks(first, last, about, 1);
      for (const tick of marked) {
        trace(ink, `M${left},${scale(tick)}H${right}`, tick ? GRID : this.faint, 1);
        ink.fillText(short(tick, marked[1] - marked[0] || Infinity), left - 6, scale(tick));
      }
      ink.save();
      ink.translate(10, middle);
      ink.rotate(-Math.PI / 2);
      ink.textAlign = "center";
      ink.fillText(title, 0, 0);
      ink.restore();
    }
    ink.textAlign = "center";
    const longest = ink.measureText(String(data.version[data.count - 1])).width + 20;
    const first = data.isCounted ? 0 : Number(data.first % 10000n);  // so that ticks stand at round versions
    const span = data.time[data.count - 1] - data.time[0];
    let before = "";
    for (const tick of ticks(low + first, high + first, (right - left) / Math.max(90, longest), 1)) {
      const x = tick - first;
      if (x < data.x[0] || x > data.x[data.count - 1]) continue;
      trace(ink, `M${at(x)},${bottom}v4`, GRID, 1);
      const version = String(data.isCounted ? data.version[Math.round(x)] : data.first + BigInt(Math.round(x)));
      ink.fillText(version, Math.min(at(x), right + RIGHT - ink.measureText(version).width / 2), bottom + 12);
      const time = clock(data.time[nearest(data.x, x)], span, this.model.get("zone"));
      const half = ink.measureText(time).width / 2;
      if (time !== before) ink.fillText(time, Math.min(at(x), right + RIGHT - half), bottom + 26);
      before = time;
    }
  }

  bars({ at, ratio, right }) {
    const { ink, data, stacks: { starts, count, kinds, byKind, heights, quiet, tops, name } } = this;
    const ends = [-Infinity, -Infinity];  // of the labels on each side
    let cut = 0;
    for (let bar = 0; bar < count; bar += 1) {
      const first = at(data.x[starts[bar]] - 0.5), last = at(data.x[(starts[bar + 1] ?? data.count) - 1] + 0.5);
      const gap = name ? Math.min(1, (last - first) * 0.2) : (last - first) * 0.15;
      const width = Math.max(2, Math.min(WIDEST, last - first - gap)), x = (first + last - width) / 2;
      [1, -1].forEach((sign, way) => {
        let sum = 0;
        const most = tops[way], height = heights[way][bar], rewritten = Math.min(most, quiet[way][bar]);
        if (rewritten) {
          const thin = Math.max(1, Math.min(3, width / 4)), y0 = this.bar(0), y1 = this.bar(sign * rewritten);
          ink.fillStyle = this.faint;
          ink.fillRect((first + last - thin) / 2, Math.min(y0, y1), thin, Math.abs(y0 - y1));
        }
        for (let kind = 0; kind < kinds; kind += 1) {
          const value = byKind[way][bar * kinds + kind];
          if (!value || sum >= most) continue;
          // Fine lines between many bars would grey them all.
          ink.fillStyle = this.filling(data.kinds[kind], width < 5 ? 0 : ratio);
          const [y0, y1] = [sum, Math.min(most, sum + value)].map((value) => this.bar(sign * value));
          ink.fillRect(x, Math.min(y0, y1), width, Math.max(1, Math.abs(y0 - y1)));
          sum += value;
        }
        if (height <= most) return;
        cut += 1;
        ends[way] = this.cut(x, width, right, this.bar(sign * most), sign, short(height), ends[way]);
      });
    }
    if (this.listed !== `${name} ${cut} ${this.isFull}`) {
      this.listed = `${name} ${cut} ${this.isFull}`;
      this.cuts = cut;
      this.list();
    }
  }

  /** Return the color of a kind; that of gray ones stands out from the page's paper. */
  color({ color }) {
    return color === "currentColor" ? this.faint : color;
  }

  filling(kind, ratio) {
    this.fillings ??= new Map();
    const key = `${kind.name} ${this.color(kind)} ${ratio}`;
    if (!this.fillings.has(key)) this.fillings.set(key, filling(this.ink, kind.pattern, this.color(kind), ratio));
    return this.fillings.get(key);
  }

  /** Break a bar that is higher than it is drawn, with its height beyond its end unless a label is there; return where labels end. */
  cut(x, width, right, y, sign, text, end) {
    const { ink } = this, half = ink.measureText(text).width / 2, middle = Math.min(x + width / 2, right - half);
    ink.globalCompositeOperation = "destination-out";
    trace(ink, `M${x - 1},${y + sign * 10}l${width + 2},-4`, "#000", 3);
    ink.globalCompositeOperation = "source-over";
    if (middle - half < end + 4) return end;
    ink.fillStyle = this.faint;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.fillText(text, middle, y - sign * 9);
    return middle + half;
  }

  /** Draw the totals as steps, with a gap where they are not known. */
  line({ at }) {
    const { ink, data } = this;
    ink.strokeStyle = ink.fillStyle = this.faint;
    ink.lineWidth = 2;
    ink.setLineDash([]);
    ink.beginPath();
    for (let i = 0; i < data.count; i += 1) {
      const x = at(data.x[i]), y = this.height(data.total[i]);
      if (Number.isNaN(data.total[i])) continue;
      if (i === 0 || Number.isNaN(data.total[i - 1])) {
        ink.moveTo(x, y);
        if (i + 1 >= data.count || Number.isNaN(data.total[i + 1])) ink.arc(x, y, 2, 0, 7);
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
  shades({ at, bottom }) {
    const { ink, data } = this;
    for (const [first, last, word] of data.shades) {
      ink.fillStyle = word === 2 ? ink.createPattern(tile("/", SHADE, this.faint), "repeat") : SHADE;
      ink.fillRect(at(data.x[first] - 0.5), TOP, at(data.x[last] + 0.5) - at(data.x[first] - 0.5), bottom - TOP);
    }
  }

  flags({ at, share }) {
    const { ink, data } = this;
    ink.textAlign = "left";
    ink.textBaseline = "middle";
    for (const flags of data.flags)
      flags.at.forEach((index, i) => {
        const x = at(data.x[index]), y = share(BARS + flags.y[i] * (1 - BARS));
        trace(ink, flagOf(flags.noun, x, y), this.color(flags), flags.noun === "tags" ? 0 : 2);
        ink.fillStyle = this.faint;
        if (flags.labels) ink.fillText(flags.labels[i], x + 8, y);
      });
  }

  /** Draw the markers; an arrow to each that lies before or after what is shown. */
  markers({ at, left, right, bottom }) {
    const { ink, data, versions } = this;
    this.letters = [];
    MARKERS.forEach(([letter, color, dash], i) => {
      const index = this.index(versions[i]), version = BigInt(versions[i] || data.version[0]);
      const side = version < data.version[0] ? -1 : version > data.version[data.count - 1] ? 1 : 0;
      if (index < 0 && !side) return;
      const isDragged = this.drag?.marker === i;
      const x = isDragged ? at(data.x[nearest(data.x, this.place(this.drag.to))]) : index >= 0 ? at(data.x[index]) : side < 0 ? left + 12 + 34 * i : right - 12 - 34 * (1 - i);
      this.letters[i] = x;
      if (index >= 0 || isDragged) trace(ink, `M${x},${TOP - 4}V${bottom}`, color, 1.5, dash);
      this.letter(letter, color, x);
      ink.fillStyle = color;
      if (index < 0 && !isDragged) ink.fillText(side < 0 ? "\u2190" : "\u2192", x + side * 15, 9.5);
    });
  }

  letter(letter, color, x) {
    const { ink } = this;
    trace(ink, `M${x - 5},1h10a4,4 0 0,1 4,4v8a4,4 0 0,1 -4,4h-10a4,4 0 0,1 -4,-4v-8a4,4 0 0,1 4,-4z`, color);
    ink.fillStyle = "#fff";
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.fillText(letter, x, 9.5);
  }

  /** Return where a version stands among the commits, -1 if it is not among them. */
  index(version) {
    if (!version) return -1;
    const number = BigInt(version), at = below(this.data.version, number);
    return this.data.version[at] === number ? at : -1;
  }

  lines(i) {
    const jump = this.data.jumps.get(i);
    const zone = this.model.get("zone"), time = this.data.time[i];
    const here = zone === "UTC" || Number.isNaN(time) ? [] : [`${local(time, zone)} ${zone || "local time"}`];
    const { total, line } = this.data, all = Number.isNaN(total[i]) ? "?" : total[i].toLocaleString("en-US");
    return [...this.group(i), this.commit(i), `${line} ${all}`, ...here, ...(jump ? [jump] : [])].join("\n");
  }

  /** Return what is known of the bar that a commit shares with others, in lines. */
  group(i) {
    const { data, stacks } = this;
    if (!stacks?.name) return [];
    const bar = below(stacks.starts, i + 1) - 1, first = stacks.starts[bar], end = stacks.starts[bar + 1] ?? data.count;
    const [up, down] = stacks.heights.map((heights) => heights[bar].toLocaleString("en-US"));
    return [`${end - first} commits of ${stacks.name}: versions ${data.version[first]} to ${data.version[end - 1]}`,
      `${data.measure} +${up} -${down}`, "", "The nearest:"];
  }

  commit(i) {
    const { data } = this;
    const kind = data.kinds[data.kind[i]], thousands = (number) => number.toLocaleString("en-US");
    const time = Number.isNaN(data.time[i]) ? "" : ` ${local(data.time[i], "UTC")}${this.model.get("page")?.isZoneKnown ? " UTC" : ""}`;
    const counts = data.unknown[i] ? " not known" : ` +${thousands(data.added[i])} -${thousands(data.removed[i])}`;
    const change = data.changes.words[data.changes.at[i]], isEnough = change && data.measure === "rows";
    const [operation, user] = [data.operations, data.users].map(({ words, at }) => words[at[i]]);
    return [`version ${data.version[i]}${time}`, [kind.sign, kind.name, operation, user && `by ${user}`].filter(Boolean).join(" "),
      ...(change ? [change] : []), ...(isEnough ? [] : [data.measure + counts]), ...(data.schema[i] ? ["schema changed"] : []), ...(data.names[i] ?? []),
      ...(READABLE[data.readable[i]] ? [READABLE[data.readable[i]]] : [])].join("\n");
  }

  /** Show what is known of a commit beside it. */
  tell(i) {
    this.cursor = i;
    this.draw();
    this.tooltip.hidden = i === null;
    if (i === null || !this.at) return;
    this.tooltip.textContent = this.lines(i);
    const x = this.at(this.data.x[i]), isRight = x > this.root.clientWidth / 2;
    Object.assign(this.tooltip.style, {
      top: `${this.canvas.offsetTop + 24}px`,
      left: isRight ? "auto" : `${x + 14}px`,
      right: isRight ? `${this.root.clientWidth - x + 14}px` : "auto",
    });
  }

  pick(i, isOther) {
    this.model.send({ click: String(this.data.version[i]), other: isOther });
  }

  /** Show all versions; the strip below has the same brush. */
  widen() {
    const last = (this.model.get("strip")?.count ?? 0) - 1;
    if (last > 0) this.model.send({ window: [0, last] });
  }

  // What a pointer and keys do

  move(event) {
    if (!this.data?.count || !this.at) return;
    this.canvas.style.cursor = this.drag?.marker >= 0 || this.markerAt(event) >= 0 ? "ew-resize" : "";
    if (this.drag) {
      this.drag.to = event.offsetX;
      this.drag.moved ||= Math.abs(this.drag.to - this.drag.from) > CLICK;
    }
    this.tell(this.drag?.moved && !(this.drag.marker >= 0) ? null : nearest(this.data.x, this.place(event.offsetX)));
  }

  /** Return the marker, 0 or 1, whose letter or line a pointer is on; -1 if it is on none. B is above A. */
  markerAt({ offsetX, offsetY }) {
    return (this.letters ?? []).findLastIndex((x) => Math.abs(offsetX - x) < (offsetY < TOP ? 2 * NEAR : NEAR));
  }

  press(event) {
    if (event.button || !this.data?.count) return;
    this.drag = { from: event.offsetX, to: event.offsetX, moved: false, marker: this.markerAt(event) };
    this.canvas.setPointerCapture(event.pointerId);
  }

  release(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag || !this.data?.count) return;
    const { version, x } = this.data;
    if (drag.moved && drag.marker >= 0) this.pick(nearest(x, this.place(event.offsetX)), drag.marker === 0);
    else if (drag.moved) this.model.send({ window: [drag.from, drag.to].map((pixel) => String(version[nearest(x, this.place(pixel))])) });
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
    const here = this.cursor ?? Math.max(0, this.index(this.versions[1]));
    const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last };
    if (event.key in steps) this.tell(Math.max(0, Math.min(last, steps[event.key])));
    else if (event.key === "Enter" || event.key === " ") this.pick(here, event.shiftKey);
    else if (event.key === "Escape") this.widen();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Draw a path: filled, or its outline in a width. */
function trace(ink, path, color, width = 0, dash = []) {
  ink.save();
  ink.fillStyle = ink.strokeStyle = color;
  ink.lineWidth = width;
  ink.setLineDash(dash);
  ink[width ? "stroke" : "fill"](new Path2D(path));
  ink.restore();
}

/** Return the mark of a tag, or of the beginning of a branch. */
const flagOf = (noun, x, y) => shapeOf(noun === "tags" ? "triangle-right" : "fork", x, y);

/** Return a time in a zone as YYYY-MM-DD HH:MM:SS; UTC where the page does not know the zone. */
export function local(time, zone) {
  try {
    return new Intl.DateTimeFormat("sv-SE", { timeZone: zone || undefined, dateStyle: "short", timeStyle: "medium" }).format(time);
  } catch {
    return new Date(time).toISOString().slice(0, 19).replace("T", " ");
  }
}

/** Return a time as text, as exact as a span of time needs. */
function clock(time, span, zone) {
  if (Number.isNaN(time)) return "";
  const text = local(time, zone);
  return span > 3 * DAY ? text.slice(0, 10) : span > 3 * HOUR ? text.slice(5, 16) : text.slice(11, 19);
}
