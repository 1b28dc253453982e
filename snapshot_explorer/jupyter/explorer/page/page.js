// The explorer's page: draws the traits of one model, and sends what a user does. Every text is set as text, but for what the kernel drew.

import { Button, Copy, Picture, draw, html, save, savePng, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./pictures.js";
import { Timeline, local, short } from "./timeline.js";
import { Grid } from "./grid.js";

const TRAITS = ["page", "view", "listed", "strip", "busy", "zone"];
const HIGH = 46, LISTED = 60;  // pixels of a commit in the list, commits of a page of it
const TYPED = 350;  // milliseconds after which what is typed counts
const UNIT = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000]];
const WORDS = { load_limit: "At most", overview: "summary", problems: "what went wrong", slices: "file groups" };
const TYPES = [["arrow", "exact, as Arrow"], ["numpy", "floats, as NumPy"], ["nullable", "floats, nullable"]];

const word = (name) => WORDS[name] ?? name.replaceAll("_", " ");
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const number = (count) => count.toLocaleString("en-US");
const signed = (sign, count) => count === null ? `${sign}?` : count ? sign + short(count) : "";

/** Return whether white stands out from a color such as #0072b2 more than black does. */
const isDark = (color = "") => [0.3, 0.59, 0.11].reduce((sum, weight, i) => sum + weight * parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16), 0) < 100;

/** Return a path without its middle. */
const middle = (path) => path.length > 46 ? `${path.slice(0, 14)}\u2026${path.slice(-31)}` : path;

/** Return how long ago a time was, in its largest unit. */
function ago(time) {
  const past = Date.now() - time;
  if (past < -UNIT[2][1]) return "in the future";  // within a minute it is a clock that differs
  const [name, length] = UNIT.find(([, length]) => past >= length) ?? [];
  const count = Math.floor(past / length);
  return name ? `${number(count)} ${name}${count > 1 ? "s" : ""} ago` : "just now";
}

/** Insert text as a cell below the one in front; JupyterLab and Notebook do where they expose their application. */
async function insert(text) {
  const { commands, shell } = window.jupyterapp;
  await commands.execute("notebook:insert-cell-below");
  shell.currentWidget.content.activeCell.model.sharedModel.setSource(text);
}

// Controls

/** A field whose text counts once it is left, or with Enter, or while it is typed; what the kernel refuses becomes what it was. */
function Field({ app, label, value, put, hint = "", css = "", list, number: isNumber, isHidden, isLive }) {
  const [draft, setDraft] = useState(null), known = String(value ?? ""), isSent = useRef(false);
  const settle = () => setDraft((draft) => isLive && draft !== known ? draft : null);
  useLayoutEffect(settle, [known]);  // with the answer, not a frame later: by then something may have been typed again
  useLayoutEffect(() => {  // the answer to another field leaves what is being typed here
    if (isSent.current) settle();
    isSent.current = false;
  }, [app.page.answers]);
  useEffect(() => {
    if (!isLive || draft === null || draft === known) return undefined;
    const later = setTimeout(finish, TYPED);
    return () => clearTimeout(later);
  }, [draft]);
  const finish = () => {
    if (draft === null || draft === known) return setDraft(null);
    isSent.current = true;
    put(isNumber ? Number(draft) : draft);
  };
  const key = (event) => {
    if (event.key === "Enter" && !event.isComposing) finish();
    else if (event.key === "Escape") setDraft(null);
  };
  return html`<label class="sx-field ${css}"><span class=${isHidden ? "sx-unseen" : ""}>${label}</span><input
    type=${isNumber ? "number" : "text"} min="0" value=${draft ?? known} placeholder=${hint} list=${list} spellcheck="false"
    autocomplete="off" aria-label=${label} onInput=${(event) => setDraft(event.target.value)} onBlur=${finish} onKeyDown=${key} /></label>`;
}

const Text = ({ app, name, label = capital(word(name)), ...more }) => html`<${Field} app=${app} label=${label}
  value=${app.state[name]} put=${(text) => app.set({ [name]: text })} ...${more} />`;

const Names = ({ app, name, ...more }) => html`<${Field} app=${app} label=${capital(word(name))} value=${app.state[name].join(",")}
  put=${(text) => app.set({ [name]: text.split(",").map((column) => column.trim()).filter(Boolean) })} ...${more} />`;

/** Return a listener to keys that closes what is open with Escape. */
const closing = (close) => (event) => event.key === "Escape" && close();

/** Which columns are shown: a list to search and to tick. */
function Columns({ app }) {
  const [isOpen, setOpen] = useState(false), [text, setText] = useState(""), columns = app.view.columns ?? [];
  const shown = columns.flatMap(([, , isShown], at) => isShown ? [at] : []);
  const toggle = (at) => app.send({ columns: shown.includes(at) ? shown.filter((column) => column !== at) : [...shown, at].sort((a, b) => a - b) });
  const matching = columns.map((column, at) => [...column, at]).filter(([name]) => name.toLowerCase().includes(text.toLowerCase())).slice(0, 200);
  const key = closing(() => setOpen(false));
  return html`<button type="button" class="sx-btn" aria-expanded=${String(isOpen)} onKeyDown=${key} onClick=${() => setOpen(!isOpen)}>Columns ${number(shown.length)} of ${number(columns.length)}</button>
    ${isOpen && html`<div class="sx-menu" role="group" aria-label="Columns" onKeyDown=${key}><div class="sx-row"><input type="search" aria-label="Find a column" placeholder="Find a column"
      value=${text} onInput=${(event) => setText(event.target.value)} /><${Button} label="All columns" title="Show all columns" act=${() => app.send({ columns: [] })} /></div>
      <div class="sx-ticks">${matching.map(([name, type, isShown, at]) => html`<label class="sx-check" key=${at}><input type="checkbox" checked=${isShown} onChange=${() => toggle(at)} />${name}
        <span class="sx-faint">${type}</span></label>`)}</div></div>`}`;
}

const Check = ({ app, name, label, title }) => {
  // A message that Python sent before the click must not undo it.
  const stored = app.state[name], [checked, setChecked] = useState(stored);
  useLayoutEffect(() => setChecked(stored), [stored]);
  const change = (event) => {
    setChecked(event.target.checked);
    app.set({ [name]: event.target.checked });
  };
  return html`<label class="sx-check" title=${title}><input type="checkbox" checked=${checked} onChange=${change} />${label}</label>`;
};

