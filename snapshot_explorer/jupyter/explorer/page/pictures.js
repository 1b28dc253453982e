// Parts of the page: buttons, marks of the chart and their keys, pictures that the kernel drew, and what is saved as a file.

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

/** Save the chart as a PNG file, with a title and its legend, on the page's paper. */
export function savePng(drawn, name, title) {
  const page = getComputedStyle(drawn.closest(".sx-explorer")), legend = drawn.parentElement.querySelector(".sx-legend"), from = legend.getBoundingClientRect();
  const { clientWidth: width, clientHeight: height } = drawn, high = height + TITLE + legend.clientHeight + 6, ratio = drawn.width / width;
  const copied = Object.assign(document.createElement("canvas"), { width: drawn.width, height: high * ratio }), ink = copied.getContext("2d");
  ink.scale(ratio, ratio);
  const fill = (color, ...box) => {
    ink.fillStyle = color;
    ink.fillRect(...box);
  }, write = (text, x, y) => {
    ink.fillStyle = page.color;
    ink.fillText(text, x, y);
  };
  ink.font = `12px ${page.fontFamily}`;
  fill(page.backgroundColor, 0, 0, width, high);
  write(title, 4, TITLE - 8);
  ink.drawImage(drawn, 0, TITLE, width, height);
  for (const part of legend.querySelectorAll(":scope > :is(span, button:has(i))")) {
    const { left, top, height: thick } = part.getBoundingClientRect(), sign = part.querySelector("i, path"), x = left - from.left + 8, y = TITLE + height + top - from.top + thick / 2 + 4;
    const color = sign?.dataset.color ?? sign?.getAttribute("stroke") ?? (sign && getComputedStyle(sign).backgroundColor);
    if (color) fill(color === "currentColor" ? getComputedStyle(sign).color : color, x, y - 9, 10, 10);
    write(part.textContent.trim(), x + 15, y);
  }
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

const SHAPES = {
  "triangle-right": (x, y) => `M${x + 6},${y}l-11,-6v12z`,
  "diamond": (x, y) => `M${x},${y - 6}l6,6l-6,6l-6,-6z`,
  "fork": (x, y) => `M${x},${y - 5}v5l-5,5m5,-5l5,5`,
  "unknown": (x, y) => `M${x - 4},${y}a4,4 0 1,0 8,0a4,4 0 1,0 -8,0M${x - 2.8},${y - 2.8}l5.6,5.6m0,-5.6l-5.6,5.6`,
};

/** Return a mark of the chart as a path. */
export const shapeOf = (name, x, y) => SHAPES[name](x, y);

/** What a mark of the chart means. */
export const Key = ({ path, color, isLine, dash, children }) => html`<span><svg width="14" height="14" aria-hidden="true"><path d=${path} fill=${isLine ? "none" : color} stroke=${color}
  stroke-width=${isLine ? 2 : 0} stroke-dasharray=${dash} /></svg> ${children}</span>`;

/** A picture that the kernel drew, as wide as its place: its plot is a part of it. A click on a commit sets B. */
export function Picture({ app, svg }) {
  const box = useRef(), [width, setWidth] = useState(700), name = app.page.name;
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([{ contentRect }]) => setWidth(Math.max(300, contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => { box.current.innerHTML = svg; }, [svg]);  // the kernel has escaped its texts
  useLayoutEffect(() => {
    const drawn = box.current.firstChild, plot = drawn.querySelector("svg");
    drawn.removeAttribute("viewBox");
    drawn.setAttribute("width", width);
    plot.setAttribute("width", width - plot.x.baseVal.value - 14);
  }, [svg, width]);
  const click = ({ target }) => {
    const { opens } = target.closest("[data-opens]")?.dataset ?? {};
    if (opens) app.send({ click: opens });
  };
  return html`<div class="sx-drawn"><div ref=${box} onClick=${click}></div><${Button} label="Save SVG" title="Save the picture" act=${() => save(`${name}.svg`, [svg])} /></div>`;
}
