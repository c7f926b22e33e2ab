"""What the gallery shows: each implementation with what it is checked as, and where it comes from."""

from __future__ import annotations

import platform
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
"""The folder of the adapters: `rust` is a package of cargo's, `c` and `cpp` hold a file each."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An implementation. `adapter` is the name of its adapter's file without ending.

    `crate` is the published crate, `package` what Debian calls it; without either it comes with the compiler.
    `features` are those of our package that the adapter needs. `links` are libraries for the linker, `compiled` are
    files of the crate that are compiled with an adapter in C.
    """

    name: str
    shown: str
    interfaces: tuple[str, ...]
    language: str
    crate: str = ""
    package: str = ""
    features: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """The adapter's file."""
        if self.language == "rust":
            return SOURCES / "rust" / "adapters" / f"{self.name}.rs"
        return SOURCES / self.language / f"{self.name}.{self.language}"


_MAPS = ("map", "map-len")
_ROUGH_MAPS = (*_MAPS, "map-len-relaxed")
"""Of those whose authors say that their length is one of some moment."""
_REFERENCES = ("refcount", "refcount-exact")


def _rust(name: str, shown: str, interfaces: tuple[str, ...], crate: str = "", *features: str) -> Entry:
    needed = features or ((crate,) if crate else ())
    return Entry(name, shown, interfaces, "rust", crate=crate, features=needed)


def _cpp(name: str, shown: str, interfaces: tuple[str, ...], package: str = "", *links: str) -> Entry:
    return Entry(name, shown, interfaces, "cpp", package=package, links=links)


def _c(name: str, shown: str, interfaces: tuple[str, ...], package: str, *links: str) -> Entry:
    return Entry(name, shown, interfaces, "c", package=package, links=links)


def _c_of_crate(name: str, shown: str, interfaces: tuple[str, ...], crate: str, folder: str, *compiled: str) -> Entry:
    """A library in C whose source a crate carries: Debian's build of it has no debug information."""
    files = tuple(f"{folder}/{file}" for file in compiled)
    return Entry(name, shown, interfaces, "c", crate=crate, features=(crate,), compiled=files)


_ALL = (
    _rust("mutex-hashmap", "Mutex<HashMap>", _MAPS),
    _rust("rwlock-hashmap", "RwLock<HashMap>", _MAPS),
    _cpp("shared-mutex-map", "shared_mutex and unordered_map", _MAPS),
    _cpp("tbb-hash-map", "tbb::concurrent_hash_map", _MAPS, "libtbb-dev", "tbb"),
    _rust("dashmap", "DashMap", _ROUGH_MAPS, "dashmap"),
    _rust("scc", "scc::HashMap", _ROUGH_MAPS, "scc"),
    _rust("papaya", "papaya::HashMap", _ROUGH_MAPS, "papaya"),
    _c("urcu-lfht", "liburcu cds_lfht", _ROUGH_MAPS, "liburcu-dev", "urcu-bp", "urcu-cds"),
    _rust("rwlock-btreemap", "RwLock<BTreeMap>", ("ordered-map",)),
    _rust("crossbeam-skiplist", "crossbeam SkipMap", ("ordered-map",), "crossbeam-skiplist"),
    _rust("mutex-vecdeque", "Mutex<VecDeque>", ("queue",)),
    _rust("crossbeam-segqueue", "crossbeam SegQueue", ("queue",), "crossbeam-queue"),
    _rust("crossbeam-arrayqueue", "crossbeam ArrayQueue", ("queue",), "crossbeam-queue"),
    _rust("concurrent-queue", "ConcurrentQueue", ("queue",), "concurrent-queue"),
    _rust("tokio-mpsc", "tokio mpsc, unbounded", ("queue",), "tokio"),
    _cpp("boost-queue", "boost::lockfree::queue", ("queue",), "libboost-dev"),
    _c("ck-ring", "ck_ring", ("queue",), "libck-dev"),
    _c("urcu-wfcqueue", "liburcu cds_wfcq", ("queue",), "liburcu-dev", "urcu-common"),
    _cpp("moodycamel", "moodycamel::ConcurrentQueue", ("queue-unordered",), "libconcurrentqueue-dev"),
    _cpp("mutex-vector", "mutex and vector", ("stack",)),
    _cpp("boost-stack", "boost::lockfree::stack", ("stack",), "libboost-dev"),
    _c("ck-stack", "ck_stack", ("stack",), "libck-dev"),
    _rust("atomic-counter", "AtomicI64", ("counter",)),
    _rust("mutex-metrics", "Mutex<HashMap<String, i64>>", ("metrics",)),
    _rust("prometheus", "prometheus IntCounterVec", ("metrics",), "prometheus"),
    _rust("metrics-util", "metrics_util Registry", ("metrics",), "metrics-util", "metrics-util", "metrics"),
    _rust("rwlock-btreemap-kv", "RwLock<BTreeMap>", ("kv",)),
    _c_of_crate("lmdb", "LMDB 0.9.24", ("kv",), "lmdb-rkv-sys", "lmdb/libraries/liblmdb", "mdb.c", "midl.c"),
    _rust("arc", "Arc", _REFERENCES),
    _cpp("shared-ptr", "std::shared_ptr", _REFERENCES),
    _rust("arc-swap", "ArcSwap::load", ("refcount",), "arc-swap"),
    _rust("mutex-string-interner", "Mutex<StringInterner>", ("interner",), "string-interner"),
    _rust("lasso", "lasso ThreadedRodeo", ("interner",), "lasso"),
    _rust("glibc", "glibc malloc", ("allocator",), "", "libc"),
    _rust("mimalloc", "mimalloc", ("allocator",), "libmimalloc-sys"),
    _rust("bucket-locks-lists", "a lock per bucket", ("lists",)),
    _rust("scc-lists", "two scc::HashMap", ("lists",), "scc"),
    _rust("crossbeam-skiplist-lists", "two crossbeam SkipMap", ("lists",), "crossbeam-skiplist"),
    _rust("mutex-slab", "Mutex<Vec<Option>>", ("pool",)),
    _rust("sharded-slab", "sharded_slab::Slab", ("pool",), "sharded-slab"),
)

ENTRIES = {entry.name: entry for entry in _ALL}
"""All entries by name, those of one interface together, from the plainest on."""


@cache
def _crates() -> dict[str, str]:
    packages = tomllib.loads((SOURCES / "rust" / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    return {package["name"]: package["version"] for package in packages}


def installed_version(package: str) -> str:
    """The version of one of Debian's packages; empty if it is not installed."""
    return _first_line(["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Version}", package]).removeprefix(
        "ii "
    )


def version_of(entry: Entry) -> str:
    """What of which version is checked, as far as it is known here: `dashmap 6.2.1`."""
    if entry.crate:
        return f"{entry.crate} {_crates()[entry.crate].split('+')[0]}"
    if entry.package:
        return f"{entry.package} {installed_version(entry.package)}".strip()
    if entry.name == "glibc":
        return " ".join(platform.libc_ver())
    if entry.language == "rust":
        return _first_line(["rustc", "--version"])
    return "g++ " + _first_line(["g++", "-dumpfullversion"])


def _first_line(command: list[str]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.partition("\n")[0].partition("(")[0].strip() or answer.stdout.partition("\n")[0]
