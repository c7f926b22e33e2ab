#include <commutant.h>
#include <errno.h>
#include "table.h"

static void *make(void) { return table_new(); }
static void drop(void *table) { table_free(table); }

static void get(void *table, const commutant_value *arguments, commutant_result *result) {
  long value;
  if (table_get(table, arguments[0].number, &value))
    commutant_member(result, value);
  else
    commutant_error(result, ENOENT);
}

static void put(void *table, const commutant_value *arguments, commutant_result *result) {
  commutant_truth(result, table_put(table, arguments[0].number, arguments[1].number));
}

static void remove_(void *table, const commutant_value *arguments, commutant_result *result) {
  commutant_truth(result, table_remove(table, arguments[0].number));
}

static const commutant_call calls[] = {{"get(key)", get}, {"put(key, value)", put}, {"remove(key)", remove_}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
