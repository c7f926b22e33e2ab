"""Whether Parquet can be written: the package that does is an extra, since it is larger than all the rest together."""

from __future__ import annotations

from importlib.util import find_spec

from commutant.support.errors import UsageError


def has_parquet() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def require_parquet() -> None:
    """Raises UsageError if pyarrow is not installed."""
    if not has_parquet():
        raise UsageError("Parquet needs a package that is not installed: pip install 'commutant[parquet]'")
