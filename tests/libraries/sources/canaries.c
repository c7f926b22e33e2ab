/* Planted sharing, each fault with a twin that differs in that alone. A call NAME(core) is made on two cores; of a fault one
 * line is shared, in the variable that its comment says and at the lines marked with its name; of a twin (NAME_twin) none. */
#include <commutant.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64
#define NOINLINE __attribute__((noinline))
#define ALIGNED __attribute__((aligned(LINE)))

static void *zeroed(void *block, size_t size) { return memset(block, 0, size); }
#define NEW(type) zeroed(aligned_alloc(LINE, (sizeof(type) + LINE - 1) / LINE * LINE), sizeof(type))

/* Counters of cores, each on a line of its own. */
struct slot { long count; } ALIGNED;

/* FAULT false_sharing_fields: struct fields.left | right */
struct fields { long left, right; char rest[48]; };
struct fields_apart { long left ALIGNED; long right ALIGNED; };
NOINLINE static void false_sharing_fields(struct fields *fields, int core) {
  if (core == 0) fields->left++; /* at false_sharing_fields */
  else fields->right++;          /* at false_sharing_fields */
}
NOINLINE static void false_sharing_fields_twin(struct fields_apart *fields, int core) {
  if (core == 0) fields->left++;
  else fields->right++;
}

/* FAULT lock_array_unpadded: struct lock_array.locks[] */
struct lock_array { int locks[16]; };
struct lock_array_apart { struct slot locks[16]; };
NOINLINE static void lock_array_unpadded(struct lock_array *array, int core) {
  __atomic_exchange_n(&array->locks[core], 1, __ATOMIC_ACQUIRE); /* at lock_array_unpadded */
}
NOINLINE static void lock_array_unpadded_twin(struct lock_array_apart *array, int core) {
  __atomic_exchange_n(&array->locks[core].count, 1, __ATOMIC_ACQUIRE);
}

/* FAULT spinlock_beside_data: struct guarded.lock | settings */
struct guarded { int lock, state; long settings; char rest[48]; };
struct guarded_apart { int lock, state; long settings ALIGNED; };
NOINLINE static void spinlock_beside_data(struct guarded *guarded, int core) {
  if (core == 0) __atomic_exchange_n(&guarded->lock, 1, __ATOMIC_ACQUIRE); /* at spinlock_beside_data */
  else __atomic_load_n(&guarded->settings, __ATOMIC_RELAXED);              /* at spinlock_beside_data */
}
NOINLINE static void spinlock_beside_data_twin(struct guarded_apart *guarded, int core) {
  if (core == 0) __atomic_exchange_n(&guarded->lock, 1, __ATOMIC_ACQUIRE);
  else __atomic_load_n(&guarded->settings, __ATOMIC_RELAXED);
}

/* FAULT statistics_counter: statistics.hits */
static struct { long misses, hits; } ALIGNED statistics;
static struct slot statistics_of_cores[2];
NOINLINE static void statistics_counter(void *nothing, int core) {
  (void)nothing, (void)core;
  __atomic_fetch_add(&statistics.hits, 1, __ATOMIC_RELAXED); /* at statistics_counter */
}
NOINLINE static void statistics_counter_twin(void *nothing, int core) {
  (void)nothing;
  __atomic_fetch_add(&statistics_of_cores[core].count, 1, __ATOMIC_RELAXED);
}

/* FAULT counter_on_read: struct cache.lookups */
struct cache { long keys[4], values[4]; long lookups ALIGNED; };
NOINLINE static long find_in(const struct cache *cache, long key) {
  for (int i = 0; i < 4; i++)
    if (cache->keys[i] == key) return cache->values[i];
  return -1;
}
NOINLINE static void counter_on_read(struct cache *cache, int core) {
  cache->lookups++; /* at counter_on_read */
  find_in(cache, core);
}
NOINLINE static void counter_on_read_twin(struct cache *cache, int core) { find_in(cache, core); }

/* FAULT hidden_refcount: struct document.references */
struct document { long references; char text[56]; };
NOINLINE static void hidden_refcount(struct document *document, int core) {
  (void)core;
  __atomic_fetch_add(&document->references, 1, __ATOMIC_RELAXED); /* at hidden_refcount */
  __atomic_load_n(&document->text[3], __ATOMIC_RELAXED);
  __atomic_fetch_sub(&document->references, 1, __ATOMIC_RELEASE); /* at hidden_refcount */
}
NOINLINE static void hidden_refcount_twin(struct document *document, int core) {
  (void)core;
  __atomic_load_n(&document->text[3], __ATOMIC_RELAXED);
}

