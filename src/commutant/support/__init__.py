"""What every room may use: errors, whole files, results kept by content, plurals, one object per equal thing."""

from commutant.support import artifacts
from commutant.support.artifacts import lock_preload_path, locks_plugin_path
from commutant.support.cache import ResultCache, engine_hash
from commutant.support.closing import close_at_exit
from commutant.support.collector import paused_collector
from commutant.support.errors import CommutantError, RunError, UsageError
from commutant.support.files import replace_file
from commutant.support.limits import MAX_CALLS_PER_SET
from commutant.support.once import Made, Once, each
from commutant.support.plural import plural
from commutant.support.processors import available_processors
from commutant.support.regular import open_regular
from commutant.support.text import LONGEST_TEXT, percent, safe_lines, safe_text

__all__ = [
    "LONGEST_TEXT",
    "MAX_CALLS_PER_SET",
    "CommutantError",
    "Made",
    "Once",
    "ResultCache",
    "RunError",
    "UsageError",
    "artifacts",
    "available_processors",
    "close_at_exit",
    "each",
    "engine_hash",
    "lock_preload_path",
    "locks_plugin_path",
    "open_regular",
    "paused_collector",
    "percent",
    "plural",
    "replace_file",
    "safe_lines",
    "safe_text",
]