const Select = ({ app, name, label = capital(word(name)), options = app.page.choices[name].map((choice) => [choice, word(choice)]) }) =>
  html`<label class="sx-field"><span>${label}</span><select aria-label=${label} value=${app.state[name] ?? ""}
    onChange=${(event) => app.set({ [name]: event.target.value || null })}>
    ${options.map(([value, text]) => html`<option value=${value} selected=${value === (app.state[name] ?? "")}>${text}</option>`)}</select></label>`;

const Segments = ({ app, name, label, choices = app.page.choices[name].map((choice) => [choice, word(choice)]) }) => html`<div class="sx-seg" role="group" aria-label=${label}>
  ${choices.map(([choice, text]) => html`<button type="button" aria-pressed=${String(app.state[name] === choice)}
    onClick=${() => app.set({ [name]: choice })}>${text}</button>`)}</div>`;

// The head, the chart and the toolbar

const Head = ({ app: { page, state, set, act, busy } }) => html`<div class="sx-head" role="status">
  <b>${page.name}</b><span class="sx-chip">${page.format}</span>
  <span class="sx-path" title=${page.path}>${middle(page.path)}</span><${Copy} icon="copy" text=${page.path} label="Copy path" title="Copy the path of the table" />
  <span class="sx-gap"></span>${page.late && html`<span class="sx-minus">${page.late}</span>`}
  <span class="sx-about sx-faint" title=${[...page.facts, ...(page.newest ? [`newest commit ${ago(page.newest)}`] : [])].join("\n")}>${page.facts.join(" \u00b7 ")}</span>
  ${!page.recorded && html`<button type="button" class="sx-btn sx-live" aria-pressed=${String(state.follow)} onClick=${() => set({ follow: !state.follow })}
    title="Look for new commits every few seconds">Live${state.follow ? `, every ${page.interval} s` : ""}</button>
  <${Button} label="Refresh" icon="refresh" title="Read the log again" act=${() => act("refresh")} />`}
  ${busy.log && html`<${Busy} text=${busy.log} cancel=${() => act("log", "cancel")} />`}</div>
  ${page.problem && html`<div class="sx-error" role="alert">${page.problem}</div>`}`;

function Chart({ app }) {
  const place = useRef();
  useLayoutEffect(() => {
    const timeline = new Timeline(app.model, place.current);
    return () => timeline.end();
  }, []);
  return html`<div ref=${place}></div>`;
}

/** The whole history, with a brush over the part that the chart shows: drag it, its ends, or anew; arrow keys move it. */
function Strip({ app }) {
  const { strip, zone, page } = app, [drag, setDrag] = useState(null), box = useRef();
  if (!strip.bins || strip.count < 2) return null;
  const last = strip.count - 1, [low, high] = drag?.now ?? strip.window;
  const send = (now) => String(now) !== String(strip.window) && app.send({ window: now });
  const at = (event) => {
    const { left, width } = box.current.getBoundingClientRect();
    return Math.max(0, Math.min(last, Math.round(((event.clientX - left) / width) * last)));
  };
  const moved = (by, [low, high] = strip.window) => {
    const step = Math.max(-low, Math.min(last - high, by));
    return [low + step, high + step];
  };
  const press = (event) => {
    const from = at(event), near = Math.max(1, last / 60), { part } = event.target.dataset;
    const way = !part ? "new" : Math.abs(from - low) <= near && high > low + near ? "low" : Math.abs(from - high) <= near ? "high" : "all";
    box.current.setPointerCapture(event.pointerId);
    setDrag({ from, way, now: [low, high] });
  };
  const move = (event) => {
    if (!drag) return;
    const to = at(event), [low, high] = strip.window;
    const now = { new: [drag.from, to], low: [to, high], high: [low, to], all: moved(to - drag.from) }[drag.way];
    setDrag({ ...drag, now: now.sort((a, b) => a - b) });
  };
  const release = () => {
    if (drag) send(drag.now);
    setDrag(null);
  };
  const key = (event) => {
    const [low, high] = strip.window, by = Math.max(1, Math.round((high - low) / 4));
    const now = { ArrowLeft: moved(-by), ArrowRight: moved(by), Home: moved(-last), End: moved(last), "+": [low + by, Math.max(low + by, high - by)],
      "-": [Math.max(0, low - by), Math.min(last, high + by)], Escape: [0, last] }[event.key];
    if (!now) return;
    send(now);
    event.preventDefault();
  };
  const percent = (place) => `${(100 * place) / (last + 1)}%`, day = (time) => time === null ? "" : local(time, zone).slice(0, 16);
  return html`<div class="sx-strip"><div class="sx-brushed" ref=${box} onPointerDown=${press} onPointerMove=${move} onPointerUp=${release}
      onPointerCancel=${() => setDrag(null)} onDblClick=${() => send([0, last])} title="Drag to choose the versions that are shown; double-click for all">
    <svg viewBox="0 0 ${strip.bins.length} 20" preserveAspectRatio="none" aria-hidden="true">
      ${strip.bins.map((height, i) => height > 0 && html`<rect x=${i + 0.1} width="0.8" y=${20 - 19 * height} height=${19 * height} />`)}</svg>
    <div class="sx-brush" data-part="all" tabIndex="0" role="slider" aria-label="Versions that are shown" aria-valuemin="0" aria-valuemax=${last}
      aria-valuenow=${high} aria-valuetext=${`${high - low + 1} of ${strip.count} versions`} onKeyDown=${key} style=${{ left: percent(low), width: percent(high - low + 1) }}></div></div>
    <div class="sx-ends sx-faint"><span>${day(strip.times[1] === undefined ? null : strip.times[0])}</span>
      <span>${high - low + 1 < strip.count ? `${number(high - low + 1)} of ${number(strip.count)} versions` : ""}</span>
      <span>${day(strip.times.at(-1) ?? null)} ${page.isZoneKnown ? zone || "local time" : "by the writers' clocks"}</span></div></div>`;
}

