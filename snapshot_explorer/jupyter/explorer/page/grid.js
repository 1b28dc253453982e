// Rows in a grid that scrolls. The kernel sends pages of them as texts, and sorts and filters. All text is set as text.

import { Copy, copy, html, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./pictures.js";

const ROW = 24, PAGE = 60, AROUND = 8;  // pixels of a row, rows of a page, rows that are drawn around those that are seen
const FEW = 8;  // rows that are seen at once need no filter and no summary of their columns
const NULL = "-";

/** Keep a page of rows: texts by row. */
function keep(pages, { start, cells, full, marked }) {
  const rows = (cells[0] ?? []).map((_, row) => cells.map((column) => ({ text: column[row] })));
  for (const [row, column, text] of full) rows[row][column].full = text;
  for (const [row, column] of marked) if (rows[row]?.[column]) rows[row][column].changed = true;
  rows.forEach((row, i) => pages.set(start + i, row));
}

/** Return what is known of a column's values, in a line. */
function facts({ min, max, share, distinct, top }) {
  const range = min === null || top.length ? "" : min === max ? min : `${min} to ${max}`;
  return [distinct !== null && range.length > 30 ? "" : range, share ? `${percent(share)} null` : ""].filter(Boolean).join(", ");
}

const percent = (share) => `${share < 0.01 ? "<1" : Math.floor(100 * share)} %`;

const distinctOf = ({ distinct }) => distinct === null ? "" : `${distinct.toLocaleString("en-US")} distinct`;

/** Return the width of a text in widths of a digit: capitals are a third wider, and East Asian characters are twice as wide. */
const room = (text) => text.length + (text.match(/\p{Lu}/gu)?.length ?? 0) / 3 + (text.match(/[\u2e80-\uffdc]/g)?.length ?? 0);

/** Return the width of each column in widths of a digit, by its header and by the rows that are known. */
function widths(columns, rows) {
  return columns.map((column, i) => {
    const above = [column.type, distinctOf(column), facts(column), ...column.top.map(([value]) => `${value} 100 %`)].map((text) => Math.min(room(text), 22));
    return Math.min(columns.length > 3 ? 40 : 64, Math.max(8, room(column.heading) + 2, ...above, ...rows.map((row) => room(row[i].text))));
  });
}

/** The name of a column, which sorts, its type, and the values that it has: bars that are dragged over, and values that are clicked, filter. */
function Heading({ column, width, order, isSummed, sort, rows, brush }) {
  const most = Math.max(1, ...column.bins), line = (text) => html`<div title=${text}>${text}</div>`, isPlain = column.name !== "change";
  const [drag, setDrag] = useState(null), [from, to] = drag ? [Math.min(...drag), Math.max(...drag)] : [];
  const barAt = ({ clientX, currentTarget: { children } }) => {
    const at = [...children].findIndex((bar) => clientX < bar.getBoundingClientRect().right);
    return at < 0 ? children.length - 1 : at;
  };
  const press = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag([barAt(event), barAt(event)]);
  };
  const release = () => {
    if (drag) brush(from, to);
    setDrag(null);
  };
  const brushes = brush ? { title: "Drag over bars to filter by their range", onPointerDown: press, onPointerMove: (event) => drag && setDrag([drag[0], barAt(event)]), onPointerUp: release, onPointerCancel: () => setDrag(null) } : {};
  const top = ([value, count], i) => {
    const text = `${value} ${percent(count / rows)}`;
    return brush ? html`<button type="button" class="sx-top" title=${`Only rows with ${value}`} onClick=${() => brush(i, i)}>${text}</button>` : line(text);
  };
  return html`<th class=${column.number ? "sx-n" : ""} style=${{ width: `${width}ch` }} role="columnheader" aria-sort=${order}>
    <button type="button" title=${[column.name, column.meaning, "Sort by this column"].filter(Boolean).join("\n")} onClick=${sort}>${
      column.heading}${{ none: "", ascending: " \u25b2", descending: " \u25bc" }[order]}</button>
    ${isPlain && column.type && line(column.type)}
    ${isPlain && isSummed && html`<div class="sx-bins ${brush ? "sx-brushed" : ""}" ...${brushes}>${column.bins.map((count, i) => html`<i class=${i >= from && i <= to ? "sx-on" : ""} style=${{ height: `${(100 * count) / most}%` }}></i>`)}${distinctOf(column)}</div>
      ${column.top.map(top)}${line(facts(column))}`}</th>`;
}

