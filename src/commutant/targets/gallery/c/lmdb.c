/* LMDB: a tree of pages in a mapped file; one writer at a time, readers at the same time. */
#include <commutant.h>

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct store {
  MDB_env *env;
  MDB_dbi pages;
};


/* Keys as LMDB orders them. */
static uint64_t ordered(int64_t key) { return (uint64_t)key ^ (1ull << 63); }
static MDB_val value_of(void *place) { return (MDB_val){sizeof(uint64_t), place}; }

static MDB_txn *begin(struct store *store, unsigned flags) {
  MDB_txn *txn;
  if (mdb_txn_begin(store->env, NULL, flags, &txn)) abort();
  return txn;
}

static void *make(void) {
  struct store *store = malloc(sizeof *store);
  char path[] = "/dev/shm/commutant-lmdb-XXXXXX", lock[sizeof path + 5];
  close(mkstemp(path));
  snprintf(lock, sizeof lock, "%s-lock", path);
  mdb_env_create(&store->env);
  mdb_env_set_mapsize(store->env, 1 << 22);
  int error = mdb_env_open(store->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOMETASYNC | MDB_WRITEMAP, 0600);
  unlink(path);
  unlink(lock);
  if (error) {
    fprintf(stderr, "lmdb: %s\n", mdb_strerror(error));
    abort();
  }
  MDB_txn *txn = begin(store, 0);
  mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &store->pages);
  mdb_txn_commit(txn);
  return store;
}

static void reset(void *object) {
  struct store *store = object;
  MDB_txn *txn = begin(store, 0);
  mdb_drop(txn, store->pages, 0);
  mdb_txn_commit(txn);
}

static void drop(void *object) {
  struct store *store = object;
  mdb_env_close(store->env);
  free(store);
}

static void get(void *object, const commutant_value *arguments, commutant_result *result) {
  struct store *store = object;
  uint64_t key = ordered(arguments[0].number);
  MDB_val of_key = value_of(&key), found;
  MDB_txn *txn = begin(store, MDB_RDONLY);
  if (mdb_get(txn, store->pages, &of_key, &found))
    commutant_error(result, ENOENT);
  else
    commutant_member(result, *(int64_t *)found.mv_data);
  mdb_txn_abort(txn);
}

static void put(void *object, const commutant_value *arguments, commutant_result *result) {
  struct store *store = object;
  uint64_t key = ordered(arguments[0].number);
  int64_t value = arguments[1].number;
  MDB_val of_key = value_of(&key), of_value = value_of(&value);
  MDB_txn *txn = begin(store, 0);
  int error = mdb_put(txn, store->pages, &of_key, &of_value, 0);
  if (mdb_txn_commit(txn) || error) commutant_failed(result, "put failed");
}

static void remove_(void *object, const commutant_value *arguments, commutant_result *result) {
  struct store *store = object;
  uint64_t key = ordered(arguments[0].number);
  MDB_val of_key = value_of(&key);
  MDB_txn *txn = begin(store, 0);
  int error = mdb_del(txn, store->pages, &of_key, NULL);
  if (mdb_txn_commit(txn) || (error && error != MDB_NOTFOUND)) commutant_failed(result, "remove failed");
}

static void compare_and_swap(void *object, const commutant_value *arguments, commutant_result *result) {
  struct store *store = object;
  uint64_t key = ordered(arguments[0].number);
  int64_t new = arguments[2].number;
  MDB_val of_key = value_of(&key), found, of_new = value_of(&new);
  MDB_txn *txn = begin(store, 0);
  int swaps = !mdb_get(txn, store->pages, &of_key, &found) && *(int64_t *)found.mv_data == arguments[1].number;
  if (swaps && mdb_put(txn, store->pages, &of_key, &of_new, 0)) return commutant_failed(result, "put failed");
  mdb_txn_commit(txn);
  commutant_truth(result, swaps);
}

static void scan(void *object, const commutant_value *arguments, commutant_result *result) {
  struct store *store = object;
  uint64_t low = ordered(arguments[0].number), high = ordered(arguments[1].number);
  MDB_val key = value_of(&low), found;
  MDB_cursor *cursor;
  MDB_txn *txn = begin(store, MDB_RDONLY);
  if (mdb_cursor_open(txn, store->pages, &cursor)) return commutant_failed(result, "no cursor");
  commutant_value *sequence = commutant_sequence(result);
  for (int error = mdb_cursor_get(cursor, &key, &found, MDB_SET_RANGE); !error && *(uint64_t *)key.mv_data <= high;
       error = mdb_cursor_get(cursor, &key, &found, MDB_NEXT)) {
    commutant_member(result, *(int64_t *)found.mv_data);
    sequence->length++;
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
}

static const commutant_call calls[] = {{"get(key)", get},
                                       {"put(key, value)", put},
                                       {"remove(key)", remove_},
                                       {"compare_and_swap(key, old, new)", compare_and_swap},
                                       {"scan(low, high)", scan},
                                       {0, 0}};
const commutant_adapter_type commutant_adapter = {
    COMMUTANT_VERSION, sizeof(commutant_adapter_type), calls, make, drop, reset, 0, 0};
