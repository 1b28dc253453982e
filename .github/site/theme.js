// Results draw themselves in dark where the body says so, as in Jupyter; the site's switch says it in its own word.
const follow = () => {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  if (document.body.dataset.theme !== theme) document.body.dataset.theme = theme;
};
new MutationObserver(follow).observe(document.body, {attributeFilter: ["data-md-color-scheme"]});
follow();
// Names for readers of screens, which the theme leaves out or uses twice, and tables that keys can scroll; the theme adds
// the buttons of code blocks, and what tables scroll in, later.
const name = () => {
  for (const scrolled of document.querySelectorAll(".md-typeset__scrollwrap")) scrolled.tabIndex = 0;
  document.querySelectorAll("nav[data-md-level]:not([aria-label]), .md-code__nav:not([aria-label])").forEach((nav) => {
    const title = nav.querySelector(".md-nav__title")?.innerText.trim() ?? "Code";
    nav.removeAttribute("aria-labelledby");
    nav.setAttribute("aria-label", `${title}, part ${document.querySelectorAll("nav[aria-label]").length + 1} of the page`);
  });
};
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
new MutationObserver(name).observe(document.body, {childList: true, subtree: true});
name();