/** A marker: its version, which any ref replaces, and buttons that move it. */
function Marker({ app, name }) {
  const letter = name.toUpperCase(), version = app.page.markers[name === "a" ? 0 : 1];
  const step = (label, way, sign, by) => html`<${Button} css="sx-step" label=${sign} name=${label} title=${`Move ${letter} one version ${way}`} act=${() => app.send({ step: [name, by] })} />`;
  return html`<span class="sx-ver sx-${name}" style=${{ "--s-digits": `${String(version ?? "").length}ch` }}><b aria-hidden="true">${letter}</b>
    <${Field} app=${app} label=${letter} isHidden value=${version} hint="tag, @3d" put=${(text) => app.send({ choose: [name, text] })} />
    ${step(name === "b" ? "Previous" : "Previous A", "back", "\u2039", -1)}${step(name === "b" ? "Next" : "Next A", "on", "\u203a", 1)}
    ${name === "a" && html`<button type="button" class="sx-step" aria-pressed=${String(app.state.pinned)} aria-label="Pin A"
      title="Keep A where it is; otherwise A is the version before B" onClick=${() => app.set({ pinned: !app.state.pinned })}>${app.state.pinned ? "pinned" : "pin"}</button>`}</span>`;
}

function Bar({ app }) {
  const { page, state, set, act } = app, [isOpen, setOpen] = useState(false);
  const active = Object.keys(page.defaults).filter((name) => state[name] !== page.defaults[name]);
  const said = { maintenance: () => "no maintenance", recorded_times: () => "recorded times" };
  return html`<div class="sx-bar"><${Marker} app=${app} name="a" />
    ${!page.recorded && html`<${Button} css="sx-step" label="\u21c4" name="Swap A and B" title="Compare the other way round" act=${() => act("swap")} />`}
    <${Marker} app=${app} name="b" /><${Segments} app=${app} name="measure" label="Bars count" />
    ${active.map((name) => html`<button type="button" class="sx-tag" title="Remove this filter" key=${name}
      onClick=${() => set({ [name]: page.defaults[name] })}>${said[name]?.() ?? `${name}: ${state[name]}`} \u00d7</button>`)}
    <button type="button" class="sx-btn sx-add" aria-expanded=${String(isOpen)} onKeyDown=${closing(() => setOpen(false))} onClick=${() => setOpen(!isOpen)}>Filters</button>
    <span class="sx-gap"></span>
    <${Button} label=${`What went wrong?${page.counts.health === undefined ? "" : ` ${number(page.counts.health)}`}`}
      title="Look for missing files, numbers that jump, and bad health; they are marked on the chart" act=${() => set({ tab: "health", health: "problems", anomalies: true })} />
    <span><${Button} label=${state.playing ? "Pause" : "Play"} icon=${state.playing ? "pause" : "play"} title="Move B on every second, up to the newest version" act=${() => set({ playing: !state.playing })} />
    <${Copy} icon="copy" text=${page.code} label="Copy history" title=${`Copy history: ${page.code}`} />
    <${Button} label="Save PNG" icon="save" title="Save the chart as a picture"
      act=${(event) => {
        const drawn = event.target.closest(".sx-explorer").querySelector(".sx-timeline > canvas");
        savePng(drawn, page.name, `${page.name}: ${drawn.getAttribute("aria-label").split(". ")[0]}`);
      }} /></span>
    ${isOpen && html`<div class="sx-filters" onKeyDown=${closing(() => setOpen(false))}><${Select} app=${app} name="kind" options=${[["", "any kind"], ...page.choices.kind.map((kind) => [kind, kind])]} />
      <${Text} app=${app} name="operation" hint="MERGE" /><${Text} app=${app} name="user" hint="part of the name" />
      ${!page.recorded && html`<${Text} app=${app} name="since" hint="@2026-11-01 or @3d" /><${Text} app=${app} name="until" hint="@2026-11-08" />`}
      <${Text} app=${app} name="zone" label="Time zone" hint="UTC, local, Europe/Berlin" />
      <${Check} app=${app} name="maintenance" label="Maintenance commits" title="Show commits that change no data" />
      ${page.isCopied && !page.recorded && html`<${Check} app=${app} name="recorded_times" label="Recorded times" title="Show the times that writers recorded; the log's files have other ones since the table was copied" />`}
      ${!page.recorded && html`<${Check} app=${app} name="anomalies" label="Mark anomalies" title="Mark versions where a number jumps, from metadata" />`}
      <${Button} label="Show all" title="Take all filters away" act=${() => act("reset filters")} /></div>`}
    ${page.note && html`<div class="sx-error" role="alert">${page.note}</div>`}</div>`;
}

// The list of commits

function Commits({ app }) {
  const { listed, page } = app, scroll = useRef(), pages = useRef({}), [top, setTop] = useState(0);
  if (pages.current.of !== listed) {
    pages.current = { of: listed, rows: new Map(), asked: new Set([0]) };
    (listed.rows ?? []).forEach((row, i) => pages.current.rows.set(i, row));
  }
  useEffect(() => app.listen("commits", ({ commits: { start, rows } }) => {
    rows.forEach((row, i) => pages.current.rows.set(start + i, row));
    app.redraw();
  }), []);
  const count = listed.count ?? 0, seen = Math.ceil((scroll.current?.clientHeight || 400) / HIGH);
  const first = Math.max(0, Math.floor(top / HIGH) - 4), end = Math.min(count, first + seen + 8);
  for (let at = first - (first % LISTED); at < end; at += LISTED)
    if (!pages.current.asked.has(at)) {
      pages.current.asked.add(at);
      app.send({ commits: at });
    }
  const [, b] = page.markers, here = page.at ?? undefined;
  useEffect(() => {
    const { current } = scroll;
    if (here === undefined || !current) return;
    if (here * HIGH < current.scrollTop) current.scrollTop = here * HIGH;
    else if ((here + 1) * HIGH > current.scrollTop + current.clientHeight) current.scrollTop = (here + 1) * HIGH - current.clientHeight;
  }, [b, listed]);
  const key = (event) => {
    const to = { ArrowUp: here - 1, ArrowDown: here + 1, Home: 0, End: count - 1, PageUp: here - seen, PageDown: here + seen }[event.key];
    if (to === undefined) return;
    const row = pages.current.rows.get(Math.max(0, Math.min(count - 1, Number.isNaN(to) ? 0 : to)));
    if (row) app.send({ click: row.version, other: event.shiftKey });
    event.preventDefault();
  };
  const rows = [];
  for (let at = first; at < end; at += 1) rows.push(html`<${Commit} key=${at} app=${app} at=${at} row=${pages.current.rows.get(at)} />`);
  const isAll = (listed.read ?? 0) === page.count;
  return html`<div class="sx-list"><div class="sx-search"><${Text} app=${app} name="text" label="Search commits" isHidden isLive hint="Search all commits" />
      <span class="sx-faint sx-number" role="status" title=${isAll ? "" : `The newest ${number(listed.read ?? 0)} are searched and listed`}>${number(count)} of ${number(page.count)}${isAll ? "" : "*"}</span></div>
    <div class="sx-scroll" ref=${scroll} tabIndex="0" role="listbox" aria-label=${`${number(count)} commits, newest first`}
      aria-activedescendant=${here === undefined ? undefined : `${app.id}-${here}`} onKeyDown=${key} onScroll=${(event) => setTop(event.target.scrollTop)}>
    <div style=${{ height: `${count * HIGH}px` }}>${rows}</div>
    ${!count && page.isKnown && html`<p class="sx-empty">${page.count ? "No commit passes the filters." : "Nothing has been committed to the table yet."}</p>`}
    </div></div>`;
}

