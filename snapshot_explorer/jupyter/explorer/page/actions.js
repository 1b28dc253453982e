// What buttons inside an explorer's HTML do: copy a line, insert it as a cell, save rows, open what is shown. Names sliders.
// Such an element has data-sx="copy", "insert", "save" or "open", and data-sx-value.

async function copy(text) {
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

/** Insert text as a cell below the one in front; JupyterLab and Notebook do where they expose their application. */
async function insert(text) {
  const { commands, shell } = window.jupyterapp;
  await commands.execute("notebook:insert-cell-below");
  shell.currentWidget.content.activeCell.model.sharedModel.setSource(text);
}

function save({ save: name }, buffers) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(buffers));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function render({ model, el }) {
  const style = document.createElement("style");
  style.textContent = window.jupyterapp ? "" : ".sx-explorer [data-sx=insert] { display: none; }";
  el.append(style);
  const act = async (event) => {
    const target = event.target.closest?.("[data-sx]"), home = target?.closest(".sx-explorer");
    if (!home?.contains(el)) return;
    if (event.type === "keydown") {
      if (target.matches("button") || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
    }
    const { sx, sxValue } = target.dataset;
    if (sx === "copy") {
      await copy(sxValue);
      const label = target.textContent;
      target.textContent = "Copied";
      setTimeout(() => { target.textContent = label; }, 1200);
    } else if (sx === "insert") await insert(sxValue);
    else model.send({ [sx]: sxValue });
  };
  /** Name the handles of sliders, which have none: by the tooltip of a slider, or its label. */
  const name = ({ target }) => {
    if (target.getAttribute?.("role") !== "slider" || !target.closest(".sx-explorer")?.contains(el)) return;
    const slider = target.closest(".widget-slider, .jupyter-widget-slider");
    const label = slider?.querySelector("label")?.textContent.trim(), handles = slider?.querySelectorAll("[role=slider]");
    const which = handles?.length > 1 ? (handles[0] === target ? "first " : "last ") : "";
    target.setAttribute("aria-label", which + (label || slider?.title || slider?.querySelector("[title]")?.title || "value"));
  };
  const receive = (message, buffers) => { if (message?.save) save(message, buffers); };
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, act);
  document.addEventListener("focusin", name);
  model.on("msg:custom", receive);
  return () => {
    for (const kind of ["click", "keydown"]) document.removeEventListener(kind, act);
    document.removeEventListener("focusin", name);
    model.off("msg:custom", receive);
  };
}

export default { render };
