// The C++ library's shared pointer.
#include <commutant.hpp>

#include <cerrno>
#include <memory>

struct alignas(64) Shared {
  bool is_there = true;
};
using Pointer = std::shared_ptr<Shared>;

struct Owner {
  Pointer shared = std::make_shared<Shared>();
};

/* What a handle stands for: it stays when its pointer is given back, since models ask for it after that, too. */
struct alignas(128) Kept {
  Pointer pointer;
};

static Pointer &kept(const commutant_value *arguments) { return reinterpret_cast<Kept *>(arguments[0].number)->pointer; }

static void acquire(Owner &owner, const commutant_value *, commutant_result *result) {
  commutant_handle(result, reinterpret_cast<intptr_t>(new Kept{owner.shared}), "Reference");
}

static void release(Owner &, const commutant_value *arguments, commutant_result *result) {
  if (!kept(arguments)) return commutant_error(result, EINVAL);
  kept(arguments).reset();
}

static void read(Owner &, const commutant_value *arguments, commutant_result *result) {
  if (!kept(arguments)) return commutant_error(result, EINVAL);
  commutant_truth(result, kept(arguments)->is_there);
}

static void count(Owner &owner, const commutant_value *, commutant_result *result) {
  commutant_number(result, owner.shared.use_count() - 1);
}

COMMUTANT_LIBRARY(Owner, COMMUTANT_CALL(Owner, "acquire()", acquire), COMMUTANT_CALL(Owner, "release(reference)", release),
                  COMMUTANT_CALL(Owner, "read(reference)", read), COMMUTANT_CALL(Owner, "count()", count))