/** What a commit added and removed as a bar, whose length grows with the root of the number: one large commit hides no other. */
function Changed({ row: { added, removed, updated, isQuiet }, most }) {
  const [up, down] = [added, removed].map((side) => (side ?? 0) + (updated ?? 0));
  if (isQuiet || !(up + down)) return null;
  return html`<span class="sx-bar-of" aria-hidden="true" style=${{ width: `${8 + 48 * Math.sqrt((up + down) / most)}px` }}><i class="sx-added" style=${{ flexGrow: up }}></i>
    <i class="sx-removed" style=${{ flexGrow: down }}></i></span>`;
}

/** What a commit added, removed and updated, in a few letters; the sentence is its tooltip. */
const Counts = ({ row }) => html`<span class="sx-counts" title=${row.change}>${row.remark ? html`<span class="sx-faint">${row.remark}</span>` : html`<span class="sx-plus">${signed("+", row.added)}</span>${" "}
  <span class="sx-minus">${signed("\u2212", row.removed)}</span>${" "}<span>${signed("~", row.updated)}</span>${row.isNet && html` <span class="sx-faint">net</span>`}`}</span>`;

function Commit({ app, row, at }) {
  const style = { top: `${at * HIGH}px` };
  if (!row) return html`<div class="sx-commit" style=${style}><span class="sx-bone"></span></div>`;
  const marks = app.page.markers.map((version) => version === row.version), { colors, signs } = app.page.choices;
  const isLong = row.version.length > 10;  // a number that is a time leaves no room beside it
  const who = row.user && (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(row.user) ? row.user.slice(0, 8) : row.user);
  return html`<div id=${`${app.id}-${at}`} role="option" aria-selected=${String(marks[1])} class="sx-commit ${marks[1] ? "sx-is-b" : marks[0] ? "sx-is-a" : ""}"
    style=${style} onClick=${(event) => app.send({ click: row.version, other: event.shiftKey })} title=${[`${row.operation} ${row.message}`.trim(), "A click sets B, with Shift A"].filter(Boolean).join("\n")}>
    <span class="sx-dot" style=${{ background: colors[row.kind], color: isDark(colors[row.kind]) ? "#fff" : "#000" }} title=${row.kind}>${signs[row.kind] ?? ""}</span>
    <b class="sx-number">${row.version}</b>
    <span class="sx-what">${!isLong && html`${row.operation}${row.message && html` <span class="sx-faint">${row.message}</span>`}`}</span>
    <${Counts} row=${row} />
    <${Changed} row=${row} most=${app.listed.most} />
    <span class="sx-by sx-faint" title=${row.user}>${[isLong && `${row.operation} ${row.message}`.trim(), who, row.time === null ? "" : ago(row.time), ...row.tags.map((tag) => `tag ${tag}`),
      ...(row.readable === "metadata" || row.readable === "no" ? ["cannot be loaded"] : [])].filter(Boolean).join(" \u00b7 ")}</span></div>`;
}

// What a view contains

const Shares = ({ shares }) => html`<div class="sx-stack" aria-hidden="true">${shares.map(([name, count]) => html`<i class=${`sx-${name}`} style=${{ flexGrow: count }}></i>`)}</div>`;
const files = (shares) => `Files: ${shares.filter(([, count]) => count).map(([name, count]) => `${number(count)} ${name}`).join(", ")}`;

const rate = (part) => `${part && part < 0.01 ? "<1" : Math.round(100 * part)} %`;

/** Which files A and B share, and how the values of columns moved from A to B, the one that moved most first. */
function Summary({ shares, tiles }) {
  const [isAll, setAll] = useState(false), shown = isAll ? tiles : tiles.slice(0, 4);
  const tile = ({ name, bars: counts, rows, nulls, moved, about }) => {
    const bars = counts.map(([a, b]) => [a / Math.max(1, rows[0]), b / Math.max(1, rows[1])]), most = Math.max(...bars.flat()), wide = Math.max(bars.length, 1), known = nulls.filter((part) => part !== null);
    const bar = (count, x, side) => count > 0 && html`<rect class=${`sx-of-${side}`} x=${x} width="0.42" y=${20 - 19 * count / most} height=${19 * count / most} />`;
    return html`<div class="sx-tile ${moved > 0.05 ? "sx-moved" : ""}" key=${name} title=${[`${name}: ${about}`, ...counts.filter(([, , text]) => text).map(([a, b, text]) => `${text}: ${number(a)} \u2192 ${number(b)} rows`)].join("\n")}>
      <b>${name}</b><span class="sx-faint">${[about, ...(known.some(Boolean) ? [`null ${[...new Set(known.map(rate))].join(" \u2192 ")}`] : [])].filter(Boolean).join(" \u00b7 ")}</span>
      <svg viewBox="0 0 ${wide} 20" preserveAspectRatio="none" role="img" aria-label=${`${name} in A and in B: ${about}`}>${bars.map(([a, b], i) => [bar(a, i + 0.06, "a"), bar(b, i + 0.5, "b")])}</svg></div>`;
  };
  const hasFiles = shares.some(([, count]) => count);
  return html`${hasFiles && html`<${Shares} shares=${shares} />`}<div class="sx-faint sx-row">${hasFiles && html`<span>${files(shares)}</span>`}
      ${tiles.length > 0 && html`<span class="sx-gap"></span><span>Changed rows in <i class="sx-key sx-of-a"></i> A and <i class="sx-key sx-of-b"></i> B</span>`}
      ${tiles.length > 4 && html`<button type="button" class="sx-btn" aria-expanded=${String(isAll)} onClick=${() => setAll(!isAll)}>${isAll ? "Fewer columns" : `All ${tiles.length} columns`}</button>`}</div>
    ${tiles.length > 0 && html`<div class="sx-tiles">${shown.map(tile)}</div>`}`;
}

