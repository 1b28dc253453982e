"""The names of inner modules of `view` that tests use."""

from snapshot_explorer.view.commits import MINUS
from snapshot_explorer.view.differences import difference_svg
from snapshot_explorer.view.figures import plotly_text
from snapshot_explorer.view.grid import shown_columns
from snapshot_explorer.view.html import COPY_SCRIPT
from snapshot_explorer.view.json_values import JsonBounds, json_value
from snapshot_explorer.view.palette import GRAY, GREEN, KIND_COLORS, ORANGE, SKY, STATE_COLORS, page_color
from snapshot_explorer.view.plotly_figure import PLOTLY, FigureWithTable
from snapshot_explorer.view.png import Canvas
from snapshot_explorer.view.profiles import totals_figure
from snapshot_explorer.view.records.lakes import sparkline
from snapshot_explorer.view.row_changes import commit_bars_of, row_change_text
from snapshot_explorer.view.stored_details import stored_details, writer_facts
from snapshot_explorer.view.text import WIDTH
from snapshot_explorer.view.timeline.columns import TableFacts, pack_numbers, timeline_columns
from snapshot_explorer.view.timeline.commit_bars import commit_bars
from snapshot_explorer.view.timeline.figure import timeline
from snapshot_explorer.view.tracks.branch_graph import branch_graph
from snapshot_explorer.view.tracks.file_lifetimes import file_tracks, partition_heat
from snapshot_explorer.view.tracks.svg import brief_html, heat_svg, tracks_svg
from snapshot_explorer.view.tracks.tracks import MOST_TRACKS, Mark, Span, Track, Tracks
