/* liburcu: a hash table whose readers and writers take no lock. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <commutant.h>

#include <errno.h>
#include <stdlib.h>
#include <urcu/urcu-bp.h>
#include <urcu/rculfhash.h>

#define BUCKETS 1024

struct entry {
  struct cds_lfht_node node; /* first: a node's address is its entry's */
  long key, value;
};

static int has_key(struct cds_lfht_node *node, const void *key) { return ((struct entry *)node)->key == *(const long *)key; }

static unsigned long hash(long key) { return (unsigned long)key * 0x9e3779b97f4a7c15ul >> 16; }

static void *make(void) { return cds_lfht_new(BUCKETS, BUCKETS, BUCKETS, 0, NULL); }

/* Entries that calls take out are not freed: when no one reads them any more is for the user of the table to say. */
static void reset(void *table) {
  struct cds_lfht_iter iter;
  struct entry *entry;
  urcu_bp_read_lock();
  cds_lfht_for_each_entry(table, &iter, entry, node) {
    cds_lfht_del(table, &entry->node);
    free(entry);
  }
  urcu_bp_read_unlock();
}

static void drop(void *table) {
  reset(table);
  cds_lfht_destroy(table, NULL);
}

static void get(void *table, const commutant_value *arguments, commutant_result *result) {
  long key = arguments[0].number;
  struct cds_lfht_iter iter;
  urcu_bp_read_lock();
  cds_lfht_lookup(table, hash(key), has_key, &key, &iter);
  struct entry *found = (struct entry *)cds_lfht_iter_get_node(&iter);
  if (found)
    commutant_member(result, found->value);
  else
    commutant_error(result, ENOENT);
  urcu_bp_read_unlock();
}

static void put(void *table, const commutant_value *arguments, commutant_result *result) {
  struct entry *entry = malloc(sizeof *entry);
  entry->key = arguments[0].number;
  entry->value = arguments[1].number;
  urcu_bp_read_lock();
  commutant_truth(result, !cds_lfht_add_replace(table, hash(entry->key), has_key, &entry->key, &entry->node));
  urcu_bp_read_unlock();
}

static void remove_(void *table, const commutant_value *arguments, commutant_result *result) {
  long key = arguments[0].number;
  struct cds_lfht_iter iter;
  urcu_bp_read_lock();
  cds_lfht_lookup(table, hash(key), has_key, &key, &iter);
  struct cds_lfht_node *found = cds_lfht_iter_get_node(&iter);
  commutant_truth(result, found && cds_lfht_del(table, found) == 0);
  urcu_bp_read_unlock();
}

static void len(void *table, const commutant_value *arguments, commutant_result *result) {
  (void)arguments;
  long before, after;
  unsigned long count;
  urcu_bp_read_lock();
  cds_lfht_count_nodes(table, &before, &count, &after);
  urcu_bp_read_unlock();
  commutant_number(result, (int64_t)count);
}

static const commutant_call calls[] = {
    {"get(key)", get}, {"put(key, value)", put}, {"remove(key)", remove_}, {"len()", len}, {0, 0}};
const commutant_adapter_type commutant_adapter = {
    COMMUTANT_VERSION, sizeof(commutant_adapter_type), calls, make, drop, reset, 0, 0};
