// An ordered map behind one lock, as `kv` has it, or with -DTELLS as `ordered-map` has it.
#include <commutant.hpp>

#include <cerrno>
#include <map>
#include <mutex>

struct Entries {
  std::mutex lock;
  std::map<long, long> all;
};

#ifdef TELLS
#define TELL(result, truth) commutant_truth(result, truth)
#else
#define TELL(result, truth) ((void)(result), (void)(truth))
#endif

static void get(Entries &entries, const commutant_value *arguments, commutant_result *result) {
  std::lock_guard guard(entries.lock);
  auto found = entries.all.find(arguments[0].number);
  if (found == entries.all.end()) return commutant_error(result, ENOENT);
  commutant_member(result, found->second);
}
static void put(Entries &entries, const commutant_value *arguments, [[maybe_unused]] commutant_result *result) {
  std::lock_guard guard(entries.lock);
  bool is_new = entries.all.insert_or_assign(arguments[0].number, arguments[1].number).second;
  TELL(result, is_new);
}
static void remove_(Entries &entries, const commutant_value *arguments, [[maybe_unused]] commutant_result *result) {
  std::lock_guard guard(entries.lock);
  bool was_there = entries.all.erase(arguments[0].number) == 1;
  TELL(result, was_there);
}
static void swap(Entries &entries, const commutant_value *arguments, commutant_result *result) {
  std::lock_guard guard(entries.lock);
  auto found = entries.all.find(arguments[0].number);
  bool fits = found != entries.all.end() && found->second == arguments[1].number;
  if (fits) found->second = arguments[2].number;
  commutant_truth(result, fits);
}
static void scan(Entries &entries, const commutant_value *arguments, commutant_result *result) {
  std::lock_guard guard(entries.lock);
  commutant_value *sequence = commutant_sequence(result);
  for (auto at = entries.all.lower_bound(arguments[0].number); at != entries.all.end() && at->first <= arguments[1].number; ++at) {
    commutant_member(result, at->second);
    sequence->length++;
  }
}
static void answer(const Entries &entries, std::map<long, long>::const_iterator at, commutant_result *result) {
  if (at == entries.all.end()) return commutant_error(result, ENOENT);
  commutant_number(result, at->first);
}
static void first(Entries &entries, const commutant_value *, commutant_result *result) {
  std::lock_guard guard(entries.lock);
  answer(entries, entries.all.begin(), result);
}
static void next(Entries &entries, const commutant_value *arguments, commutant_result *result) {
  std::lock_guard guard(entries.lock);
  answer(entries, entries.all.upper_bound(arguments[0].number), result);
}

COMMUTANT_LIBRARY(Entries, COMMUTANT_CALL(Entries, "get(key)", get), COMMUTANT_CALL(Entries, "put(key, value)", put),
                  COMMUTANT_CALL(Entries, "remove(key)", remove_),
                  COMMUTANT_CALL(Entries, "compare_and_swap(key, old, new)", swap),
                  COMMUTANT_CALL(Entries, "scan(low, high)", scan), COMMUTANT_CALL(Entries, "first()", first),
                  COMMUTANT_CALL(Entries, "next(key)", next))
