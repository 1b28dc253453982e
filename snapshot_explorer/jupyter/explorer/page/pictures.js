// Pictures: lines over versions with marks on them, and maps of what changed, drawn as SVG that can be saved.

import preact from "./preact.js";

export const { html, render: draw, useEffect, useLayoutEffect, useReducer, useRef, useState } = preact;

export function save(name, buffers) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(buffers));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const TITLE = 26;  // the height of a saved picture's title, in pixels
const SVG = "http://www.w3.org/2000/svg", KEPT = ["fill", "stroke", "stroke-width", "opacity", "font-family", "font-size", "font-weight"];

/** Return a drawing of the page as SVG text, and its size: with a title and its legend, the styles that the page gives it, on the page's paper. */
function framed(drawn, legend, title) {
  const page = getComputedStyle(drawn.closest(".sx-explorer")), { clientWidth: width, clientHeight: height } = drawn, high = height + TITLE + legend.clientHeight + 6;
  const framed = document.createElementNS(SVG, "svg"), from = legend.getBoundingClientRect(), isChart = drawn.tagName === "CANVAS";
  const add = (tag, values, text = "") => {
    const made = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    made.textContent = text;
    framed.append(made);
  }, write = (text, x, y) => add("text", { x, y, fill: page.color, "font-family": page.fontFamily, "font-size": 12 }, text);
  for (const [key, value] of [["width", width], ["height", high], ["viewBox", `0 ${-TITLE} ${width} ${high}`], ["xmlns", SVG]]) framed.setAttribute(key, value);
  add("rect", { y: -TITLE, width, height: high, fill: page.backgroundColor });
  write(title, 4, -8);
  if (isChart) add("image", { href: drawn.toDataURL(), width, height });
  else {
    const copied = drawn.cloneNode(true), parts = copied.querySelectorAll("*");
    drawn.querySelectorAll("*").forEach((part, i) => KEPT.forEach((key) => parts[i].style.setProperty(key, getComputedStyle(part).getPropertyValue(key))));
    framed.append(copied);
  }
  for (const part of legend.querySelectorAll(":scope > :is(span, button:has(i))")) {
    const { left, top, height: thick } = part.getBoundingClientRect(), sign = part.querySelector("i, path"), x = left - from.left + 8, y = height + top - from.top + thick / 2 + 4;
    const fill = sign?.dataset.color ?? sign?.getAttribute("stroke") ?? (sign && getComputedStyle(sign).backgroundColor);
    if (fill) add("rect", { x, y: y - 9, width: 10, height: 10, fill: fill === "currentColor" ? getComputedStyle(sign).color : fill });
    write(part.textContent.trim(), x + 15, y);
  }
  return [new XMLSerializer().serializeToString(framed), width, high];
}

/** Save a drawing of the page as an SVG file. */
export const saveSvg = (drawn, name, title) => save(`${name}.svg`, [framed(drawn, drawn.parentElement.querySelector("p"), title)[0]]);

/** Save the chart as a PNG file. */
export async function savePng(drawn, name, title) {
  const [svg, width, height] = framed(drawn, drawn.parentElement.querySelector(".sx-legend"), title), image = new Image(), ratio = drawn.width / width;
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const copied = Object.assign(document.createElement("canvas"), { width: drawn.width, height: height * ratio });
  copied.getContext("2d").drawImage(image, 0, 0, copied.width, copied.height);
  copied.toBlob((blob) => save(`${name}.png`, [blob]));
}

const ICONS = { copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3", refresh: "M13 8a5 5 0 1 1-1.6-3.7M13.2 1.8v3h-3", play: "M4.5 3l8 5l-8 5z", pause: "M5.5 3v10M10.5 3v10",
  save: "M8 2v8M4.5 7L8 10.5L11.5 7M3 13.5h10", done: "M3 8.5l3.5 3.5L13 4.5" };

/** A button with a text, or with a picture that the label names. */
export const Button = ({ label, title, act, icon, css = icon ? "sx-icon" : "sx-btn", name = label, disabled }) =>
  html`<button type="button" class=${css} title=${title} aria-label=${name} onClick=${act} disabled=${disabled}>${icon
    ? html`<svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5"><path d=${ICONS[icon]} /></svg>` : label}</button>`;

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // pages without https have no clipboard
    const box = document.createElement("textarea");
    box.value = text;
    box.style.cssText = "position:fixed;opacity:0";
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}

