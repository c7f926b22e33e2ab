// A deque, a vector, a number and a table of numbers, each behind one lock.
#include <commutant.hpp>

#include <cerrno>
#include <deque>
#include <map>
#include <mutex>

struct All {
  std::mutex lock;
  std::deque<long> items;
  std::map<long, long> sums;
  long sum = 0;
};

static void push(All &all, const commutant_value *arguments, commutant_result *) {
  std::lock_guard guard(all.lock);
  all.items.push_back(arguments[0].number);
}

static void pop(All &all, const commutant_value *, commutant_result *result) {
  std::lock_guard guard(all.lock);
  if (all.items.empty()) return commutant_error(result, EAGAIN);
#ifdef STACK
  commutant_member(result, all.items.back());
  all.items.pop_back();
#else
  commutant_member(result, all.items.front());
  all.items.pop_front();
#endif
}

static void add(All &all, const commutant_value *arguments, commutant_result *) {
  std::lock_guard guard(all.lock);
  all.sum += arguments[0].number;
}

static void read(All &all, const commutant_value *, commutant_result *result) {
  std::lock_guard guard(all.lock);
  commutant_number(result, all.sum);
}

static void add_to(All &all, const commutant_value *arguments, commutant_result *) {
  std::lock_guard guard(all.lock);
  all.sums[arguments[0].number] += arguments[1].number;
}

static void read_of(All &all, const commutant_value *arguments, commutant_result *result) {
  std::lock_guard guard(all.lock);
  commutant_number(result, all.sums.count(arguments[0].number) ? all.sums[arguments[0].number] : 0);
}

COMMUTANT_LIBRARY(All, COMMUTANT_CALL(All, "push(item)", push), COMMUTANT_CALL(All, "pop()", pop),
                  COMMUTANT_CALL(All, "add(amount)", add), COMMUTANT_CALL(All, "read()", read),
                  COMMUTANT_CALL(All, "add(name, amount)", add_to), COMMUTANT_CALL(All, "read(name)", read_of))
