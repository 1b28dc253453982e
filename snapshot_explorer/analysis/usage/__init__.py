"""Which versions, tags and branches hold which bytes, who added them, and what would be freed without some of them.

Computed from `history/lifetimes`, each file once. What the engine's own expiry would delete is in `analysis/retention`.
"""

from snapshot_explorer.analysis.usage.report import BY, Usage, check_price, usage_of, with_cost

__all__ = ["BY", "Usage", "check_price", "usage_of", "with_cost"]