/* FAULT reader_count: struct shared_lock.readers */
struct shared_lock { int writer, readers; long version; char rest[48]; };
NOINLINE static void reader_count(struct shared_lock *lock, int core) {
  (void)core;
  __atomic_fetch_add(&lock->readers, 1, __ATOMIC_ACQUIRE); /* at reader_count */
  __atomic_fetch_sub(&lock->readers, 1, __ATOMIC_RELEASE); /* at reader_count */
}
NOINLINE static void reader_count_twin(struct shared_lock *lock, int core) {
  (void)core;
  __atomic_load_n(&lock->version, __ATOMIC_ACQUIRE);
}

/* FAULT length_field: struct list_of_cores.length */
struct list_of_cores { struct slot elements[2]; long length ALIGNED; };
NOINLINE static void length_field(struct list_of_cores *list, int core) {
  list->elements[core].count = 1;
  __atomic_fetch_add(&list->length, 1, __ATOMIC_RELAXED); /* at length_field */
}
NOINLINE static void length_field_twin(struct list_of_cores *list, int core) { list->elements[core].count = 1; }

/* FAULT neighbouring_blocks: struct cell.value */
struct cell { long value; };
struct cells { struct cell *of_core[2]; };
NOINLINE static struct cells *make_neighbouring_blocks(void) {
  struct cells *cells = NEW(struct cells);
  /* The first of two small blocks whose addresses differ by one chunk lies in the other's line for one of three. */
  struct cell *before = malloc(sizeof(struct cell)), *next = malloc(sizeof(struct cell));
  while (((size_t)before ^ (size_t)next) / LINE) {
    before = next;
    next = malloc(sizeof(struct cell));
  }
  cells->of_core[0] = before;
  cells->of_core[1] = next;
  return cells;
}
NOINLINE static struct cells *make_neighbouring_blocks_twin(void) {
  struct cells *cells = NEW(struct cells);
  for (int core = 0; core < 2; core++) cells->of_core[core] = aligned_alloc(LINE, LINE);
  return cells;
}
NOINLINE static void neighbouring_blocks(struct cells *cells, int core) {
  cells->of_core[core]->value = 1; /* at neighbouring_blocks */
}
NOINLINE static void neighbouring_blocks_twin(struct cells *cells, int core) { cells->of_core[core]->value = 1; }

/* FAULT freed_by_other_thread: memory outside of blocks */
struct parcels { void *of_core[2]; };
NOINLINE static struct parcels *make_freed_by_other_thread(void) {
  struct parcels *parcels = NEW(struct parcels);
  for (int core = 0; core < 2; core++) parcels->of_core[core] = malloc(3000); /* too large for the thread's own cache */
  return parcels;
}
NOINLINE static struct parcels *make_freed_by_other_thread_twin(void) {
  struct parcels *parcels = NEW(struct parcels);
  for (int core = 0; core < 2; core++) parcels->of_core[core] = aligned_alloc(2 * LINE, 3 * LINE);
  return parcels;
}
NOINLINE static void freed_by_other_thread(struct parcels *parcels, int core) {
  free(parcels->of_core[core]); /* at freed_by_other_thread */
  __asm__ volatile(""); /* no tail call: the stack tells this function */
}
NOINLINE static void freed_by_other_thread_twin(struct parcels *parcels, int core) { free(parcels->of_core[core]); }

/* FAULT lazy_global: lazy.ready */
static struct { int ready; } ALIGNED lazy, eager;
NOINLINE static void lazy_global(void *nothing, int core) {
  (void)nothing, (void)core;
  if (!__atomic_load_n(&lazy.ready, __ATOMIC_ACQUIRE)) /* at lazy_global */
    __atomic_store_n(&lazy.ready, 1, __ATOMIC_RELEASE); /* at lazy_global */
}
NOINLINE static void lazy_global_twin(void *nothing, int core) {
  (void)nothing, (void)core;
  if (!__atomic_load_n(&eager.ready, __ATOMIC_ACQUIRE)) __atomic_store_n(&eager.ready, 1, __ATOMIC_RELEASE);
}

