// The page as a file: no kernel, but a model over what was recorded, which answers the messages of the page.

import { numbers } from "./timeline.js";
import { render } from "./page.js";

const PLAY = 1000, SENT = 60;  // milliseconds between two versions, commits of a page of the list
const PACKED = ["version", "added", "removed", "kind", "unknown", "quiet", "schema", "readable", "time"], WORDS_OF = ["operations", "users", "changes"];
const FILTERED = ["kind", "operation", "user", "text", "maintenance"];
const NO_KERNEL = "This page has no kernel:";

/** Return a value of the recording, with its bytes. */
const parse = (text) => JSON.parse(text, (_, value) => value?.base64 === undefined ? value : Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0)));

/** Return the packed numbers of some commits. */
function chosen(packed, isShown) {
  const values = numbers(packed).filter((_, i) => isShown[i]), isWide = values instanceof BigInt64Array;
  return { type: isWide ? "int64" : "float64", data: isWide ? values : Float64Array.from(values), count: values.length };
}

/** Return the timeline of some commits: what Python sends of all, without the others. */
function part({ commits, facts }, isShown) {
  if (isShown.every(Boolean)) return { commits, facts };
  let count = 0;
  const place = isShown.map((is) => is ? (count += 1) - 1 : -1), shades = [];
  const made = { ...commits, names: Object.fromEntries(Object.entries(commits.names).filter(([i]) => isShown[i]).map(([i, lines]) => [place[i], lines])) };
  for (const name of PACKED) made[name] = chosen(commits[name], isShown);
  for (const name of WORDS_OF) made[name] = { ...commits[name], at: chosen(commits[name].at, isShown) };
  numbers(made.readable).forEach((word, i) => {
    if (shades.at(-1)?.[1] === i - 1 && shades.at(-1)[2] === word) shades.at(-1)[1] = i;
    else if (word) shades.push([i, i, word]);
  });
  made.flags = commits.flags.map((flags) => {
    const kept = flags.at.map((_, i) => i).filter((i) => isShown[flags.at[i]]);
    return { ...flags, at: kept.map((i) => place[flags.at[i]]), y: kept.map((i) => flags.y[i]), labels: flags.labels && kept.map((i) => flags.labels[i]) };
  }).filter(({ at }) => at.length);
  return { commits: { ...made, shades }, facts: { ...facts, total: chosen(facts.total, isShown), jumps: facts.jumps.filter(({ at }) => isShown[at]).map((jump) => ({ ...jump, at: place[jump.at] })) } };
}

/** Return the grid with its recorded rows sorted and filtered; `ranks` are the places of the values in their order, null for null. */
function arranged(grid, how) {
  const { cells, full, marked } = grid.page, text = how.text.toLowerCase();
  const isCompared = /^(<|>|=|!=)/.test(text), whole = new Map(full.map(([row, column, value]) => [`${row} ${column}`, value]));
  const passes = (row) => (how.column === null ? cells.map((_, column) => column) : [how.column]).some((column) => {
    const isNull = grid.ranks[column][row] === null;
    if (text === "null" || text === "not null") return isNull === (text === "null");
    return !isNull && (whole.get(`${row} ${column}`) ?? cells[column][row]).toLowerCase().includes(text);
  });
  let order = (cells[0] ?? []).map((_, row) => row);
  if (text && !isCompared) order = order.filter(passes);
  if (how.sort !== null) {
    const ranks = grid.ranks[how.sort], sign = how.descending ? -1 : 1;
    order.sort((a, b) => ranks[a] === ranks[b] ? a - b : ranks[a] === null ? 1 : ranks[b] === null ? -1 : sign * (ranks[a] - ranks[b]));
  }
  const place = new Map(order.map((row, i) => [row, i])), moved = (list) => list.filter(([row]) => place.has(row)).map(([row, ...rest]) => [place.get(row), ...rest]);
  return { ...grid, how, count: order.length, error: isCompared ? `${NO_KERNEL} rows are filtered by text, null or not null.` : "",
    page: { start: 0, cells: cells.map((column) => order.map((row) => column[row])), full: moved(full), marked: moved(marked) } };
}

