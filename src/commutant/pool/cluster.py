"""`dask://HOST:PORT`: pieces of work on the workers of a Dask cluster (the extra `commutant[dask]`).

A worker needs this version of Commutant and nothing else of ours. What a piece holds is packed here, so that models
travel as what they are: a model of a file with its text, any other by its name. Where a worker finds another model by
that name, its hash says so. What a worker has computed names the model by its hash alone, since who asked has it.

A worker that dies costs what it was at: the scheduler gives that to another one, and after a few such deaths takes the
piece for their reason.
"""

from __future__ import annotations

import importlib
import io
import pickle
import re
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from commutant.lang import Interface, load_interface, model_hash, source_hash
from commutant.pool.reference import ModelReference
from commutant.support import CommutantError, RunError, UsageError, engine_hash, text_of

CLUSTER = "dask://"
"""What the name of such an executor begins with."""

_ADDRESS = re.compile(r"dask://([^/:\s]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")
_LAST_PORT = 65535
CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0
"""So long a cluster without workers is waited for."""

_FETCHED_AT_ONCE = 16

_ROOMS = ("analyzer", "corpus", "guard", "interfaces", "lang", "mtrace", "pool", "symbolic", "targets", "testgen")
"""What computes results."""

_models: dict[str, type[Interface]] = {}
"""The models that were sent from here or came here, by their hashes."""

_loading = threading.Lock()
_brought: dict[str, str] = {}
"""On a worker: the modules that came with models, with the hashes of their texts then."""


