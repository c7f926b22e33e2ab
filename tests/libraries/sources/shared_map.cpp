// std::unordered_map behind a std::shared_mutex, as a store with compare-and-swap.
#include <commutant.hpp>

#include <cerrno>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <unordered_map>

struct Store {
  std::shared_mutex lock;
  alignas(128) std::unordered_map<long, long> entries{4096};
};

static void get(Store &store, const commutant_value *arguments, commutant_result *result) {
  std::shared_lock guard(store.lock);
  auto found = store.entries.find(arguments[0].number);
  if (found == store.entries.end()) return commutant_error(result, ENOENT);
  commutant_member(result, found->second);
}

static void put(Store &store, const commutant_value *arguments, commutant_result *) {
  std::unique_lock guard(store.lock);
  store.entries[arguments[0].number] = arguments[1].number;
}

static void erase(Store &store, const commutant_value *arguments, commutant_result *) {
  std::unique_lock guard(store.lock);
  store.entries.erase(arguments[0].number);
}

static void swap(Store &store, const commutant_value *arguments, commutant_result *result) {
  std::unique_lock guard(store.lock);
  auto found = store.entries.find(arguments[0].number);
  bool same = found != store.entries.end() && found->second == arguments[1].number;
  if (same) found->second = arguments[2].number;
  commutant_truth(result, same);
}

static void fail(Store &, const commutant_value *, commutant_result *) { throw std::runtime_error("no room"); }

COMMUTANT_LIBRARY(Store, COMMUTANT_CALL(Store, "get(key)", get), COMMUTANT_CALL(Store, "put(key, value)", put),
                  COMMUTANT_CALL(Store, "remove(key)", erase),
                  COMMUTANT_CALL(Store, "compare_and_swap(key, old, new)", swap), COMMUTANT_CALL(Store, "fail()", fail))
