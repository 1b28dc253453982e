// Results draw themselves in dark where the body says so, as in Jupyter; the site's switch says it in its own word.
const follow = () => {
  const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
  if (document.body.dataset.theme !== theme) document.body.dataset.theme = theme;
};
new MutationObserver(follow).observe(document.body, {attributeFilter: ["data-md-color-scheme"]});
follow();