/* FAULT neighbouring_thread_slots: struct thread_slots.of_core[] */
struct thread_slots { long of_core[8]; };
struct thread_slots_apart { struct slot of_core[8]; };
NOINLINE static void neighbouring_thread_slots(struct thread_slots *slots, int core) {
  slots->of_core[core]++; /* at neighbouring_thread_slots */
}
NOINLINE static void neighbouring_thread_slots_twin(struct thread_slots_apart *slots, int core) {
  slots->of_core[core].count++;
}

/* FAULT small_hash_table: struct entry*[] */
struct entry { struct entry *next; long key; };
struct hash_table { struct entry **buckets; };
struct bucket_apart { struct entry *first; } ALIGNED;
struct hash_table_apart { struct bucket_apart *buckets; };
static struct entry entries[2];
NOINLINE static struct hash_table *make_small_hash_table(void) {
  struct hash_table *table = NEW(struct hash_table);
  table->buckets = aligned_alloc(LINE, 8 * sizeof *table->buckets);
  return table;
}
NOINLINE static struct hash_table_apart *make_small_hash_table_twin(void) {
  struct hash_table_apart *table = NEW(struct hash_table_apart);
  table->buckets = aligned_alloc(LINE, 8 * sizeof *table->buckets);
  return table;
}
NOINLINE static void small_hash_table(struct hash_table *table, int core) {
  table->buckets[core] = &entries[core]; /* at small_hash_table */
}
NOINLINE static void small_hash_table_twin(struct hash_table_apart *table, int core) {
  table->buckets[core].first = &entries[core];
}

/* FAULT lock_on_failed_lookup: struct index.lock */
struct index { int lock; int size; char rest[56]; };
NOINLINE static void lock_on_failed_lookup(struct index *index, int core) {
  (void)core;
  while (__atomic_exchange_n(&index->lock, 1, __ATOMIC_ACQUIRE)) /* at lock_on_failed_lookup */
    ;
  __atomic_load_n(&index->size, __ATOMIC_RELAXED);
  __atomic_store_n(&index->lock, 0, __ATOMIC_RELEASE); /* at lock_on_failed_lookup */
}
NOINLINE static void lock_on_failed_lookup_twin(struct index *index, int core) {
  (void)core;
  __atomic_load_n(&index->size, __ATOMIC_RELAXED);
}

/* FAULT store_of_equal_value: struct status.is_open */
struct status { long since; int is_open; char rest[48]; };
NOINLINE static void store_of_equal_value(struct status *status, int core) {
  (void)core;
  __atomic_store_n(&status->is_open, 0, __ATOMIC_RELEASE); /* at store_of_equal_value */
}
NOINLINE static void store_of_equal_value_twin(struct status *status, int core) {
  (void)core;
  if (__atomic_load_n(&status->is_open, __ATOMIC_ACQUIRE)) __atomic_store_n(&status->is_open, 0, __ATOMIC_RELEASE);
}

/* FAULT global_id: next_id */
static long next_id ALIGNED;
static struct slot ids_of_cores[2];
NOINLINE static void global_id(void *nothing, int core) {
  (void)nothing, (void)core;
  __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); /* at global_id */
}
NOINLINE static void global_id_twin(void *nothing, int core) {
  (void)nothing;
  __atomic_fetch_add(&ids_of_cores[core].count, 2, __ATOMIC_RELAXED);
}

/* FAULT free_list_head: struct pool.free */
struct piece { struct piece *next; } ALIGNED;
struct pool { struct piece *free; struct piece pieces[2]; } ALIGNED;
struct pool_of_core { struct piece *free; } ALIGNED;
struct pools { struct pool_of_core of_core[2]; struct piece pieces[2]; };
NOINLINE static void free_list_head(struct pool *pool, int core) {
  pool->pieces[core].next = __atomic_load_n(&pool->free, __ATOMIC_RELAXED);  /* at free_list_head */
  __atomic_store_n(&pool->free, &pool->pieces[core], __ATOMIC_RELEASE); /* at free_list_head */
}
NOINLINE static void free_list_head_twin(struct pools *pools, int core) {
  pools->pieces[core].next = __atomic_load_n(&pools->of_core[core].free, __ATOMIC_RELAXED);
  __atomic_store_n(&pools->of_core[core].free, &pools->pieces[core], __ATOMIC_RELEASE);
}

