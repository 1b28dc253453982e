// Draws rows in a grid that scrolls, from the trait `grid` and pages that the kernel sends. All text is set as text.

import { element } from "./timeline.js";

const ROW = 24, ROWS = 14, PAGE = 60, AROUND = 8;
const FEW = 8;  // rows that are seen at once need no summary of their columns
let grids = 0;

export class Rows {
  constructor(send, root) {
    this.send = send;
    this.root = root;
    this.id = `sx-grid-${grids += 1}`;
    this.here = [0, 0];
    root.classList.add("sx-grid");
    this.ask = element("div", "sx-ask");
    this.column = element("select");
    this.column.setAttribute("aria-label", "Column to filter");
    this.text = element("input");
    Object.assign(this.text, { type: "search", placeholder: "contains, > 10, = x, null" });
    this.text.setAttribute("aria-label", "Filter rows");
    this.error = element("span", "sx-error");
    this.error.setAttribute("role", "alert");
    this.sample = element("span", "sx-sample");
    this.ask.append("Filter ", this.column, this.text, this.sample, this.error);
    this.scroll = element("div", "sx-rows");
    this.scroll.tabIndex = 0;
    this.scroll.setAttribute("role", "grid");
    this.said = element("div", "sx-said");
    this.said.setAttribute("role", "status");
    this.inspected = element("div", "sx-inspected");
    this.inspected.hidden = true;
    root.append(this.ask, this.scroll, this.inspected, this.said);
    this.column.addEventListener("change", () => this.text.value && this.filter());
    this.text.addEventListener("change", () => this.filter());
    // The cross of the field empties it without a change. In JupyterLab, chromium fires neither event at Enter.
    this.text.addEventListener("search", () => this.filter());
    this.text.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && this.filter());
    this.scroll.addEventListener("scroll", () => this.draw());
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.scroll.addEventListener("click", (event) => this.click(event));
    this.scroll.addEventListener("focus", () => this.mark());
    this.scroll.addEventListener("blur", () => this.mark());
  }

  end() {
    this.root.replaceChildren();  // another grid may take its place
  }

  /** Take what the kernel sent, and draw it. */
  take(sent) {
    const grid = this.grid = sent;
    this.pages = new Map();
    this.asked = new Set();
    this.root.hidden = !grid?.columns;
    this.scroll.replaceChildren();
    if (this.root.hidden) return;
    this.keep(grid.page);
    this.here = [0, Math.min(this.here[1], grid.columns.length - 1)];
    this.root.classList.toggle("sx-opens", Boolean(grid.opens));
    this.scroll.setAttribute("aria-label", `${grid.count.toLocaleString("en-US")} ${grid.noun}. ${grid.sample} ` +
      `Arrow keys move between cells, Ctrl+C copies one${grid.opens ? ", Enter is a click on a row" : ""}.`);
    this.scroll.setAttribute("aria-rowcount", grid.count + 1);
    this.scroll.setAttribute("aria-colcount", grid.columns.length);
    this.column.replaceChildren(new Option("any column", ""), ...grid.columns.map(({ name }, at) => new Option(name, at)));
    this.column.value = grid.how.column ?? "";
    this.text.value = grid.how.text;
    // Where filters rows that the engine reads in parts.
    for (const one of [this.column, this.text]) one.hidden = grid.isOrdered;
    this.ask.firstChild.textContent = grid.isOrdered ? "" : "Filter ";
    this.inspected.hidden = true;
    this.sample.textContent = grid.sample;
    this.error.textContent = grid.error;
    const some = grid.count < grid.total ? ` of ${grid.total.toLocaleString("en-US")}` : "";
    this.said.textContent = `${grid.count.toLocaleString("en-US")}${some} ${grid.total === 1 ? "row" : grid.noun}. ${grid.opens}`.trim();
    this.table();
    this.scroll.scrollTop = 0;
    this.draw();
  }

  /** Keep a page of rows: texts by row. */
  keep({ start, cells, full, marked }) {
    const rows = (cells[0] ?? []).map((_, row) => cells.map((column) => ({ text: column[row] })));
    for (const [row, column, text] of full) rows[row][column].full = text;
    for (const [row, column] of marked) if (rows[row]?.[column]) rows[row][column].changed = true;
    rows.forEach((row, at) => this.pages.set(start + at, row));
    // A newer request ends one that reads: what is still missing is requested again.
    this.asked.clear();
  }

  /** Take an answer: a page of rows, or a value in full. */
  receive({ page, value }) {
    if (value && String([value.row, value.column]) === String(this.here)) this.inspect(value.text);
    if (!page) return;
    this.keep(page);
    this.draw();
  }

  /** Show the value of the cell where the keys are; one that is nested or cut in full, once the kernel has sent it. */
  inspect(text) {
    const [row, place] = this.here, cell = this.pages.get(row)?.[place], column = this.grid.columns[place];
    if (!cell) return;
    const isNull = cell.text === "-", name = element("b", "", column.name), type = element("span", "sx-faint", column.type);
    const value = element("pre", isNull ? "sx-null" : "", isNull ? "null" : text ?? cell.full ?? cell.text);
    const copy = element("button", "sx-btn", "Copy value");
    copy.type = "button";
    copy.addEventListener("click", () => navigator.clipboard?.writeText(value.textContent));
    value.tabIndex = 0;
    value.setAttribute("role", "group");
    value.setAttribute("aria-label", `${column.name} of row ${row + 1}`);
    this.inspected.replaceChildren(name, type, copy, value);
    this.inspected.hidden = false;
    if (text === undefined && !isNull) this.send({ inspect: [row, place] });
  }

  table() {
    const { columns, how } = this.grid, table = element("table"), head = element("thead"), names = element("tr");
    table.setAttribute("role", "presentation");
    names.setAttribute("role", "row");
    const shown = [...this.pages.values()];
    let widths = 0;
    columns.forEach((column, at) => {
      const cell = element("th", column.number ? "sx-n" : "");
      const isOne = column.min === column.max;
      const range = column.min === null ? "" : isOne ? column.min : `${column.min} to ${column.max}`;
      const distinct = column.distinct === null ? "" : `${column.distinct.toLocaleString("en-US")} distinct`;
      const facts = [...(column.distinct !== null && range.length > 30 ? [] : [range]), ...(column.nulls ? [`${column.nulls.toLocaleString("en-US")} null`] : [])].filter(Boolean).join(", ");
      const above = Math.max(...[column.type, distinct, facts].map((text) => Math.min(text.length, 22)));
      const longest = Math.max(8, column.heading.length + 2, above, ...shown.map((row) => row[at].text.length));
      const width = Math.min(columns.length > 3 ? 40 : 64, longest);
      widths += width;
      cell.style.width = `${width}ch`;
      cell.setAttribute("role", "columnheader");
      const is = how.sort === at ? (how.descending ? "descending" : "ascending") : "none";
      cell.setAttribute("aria-sort", is);
      const name = element("button", "", column.heading + { none: "", ascending: " \u25b2", descending: " \u25bc" }[is]);
      name.type = "button";
      name.title = [column.name, column.meaning, "Sort by this column"].filter(Boolean).join("\n");
      name.addEventListener("click", () => this.sort(at));
      const bins = element("div", "sx-bins"), most = Math.max(1, ...column.bins);
      bins.append(...column.bins.map((count) => {
        const bar = element("i");
        bar.style.height = `${(100 * count) / most}%`;
        return bar;
      }));
      if (distinct) bins.append(distinct);
      bins.title = range;
      const line = (text) => Object.assign(element("div", "", text), { title: text });
      cell.append(name);
      if (column.name !== "change" && column.type) cell.append(line(column.type));
      if (column.name !== "change" && this.grid.total >= FEW) cell.append(bins, line(facts));
      names.append(cell);
    });
    head.append(names);
    this.body = element("tbody");
    // Without a width of its own the table would be as wide as the ranges in its header.
    table.style.width = `calc(${widths}ch + ${16 * columns.length}px)`;
    table.append(head, this.body);
    this.scroll.append(table);
    this.scroll.style.maxHeight = `${head.offsetHeight + ROWS * ROW + 16}px`;
    this.head = head;
  }

  /** Draw the rows that are seen, and ask for those that are not there. */
  draw() {
    if (!this.body || this.root.hidden) return;
    const { count, columns } = this.grid, top = this.scroll.scrollTop;
    const seen = Math.ceil((this.scroll.clientHeight || ROWS * ROW) / ROW);
    const first = Math.max(0, Math.floor(top / ROW) - AROUND), last = Math.min(count, first + seen + 2 * AROUND);
    const spacer = (rows) => {
      const row = element("tr"), cell = element("td");
      row.setAttribute("aria-hidden", "true");
      cell.colSpan = columns.length;
      cell.style.cssText = `height:${rows * ROW}px;padding:0`;
      row.style.height = `${rows * ROW}px`;
      row.append(cell);
      return row;
    };
    const rows = [];
    if (first) rows.push(spacer(first));
    const needed = new Set();
    for (let at = first; at < last; at += 1) {
      const row = element("tr", at % 2 ? "sx-odd" : ""), cells = this.pages.get(at);
      row.setAttribute("role", "row");
      row.setAttribute("aria-rowindex", at + 2);
      if (!cells) needed.add(Math.floor(at / PAGE) * PAGE);
      columns.forEach((column, place) => row.append(this.cell(cells?.[place], column, at, place)));
      rows.push(row);
    }
    if (last < count) rows.push(spacer(count - last));
    this.body.replaceChildren(...rows);
    this.mark();
    for (const start of needed)
      if (!this.asked.has(start)) {
        this.asked.add(start);
        this.send({ need: start });
      }
  }

  cell(value, column, row, place) {
    const made = element("td", ""), isNull = value?.text === "-", [before, after] = value?.changed ? value.text.split(" \u2192 ") : [];
    if (after === undefined) made.textContent = value ? (isNull ? "null" : value.text) : "\u2026";
    else made.append(element("span", "sx-old", before), element("span", "sx-unseen", " \u2192 "), element("b", "", after));
    made.setAttribute("role", "gridcell");
    made.setAttribute("aria-colindex", place + 1);
    made.dataset.at = `${row} ${place}`;
    if (column.number) made.classList.add("sx-n");
    if (isNull) made.classList.add("sx-null");
    if (value?.changed) made.classList.add("sx-changed");
    if (column.name === "change" && value) made.classList.toggle("sx-plus", value.text.startsWith("+"));
    if (column.name === "change" && value) made.classList.toggle("sx-minus", value.text.startsWith("-"));
    if (value && value.text !== "-" && value.text !== "0" && column.number) {
      const side = /^(added|removed)_(files|rows|bytes)$/.exec(column.name)?.[1];
      if (side) made.classList.add(`sx-${side}`);
    }
    const colour = column.colours?.[value?.text];
    if (colour) {
      const chip = element("span", "sx-chip");
      chip.style.background = colour;
      made.prepend(chip);
    }
    if (value?.full) made.title = value.full;
    return made;
  }

  /** Mark the cell where the keys are. Cells stay: one that is pressed must be there when it is released. */
  mark() {
    const before = this.scroll.querySelector(".sx-here");
    before?.classList.remove("sx-here");
    before?.removeAttribute("id");
    this.scroll.removeAttribute("aria-activedescendant");
    const cell = document.activeElement === this.scroll && this.scroll.querySelector(`[data-at="${this.here.join(" ")}"]`);
    if (!cell) return;
    cell.classList.add("sx-here");
    cell.id = `${this.id}-here`;
    this.scroll.setAttribute("aria-activedescendant", cell.id);
  }

  arrange(changes) {
    this.send({ arrange: { ...this.grid.how, ...changes } });
  }

  filter() {
    const column = this.column.value === "" ? null : Number(this.column.value), text = this.text.value.trim();
    if (column !== this.grid.how.column || text !== this.grid.how.text) this.arrange({ column, text });
  }

  /** Sort by a column: upwards, then downwards, then as it was. */
  sort(at) {
    const { sort, descending } = this.grid.how;
    if (sort !== at) this.arrange({ sort: at, descending: false });
    else if (!descending) this.arrange({ descending: true });
    else this.arrange({ sort: null, descending: false });
  }

  click(event) {
    const cell = event.target.closest("td[data-at]");
    if (!cell) return;
    this.here = cell.dataset.at.split(" ").map(Number);
    this.mark();
    this.inspect();
    if (this.grid.opens && !String(getSelection())) this.send({ open: this.here[0] });
  }

  key(event) {
    if (event.target !== this.scroll || !this.grid?.count) return;
    const { count, columns, opens } = this.grid, [row, place] = this.here;
    const isControl = event.ctrlKey || event.metaKey;
    if (isControl && event.key === "c" && !String(getSelection())) {
      const cell = this.pages.get(row)?.[place];
      if (cell) navigator.clipboard?.writeText(cell.full ?? cell.text);
      return;
    }
    if (event.key === "Enter") this.inspect();
    if (event.key === "Enter" && opens) this.send({ open: row });
    if (event.key === "Escape") this.inspected.hidden = true;
    const moves = {
      ArrowUp: [row - 1, place], ArrowDown: [row + 1, place], ArrowLeft: [row, place - 1], ArrowRight: [row, place + 1],
      PageUp: [row - ROWS, place], PageDown: [row + ROWS, place],
      Home: isControl ? [0, 0] : [row, 0], End: isControl ? [count - 1, columns.length - 1] : [row, columns.length - 1],
    };
    const to = moves[event.key];
    if (!to) return;
    this.here = [Math.max(0, Math.min(count - 1, to[0])), Math.max(0, Math.min(columns.length - 1, to[1]))];
    this.reveal();
    if (!this.inspected.hidden) this.inspect();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Scroll to where the keys are. */
  reveal() {
    const { scroll } = this, y = this.here[0] * ROW, room = scroll.clientHeight - this.head.offsetHeight - ROW;
    if (y < scroll.scrollTop) scroll.scrollTop = y;
    else if (y > scroll.scrollTop + room) scroll.scrollTop = y - room;
    this.draw();
    const cell = scroll.querySelector(".sx-here");
    if (!cell) return;
    if (cell.offsetLeft < scroll.scrollLeft) scroll.scrollLeft = cell.offsetLeft;
    const right = cell.offsetLeft + cell.offsetWidth - scroll.clientWidth;
    if (right > scroll.scrollLeft) scroll.scrollLeft = right;
  }
}
