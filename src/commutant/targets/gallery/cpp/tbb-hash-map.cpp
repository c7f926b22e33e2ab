// oneTBB: a hash map with a lock for each entry.
#include <commutant.hpp>

#include <cerrno>
#include <tbb/concurrent_hash_map.h>

struct Map {
  using Entries = tbb::concurrent_hash_map<long, long>;
  Entries entries{4096};
};

static void get(Map &map, const commutant_value *arguments, commutant_result *result) {
  Map::Entries::const_accessor found;
  if (!map.entries.find(found, arguments[0].number)) return commutant_error(result, ENOENT);
  commutant_member(result, found->second);
}

static void put(Map &map, const commutant_value *arguments, commutant_result *result) {
  Map::Entries::accessor found;
  bool is_new = map.entries.insert(found, arguments[0].number);
  found->second = arguments[1].number;
  commutant_truth(result, is_new);
}

static void remove_(Map &map, const commutant_value *arguments, commutant_result *result) {
  commutant_truth(result, map.entries.erase(arguments[0].number));
}

static void len(Map &map, const commutant_value *, commutant_result *result) {
  commutant_number(result, static_cast<long>(map.entries.size()));
}

COMMUTANT_LIBRARY(Map, COMMUTANT_CALL(Map, "get(key)", get), COMMUTANT_CALL(Map, "put(key, value)", put),
                  COMMUTANT_CALL(Map, "remove(key)", remove_), COMMUTANT_CALL(Map, "len()", len))