/* FAULT lru_touch_on_get: struct recent.used */
struct recent { long value, used; char rest[48]; };
NOINLINE static void lru_touch_on_get(struct recent *recent, int core) {
  __atomic_load_n(&recent->value, __ATOMIC_RELAXED);
  __atomic_store_n(&recent->used, 100 + core, __ATOMIC_RELAXED); /* at lru_touch_on_get */
}
NOINLINE static void lru_touch_on_get_twin(struct recent *recent, int core) {
  (void)core;
  __atomic_load_n(&recent->value, __ATOMIC_RELAXED);
}

/* FAULT ring_indices_in_one_line: struct ring.head | tail */
struct ring { long head, tail; char rest[48]; long items[8]; };
struct ring_apart { long head ALIGNED; long tail ALIGNED; long items[8]; };
NOINLINE static void ring_indices_in_one_line(struct ring *ring, int core) {
  if (core == 0) ring->head++; /* at ring_indices_in_one_line */
  else ring->tail++;           /* at ring_indices_in_one_line */
}
NOINLINE static void ring_indices_in_one_line_twin(struct ring_apart *ring, int core) {
  if (core == 0) ring->head++;
  else ring->tail++;
}

/* FAULT straddling_object: struct person[].balance | name[] */
struct person { char name[40]; long balance; };
struct people { struct person *all; };
struct person_apart { char name[40]; long balance; } ALIGNED;
struct people_apart { struct person_apart *all; };
NOINLINE static struct people *make_straddling_object(void) {
  struct people *people = NEW(struct people);
  people->all = aligned_alloc(LINE, 4 * sizeof *people->all);
  return people;
}
NOINLINE static struct people_apart *make_straddling_object_twin(void) {
  struct people_apart *people = NEW(struct people_apart);
  people->all = aligned_alloc(LINE, 4 * sizeof *people->all);
  return people;
}
NOINLINE static void straddling_object(struct people *people, int core) {
  if (core == 0) people->all[0].balance = 1; /* at straddling_object */
  else people->all[1].name[0] = 'a';         /* at straddling_object */
}
NOINLINE static void straddling_object_twin(struct people_apart *people, int core) {
  if (core == 0) people->all[0].balance = 1;
  else people->all[1].name[0] = 'a';
}

/* FAULT error_counter: struct errors.not_found */
struct errors { long refused, not_found; char rest[48]; };
struct errors_of_cores { struct slot of_core[2]; };
NOINLINE static void error_counter(struct errors *errors, int core) {
  (void)core;
  errors->not_found++; /* at error_counter */
}
NOINLINE static void error_counter_twin(struct errors_of_cores *errors, int core) { errors->of_core[core].count++; }

