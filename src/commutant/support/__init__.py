"""What every room may use: errors, whole files, results kept by content, plurals, one object per equal thing.

And the bounds that every room keeps: data from anyone is read by `open_regular` and `decompressed`, programs are
started by `start_program`.
"""

from commutant.support import artifacts
from commutant.support.artifacts import lock_preload_path, locks_plugin_path
from commutant.support.cache import ResultCache, engine_hash
from commutant.support.cache_folder import CacheFolder
from commutant.support.child import Limits, confinement_layers, die_with, start_program
from commutant.support.closing import close_at_exit
from commutant.support.collector import paused_collector
from commutant.support.errors import CommutantError, RunError, UsageError, text_of
from commutant.support.files import private_folder, replace_file, whole_file
from commutant.support.guess import did_you_mean
from commutant.support.identity_cache import IdentityCache, Made, map_unique
from commutant.support.installed import (
    annotations_folder,
    build_advice,
    is_clone,
    kernel_advice,
    marks_folder,
    package_advice,
    pages_folder,
)
from commutant.support.limits import MAX_CALLS_PER_SET
from commutant.support.parquet import has_parquet, require_parquet
from commutant.support.plural import plural
from commutant.support.processors import available_processors
from commutant.support.progress import OnProgress, Progress, no_progress
from commutant.support.regular import open_regular, read_regular
from commutant.support.shard import Shard
from commutant.support.streams import fill_standard_streams
from commutant.support.text import LONGEST_TEXT, percent, safe_lines, safe_text
from commutant.support.untrusted import Budget, decompressed

__all__ = [
    "LONGEST_TEXT",
    "MAX_CALLS_PER_SET",
    "Budget",
    "CacheFolder",
    "CommutantError",
    "IdentityCache",
    "Limits",
    "Made",
    "OnProgress",
    "Progress",
    "ResultCache",
    "RunError",
    "Shard",
    "UsageError",
    "annotations_folder",
    "artifacts",
    "available_processors",
    "build_advice",
    "close_at_exit",
    "confinement_layers",
    "decompressed",
    "did_you_mean",
    "die_with",
    "engine_hash",
    "fill_standard_streams",
    "has_parquet",
    "is_clone",
    "kernel_advice",
    "lock_preload_path",
    "locks_plugin_path",
    "map_unique",
    "marks_folder",
    "no_progress",
    "open_regular",
    "package_advice",
    "pages_folder",
    "paused_collector",
    "percent",
    "plural",
    "private_folder",
    "read_regular",
    "replace_file",
    "require_parquet",
    "safe_lines",
    "safe_text",
    "start_program",
    "text_of",
    "whole_file",
]