class DaskExecutor(Executor):
    """Runs pieces on the workers of the scheduler at `dask://HOST:PORT`.

    Raises UsageError if the package `distributed` is not installed, no scheduler or worker answers, or a worker has
    another version of Commutant.
    """

    def __init__(self, where: str) -> None:
        parts = _ADDRESS.fullmatch(where)
        if parts is None or not 1 <= int(parts[2]) <= _LAST_PORT:
            raise UsageError(f"executor {where!r:.80}: expected dask://HOST:PORT with a port from 1 to {_LAST_PORT}")
        self._where, self._address = where, where.removeprefix(CLUSTER)
        self._distributed = _package()
        try:
            self._client = self._distributed.Client(
                f"tcp://{self._address}", timeout=CONNECT_SECONDS, set_as_default=False, name="commutant"
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"executor {self._where}: no scheduler answers ({text_of(error)}); `dask scheduler` starts one"
            ) from None
        self._under_way: dict[Any, Future[Any]] = {}
        self._fetching = ThreadPoolExecutor(_FETCHED_AT_ONCE)
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._look_for_workers, daemon=True)
        try:
            self._require_workers()
        except BaseException:
            self._client.close()
            raise

    def _require_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise UsageError(
                f"executor {self._where}: no worker came in {WORKER_SECONDS:g} s; `dask worker {self._address} "
                "--nthreads 1` starts one"
            ) from None
        for address, found in self._client.run(here, on_error="return").items():
            if isinstance(found, BaseException):
                raise UsageError(f"executor {self._where}: worker {address} cannot load Commutant: {text_of(found)}")
            if found != here():
                raise UsageError(f"executor {self._where}: worker {address} has {_other(found)}")

    @property
    def worker_count(self) -> int:
        """The workers that are there now."""
        return max(1, len(self._client.nthreads()))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """A piece under way. What it raises of ours is raised; RunError if it cannot be done."""
        mine: Future[Any] = Future()
        theirs = self._client.submit(_do, here(), _packed((function, arguments, named), _with_text), pure=False)
        self._under_way[theirs] = mine  # a piece that no one has is given up
        theirs.add_done_callback(self._take)
        if not self._watch.is_alive():
            self._watch.start()
        return mine

    def _take(self, theirs: Any) -> None:
        """A piece is done. What came of it may be gone with its worker, and then takes as long as doing it again: that
        is waited for by threads of their own, so that a piece that failed is known at once."""
        if theirs.status == "finished":
            self._fetching.submit(self._hand_on, theirs)
        else:
            self._hand_on(theirs)

    def _hand_on(self, theirs: Any) -> None:
        try:
            result, error = pickle.loads(theirs.result()), None
        except BaseException as raised:  # noqa: BLE001 - of a worker: the one who asked for the piece gets it
            result, error = None, self._told(raised)
        mine = self._under_way.pop(theirs, None)
        if mine is not None and mine.set_running_or_notify_cancel():
            if error is None:
                mine.set_result(result)
            else:
                mine.set_exception(error)

    def _told(self, error: BaseException) -> BaseException:
        """What has ended a piece, in our words."""
        if isinstance(error, CommutantError):
            return error
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return RunError(
                f"executor {self._where}: workers ended at one piece of work ({text_of(error)}): the model ended them, "
                "or the system for want of memory"
            )
        if isinstance(error, CancelledError | OSError | TimeoutError):
            return RunError(f"executor {self._where}: the scheduler went away ({text_of(error)})")
        return error

    def _look_for_workers(self) -> None:
        """Ends all pieces once there has been no worker for a while."""
        last_seen = time.monotonic()
        while not self._is_over.wait(min(5.0, WORKER_SECONDS)):
            try:
                is_worked_on = not self._under_way or len(self._client.nthreads()) > 0
            except Exception:  # noqa: BLE001 - the scheduler is away, as each piece will say
                return
            if is_worked_on:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > WORKER_SECONDS:
                for theirs, mine in list(self._under_way.items()):
                    self._under_way.pop(theirs, None)
                    if mine.set_running_or_notify_cancel():
                        mine.set_exception(RunError(f"executor {self._where}: no worker is left"))

    @property
    def client_id(self) -> str:
        """Which of the cluster's clients this is; no other one, before or after, is called so."""
        return str(self._client.id)

    def end_on_workers(self, function: Callable[..., Awaitable[object]], *arguments: object) -> None:
        """Gives up pieces under way, then calls a function of this package once on each worker, where it may wait; what
        fails there is no matter here."""
        self._client.cancel(list(self._under_way))
        self._client.run(function, *arguments, on_error="ignore")

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leaves the cluster; pieces under way are given up."""
        self._is_over.set()
        self._client.cancel(list(self._under_way))
        self._client.close()
        self._fetching.shutdown(wait=False)


def _package() -> Any:
    try:
        import distributed
    except ImportError:
        raise UsageError(
            f"an executor {CLUSTER}HOST:PORT needs the package distributed: pip install 'commutant[dask]'"
        ) from None
    return distributed


@cache
def here() -> str:
    """What pieces are computed by: the version of Python, and a hash of all that computes."""
    return f"Python {sys.version_info.major}.{sys.version_info.minor}, {engine_hash(*_ROOMS)[:16]}"


def _other(found: str) -> str:
    return f"another version of Commutant or Python ({found}, here {here()}); install the same on all machines"


def _do(engine: str, packed: bytes) -> bytes:
    """On a worker: does a piece."""
    if engine != here():
        raise UsageError(f"a worker has {_other(engine)}")
    function, arguments, named = pickle.loads(packed)
    return _packed(function(*arguments, **named), _by_hash)


def _packed(value: object, of_model: Callable[[ModelReference], tuple[Any, ...]]) -> bytes:
    class Packer(pickle.Pickler):
        def reducer_override(self, part: Any) -> Any:
            if isinstance(part, MappingProxyType):  # what a record without counts shares with all others
                return _read_only, (dict(part),)
            return of_model(part) if isinstance(part, ModelReference) else NotImplemented

    file = io.BytesIO()
    Packer(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _read_only(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


def _by_hash(reference: ModelReference) -> tuple[Any, ...]:
    # As it was sent: what it imports may be edited by now.
    sent = (digest for digest, model in list(_models.items()) if model is reference.model)
    return _known_model, (next(sent, None) or model_hash(reference.model),)


def _with_text(reference: ModelReference) -> tuple[Any, ...]:
    argument, digest = str(reference), model_hash(reference.model)
    _models[digest] = reference.model
    path = Path(argument.partition(":")[0])
    text = path.read_text(encoding="utf-8") if path.suffix == ".py" else None
    return _sent_model, (argument, digest, text)


def _known_model(digest: str) -> ModelReference:
    return ModelReference(_models[digest])


def _sent_model(argument: str, digest: str, text: str | None) -> ModelReference:
    with _loading:
        if digest not in _models:
            if text is not None:
                path, _, name = argument.partition(":")
                copy = Path(_folder().name) / digest[:16] / Path(path).name
                copy.parent.mkdir(exist_ok=True)
                copy.write_text(text, encoding="utf-8")
                argument = f"{copy}:{name}"
            model = _freshly_loaded(argument)
            if model_hash(model) != digest:
                raise UsageError(f"a worker has another model {argument}, or other modules that it imports")
            _models[digest] = model
        return ModelReference(_models[digest])


def _freshly_loaded(argument: str) -> type[Interface]:
    """The model with what it imports as that lies on the disk now, also if an earlier model brought it before an edit.

    An edit makes all be loaded again that models brought: any of it may have imported what was edited.
    """
    if any(source_hash(name) != was for name, was in _brought.items()):
        for digest in [digest for digest, model in _models.items() if model.__module__ in _brought]:
            del _models[digest]
        for name in _brought:
            sys.modules.pop(name, None)
        _brought.clear()
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        return load_interface(argument)
    finally:
        # What is ours stays as it is while a worker lives (`here`).
        names = [name for name in sys.modules.keys() - before if not name.startswith("commutant.")]
        _brought.update((name, found) for name in names if (found := source_hash(name)) is not None)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where models lie that were sent here, until the worker ends."""
    return tempfile.TemporaryDirectory(prefix="commutant-models-")