/* FAULT cas_that_fails: struct gate.owner */
struct gate { long owner; char rest[56]; };
NOINLINE static void cas_that_fails(struct gate *gate, int core) {
  long expected = 7;
  __atomic_compare_exchange_n(&gate->owner, &expected, core, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); /* at cas_that_fails */
}
NOINLINE static void cas_that_fails_twin(struct gate *gate, int core) {
  long expected = 7;
  if (__atomic_load_n(&gate->owner, __ATOMIC_RELAXED) == 7)
    __atomic_compare_exchange_n(&gate->owner, &expected, core, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* FAULT log_tail: struct journal.tail */
struct journal { long tail; char rest[56]; char bytes[256]; };
struct journals { struct slot tail[2]; char bytes[256]; };
NOINLINE static void log_tail(struct journal *journal, int core) {
  (void)core;
  __atomic_fetch_add(&journal->tail, 8, __ATOMIC_RELAXED); /* at log_tail */
}
NOINLINE static void log_tail_twin(struct journals *journals, int core) {
  __atomic_fetch_add(&journals->tail[core].count, 8, __ATOMIC_RELAXED);
}

/* FAULT header_before_entries: struct header.used */
struct header { long lock, used; char rest[56]; };
struct header_apart { long lock; struct slot used[2]; };
NOINLINE static void header_before_entries(struct header *header, int core) {
  (void)core;
  __atomic_fetch_add(&header->used, 1, __ATOMIC_RELAXED); /* at header_before_entries */
}
NOINLINE static void header_before_entries_twin(struct header_apart *header, int core) {
  __atomic_fetch_add(&header->used[core].count, 1, __ATOMIC_RELAXED);
}

/* FAULT shared_random_seed: seed */
static unsigned long seed ALIGNED = 42;
static struct slot seeds_of_cores[2];
NOINLINE static void shared_random_seed(void *nothing, int core) {
  (void)nothing, (void)core;
  seed = seed * 6364136223846793005ul + 1442695040888963407ul; /* at shared_random_seed */
}
NOINLINE static void shared_random_seed_twin(void *nothing, int core) {
  (void)nothing;
  unsigned long *own = (unsigned long *)&seeds_of_cores[core].count;
  *own = *own * 6364136223846793005ul + 1442695040888963407ul;
}

/* One object holds all of them; what it leads to is given back by no one, since each is small and a test is short. */
struct canaries {
  struct fields *false_sharing_fields;
  struct fields_apart *false_sharing_fields_twin;
  struct lock_array *lock_array_unpadded;
  struct lock_array_apart *lock_array_unpadded_twin;
  struct guarded *spinlock_beside_data;
  struct guarded_apart *spinlock_beside_data_twin;
  struct cache *counter_on_read;
  struct cache *counter_on_read_twin;
  struct document *hidden_refcount;
  struct document *hidden_refcount_twin;
  struct shared_lock *reader_count;
  struct shared_lock *reader_count_twin;
  struct list_of_cores *length_field;
  struct list_of_cores *length_field_twin;
  struct cells *neighbouring_blocks;
  struct cells *neighbouring_blocks_twin;
  struct parcels *freed_by_other_thread;
  struct parcels *freed_by_other_thread_twin;
  struct thread_slots *neighbouring_thread_slots;
  struct thread_slots_apart *neighbouring_thread_slots_twin;
  struct hash_table *small_hash_table;
  struct hash_table_apart *small_hash_table_twin;
  struct index *lock_on_failed_lookup;
  struct index *lock_on_failed_lookup_twin;
  struct status *store_of_equal_value;
  struct status *store_of_equal_value_twin;
  struct pool *free_list_head;
  struct pools *free_list_head_twin;
  struct recent *lru_touch_on_get;
  struct recent *lru_touch_on_get_twin;
  struct ring *ring_indices_in_one_line;
  struct ring_apart *ring_indices_in_one_line_twin;
  struct people *straddling_object;
  struct people_apart *straddling_object_twin;
  struct errors *error_counter;
  struct errors_of_cores *error_counter_twin;
  struct gate *cas_that_fails;
  struct gate *cas_that_fails_twin;
  struct journal *log_tail;
  struct journals *log_tail_twin;
  struct header *header_before_entries;
  struct header_apart *header_before_entries_twin;
};

static void *make(void) {
  struct canaries *all = malloc(sizeof *all);
  all->false_sharing_fields = NEW(struct fields);
  all->false_sharing_fields_twin = NEW(struct fields_apart);
  all->lock_array_unpadded = NEW(struct lock_array);
  all->lock_array_unpadded_twin = NEW(struct lock_array_apart);
  all->spinlock_beside_data = NEW(struct guarded);
  all->spinlock_beside_data_twin = NEW(struct guarded_apart);
  all->counter_on_read = NEW(struct cache);
  all->counter_on_read_twin = NEW(struct cache);
  all->hidden_refcount = NEW(struct document);
  all->hidden_refcount_twin = NEW(struct document);
  all->reader_count = NEW(struct shared_lock);
  all->reader_count_twin = NEW(struct shared_lock);
  all->length_field = NEW(struct list_of_cores);
  all->length_field_twin = NEW(struct list_of_cores);
  all->neighbouring_blocks = make_neighbouring_blocks();
  all->neighbouring_blocks_twin = make_neighbouring_blocks_twin();
  all->freed_by_other_thread = make_freed_by_other_thread();
  all->freed_by_other_thread_twin = make_freed_by_other_thread_twin();
  all->neighbouring_thread_slots = NEW(struct thread_slots);
  all->neighbouring_thread_slots_twin = NEW(struct thread_slots_apart);
  all->small_hash_table = make_small_hash_table();
  all->small_hash_table_twin = make_small_hash_table_twin();
  all->lock_on_failed_lookup = NEW(struct index);
  all->lock_on_failed_lookup_twin = NEW(struct index);
  all->store_of_equal_value = NEW(struct status);
  all->store_of_equal_value_twin = NEW(struct status);
  all->free_list_head = NEW(struct pool);
  all->free_list_head_twin = NEW(struct pools);
  all->lru_touch_on_get = NEW(struct recent);
  all->lru_touch_on_get_twin = NEW(struct recent);
  all->ring_indices_in_one_line = NEW(struct ring);
  all->ring_indices_in_one_line_twin = NEW(struct ring_apart);
  all->straddling_object = make_straddling_object();
  all->straddling_object_twin = make_straddling_object_twin();
  all->error_counter = NEW(struct errors);
  all->error_counter_twin = NEW(struct errors_of_cores);
  all->cas_that_fails = NEW(struct gate);
  all->cas_that_fails_twin = NEW(struct gate);
  all->log_tail = NEW(struct journal);
  all->log_tail_twin = NEW(struct journals);
  all->header_before_entries = zeroed(aligned_alloc(LINE, 2 * LINE), 2 * LINE); /* behind the header lie its entries */
  all->header_before_entries_twin = NEW(struct header_apart);
  lazy.ready = 0;
  eager.ready = 1;
  return all;
}
static void drop(void *all) { free(all); }

#define CALL(name, object)                                                                          \
  static void call_##name(void *all, const commutant_value *arguments, commutant_result *result) { \
    (void)all;                                                                                      \
    name(object, (int)arguments[0].number);                                                         \
    commutant_number(result, 0);                                                                    \
  }
CALL(false_sharing_fields, ((struct canaries *)all)->false_sharing_fields)
CALL(false_sharing_fields_twin, ((struct canaries *)all)->false_sharing_fields_twin)
CALL(lock_array_unpadded, ((struct canaries *)all)->lock_array_unpadded)
CALL(lock_array_unpadded_twin, ((struct canaries *)all)->lock_array_unpadded_twin)
CALL(spinlock_beside_data, ((struct canaries *)all)->spinlock_beside_data)
CALL(spinlock_beside_data_twin, ((struct canaries *)all)->spinlock_beside_data_twin)
CALL(statistics_counter, NULL)
CALL(statistics_counter_twin, NULL)
CALL(counter_on_read, ((struct canaries *)all)->counter_on_read)
CALL(counter_on_read_twin, ((struct canaries *)all)->counter_on_read_twin)
CALL(hidden_refcount, ((struct canaries *)all)->hidden_refcount)
CALL(hidden_refcount_twin, ((struct canaries *)all)->hidden_refcount_twin)
CALL(reader_count, ((struct canaries *)all)->reader_count)
CALL(reader_count_twin, ((struct canaries *)all)->reader_count_twin)
CALL(length_field, ((struct canaries *)all)->length_field)
CALL(length_field_twin, ((struct canaries *)all)->length_field_twin)
CALL(neighbouring_blocks, ((struct canaries *)all)->neighbouring_blocks)
CALL(neighbouring_blocks_twin, ((struct canaries *)all)->neighbouring_blocks_twin)
CALL(freed_by_other_thread, ((struct canaries *)all)->freed_by_other_thread)
CALL(freed_by_other_thread_twin, ((struct canaries *)all)->freed_by_other_thread_twin)
CALL(lazy_global, NULL)
CALL(lazy_global_twin, NULL)
CALL(neighbouring_thread_slots, ((struct canaries *)all)->neighbouring_thread_slots)
CALL(neighbouring_thread_slots_twin, ((struct canaries *)all)->neighbouring_thread_slots_twin)
CALL(small_hash_table, ((struct canaries *)all)->small_hash_table)
CALL(small_hash_table_twin, ((struct canaries *)all)->small_hash_table_twin)
CALL(lock_on_failed_lookup, ((struct canaries *)all)->lock_on_failed_lookup)
CALL(lock_on_failed_lookup_twin, ((struct canaries *)all)->lock_on_failed_lookup_twin)
CALL(store_of_equal_value, ((struct canaries *)all)->store_of_equal_value)
CALL(store_of_equal_value_twin, ((struct canaries *)all)->store_of_equal_value_twin)
CALL(global_id, NULL)
CALL(global_id_twin, NULL)
CALL(free_list_head, ((struct canaries *)all)->free_list_head)
CALL(free_list_head_twin, ((struct canaries *)all)->free_list_head_twin)
CALL(lru_touch_on_get, ((struct canaries *)all)->lru_touch_on_get)
CALL(lru_touch_on_get_twin, ((struct canaries *)all)->lru_touch_on_get_twin)
CALL(ring_indices_in_one_line, ((struct canaries *)all)->ring_indices_in_one_line)
CALL(ring_indices_in_one_line_twin, ((struct canaries *)all)->ring_indices_in_one_line_twin)
CALL(straddling_object, ((struct canaries *)all)->straddling_object)
CALL(straddling_object_twin, ((struct canaries *)all)->straddling_object_twin)
CALL(error_counter, ((struct canaries *)all)->error_counter)
CALL(error_counter_twin, ((struct canaries *)all)->error_counter_twin)
CALL(cas_that_fails, ((struct canaries *)all)->cas_that_fails)
CALL(cas_that_fails_twin, ((struct canaries *)all)->cas_that_fails_twin)
CALL(log_tail, ((struct canaries *)all)->log_tail)
CALL(log_tail_twin, ((struct canaries *)all)->log_tail_twin)
CALL(header_before_entries, ((struct canaries *)all)->header_before_entries)
CALL(header_before_entries_twin, ((struct canaries *)all)->header_before_entries_twin)
CALL(shared_random_seed, NULL)
CALL(shared_random_seed_twin, NULL)

static const commutant_call calls[] = {
    {"false_sharing_fields(core)", call_false_sharing_fields},
    {"false_sharing_fields_twin(core)", call_false_sharing_fields_twin},
    {"lock_array_unpadded(core)", call_lock_array_unpadded},
    {"lock_array_unpadded_twin(core)", call_lock_array_unpadded_twin},
    {"spinlock_beside_data(core)", call_spinlock_beside_data},
    {"spinlock_beside_data_twin(core)", call_spinlock_beside_data_twin},
    {"statistics_counter(core)", call_statistics_counter},
    {"statistics_counter_twin(core)", call_statistics_counter_twin},
    {"counter_on_read(core)", call_counter_on_read},
    {"counter_on_read_twin(core)", call_counter_on_read_twin},
    {"hidden_refcount(core)", call_hidden_refcount},
    {"hidden_refcount_twin(core)", call_hidden_refcount_twin},
    {"reader_count(core)", call_reader_count},
    {"reader_count_twin(core)", call_reader_count_twin},
    {"length_field(core)", call_length_field},
    {"length_field_twin(core)", call_length_field_twin},
    {"neighbouring_blocks(core)", call_neighbouring_blocks},
    {"neighbouring_blocks_twin(core)", call_neighbouring_blocks_twin},
    {"freed_by_other_thread(core)", call_freed_by_other_thread},
    {"freed_by_other_thread_twin(core)", call_freed_by_other_thread_twin},
    {"lazy_global(core)", call_lazy_global},
    {"lazy_global_twin(core)", call_lazy_global_twin},
    {"neighbouring_thread_slots(core)", call_neighbouring_thread_slots},
    {"neighbouring_thread_slots_twin(core)", call_neighbouring_thread_slots_twin},
    {"small_hash_table(core)", call_small_hash_table},
    {"small_hash_table_twin(core)", call_small_hash_table_twin},
    {"lock_on_failed_lookup(core)", call_lock_on_failed_lookup},
    {"lock_on_failed_lookup_twin(core)", call_lock_on_failed_lookup_twin},
    {"store_of_equal_value(core)", call_store_of_equal_value},
    {"store_of_equal_value_twin(core)", call_store_of_equal_value_twin},
    {"global_id(core)", call_global_id},
    {"global_id_twin(core)", call_global_id_twin},
    {"free_list_head(core)", call_free_list_head},
    {"free_list_head_twin(core)", call_free_list_head_twin},
    {"lru_touch_on_get(core)", call_lru_touch_on_get},
    {"lru_touch_on_get_twin(core)", call_lru_touch_on_get_twin},
    {"ring_indices_in_one_line(core)", call_ring_indices_in_one_line},
    {"ring_indices_in_one_line_twin(core)", call_ring_indices_in_one_line_twin},
    {"straddling_object(core)", call_straddling_object},
    {"straddling_object_twin(core)", call_straddling_object_twin},
    {"error_counter(core)", call_error_counter},
    {"error_counter_twin(core)", call_error_counter_twin},
    {"cas_that_fails(core)", call_cas_that_fails},
    {"cas_that_fails_twin(core)", call_cas_that_fails_twin},
    {"log_tail(core)", call_log_tail},
    {"log_tail_twin(core)", call_log_tail_twin},
    {"header_before_entries(core)", call_header_before_entries},
    {"header_before_entries_twin(core)", call_header_before_entries_twin},
    {"shared_random_seed(core)", call_shared_random_seed},
    {"shared_random_seed_twin(core)", call_shared_random_seed_twin},
    {0, 0},
};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
