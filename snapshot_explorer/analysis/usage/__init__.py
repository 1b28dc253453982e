"""Which versions, tags and branches hold which bytes, who added them, and what would be freed without some of them.

Computed from `history/lifetimes`, each file once. What the engine's own expiry would delete is in `analysis/retention`.
"""

from snapshot_explorer.analysis.usage.report import BY, Price, Usage, checked_prices, usage_frame, usage_of

__all__ = ["BY", "Price", "Usage", "checked_prices", "usage_frame", "usage_of"]
