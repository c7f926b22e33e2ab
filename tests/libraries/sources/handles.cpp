// What hands out handles, each behind one lock: references, symbols, blocks, places. A handle is never given twice.
#include <commutant.hpp>

#include <cerrno>
#include <map>
#include <mutex>

struct All {
  std::mutex lock;
  long last = 0;
  std::map<long, long> given;
  std::map<long, long> symbols;  // by text's number
};

static long *find(All &all, long handle) {
  auto found = all.given.find(handle);
  return found == all.given.end() ? nullptr : &found->second;
}
static long give(All &all, long value) {
  all.given[++all.last] = value;
  return all.last;
}

#define CALL(name) static void name(All &all, [[maybe_unused]] const commutant_value *arguments, [[maybe_unused]] commutant_result *result)
#define LOCKED std::lock_guard guard(all.lock)

CALL(acquire) { LOCKED; commutant_handle(result, give(all, 0), "Reference"); }
CALL(release) { LOCKED; if (!all.given.erase(arguments[0].number)) commutant_error(result, EINVAL); }
CALL(read_reference) {
  LOCKED;
  if (find(all, arguments[0].number)) commutant_truth(result, 1);
  else commutant_error(result, EINVAL);
}
CALL(count) { LOCKED; commutant_number(result, static_cast<long>(all.given.size())); }

CALL(intern) {
  LOCKED;
  auto [at, is_new] = all.symbols.try_emplace(arguments[0].number, 0);
  if (is_new) at->second = give(all, arguments[0].number);
  commutant_handle(result, at->second, "Symbol");
}
CALL(find_name) {
  LOCKED;
  auto found = all.symbols.find(arguments[0].number);
  if (found == all.symbols.end()) return commutant_error(result, ENOENT);
  commutant_handle(result, found->second, "Symbol");
}
CALL(resolve) {
  LOCKED;
  long *name = find(all, arguments[0].number);
  if (name) commutant_member(result, *name);
  else commutant_error(result, EINVAL);
}

CALL(allocate) { LOCKED; commutant_handle(result, give(all, 0), "Block"); }
CALL(write_block) {
  LOCKED;
  long *content = find(all, arguments[0].number);
  if (content) *content = arguments[1].number;
  else commutant_error(result, EINVAL);
}
CALL(read_block) {
  LOCKED;
  long *content = find(all, arguments[0].number);
  if (content) commutant_number(result, *content);
  else commutant_error(result, EINVAL);
}

CALL(insert) { LOCKED; commutant_handle(result, give(all, arguments[0].number), "Place"); }
CALL(get) {
  LOCKED;
  long *value = find(all, arguments[0].number);
  if (value) commutant_member(result, *value);
  else commutant_error(result, ENOENT);
}
CALL(remove_) { LOCKED; commutant_truth(result, all.given.erase(arguments[0].number) == 1); }

COMMUTANT_LIBRARY(All, COMMUTANT_CALL(All, "acquire()", acquire), COMMUTANT_CALL(All, "release(reference)", release),
                  COMMUTANT_CALL(All, "read(reference)", read_reference), COMMUTANT_CALL(All, "count()", count),
                  COMMUTANT_CALL(All, "intern(name)", intern), COMMUTANT_CALL(All, "find(name)", find_name),
                  COMMUTANT_CALL(All, "resolve(symbol)", resolve), COMMUTANT_CALL(All, "allocate()", allocate),
                  COMMUTANT_CALL(All, "free(block)", release), COMMUTANT_CALL(All, "write(block, content)", write_block),
                  COMMUTANT_CALL(All, "read(block)", read_block), COMMUTANT_CALL(All, "insert(value)", insert),
                  COMMUTANT_CALL(All, "get(place)", get), COMMUTANT_CALL(All, "remove(place)", remove_))