class Recording {
  constructor(lines, fragment) {
    Object.assign(this, { lines, handlers: [], traits: { busy: {} }, contents: new Map(), grids: new Map(), answers: 0 });
    Object.assign(this, this.read("explorer"), this.read("commits"));
    this.state = this.page.state;
    this.places = new Map(this.versions.map((version, i) => [version, i]));
    this.visit(new URLSearchParams(fragment.slice(1)));
    this.publish();
  }

  /** Show what the end of the address asks for, such as #a=7&b=8&tab=rows. */
  visit(asked) {
    const { choices, tabs } = this.page, known = { ...choices, tab: tabs };
    for (const [name, value] of asked) {
      if (name === "a" || name === "b") this.choose(name, value);
      else if (known[name]?.includes(value)) this.set({ [name]: value });
    }
  }

  /** Return what was recorded of a place; undefined if it was not. */
  read(...key) {
    const name = key.join(" ");
    if (!this.contents.has(name)) this.contents.set(name, this.lines.has(name) ? parse(this.lines.get(name)) : undefined);
    return this.contents.get(name);
  }

  get = (name) => this.traits[name];
  on = (name, handler) => this.handlers.push([name, handler]);
  off = (name, handler) => { this.handlers = this.handlers.filter((known) => known[0] !== name || known[1] !== handler); };
  tell = (name, ...what) => this.handlers.filter((known) => known[0] === name).forEach(([, handler]) => handler(...what));

  /** Receive a message of the page, which may send it while it is drawn. */
  send(message) {
    queueMicrotask(() => {
      const [name] = Object.keys(this.receivers).filter((known) => known in message);
      if (!name) return;
      this.note = "";
      this.receivers[name](message[name], message);
      this.publish();
    });
  }

  receivers = {
    set: (values) => this.set(values),
    choose: ([marker, text]) => text.trim() && this.choose(marker, text.trim()),
    step: ([marker, by]) => this.step(marker, by),
    click: (version, { other }) => this.mark(other ? "a" : "b", version),
    act: (name) => name === "reset filters" && this.set(this.page.defaults),
    window: (ends) => { this.window = ends.map((end) => this.places.get(end) ?? end).sort((a, b) => a - b); },
    commits: (start) => this.tell("msg:custom", { commits: { start, rows: this.rows.slice(start, start + SENT) } }),
    grid: ({ place, arrange }) => arrange && this.grids.set(this.key(place), arrange),
    open: (path) => { this.state.manifest = path; },
    finding: (index) => {
      const [first] = this.read(this.key(this.state.tab)).findings[index].versions;
      Object.assign(this.state, { tab: "rows", pinned: false });
      this.mark("b", first);
    },
  };

  set({ zone, playing, ...values }) {
    this.answers += 1;
    for (const [name, value] of Object.entries(values)) if (name in this.state) this.state[name] = value;
    if (values.pinned === false) this.mark("b", this.b);
    if (["", "UTC", "local", ...Intl.supportedValuesOf("timeZone")].includes(zone)) this.state.zone = zone || "UTC";
    else if (zone !== undefined) this.note = `${zone} is not a time zone. Write one such as Europe/Berlin.`;
    this.state.playing = playing ?? this.state.playing;
    if (playing !== undefined) clearInterval(this.player);
    if (playing) this.player = setInterval(() => this.send({ step: ["b", 1] }), PLAY);
  }

  choose(marker, text) {
    this.answers += 1;
    const version = { latest: this.versions.at(-1), earliest: this.versions[0] }[text] ?? text;
    if (this.places.has(version)) this.mark(marker, version);
    else this.note = `${NO_KERNEL} ${text} is not one of its versions, which are ${this.versions[0]} to ${this.versions.at(-1)}.`;
  }

  step(marker, by) {
    const listed = this.rows.map(({ version }) => BigInt(version)), here = BigInt(this[marker] || 0);
    const next = by < 0 ? listed.find((version) => version < here) : listed.findLast((version) => version > here);
    if (next !== undefined) return this.mark(marker, String(next));
    this.note = `No version listed is ${by < 0 ? "older" : "newer"} than ${here}.`;
    this.set({ playing: false });
  }

  mark(marker, version) {
    this[marker] = version;
    if (marker === "a") this.state.pinned = true;
    else if (!this.state.pinned) this.a = this.versions[this.places.get(version) - 1] ?? version;
    this.reveal(version);
  }