const Busy = ({ text, cancel }) => html`<span class="sx-busy" role="status"><i></i>${text} <${Button} label="Cancel" title="Stop reading; keep the current view" act=${cancel} /></span>`;

/** Facts that follow each other are one grey line. */
const joined = (parts) => parts.reduce((lines, part) => {
  const last = lines.at(-1);
  if (part.faint && last?.faint) return [...lines.slice(0, -1), { ...last, line: `${last.line} ${part.line}` }];
  return [...lines, part];
}, []);

function Part({ part, app }) {
  if (part.line !== undefined) return html`<p class=${part.faint ? "sx-faint" : ""}>${part.line}</p>`;
  if (part.code !== undefined) return html`<p class="sx-code"><code>${part.code}</code><${Copy} icon="copy" text=${part.code} title=${`Copy ${part.code.slice(0, 80)}`} /></p>`;
  if (part.pairs) return html`<dl class="sx-facts">${part.pairs.map(({ name, text, exact, codes, isNull }) => html`<dt>${word(name)}</dt>
    <dd class=${isNull ? "sx-null" : ""} title=${exact}>${codes ? codes.map((code) => html`<${Part} app=${app} part=${{ code }} />`) : text}</dd>`)}</dl>`;
  if (part.table) return html`<${Table} ...${part.table} />`;
  return html`<${Lanes} app=${app} ...${part} />`;
}

const Table = ({ columns, marked, note }) => html`${columns.length > 0 && html`<div class="sx-box" tabIndex="0" role="group" aria-label="Table"><table class="sx-table">
  <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.number ? "sx-n" : ""} title=${column.meaning}>${column.heading}</th>`)}</tr></thead>
  <tbody>${(columns[0]?.cells ?? []).map((_, row) => html`<tr>${columns.map((column, at) => html`<td title=${column.exact[row]}
    class=${[column.number && "sx-n", column.prose && column.cells[row] !== "-" && "sx-prose", column.cells[row] === "-" && "sx-null", marked.some(([r, c]) => r === row && c === at) && "sx-changed"].filter(Boolean).join(" ")}
    >${column.colors && html`<i class="sx-kind" style=${{ background: column.colors[column.cells[row]] }}></i>`}${column.cells[row]}</td>`)}</tr>`)}</tbody></table></div>`}
  ${note && html`<p class="sx-faint">${note}</p>`}`;

const SIGNS = { "=": "sx-kept", "+": "sx-added", "-": "sx-gone", "~": "sx-made" };

const Lanes = ({ app, heads, lanes }) => html`<div class="sx-box"><table class="sx-table sx-lanes"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${lanes.map((lane) => html`<tr class="sx-lane"><th scope="rowgroup" colspan="2">${lane.name}${lane.note && `, ${lane.note}`}</th></tr>
  ${lane.rows.map((row) => html`<tr>${row.map((item) => html`<td>${item && html`<div class="sx-item"><span class="sx-sign ${SIGNS[item.sign] ?? ""}">${item.sign}</span>
    ${item.opens ? html`<button type="button" class="sx-link" title=${item.exact} aria-expanded=${String(app.view.manifest === item.opens)}
      onClick=${() => app.send({ open: app.view.manifest === item.opens ? "" : item.opens })}>${item.name}</button>` : html`<span title=${item.exact}>${item.name}</span>`}
    <span class="sx-faint">${item.about}</span></div>`}</td>`)}</tr>`)}`)}</tbody></table></div>`;

/** What a commit did, in a sentence, its facts in columns, and what its writer stored. */
function CommitView({ app, view }) {
  const { operation, kind, user, time, message, facts, change, notes, canCount } = view.headline, stored = view.parts.slice(1);
  return html`<div class="sx-answer"><b>${operation}</b>${user && html` by <b>${user}</b>`}${time !== null && html`, <span title=${local(time, app.zone)}>${ago(time)}</span>`}
