"""The types of Iceberg and Delta for places on Earth, whose values are stored as WKB (well-known binary)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

SPATIAL = ("geometry", "geography")
"""The roots of such types."""
_CRS = "OGC:CRS84"
"""The coordinate reference system of a type that names none."""
EDGES = ("spherical", "vincenty", "thomas", "andoyer", "karney")
"""The interpolations of a geography."""
_GEOMETRY = re.compile(r"geometry\s*(?:\(\s*([^)]+?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(\s*([^,)]+?)\s*(?:,\s*(\w+)\s*)?\))?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialType:
    """The parameters of a geometry or geography."""

    root: str
    crs: str
    """The coordinate reference system, as the schema has it."""
    edges: str = ""
    """How a geography interpolates between points, such as spherical; empty for a geometry, which is planar."""

    def __str__(self) -> str:
        return f"{self.root}({self.crs}{', ' if self.edges else ''}{self.edges})"

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of an Arrow field with such values, in the words of GeoArrow: `crs`, and `edges`."""
        return {"crs": self.crs} | ({"edges": self.edges} if self.edges else {})


def spatial_type(text: str) -> SpatialType | None:
    """Return a type from its notation in a schema; None if it is none of these, or has an unknown parameter.

    Source: iceberg specification, "Primitive Types"; `Types.fromTypeName`; delta kernel DataTypeJsonSerDe.
    """
    if match := _GEOMETRY.fullmatch(text):
        return SpatialType(root="geometry", crs=match[1] or _CRS)
    match = _GEOGRAPHY.fullmatch(text)
    edges = (match[2] or EDGES[0]).lower() if match else ""
    return SpatialType(root="geography", crs=match[1] or _CRS, edges=edges) if match and edges in EDGES else None