export function Copy({ text, label = "Copy", title, icon }) {
  const [isDone, setDone] = useState(false);
  const act = async () => {
    await copy(text);
    setDone(true);
    setTimeout(setDone, 1200, false);
  };
  return html`<${Button} label=${isDone ? "Copied" : label} name=${!isDone && title.startsWith(label) ? title : undefined} title=${title} act=${act} icon=${icon && (isDone ? "done" : icon)} />`;
}

const ring = (x, y, size) => `M${x - size},${y}a${size},${size} 0 1,0 ${2 * size},0a${size},${size} 0 1,0 ${-2 * size},0`;
const SHAPES = {
  "circle": (x, y) => ring(x, y, 5),
  "triangle-right": (x, y) => `M${x + 6},${y}l-11,-6v12z`,
  "diamond": (x, y) => `M${x},${y - 6}l6,6l-6,6l-6,-6z`,
  "x": (x, y) => `M${x - 5},${y - 5}l10,10m0,-10l-10,10`,
  "square": (x, y) => `M${x - 5},${y - 5}h10v10h-10z`,
  "triangle-up": (x, y) => `M${x},${y - 6}l6,11h-12z`,
  "triangle-down": (x, y) => `M${x},${y + 6}l6,-11h-12z`,
  "cross": (x, y) => `M${x - 2},${y - 6}h4v4h4v4h-4v4h-4v-4h-4v-4h4z`,
  "hexagon": (x, y) => `M${x - 6},${y}l3,-5h6l3,5l-3,5h-6z`,
  "ring": (x, y) => ring(x, y, 10),
  "fork": (x, y) => `M${x},${y - 5}v5l-5,5m5,-5l5,5`,
  "unknown": (x, y) => `${ring(x, y, 4)}M${x - 2.8},${y - 2.8}l5.6,5.6m0,-5.6l-5.6,5.6`,
};

/** Return a mark of a picture as a path. */
export const shapeOf = (name, x, y) => (SHAPES[name] ?? SHAPES.circle)(x, y);

const isOpen = (shape) => shape.endsWith("-open") || shape === "x";

/** What a mark of a picture means. */
export const Key = ({ path, color, isLine, dash, children }) => html`<span><svg width="14" height="14" aria-hidden="true"><path d=${path} fill=${isLine ? "none" : color} stroke=${color}
  stroke-width=${isLine ? 2 : 0} stroke-dasharray=${dash} /></svg> ${children}</span>`;

const HATCH = "3 4";  // of lines over versions that were not evaluated

const LABEL = 24;  // characters of the label of a track

const cutLabel = (label, most = LABEL) => label.length > most ? `${label.slice(0, most - 1)}\u2026` : label;