: <span class="sx-number">${change}</span>
      ${canCount && html` <${Button} label="Count rows" title="Read the rows that differ from the version before, and count those that the commit inserted, updated and deleted" act=${() => app.act("count rows")} />`}</div>
    ${notes.map((line) => html`<p class="sx-error">${line}</p>`)}
    ${message && html`<p><code class="sx-predicate">${message}</code></p>`}
    <dl class="sx-facts sx-two"><dt>version</dt><dd>${view.headline.version}, ${kind}</dd>${facts.map(([name, text]) => html`<dt>${name}</dt><dd class="sx-number">${text}</dd>`)}</dl>
    ${stored.length > 0 && html`<details class="sx-stored"><summary>What the writer stored (${stored.flatMap((part) => part.pairs ?? []).length} values)</summary>
      ${stored.map((part) => html`<${Part} app=${app} part=${part} />`)}</details>`}
    <p class="sx-row"><${Button} label="What changed in the rows" title="Compare the rows of A and B" act=${() => app.set({ tab: "rows", part: "rows" })} />
      ${!app.page.recorded && html`<${Button} label="Blame or repair rows" title="Show what changed rows, or write the statement that puts them back" act=${() => app.set({ tab: "rows", part: "blame" })} />`}
      <${Button} label="Look at the data" title="Show rows of B" act=${() => app.set({ tab: "data", part: "rows" })} /></p>`;
}

function Source({ app, view, place }) {
  if (!view.code) return null;
  return html`<div class="sx-source"><code>${view.code}</code><${Copy} text=${view.code} title="Copy the line of code" />
    ${window.jupyterapp && html`<${Button} label="Insert cell" title="Insert the line of code as a cell" act=${() => insert(view.code)} />`}
    ${view.grid?.columns && app.page.choices.formats.map((name) => html`<${Button} label=${`Save ${name}`}
      title=${`Save the rows of the grid, as they are filtered, as ${name}`} act=${() => app.send({ save: [place, name] })} />`)}
    <span class="sx-from" title=${view.source}>Source: ${view.source}</span></div>`;
}

/** The result of a read: its answer, its parts and its rows; an error keeps the rows before it, dimmed. */
function Content({ app, view, place, children }) {
  const text = app.busy[place], isEmpty = !view.parts && !view.error && !view.sentence;
  return html`${text && html`<${Busy} text=${text} cancel=${() => app.act(place, "cancel")} />`}
    ${view.error && html`<div class="sx-error" role="alert">${view.error}</div>`}
    ${view.sentence && html`<p class="sx-empty" role="status">${view.sentence}</p>`}
    ${isEmpty && text && html`<div class="sx-bones" aria-hidden="true">${[60, 90, 75, 85].map((width) => html`<span class="sx-bone" style=${{ width: `${width}%` }}></span>`)}</div>`}
    ${view.parts && html`<div class=${view.error || text ? "sx-stale" : ""}>
      ${view.headline ? html`<${CommitView} app=${app} view=${view} />` : html`<div class="sx-answer" role="heading" aria-level="3">${view.title}</div>
        ${view.findings.length > 0 && html`<${Findings} app=${app} findings=${view.findings} />`}
        <${Summary} shares=${view.shares} tiles=${view.tiles} />
        ${view.picture && html`<${Picture} app=${app} svg=${view.picture} />`}
        ${joined(view.parts).map((part) => html`<${Part} app=${app} part=${part} />`)}`}
      ${view.isAnnouncement && html`<${Button} label="Compare rows" title="Read what is announced" act=${() => app.act("compare rows")} />`}
      ${view.grid?.columns && (view.grid.total ? html`<${Grid} app=${app} place=${place} grid=${view.grid} />` : html`<p class="sx-empty">No ${view.grid.noun}.</p>`)}
    </div>`}${children}`;
}

/** What a button has read or done. */
const Outcome = ({ app, place, view }) => html`<div class="sx-outcome"><${Content} app=${app} view=${view} place=${place} /><${Source} app=${app} view=${view} place=${place} /></div>`;

const PARTS = { rows: [["rows", "changed rows"], ["blame", "blame and repair"]], data: [["rows", "rows"], ["bisect", "bisect"], ["blame", "blame and repair"], ["load", "load"]] };

/** What the tabs of rows and of data show: their rows, or what a button has read of them. */
const partOf = ({ state: { tab, part } }) => (PARTS[tab] ?? []).some(([name]) => name === part) ? part : "rows";

const Parts = ({ app }) => html`<div class="sx-row"><${Segments} app=${{ ...app, state: { ...app.state, part: partOf(app) } }} name="part" label="Show" choices=${PARTS[app.state.tab]} /></div>`;

const RowActions = ({ app }) => html`<div class="sx-row"><${Text} app=${app} name="rows_where" label="Rows where" hint="order_id = 42" css="sx-wide" list=${`${app.id}-rows`} />
    <datalist id=${`${app.id}-rows`}>${app.view.conditions.map((condition) => html`<option value=${condition}></option>`)}</datalist>
    <${Button} label="Blame rows" title="Show every version that changed such rows" act=${() => app.act("blame")} />
    <${Button} label="Trace" title="Show which versions and data files still have such rows" act=${() => app.act("trace")} />
    ${app.page.markers[1] && html`<${Button} label=${`Plan to undo ${app.page.markers[1]}`} title=${`Write the statement that puts back such rows that the commit of version ${app.page.markers[1]} removed or changed; without a condition all of them. Rows that later commits changed are left. It is not run.`}
      act=${() => app.act("undo")} />`}
    ${app.page.markers[0] && html`<${Button} label=${`Plan repair to ${app.page.markers[0]}`} title=${`Write the statement that puts such rows back as they were at A, version ${app.page.markers[0]}, and say which later rows that undoes; without a condition all rows. It is not run.`}
      act=${() => app.act("repair")} /><${Text} app=${app} name="repair_name" label="for" hint="lake.shop.orders" />`}</div>
  <${Outcome} app=${app} view=${app.view.blamed} place="blame" />`;

/** Why a finding is expected: Enter says so. */
function Reason({ put, leave }) {
  const box = useRef();
  useEffect(() => box.current.focus(), []);
  const key = (event) => {
    if (event.key === "Escape") leave();
    else if (event.key === "Enter" && !event.isComposing && event.target.value.trim()) put(event.target.value);
  };
  return html`<label class="sx-field"><span>because of</span><input ref=${box} placeholder="a backfill" onKeyDown=${key} onBlur=${leave} /></label>`;
}

/** What went wrong: a click on a finding shows its evidence; a finding may be expected, for a reason. */
function Findings({ app, findings }) {
  const [asked, setAsked] = useState(null), leave = () => setAsked(null);
  const expect = (at, reason) => {
    app.send({ expect: [at, reason] });
    leave();
  };
  return html`<ul class="sx-findings">${findings.map(({ text, state, versions }, at) => html`<li class=${`sx-is-${state}`}><i aria-hidden="true"></i>
    ${versions.length > 0 ? html`<button type="button" class="sx-link" title="Set A and B, and show the evidence" onClick=${() => app.send({ finding: at })}>${text}</button>` : html`<span>${text}</span>`}
    ${state === "problem" && versions.length > 0 && !app.page.recorded && (asked === at ? html`<${Reason} put=${(reason) => expect(at, reason)} leave=${leave} />`
      : html`<${Button} label="Expected" title="Say that this is expected, and why: it is no problem then" act=${() => setAsked(at)} />`)}</li>`)}</ul>
    ${app.page.expected && html`<p class="sx-faint">For the settings that check and health read: <${Copy} text=${app.page.expected} label="Copy TOML" title="Copy TOML of what is expected" /></p>`}`;
}

/** What the tab of data shows above its rows, and in place of them. */
const bisect = (app) => {
  app.set({ part: "bisect" });
  app.act("bisect");
};
const Where = ({ app, isLive }) => html`<${Text} app=${app} name="where" hint="amount > 10" css="sx-wide" isLive=${isLive} />`;
const Bisect = ({ app }) => html`<${Button} label="Bisect" title="Find the first version, up to B, where the condition holds" act=${() => bisect(app)} />`;
const DATA = {
  rows: (app) => html`<div class="sx-row"><${Where} app=${app} isLive=${app.view.isLive} /><${Columns} app=${app} /><${Bisect} app=${app} /></div>`,
  bisect: (app) => html`<div class="sx-row"><${Where} app=${app} /><${Bisect} app=${app} /></div><${Outcome} app=${app} place="bisect" view=${app.view.bisected} />`,
  blame: (app) => html`<${RowActions} app=${app} />`,
  load: (app) => html`<div class="sx-row"><${Text} app=${app} name="variable" hint="df" css="sx-short" /><${Select} app=${app} name="engine" />
      <${Select} app=${app} name="types" options=${TYPES} /><${Text} app=${app} name="load_limit" number css="sx-short" /><span class="sx-faint">rows, 0 for all</span>
      <${Button} label="Load as variable" title="Load the rows of B into the variable" act=${() => app.act("load")} /></div>
      ${app.view.load.line && html`<p><code>${app.view.load.line}</code></p>`}<${Outcome} app=${app} place="load" view=${app.view.load} />`,
};

/** The controls above and below what a tab shows. */
const TABS = {
  manifests: (app) => [html`<div class="sx-row"><${Check} app=${app} name="carried" label="Show carried over" title="Show manifests that are in A and in B, however many" /></div>`,
    (app.view.manifest || app.view.entries.error) && html`<section class="sx-section"><${Outcome} app=${app} view=${app.view.entries} place="entries" /></section>`],
  compare: (app) => [html`<div class="sx-row"><${Segments} app=${app} name="compared" label="Show" /></div>
    ${app.state.compared === "another table" && html`<div class="sx-row"><${Text} app=${app} name="other" label="Table" hint="copy@3, or a path" css="sx-wide" />
      <${Names} app=${app} name="key" hint="primary key, or a,b" /><${Segments} app=${app} name="row_kind" label="Rows" /></div>`}
    ${app.state.compared === "twins" && html`<div class="sx-row"><${Text} app=${app} name="other" label="Table" hint="copy, or a path" css="sx-wide" /></div>`}`],
  rows: (app) => partOf(app) === "blame" ? [html`<${Parts} app=${app} /><${RowActions} app=${app} />`]
    : [html`<${Parts} app=${app} /><div class="sx-row"><${Segments} app=${app} name="row_kind" label="Rows" /><${Names} app=${app} name="key" hint="primary key, or a,b" />
      ${app.view.suggestedKey && html`<${Button} label=${`Key: ${app.view.suggestedKey}`} title="Find updated rows by this column, whose values are unique among the changed rows" act=${() => app.set({ key: [app.view.suggestedKey] })} />`}
      <${Check} app=${app} name="hide_unchanged" label="Hide unchanged columns" title="Show only the key and columns that changed" /></div>`],
  data: (app) => [html`<${Parts} app=${app} />${DATA[partOf(app)](app)}`],
  files: (app) => [html`<div class="sx-row"><${Segments} app=${app} name="file_view" label="Show" />
    ${app.state.file_view === "lifetimes" && html`<${Check} app=${app} name="missing" label="Look for files" title="List the folders, to mark the files that are missing" />`}</div>
    ${app.state.file_view === "list" && html`<div class="sx-row"><${Text} app=${app} name="partition" hint="dt=2026-11" /><${Check} app=${app} name="statistics" label="Values" title="Show what the metadata says of the files' values" /></div>`}`],
  health: (app) => [html`<div class="sx-row"><${Segments} app=${app} name="health" label="Show" /></div><div class="sx-row">
    ${app.state.health === "retention" && html`<${Text} app=${app} name="keep" hint="7d" css="sx-short" /><${Text} app=${app} name="keep_last" number css="sx-short" />`}
    ${app.state.health === "verify" && html`<${Segments} app=${app} name="level" label="Verify" /><${Button} label="Verify files" title="Check the files of all versions; changes nothing" act=${() => app.act("read files")} />`}
    ${app.state.health === "duplicates" && html`<${Names} app=${app} name="key" hint="primary key, or a,b" /><${Button} label="Find duplicates" title="Read the key of all rows of B" act=${() => app.act("read files")} />`}
    ${app.state.health === "orphans" && html`<${Text} app=${app} name="older_than" hint="3d" css="sx-short" />
      <${Button} label="Find orphans" title="Look for files that no version, tag or branch names; deletes nothing" act=${() => app.act("read files")} />`}</div>`],
};

function Panel({ app }) {
  const { page: { tabs, counts }, state: { tab }, view } = app, hasView = partOf(app) === "rows", shown = view.tab === tab ? view : { conditions: [], blamed: {}, bisected: {}, load: {}, entries: {} };
  const part = { compare: "compared", files: "file_view", health: "health" }[tab];  // all that can be chosen without a kernel
  const mine = { ...app, view: shown }, [controls, below] = TABS[tab]?.(mine) ?? [];
  const above = app.page.recorded ? part && html`<div class="sx-row"><${Segments} app=${app} name=${part} label="Show" /></div>` : controls;
  const choose = (name) => name !== tab && app.set({ tab: name, part: "rows" });
  const key = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], at = tabs.indexOf(tab);
    if (!by) return;
    const next = tabs[(at + by + tabs.length) % tabs.length];
    choose(next);
    event.currentTarget.querySelector(`[data-tab=${next}]`).focus();
    event.preventDefault();
  };
  return html`<div class="sx-panel"><div class="sx-tabs" role="tablist" onKeyDown=${key}>${tabs.map((name) => html`<button type="button" role="tab" data-tab=${name} aria-label=${capital(name)}
      aria-selected=${String(name === tab)} tabIndex=${name === tab ? 0 : -1} aria-controls=${`${app.id}-panel`} onClick=${() => choose(name)}>${capital(name)}${counts[name] !== undefined && html`<em data-count=${number(counts[name])}></em>`}</button>`)}</div>
    <div class="sx-pane" role="tabpanel" id=${`${app.id}-panel`} aria-label=${capital(tab)} tabIndex="0">${above}
      ${hasView && html`<${Content} app=${mine} view=${shown} place=${tab}>${below}</${Content}>`}</div>
    ${hasView && html`<${Source} app=${mine} view=${shown} place=${tab} />`}</div>`;
}

let ids = 0;

function App({ model, id }) {
  const [, redraw] = useReducer((count) => count + 1, 0), listeners = useRef(new Map());
  useLayoutEffect(() => {
    const receive = (message, buffers) => {
      if (message?.save) save(message.save, buffers);
      for (const [name, listener] of listeners.current.values()) if (message?.[name]) listener(message);
    };
    for (const name of TRAITS) model.on(`change:${name}`, redraw);
    model.on("msg:custom", receive);
    return () => {
      for (const name of TRAITS) model.off(`change:${name}`, redraw);
      model.off("msg:custom", receive);
    };
  }, []);
  const send = (message) => model.send(message);
  const listen = (name, listener) => {
    const key = {};
    listeners.current.set(key, [name, listener]);
    return () => listeners.current.delete(key);
  };
  const app = { model, id, redraw, send, listen, ...Object.fromEntries(TRAITS.map((name) => [name, model.get(name) ?? {}])),
    set: (values) => send({ set: values }), act: (name, kind = "act") => send({ [kind]: name }) };
  app.state = app.page.state;
  if (!app.state) return null;
  return html`<p class="sx-restarted">The kernel restarted: run this cell again.</p>
    <${Head} app=${app} /><${Chart} app=${app} /><${Strip} app=${app} /><${Bar} app=${app} />
    <div class="sx-body"><${Commits} app=${app} /><${Panel} app=${app} /></div>
    ${app.page.recorded && html`<p class="sx-source" role="note">${app.page.recorded}</p>`}`;
}

const LAKE = ["overview_html", "names", "filter", "order", "descending", "can_follow", "follows", "problem", "explorer"];

/** A lake: its overview, filtered, sorted and followed. A click on the name of a table shows its explorer below. */
function Lake({ model }) {
  const [, redraw] = useReducer((count) => count + 1, 0), overview = useRef(), below = useRef();
  const [content, names, filter, order, isDescending, canFollow, follows, problem, opened] = LAKE.map((name) => model.get(name));
  const set = (values) => model.send({ set: values }), manager = model.widget_manager;
  const open = (name) => {
    if (manager) model.send({ open: name });
    else below.current.textContent = `Run explore(lake[${JSON.stringify(name)}]) for its explorer.`;  // marimo shows no widget in another one
  };
  useLayoutEffect(() => {
    for (const name of LAKE) model.on(`change:${name}`, redraw);
    return () => LAKE.forEach((name) => model.off(`change:${name}`, redraw));
  }, []);
  useLayoutEffect(() => {
    overview.current.innerHTML = content;  // the kernel has escaped its texts
    for (const head of overview.current.querySelectorAll("thead th")) {
      const name = head.textContent, isSorted = name === order;
      if (isSorted) head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      head.replaceChildren(Object.assign(document.createElement("button"), { className: "sx-sort", type: "button", title: `Sort by ${name}`,
        textContent: `${name}${isSorted ? (isDescending ? " \u25bc" : " \u25b2") : ""}`, onclick: () => model.send({ sort: name }) }));
    }
    [...overview.current.querySelector("table")?.tBodies[0]?.rows ?? []].forEach(({ cells: [, cell] }, at) => {
      const button = Object.assign(document.createElement("button"), { className: "sx-link", type: "button", textContent: cell.textContent,
        title: "Open the explorer of the table", onclick: () => open(names[at]) });
      cell.replaceChildren(button);
    });
  }, [content, names, order, isDescending]);
  useEffect(() => {
    if (opened && manager) manager.get_model(opened.replace("IPY_MODEL_", "")).then((child) => manager.create_view(child)).then(({ el }) => below.current.replaceChildren(el));
  }, [opened]);
  return html`<p class="sx-restarted">The kernel restarted: run this cell again.</p><div class="sx-bar">
      <label class="sx-field"><span>Filter</span><input type="search" value=${filter} placeholder="orders, late, delta" onInput=${(event) => set({ filter: event.target.value })} /></label>
      <span class="sx-gap"></span><button type="button" class="sx-btn sx-live" disabled=${!canFollow} aria-pressed=${String(follows)} onClick=${() => set({ follows: !follows })}
        title="Look for new commits every now and then">Live</button>
      ${problem && html`<div class="sx-error" role="alert">${problem}</div>`}</div>
    <div ref=${overview}></div><div ref=${below}></div>`;
}

const DARK = "[data-jp-theme-light=false], .vscode-dark, .vscode-high-contrast, html[theme=dark], body[data-theme=dark]";

export function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sx-explorer";
  el.append(root);
  // Not in the style: marimo shows widgets in a tree of their own, which rules on the page do not reach.
  const dress = () => root.classList.toggle("sx-dark", document.querySelector(DARK) !== null);
  const themes = new MutationObserver(dress);
  for (const part of [document.documentElement, document.body]) themes.observe(part, { attributes: true });
  dress();
  // JupyterLab leaves plain keys to what has the focus, and those of a grid to it; it keeps its own, such as the one that saves.
  const keys = (event) => {
    if (!root.contains(event.target)) return;
    const isOfGrid = event.target.matches(".sx-rows") && ["c", "Home", "End"].includes(event.key);
    if (!isOfGrid && (event.ctrlKey || event.metaKey || event.altKey)) event.target.removeAttribute("data-lm-suppress-shortcuts");
    else event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  };
  window.addEventListener("keydown", keys, true);
  // The page hears that its kernel has gone: the last picture stays, dimmed.
  const lose = () => root.classList.add("sx-lost");
  model.on("comm_live_update", lose);
  const Page = model.get("overview_html") === undefined ? App : Lake;
  draw(html`<${Page} model=${model} id=${`sx-${(ids += 1)}`} />`, root);
  return () => {
    window.removeEventListener("keydown", keys, true);
    model.off("comm_live_update", lose);
    themes.disconnect();
    draw(null, root);
  };
}

export default { render };
