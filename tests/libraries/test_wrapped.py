"""What an adapter's type wraps is named by the library's own type; what the adapter adds keeps the adapter's."""

from __future__ import annotations

from pathlib import Path

from tests.libraries.building import both_orders, build, by_test, pair, session

BAG_IN_C = "struct bag { long count, hint; };\n"

ADAPTER_IN_C = """
#include <commutant.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "bag.h"

struct inner { struct bag bag; };
struct holder {
  struct bag first;
  pthread_mutex_t lock;
  _Alignas(64) struct inner inner;
  _Alignas(64) struct bag bags[4];
  _Alignas(64) long calls;
};

static void *make(void) {
  struct holder *holder = aligned_alloc(64, sizeof *holder);
  memset(holder, 0, sizeof *holder);
  pthread_mutex_init(&holder->lock, NULL);
  return holder;
}
#define CALL(name, statement)                                                                    \\
  static void name(void *object, const commutant_value *arguments, commutant_result *result) {   \\
    struct holder *holder = object;                                                              \\
    (void)arguments;                                                                             \\
    statement;                                                                                   \\
    commutant_number(result, 0);                                                                 \\
  }
CALL(direct, holder->first.count++)
CALL(nested, if (arguments[0].number) holder->inner.bag.count++; else holder->inner.bag.hint++)
CALL(elements, holder->bags[arguments[0].number].count++)
CALL(added, holder->calls++)
CALL(locked, pthread_mutex_lock(&holder->lock); pthread_mutex_unlock(&holder->lock))
static const commutant_call calls[] = {{"direct(core)", direct}, {"nested(core)", nested},
  {"elements(core)", elements}, {"added(core)", added}, {"locked(core)", locked}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, free);
"""

BAG_IN_CPP = """
#include <atomic>
template <class Item> struct Bag { std::atomic<Item> count{0}; };
"""

ADAPTER_IN_CPP = """
#include <commutant.hpp>
#include <mutex>
#include "bag.hpp"

struct Holder {
  std::mutex lock;
  alignas(64) Bag<long> bag;
};
static void direct(Holder &all, const commutant_value *, commutant_result *result) {
  all.bag.count++;
  commutant_number(result, 0);
}
static void locked(Holder &all, const commutant_value *, commutant_result *result) {
  std::lock_guard guard(all.lock);
  commutant_number(result, 0);
}
COMMUTANT_LIBRARY(Holder, COMMUTANT_CALL(Holder, "direct(core)", direct),
                  COMMUTANT_CALL(Holder, "locked(core)", locked))
"""

BAG_IN_RUST = """
#[derive(Default)]
pub struct Bag { count: std::sync::atomic::AtomicI64, pub hint: i64 }
impl Bag {
    pub fn add(&self) { self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed); }
}
"""

ADAPTER_IN_RUST = """
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use commutant_adapter::{Arguments, library};
#[derive(Default)]
#[repr(C)]
pub struct Holder { calls: AtomicI64, rest: [i64; 15], bag: bag::Bag }
fn direct(all: &Holder, _: Arguments) -> i64 { all.bag.add(); 0 }
fn added(all: &Holder, _: Arguments) -> i64 { all.calls.fetch_add(1, Relaxed); 0 }
library! { Holder: Holder::default; "direct(core)" => direct, "added(core)" => added }
"""


def found(adapter: Path, *names: str) -> dict[str, set[str]]:
    """The variables that each call's test shares, with what is said of where they are."""
    with session(adapter) as running:
        records = by_test(list(running.run(both_orders(*(pair(one, ({"core": 0}, {"core": 1})) for one in names)))))
    return {name: {finding.name for record in records[name] for finding in record.findings} for name in names}


def test_fields_of_a_librarys_type_within_an_adapters_begin_with_the_librarys(tmp_path: Path) -> None:
    (tmp_path / "bag.h").write_text(BAG_IN_C)
    (tmp_path / "adapter.c").write_text(ADAPTER_IN_C)
    adapter = build(tmp_path, "wrapped", tmp_path / "adapter.c")
    assert found(adapter, "direct", "nested", "elements", "added", "locked") == {
        "direct": {"struct bag.count (in struct holder.first; make, adapter.c:18)"},
        "nested": {"struct bag.count | hint (in struct holder.inner.bag; make, adapter.c:18)"},
        "elements": {"struct holder.bags[].count (make, adapter.c:18)"},
        "added": {"struct holder.calls (make, adapter.c:18)"},
        "locked": {"struct holder.lock (make, adapter.c:18)"},
    }


def test_the_same_in_a_class(tmp_path: Path) -> None:
    (tmp_path / "bag.hpp").write_text(BAG_IN_CPP)
    (tmp_path / "adapter.cpp").write_text(ADAPTER_IN_CPP)
    shared = found(build(tmp_path, "wrapped", tmp_path / "adapter.cpp"), "direct", "locked")
    (direct,) = shared["direct"]
    assert direct.startswith("Bag<long int>.count") and "(in Holder.bag; " in direct
    assert all(name.startswith("Holder.lock") for name in shared["locked"]) and shared["locked"]


def test_the_same_of_another_crate(tmp_path: Path) -> None:
    library = tmp_path / "bag"
    (library / "src").mkdir(parents=True)
    (library / "Cargo.toml").write_text('[package]\nname = "bag"\nversion = "0.1.0"\nedition = "2024"\n')
    (library / "src/lib.rs").write_text(BAG_IN_RUST)
    (tmp_path / "adapter.rs").write_text(ADAPTER_IN_RUST)
    adapter = build(tmp_path, "wrapped", tmp_path / "adapter.rs", extra=(f'bag = {{ path = "{library}" }}',))
    shared = found(adapter, "direct", "added")
    assert {name.split(" (")[0] for name in shared["direct"]} == {"Bag.count"}, shared
    assert all("(in Holder.bag; " in name for name in shared["direct"])
    assert {name.split(" (")[0] for name in shared["added"]} == {"Holder.calls"}, shared