/** Return the width that a picture has, and follow it. */
function useWidth(box) {
  const [width, setWidth] = useState(700);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([{ contentRect }]) => setWidth(Math.max(300, contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

const leftOf = (labels) => Math.min(180, 12 + 7 * Math.max(0, ...labels.map((label) => Math.min(LABEL, label.length))));

/** The first of the ticks, and each that has room beside the one before it. */
function Ticks({ ticks, at, y, width }) {
  let end = -Infinity;
  return ticks.map(([place, text]) => {
    const half = 3.5 * text.length, x = at(place) + half > width ? width - half : Math.max(half, at(place));
    if (x - half < end + 9) return null;
    end = x + half;
    return html`<text class="sx-tick" x=${x} y=${y} text-anchor="middle">${text}</text>`;
  });
}

const Save = ({ app, box }) => html`<${Button} label="Save SVG" title="Save the picture" act=${() => saveSvg(box.current.querySelector("svg"), app.page.name, `${app.page.name}: ${box.current.querySelector("svg").getAttribute("aria-label")}`)} />`;

/** Lines over versions: a strip of versions, the lives of rows or of files, branches. A click on a commit sets B. */
export function Tracks({ app, tracks: { count, ticks, note, groups, stripes, links, tracks } }) {
  const box = useRef(), width = useWidth(box), left = leftOf(tracks.map(({ label }) => label));
  const high = tracks.length > 12 ? 16 : 32, top = tracks.length > 12 ? 12 : 20;
  const at = (place) => left + ((place + 0.5) / count) * (width - left - 14), y = (row) => top + row * high, bottom = y(tracks.length - 1) + 22;
  const mark = ([place, group, text, hover, isLow, opens], row) => {
    const [color, shape] = groups[group], isLine = isOpen(shape), isEnd = 2 * place > count;
    return html`<g class=${opens ? "sx-opens" : ""} onClick=${opens && (() => app.send({ click: opens }))}><title>${hover}</title>
      <path d=${shapeOf(group === "first" ? "ring" : shape, at(place), y(row))} fill=${isLine ? "none" : color} stroke=${color} stroke-width=${isLine ? 2.5 : 0} />
      ${text && high > 20 && html`<text x=${at(place) + (isEnd ? 4 : -4)} y=${y(row) + (isLow ? 19 : -11)} text-anchor=${isEnd ? "end" : "start"}>${text}</text>`}</g>`;
  };
  const link = ([begin, from, end, to]) => {
    const x = at(begin), bend = at(end) - x;
    return html`<path class="sx-link-of" d=${`M${x},${y(from)}C${x + bend / 2},${y(from)} ${x + bend / 2},${y(to)} ${at(end)},${y(to)}`} fill="none" stroke="currentColor" />`;
  };
  return html`<div class="sx-tracks" ref=${box}><svg width=${width} height=${bottom + 18} role="img" aria-label=${`${tracks.length} tracks${note && `: ${note}`}`}>
    ${stripes.map(([first, last, group]) => html`<rect class="sx-stripe" x=${at(first - 0.5)} width=${Math.max(2, at(last) - at(first - 1))} y="0" height=${bottom}
      fill=${groups[group][0]}><title>${group}</title></rect>`)}${links.map(link)}
    ${tracks.map(({ label, spans, marks }, row) => html`<g key=${row}><text class="sx-track" x="0" y=${y(row) + 4}><title>${label}</title>${cutLabel(label)}</text>
      ${spans.map(([first, last, group, hover]) => html`<line class=${group === "branch" ? "sx-thin" : /live|missing/.test(group) ? "sx-strong" : ""} x1=${at(first - (group === "branch" ? 0 : 0.3))} x2=${at(last + (group === "branch" ? 0 : 0.3))} y1=${y(row)} y2=${y(row)}
        stroke=${groups[group][0]} stroke-dasharray=${group === "not evaluated" ? HATCH : undefined} style=${group === "not evaluated" ? "stroke-linecap:butt" : undefined}><title>${hover || group}</title></line>`)}
      ${marks.map((one) => mark(one, row))}</g>`)}<${Ticks} ticks=${ticks} at=${at} y=${bottom + 12} width=${width} /></svg>
    <p class="sx-faint sx-row">${Object.entries(groups).filter(([group]) => group !== "first" && group !== "branch").map(([group, [color, shape]]) => html`<${Key}
      path=${group === "not evaluated" ? "M0,7h14" : shapeOf(shape, 7, 7)} color=${color} isLine=${isOpen(shape) || group === "not evaluated"} dash=${group === "not evaluated" ? HATCH : undefined}>${group}</${Key}>`)}${note && html`<span>${note}</span>`}<${Save} app=${app} box=${box} /></p></div>`;
}

/** A map of numbers: a row for each label, a column for each version or run of versions; nothing is drawn for 0. */
export function Heat({ app, heat: { count, labels, ticks, cells, note, what } }) {
  const box = useRef(), width = useWidth(box), left = leftOf(labels), high = 18;
  const at = (place) => left + ((place + 0.5) / count) * (width - left - 14), wide = Math.max(1, (width - left - 14) / count - 1), bottom = labels.length * high + 4;
  return html`<div class="sx-tracks" ref=${box}><svg width=${width} height=${bottom + 18} role="img" aria-label=${`${what}: ${labels.length} partitions over ${count} columns of versions`}>
    ${labels.map((label, row) => html`<text x="0" y=${row * high + 15}><title>${label}</title>${cutLabel(label)}</text>
      <rect x=${left} width=${width - left - 14} y=${row * high + 2} height=${high - 2} class="sx-cold" />`)}
    ${cells.map(([row, column, shade, text]) => html`<rect class="sx-warm" x=${at(column) - wide / 2} width=${wide} y=${row * high + 2} height=${high - 2} fill-opacity=${shade}><title>${text}</title></rect>`)}
    <${Ticks} ticks=${ticks} at=${at} y=${bottom + 12} width=${width} /></svg>
    <p class="sx-faint sx-row"><span>${what}: <svg width="80" height="12" aria-hidden="true">${[0.2, 0.4, 0.6, 0.8, 1].map((shade, i) => html`<rect class="sx-warm" x=${16 * i} width="15" height="12" fill-opacity=${shade} />`)}</svg> few to many</span>
      ${note && html`<span>${note}</span>`}<${Save} app=${app} box=${box} /></p></div>`;
}
