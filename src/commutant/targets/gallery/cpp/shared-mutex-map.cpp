// The C++ library's hash map behind a lock that readers share.
#include <commutant.hpp>

#include <cerrno>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

struct Map {
  mutable std::shared_mutex lock;
  std::unordered_map<long, long> entries;
  Map() { entries.reserve(4096); }
};

static void get(Map &map, const commutant_value *arguments, commutant_result *result) {
  std::shared_lock guard(map.lock);
  auto found = map.entries.find(arguments[0].number);
  if (found == map.entries.end()) return commutant_error(result, ENOENT);
  commutant_member(result, found->second);
}

static void put(Map &map, const commutant_value *arguments, commutant_result *result) {
  std::unique_lock guard(map.lock);
  commutant_truth(result, map.entries.insert_or_assign(arguments[0].number, arguments[1].number).second);
}

static void remove_(Map &map, const commutant_value *arguments, commutant_result *result) {
  std::unique_lock guard(map.lock);
  commutant_truth(result, map.entries.erase(arguments[0].number) == 1);
}

static void len(Map &map, const commutant_value *, commutant_result *result) {
  std::shared_lock guard(map.lock);
  commutant_number(result, static_cast<long>(map.entries.size()));
}

COMMUTANT_LIBRARY(Map, COMMUTANT_CALL(Map, "get(key)", get), COMMUTANT_CALL(Map, "put(key, value)", put),
                  COMMUTANT_CALL(Map, "remove(key)", remove_), COMMUTANT_CALL(Map, "len()", len))
