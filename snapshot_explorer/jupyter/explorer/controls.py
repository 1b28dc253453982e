"""The controls of an explorer, each bound to a trait of the state: both have the same value. Reads nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, get_args

import ipywidgets as widgets
from traitlets import TraitError

from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.explorer.page.panes import error_html
from snapshot_explorer.jupyter.explorer.state import COMPARED, FILE_ORDERS, FILTERS, HEALTH, MEASURES, ROW_KINDS
from snapshot_explorer.model import Kind
from snapshot_explorer.render.cells import cut, moment
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from traitlets import Bunch

    from snapshot_explorer.jupyter.explorer.page.widget_factory import WidgetFactory
    from snapshot_explorer.jupyter.explorer.state import ExplorerState

_OFFERED = 100
"""Versions that a list offers, the newest of those shown; any other can be typed."""
_LONGEST = 60
_MARKERS = ("a", "b")
_TYPES = [("exact, as Arrow", "arrow"), ("floats, as NumPy", "numpy"), ("floats, nullable", "nullable")]
"""The types of pandas, by what becomes of decimals."""


class Controls:
    """The controls above the tabs, and those in them."""

    def __init__(
        self,
        factory: WidgetFactory,
        state: ExplorerState,
        act: Mapping[str, Callable[[], None]],
        choose: Callable[[str, str], None],
    ) -> None:
        """Bind the controls to the state.

        Args:
            factory: Makes widgets.
            state: What they show and set.
            act: The functions of buttons that need more than the state: refresh, load.
            choose: Receives the text of a ref, and the marker for it, `a` or `b`.
        """
        self._factory = factory
        self._state = state
        self._bound: list[tuple[Callable[[Bunch], None], str]] = []
        self.markers = {marker: self._marker(marker, choose) for marker in _MARKERS}
        self._shown: tuple[int, ...] = ()
        self.movers = {marker: self._mover(marker) for marker in _MARKERS}
        self.window = self._factory.make(
            widgets.IntRangeSlider,
            min=0,
            max=0,
            description="Versions",
            readout=False,
            continuous_update=False,
            width="280px",
        )
        self.window_label = self._factory.label()
        self.note = self._factory.html()
        self._watch("note", lambda change: setattr(self.note, "value", error_html(change.new)))
        self._follow_window()
        self.top = self._top(act["refresh"])
        self.filters = self._folded("Filters", self._filters(), FILTERS)
        self.manifest = self._factory.make(
            widgets.Dropdown, options=[("no manifest", "")], description="Open", width="480px"
        )
        self._bind(self.manifest, "manifest")
        self.loading = self._loading(act["load"])
        self.above: dict[str, tuple[widgets.Widget, ...]] = {
            "manifests": (
                self._factory.row(
                    self._toggle("carried", "Show carried over", "Show manifests that are in A and in B, however many")
                ),
            ),
            "compare": (
                self._choices("compared", [(name, name) for name in COMPARED], "Show"),
                self.shown_with_rows(self._changed_rows()),
            ),
            "data": (self._reading(act["bisect"]),),
            "files": (self._files(),),
            "health": (
                self._factory.row(
                    self._choices("health", [(name, name) for name in HEALTH], "Show"),
                    self._text("keep", "Keep", "7d"),
                    self._keep_last(),
                ),
            ),
        }

    def close(self) -> None:
        """Stop observing the state."""
        for handler, trait in self._bound:
            self._state.unobserve(handler, trait)
        self._bound.clear()

    def offer(self) -> None:
        """Offer the versions that are shown, newest first, with time and kind; those in the state."""
        shown = self._state.shown
        self._shown = tuple(shown["version"].to_pylist()[::-1])
        for marker, mover in self.movers.items():
            _slide(mover, len(self._shown) - 1, self._place(marker))
        rows = shown.slice(0, _OFFERED).select(["version", "committed_at", "kind", "tags"]).to_pylist()
        offered = tuple(
            "  ".join([str(one["version"]), moment(one["committed_at"]) if one["committed_at"] else "", one["kind"]])
            + (f"  tags {cut(visible(', '.join(one['tags'])), _LONGEST)}" if one["tags"] else "")
            for one in rows
        )
        for box in self.markers.values():
            box.options = ("latest", "earliest", *offered)

    def show_marker(self, marker: str) -> None:
        """Show the version of a marker in its box again, in place of what was typed."""
        version = getattr(self._state, marker)
        self.markers[marker].value = "" if version is None else str(version)

    def offer_manifests(self, choices: Sequence[tuple[str, str]]) -> None:
        """Offer the manifests that are shown; the one that is open stays so if it is among them."""
        options = [
            ("no manifest", ""),
            *((cut(visible(label), 2 * _LONGEST, middle=True), path) for label, path in choices),
        ]
        if tuple(options) != tuple(self.manifest.options):
            here = self._state.manifest if self._state.manifest in {path for _, path in options} else ""
            self._state.manifest = here
            self.manifest.options = options
            self.manifest.value = here

    def _top(self, refresh: Callable[[], None]) -> widgets.VBox:
        state = self._state
        clicks = self._choices("clicks", [(marker.upper(), marker) for marker in _MARKERS], "A click sets")
        return self._factory.column(
            self._factory.row(
                *(self._factory.row(self.markers[marker], self.movers[marker], together=True) for marker in _MARKERS),
                self._toggle("pinned", "Pin A", "Keep A where it is; otherwise A is the version before B"),
                self._factory.button("Previous", "Move B one version back", state.previous),
                self._factory.button("Next", "Move B one version on", state.next),
                self._factory.button("Swap A and B", "Compare the other way round", state.swap),
                self._toggle("playing", "Play", "Move B on every second, up to the newest version"),
            ),
            self._factory.row(
                self.window,
                self.window_label,
                clicks,
                self._choices("measure", [(name, name) for name in MEASURES], "Bars count"),
                self._factory.button("Refresh", "Read the log again", refresh),
                self._toggle("follow", "Follow new commits", "Look for new commits every few seconds until stopped"),
                *self._stop(),
            ),
            self.note,
        )

    def _stop(self) -> tuple[widgets.Button, widgets.Label]:
        """Return the button that ends following, and the interval; visible only while the table is followed."""
        state = self._state
        stop = self._factory.button("Stop", "Stop looking for new commits", lambda: state.set_trait("follow", False))  # noqa: FBT003 - a trait's value
        often = self._factory.label()

        def show(_: object = None) -> None:
            self._factory.show(stop, shown=state.follow, width="auto")
            self._factory.show(often, shown=state.follow)
            often.value = f"every {state.interval:g} s"

        for trait in ("follow", "interval"):
            self._watch(trait, show)
        show()
        return stop, often

    def _folded(self, label: str, content: widgets.Widget, traits: Sequence[str]) -> widgets.VBox:
        """Return a box below a button that shows and hides it, and shows how many of its traits are set."""
        button = self._factory.make(widgets.ToggleButton, value=False, tooltip=f"Show or hide: {label}", width="auto")
        known = self._state.traits()
        box = self._factory.slot(content)

        def show(_: object = None) -> None:
            count = sum(getattr(self._state, name) != known[name].default_value for name in traits)
            sign = (
                "\N{BLACK DOWN-POINTING SMALL TRIANGLE}" if button.value else "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
            )
            button.description = f"{sign} {label}" + (f" ({count} set)" if count else "")
            self._factory.show(box, shown=button.value)
            if button.value:
                box.fill()

        button.observe(show, "value")
        for name in traits:
            self._watch(name, show)
        show()
        return self._factory.column(self._factory.row(button), box)

    def _kinds(self) -> widgets.Dropdown:
        """Return the list of kinds. A list shows no option whose value is None, so that any kind is empty text."""
        options = [("any kind", ""), *((kind, kind) for kind in get_args(Kind))]
        box = self._factory.make(widgets.Dropdown, options=options, value="", description="Kind", width="220px")
        box.observe(lambda change: self._state.set_trait("kind", change.new or None), "value")
        self._watch("kind", lambda change: setattr(box, "value", change.new or ""))
        return box

    def show_recorded_times(self, *, is_copied: bool) -> None:
        """Show the switch for recorded times where they differ from those of the files."""
        self._factory.show(self.recorded_times, shown=is_copied, width="auto")

    def _filters(self) -> widgets.VBox:
        tooltip = "Show the times that writers recorded; the log's files have other ones since the table was copied"
        self.recorded_times = self._toggle("recorded_times", "Recorded times", tooltip)
        self.show_recorded_times(is_copied=False)
        return self._factory.column(
            self._factory.row(
                self._kinds(),
                self._text("operation", "Operation", "MERGE"),
                self._text("user", "User", "part of the name"),
                self._text("text", "Text", "in what is stored"),
            ),
            self._factory.row(
                self._text("since", "Since", "@2026-11-01 or @3d"),
                self._text("until", "Until", "@2026-11-08"),
                self._toggle("maintenance", "Maintenance commits", "Show commits that change no data"),
                self._text("zone", "Time zone", "UTC, local, Europe/Berlin"),
                self.recorded_times,
                self._toggle("anomalies", "Mark anomalies", "Mark versions where a number jumps, from metadata"),
                self._factory.button("Show all", "Take all filters away", self._state.reset_filters),
            ),
        )

    def shown_with_rows(self, *children: widgets.Widget) -> widgets.Widget:
        """Return a column of widgets that is visible only while the comparison shows rows."""
        box = self._factory.slot(self._factory.column(*children))

        def show(_: object = None) -> None:
            self._factory.show(box, shown=self._state.compared == "rows")
            if self._state.compared == "rows":
                box.fill()

        self._watch("compared", show)
        show()
        return box

    def _changed_rows(self) -> widgets.Widget:
        return self._factory.row(
            self._choices("row_kind", [(name, name) for name in ROW_KINDS], "Rows"),
            self._names("key", "Key", "primary key, or a,b"),
            self._toggle("hide_unchanged", "Hide unchanged columns", "Show only the key and columns that changed"),
        )

    def _reading(self, bisect: Callable[[], None]) -> widgets.Widget:
        limit = self._factory.make(widgets.BoundedIntText, description="Rows", min=0, max=10_000, width="180px")
        return self._factory.row(
            self._names("columns", "Columns", "all, or a,b"),
            self._text("where", "Where", "amount > 10"),
            self._factory.button("Bisect", "Find the first version, up to B, where the condition holds", bisect),
            self._bind(limit, "limit"),
        )

    def _loading(self, load: Callable[[], None]) -> widgets.Widget:
        most = self._factory.make(
            widgets.BoundedIntText,
            description="At most",
            min=0,
            max=2**31 - 1,
            tooltip="Rows to load; 0 for all",
            width="180px",
        )
        return self._factory.row(
            self._text("variable", "Variable", "df"),
            self._dropdown("engine", [(name, name) for name in ENGINES], "Engine"),
            self._dropdown("types", _TYPES, "Types"),
            self._bind(most, "load_limit"),
            self._factory.label("rows, 0 for all"),
            self._factory.button("Load as variable", "Load the rows of B into the variable", load),
        )

    def _files(self) -> widgets.Widget:
        return self._factory.row(
            self._text("partition", "Partition", "dt=2026-11"),
            self._dropdown("file_order", [(name, name) for name in FILE_ORDERS], "Sort by"),
            self._toggle("descending", "Largest first", "Sort downwards"),
            self._toggle("statistics", "Values", "Show what the metadata says of the files' values"),
        )

    def _keep_last(self) -> widgets.Widget:
        count = self._factory.make(
            widgets.BoundedIntText,
            description="Keep last",
            min=0,
            max=2**31 - 1,
            tooltip="Versions to keep at least; 0 for the table's setting",
            width="180px",
        )
        return self._bind(count, "keep_last")

    def _marker(self, marker: str, choose: Callable[[str, str], None]) -> widgets.Combobox:
        box = self._factory.make(
            widgets.Combobox,
            description=marker.upper(),
            placeholder="version, tag:v1, latest~2, @3d",
            continuous_update=False,
            ensure_option=False,
            width="210px",
            style={"description_width": "20px"},
        )

        def typed(change: Bunch) -> None:
            # A tag's name may contain blanks; an entry of the list begins with a version.
            words = str(change.new).split("  ")
            text = words[0].strip()
            if text and text != str(getattr(self._state, marker)):
                choose(text, marker)

        box.observe(typed, "value")
        self._watch(marker, lambda change: setattr(box, "value", str(change.new) if change.new >= 0 else ""))
        return box

    def _mover(self, marker: str) -> widgets.IntSlider:
        """Return the slider that moves a marker among the versions shown, by arrow keys too."""
        slider = self._factory.make(
            widgets.IntSlider,
            min=0,
            max=0,
            readout=False,
            continuous_update=False,
            tooltip=f"Move {marker.upper()} among the versions shown: drag it, or use the arrow keys",
            width="130px",
        )

        def moved(change: Bunch) -> None:
            if change.new < len(self._shown) and change.new != self._place(marker):
                self._state.mark(marker, self._shown[change.new])

        slider.observe(moved, "value")
        self._watch(marker, lambda _: setattr(slider, "value", self._place(marker)))
        return slider

    def _place(self, marker: str) -> int:
        """Return the index, among the versions shown, of a marker's version, or of the next one after it."""
        return max(0, min(bisect_left(self._shown, getattr(self._state, marker)), len(self._shown) - 1))

    def _follow_window(self) -> None:
        state, slider = self._state, self.window

        def moved(change: Bunch) -> None:
            first, last = change.new
            known = state.versions
            if known and last < len(known):
                state.window = (known[first], known[last])

        def show(_: object) -> None:
            known = state.versions
            if not known:
                return
            first, last = bisect_left(known, state.window[0]), bisect_right(known, state.window[1]) - 1
            _slide(slider, len(known) - 1, (min(first, last), last))
            count = last - min(first, last) + 1
            part = f", showing {count:,} of {len(known):,}" if count < len(known) else ""
            self.window_label.value = f"{known[min(first, last)]} to {known[last]}{part}"

        slider.observe(moved, "value")
        for trait in ("window", "versions"):
            self._watch(trait, show)

    def _watch(self, trait: str, handler: Callable[[Bunch], None]) -> None:
        self._state.observe(handler, trait)
        self._bound.append((handler, trait))

    def _bind(self, widget: Any, trait: str) -> Any:
        """Bind a widget's value to a trait; a value that the state rejects shows an error and is reset."""
        widget.value = getattr(self._state, trait)

        def typed(change: Bunch) -> None:
            try:
                self._state.set_trait(trait, change.new)
                self._state.note = ""
            except TraitError as error:
                widget.value = getattr(self._state, trait)
                self._state.note = str(error)

        widget.observe(typed, "value")

        def show(change: Bunch) -> None:
            # A list of manifests shows the one that a cell has set once it is in the list (`offer_manifests`).
            if trait != "manifest" or change.new in {value for _, value in widget.options}:
                widget.value = change.new

        self._watch(trait, show)
        return widget

    def _text(self, trait: str, label: str, placeholder: str) -> Any:
        made = self._factory.make(
            widgets.Text, description=label, placeholder=placeholder, continuous_update=False, width="260px"
        )
        return self._bind(made, trait)

    def _toggle(self, trait: str, label: str, tooltip: str) -> Any:
        made = self._factory.make(widgets.Checkbox, description=label, tooltip=tooltip, indent=False, width="auto")
        return self._bind(made, trait)

    def _dropdown(self, trait: str, options: Sequence[tuple[str, object]], label: str) -> Any:
        return self._bind(
            self._factory.make(widgets.Dropdown, options=options, description=label, width="220px"), trait
        )

    def _choices(self, trait: str, options: Sequence[tuple[str, str]], label: str) -> Any:
        made = self._factory.make(
            widgets.ToggleButtons,
            options=options,
            tooltips=[f"{label} {name}" for name, _ in options],
            width="max-content",
            style={"button_width": "auto"},
        )
        return self._factory.row(self._factory.label(label), self._bind(made, trait), apart=True)

    def _names(self, trait: str, label: str, placeholder: str) -> widgets.Text:
        box = self._factory.make(
            widgets.Text, description=label, placeholder=placeholder, continuous_update=False, width="300px"
        )

        def typed(change: Bunch) -> None:
            self._state.set_trait(trait, [name.strip() for name in change.new.split(",") if name.strip()])

        box.observe(typed, "value")
        self._watch(trait, lambda change: setattr(box, "value", ",".join(change.new)))
        return box


def _slide(slider: Any, most: int, value: object) -> None:
    """Set a slider's maximum and value, without an event for the values between."""
    with slider.hold_trait_notifications():
        slider.max = 2**31 - 1
        slider.value = value
        slider.max = max(0, most)