function cell(value, column, row, i, here) {
  const isNull = value?.text === NULL, [before, after] = value?.changed ? value.text.split(" \u2192 ") : [];
  const side = column.number && !isNull && value?.text !== "0" && /^(added|removed)_(files|rows|bytes)$/.exec(column.name)?.[1];
  const sign = column.name === "change" && { "+": "sx-plus", "-": "sx-minus" }[value?.text[0]], color = column.colors?.[value?.text];
  const css = [column.number && "sx-n", isNull && "sx-null", value?.changed && "sx-changed", side && `sx-${side}`, sign, here && "sx-here"];
  return html`<td id=${here || undefined} class=${css.filter(Boolean).join(" ")} role="gridcell" aria-colindex=${i + 1} data-at=${`${row} ${i}`} title=${value?.full}>
    ${color && html`<span class="sx-chip" style=${{ background: color }}></span>`}${after === undefined ? value ? (isNull ? "null" : value.text) : "\u2026"
      : html`<span class="sx-old">${before}</span><span class="sx-unseen"> \u2192 </span><b>${after}</b>`}</td>`;
}

/** The value of a cell in full. */
function Inspected({ column, row, value, text }) {
  const isNull = value.text === NULL, shown = isNull ? "null" : text ?? value.full ?? value.text;
  return html`<div class="sx-inspected"><b>${column.name}</b><span class="sx-faint">${column.type}</span><${Copy} text=${shown} label="Copy value" title="Copy value" />
    <pre class=${isNull ? "sx-null" : ""} tabIndex="0" role="group" aria-label=${`${column.name} of row ${row + 1}`}>${shown}</pre></div>`;
}