  /** Move the window, at its width, so that a version is in it. */
  reveal(version) {
    if (this.isInWindow(version) || !this.places.has(version)) return;
    const width = this.window[1] - this.window[0], middle = this.places.get(version) - Math.trunc((width + 1) / 2);
    const first = Math.max(0, Math.min(middle, this.versions.length - width - 1));
    this.window = [first, first + width];
  }

  /** Return whether a commit passes the filters. */
  passes({ kind, operation, user }, details) {
    const { state, maintenance } = this, has = (text, part) => text.toLowerCase().includes(part.toLowerCase());
    return (!state.kind || kind === state.kind) && (!state.operation || operation.toUpperCase() === state.operation.toUpperCase()) && (!state.user || has(user, state.user))
      && (!state.text || has(details, state.text)) && (state.maintenance || maintenance.includes(state.kind) || !maintenance.includes(kind));
  }

  /** Return the name of what a place shows. */
  key(place) {
    const { a, b, state: { compared, file_view, health, manifest } } = this, pair = `${place} ${a} ${b}`;
    return { manifests: pair, rows: pair, compare: `${pair} ${compared}`, entries: `entries ${manifest}`, branches: "branches", commit: `commit ${b}`, data: `data ${b}`,
      files: `files ${file_view}${file_view === "list" ? ` ${b}` : ""}`, health: `health ${health}${health === "health" ? ` ${b}` : ""}` }[place];
  }

  content(place) {
    const key = this.key(place), content = this.read(key), how = this.grids.get(key);
    if (content === undefined) return { sentence: `Not recorded. ${this.page.recorded}` };
    if (how && content.grid?.columns && content.grid.how !== how) {
      content.grid.source ??= content.grid;
      content.grid = { ...arranged(content.grid.source, how), source: content.grid.source };
    }
    return content;
  }

  /** Tell the page all that has changed. */
  publish() {
    const { state, traits: before } = this, measured = this.read("measure", state.measure), filters = JSON.stringify(FILTERED.map((name) => state[name]));
    const listed = `${state.measure} ${filters}`, isListed = this.listed !== listed;
    if (isListed) {
      this.listed = listed;
      this.rows = measured.rows.filter((row, i) => this.passes(row, this.details[i]));
      if (this.rows.length && !this.rows.some(({ version }) => this.isInWindow(version))) this.reveal(this.rows[0].version);
    }
    const drawn = `${listed} ${this.window}`, traits = { ...before, zone: state.zone === "local" ? "" : state.zone };
    if (this.drawn !== drawn) {
      this.drawn = drawn;
      const shown = new Set(this.rows.map(({ version }) => version).filter((version) => this.isInWindow(version)));
      Object.assign(traits, part(measured, this.versions.map((version) => shown.has(version))));
      traits.strip = { ...measured.strip, window: this.window };
    }
    if (isListed) traits.listed = { count: this.rows.length, start: 0, rows: this.rows.slice(0, SENT), measure: state.measure, most: measured.most, read: this.versions.length };
    const at = this.rows.findIndex(({ version }) => version === this.b);
    traits.page = { ...this.page, note: this.note ?? "", at: at < 0 ? null : at, counts: { ...this.page.counts, ...this.read("counts", this.a, this.b) },
      markers: [this.a, this.b], state: { ...state }, answers: this.answers };
    traits.view = { tab: state.tab, ...this.content(state.tab), manifest: state.manifest, entries: state.tab === "manifests" && state.manifest ? this.content("entries") : {},
      conditions: [], blamed: {}, bisected: {}, load: {} };
    this.traits = traits;
    for (const [name, value] of Object.entries(traits)) if (value !== before[name]) this.tell(`change:${name}`);
  }

  isInWindow = (version) => this.places.get(version) >= this.window[0] && this.places.get(version) <= this.window[1];
}

const dark = matchMedia("screen and (prefers-color-scheme: dark)"), dress = () => { document.body.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", dress);
dress();
const recorded = Uint8Array.from(atob(document.getElementById("recorded").textContent), (letter) => letter.charCodeAt(0));
const lines = await new Response(new Blob([recorded]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
render({ el: document.querySelector("main"), model: new Recording(new Map(lines.split("\n").filter(Boolean).map((line) => {
  const end = line.indexOf("\t");
  return [JSON.parse(line.slice(0, end)), line.slice(end + 1)];
})), location.hash) });
