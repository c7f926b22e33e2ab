// Adapters in C++ (docs/guides/libraries.md): functions on an object, whose exceptions fail the call instead of the program.
#pragma once

#include <commutant.h>

#include <cstdio>
#include <exception>

namespace commutant {

template <class Object, void (*function)(Object &, const commutant_value *, commutant_result *)>
void call(void *object, const commutant_value *arguments, commutant_result *result) noexcept {
  static thread_local char why[256];
  try {
    function(*static_cast<Object *>(object), arguments, result);
  } catch (const std::exception &error) {
    std::snprintf(why, sizeof why, "it threw: %s", error.what());
    result->count = 0;
    commutant_failed(result, why);
  } catch (...) {
    result->count = 0;
    commutant_failed(result, "it threw what is no std::exception");
  }
}

template <class Object>
void *make() {
  return new Object();
}

template <class Object>
void drop(void *object) {
  delete static_cast<Object *>(object);
}

}  // namespace commutant

#define COMMUTANT_CALL(Object, signature, function) {signature, commutant::call<Object, function>}
#define COMMUTANT_LIBRARY(Object, ...)                                                        \
  static const commutant_call commutant_calls[] = {__VA_ARGS__, {nullptr, nullptr}};          \
  extern "C" const commutant_adapter_type commutant_adapter =                                 \
      COMMUTANT_ADAPTER(commutant_calls, commutant::make<Object>, commutant::drop<Object>);