export function Grid({ app, place, grid }) {
  const box = useRef(), head = useRef(), column = useRef(), text = useRef(), kept = useRef({}), [, redraw] = useReducer((count) => count + 1, 0);
  const [top, setTop] = useState(0), [isFocused, setFocused] = useState(false), [cursor, setCursor] = useState([0, 0]), [inspected, setInspected] = useState(null);
  const { columns, count, how, opens } = grid, isSummed = grid.total >= FEW, id = `${app.id}-${place}-here`;
  const send = (message) => app.send({ grid: { place, ...message } });
  if (kept.current.of !== grid) {
    kept.current = { of: grid, pages: new Map(), requested: new Set() };
    keep(kept.current.pages, grid.page);
    kept.current.widths = widths(columns, [...kept.current.pages.values()]);
  }
  const { pages, requested } = kept.current, [row, at] = [Math.min(cursor[0], Math.max(0, count - 1)), Math.min(cursor[1], columns.length - 1)];
  useLayoutEffect(() => {
    box.current.scrollTop = 0;
    setTop(0);
    setCursor([0, at]);
    setInspected(null);
    if (!column.current) return;
    column.current.value = how.column ?? "";
    if (text.current.getRootNode().activeElement !== text.current) text.current.value = how.text;  // else it is being typed
  }, [grid]);
  useEffect(() => app.listen("grid", ({ grid, page, value }) => {
    if (grid !== place) return;
    if (value) setInspected((shown) => String(shown?.cell) === String([value.row, value.column]) ? { ...shown, text: value.text } : shown);
    if (!page) return;
    keep(kept.current.pages, page);
    kept.current.requested.clear();  // a newer request ends one that reads: what is still missing is requested again
    redraw();
  }), [place]);
  const seen = Math.ceil((box.current?.clientHeight || 300) / ROW), first = Math.max(0, Math.floor(top / ROW) - AROUND), last = Math.min(count, first + seen + 2 * AROUND);
  useEffect(() => {
    for (let missing = first; missing < last; missing += 1) {
      const start = missing - missing % PAGE;
      if (pages.has(missing) || requested.has(start)) continue;
      requested.add(start);
      send({ need: start });
    }
  });
  useLayoutEffect(() => {
    if (isFocused) box.current.querySelector(".sx-here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [isFocused, row, at]);
  const arrange = (changes) => send({ arrange: { ...how, ...changes } });
  const filter = () => {
    const changes = { column: column.current.value === "" ? null : Number(column.current.value), text: text.current.value.trim() };
    if (changes.column !== how.column || changes.text !== how.text) arrange(changes);
  };
  /** Sort by a column: upwards, then downwards, then as it was. */
  const sort = (i) => arrange(how.sort !== i ? { sort: i, descending: false } : how.descending ? { sort: null, descending: false } : { descending: true });
  const inspect = (cell) => {
    const value = pages.get(cell[0])?.[cell[1]];
    setInspected(value ? { cell, value } : null);
    if (value && value.text !== NULL) send({ inspect: cell });
  };
  const click = (event) => {
    const [row, at] = event.target.closest("td[data-at]")?.dataset.at.split(" ").map(Number) ?? [];
    if (row === undefined) return;
    setCursor([row, at]);
    inspect([row, at]);
    if (opens && !String(getSelection())) send({ open: row });
  };
  const key = (event) => {
    if (event.target !== box.current || !count) return;
    const isControl = event.ctrlKey || event.metaKey, value = pages.get(row)?.[at], end = columns.length - 1;
    if (isControl && event.key === "c" && value && !String(getSelection())) return copy(value.full ?? value.text);
    if (event.key === "Enter") inspect([row, at]);
    if (event.key === "Enter" && opens) send({ open: row });
    if (event.key === "Escape") setInspected(null);
    const to = { ArrowUp: [row - 1, at], ArrowDown: [row + 1, at], ArrowLeft: [row, at - 1], ArrowRight: [row, at + 1], PageUp: [row - seen, at], PageDown: [row + seen, at],
      Home: isControl ? [0, 0] : [row, 0], End: isControl ? [count - 1, end] : [row, end] }[event.key];
    if (!to) return;
    const next = [Math.max(0, Math.min(count - 1, to[0])), Math.max(0, Math.min(end, to[1]))], y = next[0] * ROW;
    const room = box.current.clientHeight - head.current.offsetHeight - ROW;
    box.current.scrollTop = Math.max(y - room, Math.min(y, box.current.scrollTop));
    setTop(box.current.scrollTop);
    setCursor(next);
    if (inspected) inspect(next);
    event.preventDefault();
    event.stopPropagation();
  };
  const spacer = (rows) => rows > 0 && html`<tr aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${rows * ROW}px`, padding: 0 }}></td></tr>`;
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i), total = grid.total.toLocaleString("en-US"), shown = count.toLocaleString("en-US");
  // Enter fires `change` in no field of JupyterLab, and the cross that empties one fires `search` alone.
  return html`<div class="sx-grid ${opens ? "sx-opens" : ""}"><div class="sx-ask">
      ${!grid.isOrdered && isSummed && html`<span>Filter</span><select ref=${column} aria-label="Column to filter" onChange=${() => text.current.value && filter()}><option value="">any column</option>
        ${columns.map(({ name }, i) => html`<option value=${i}>${name}</option>`)}</select><input ref=${text} type="search" placeholder="contains, > 10, = x, null" aria-label="Filter rows"
        onChange=${filter} onSearch=${filter} onKeyDown=${(event) => event.key === "Enter" && !event.isComposing && filter()} />`}
      ${grid.sample && html`<span>${grid.sample}</span>`}${grid.error && html`<span class="sx-error" role="alert">${grid.error}</span>`}</div>
    <div class="sx-rows" ref=${box} tabIndex="0" role="grid" aria-rowcount=${count + 1} aria-colcount=${columns.length} aria-activedescendant=${isFocused ? id : undefined}
      aria-label=${`${shown} ${grid.noun}. ${grid.sample} Arrow keys move between cells, Ctrl+C copies one${opens ? ", Enter is a click on a row" : ""}.`}
      onScroll=${(event) => setTop(event.target.scrollTop)} onKeyDown=${key} onClick=${click} onFocus=${() => setFocused(true)} onBlur=${() => setFocused(false)}>
      <table role="presentation" style=${{ width: `calc(${kept.current.widths.reduce((sum, width) => sum + width, 0)}ch + ${20 * columns.length}px)` }}>
      <thead ref=${head}><tr role="row">${columns.map((column, i) => html`<${Heading} column=${column} width=${kept.current.widths[i]} isSummed=${isSummed} sort=${() => sort(i)}
        rows=${grid.described} brush=${grid.isBrushed && (column.bins.length || column.top.length) && ((from, to) => send({ brush: [i, from, to] }))}
        order=${how.sort !== i ? "none" : how.descending ? "descending" : "ascending"} />`)}</tr></thead>
      <tbody>${spacer(first)}${rows.map((number) => html`<tr key=${number} role="row" aria-rowindex=${number + 2}>${columns.map((column, i) =>
        cell(pages.get(number)?.[i], column, number, i, isFocused && number === row && i === at ? id : ""))}</tr>`)}${spacer(count - last)}</tbody></table></div>
    ${inspected && html`<${Inspected} column=${columns[inspected.cell[1]]} row=${inspected.cell[0]} value=${inspected.value} text=${inspected.text} />`}
    <div class="sx-said" role="status">${`${shown}${count < grid.total ? ` of ${total}` : ""} ${grid.total === 1 ? "row" : grid.noun}. ${opens}`.trim()}</div></div>`;
}
