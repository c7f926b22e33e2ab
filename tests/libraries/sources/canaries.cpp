// Planted sharing in C++, each fault with a twin that differs in that alone; see canaries.c. A name that ends with * is a beginning.
#include <commutant.hpp>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct alignas(64) Slot {
  std::atomic<long> count{0};
};

// FAULT fields_side_by_side: Fields.left | right
struct Fields {
  std::atomic<long> left{0}, right{0};
  char rest[48];
};
struct FieldsApart {
  alignas(64) std::atomic<long> left{0};
  alignas(64) std::atomic<long> right{0};
};

// FAULT shared_pointer_copied: _Sp_counted_*
struct Document {
  long words[8] = {};
};

// FAULT vector_of_counters: long int[]
// FAULT mutexes_side_by_side: mutex[]*
struct alignas(64) PaddedMutex {
  std::mutex lock;
};

// FAULT statistics_counted: statistics*
struct alignas(64) Statistics {
  std::atomic<long> hits{0};
};
static Statistics statistics;
static Slot statistics_of_cores[2];

// FAULT shared_lock_of_readers: Guarded.lock*
struct Guarded {
  alignas(64) std::shared_mutex lock;
  alignas(64) std::atomic<long> value{0};
};

// FAULT count_of_elements: Bag.count
struct Bag {
  Slot elements[2];
  alignas(64) std::atomic<long> count{0};
};

// FAULT node_touched_on_find: _Hash_node<*
struct Recent {
  long value = 0, used = 0;
};

// FAULT reads_write_a_flag: Session.is_used
struct alignas(64) Session {
  std::atomic<bool> is_used{true};
  std::atomic<long> value{0};
};

// FAULT list_node_counter: _List_node<*
struct Job {
  std::atomic<long> runs{0};
};

// FAULT unique_pointer_target: Config.version
struct alignas(64) Config {
  std::atomic<long> version{1};
};

// FAULT id_drawn: next_id
alignas(64) static std::atomic<long> next_id{1};
static Slot ids_of_cores[2];

struct Canaries {
  std::unique_ptr<Fields> fields{new Fields()};
  std::unique_ptr<FieldsApart> fields_apart{new FieldsApart()};
  std::shared_ptr<Document> document = std::make_shared<Document>();
  std::vector<long> counters = std::vector<long>(8);
  std::vector<Slot> counters_apart = std::vector<Slot>(8);
  std::unique_ptr<std::mutex[]> locks{new std::mutex[4]};
  std::unique_ptr<PaddedMutex[]> locks_apart{new PaddedMutex[4]};
  std::unique_ptr<Guarded> guarded{new Guarded()};
  std::unique_ptr<Bag> bag{new Bag()};
  std::unordered_map<long, Recent> recent{{1, Recent()}};
  std::unique_ptr<Session> session{new Session()};
  std::list<Job> jobs = std::list<Job>(1);
  std::unique_ptr<Config> config{new Config()};
};

static int core_of(const commutant_value *arguments) { return static_cast<int>(arguments[0].number); }

#define CANARY(name) NOINLINE static void name([[maybe_unused]] Canaries &all, const commutant_value *arguments, commutant_result *result)
#define BEGIN                                    \
  [[maybe_unused]] int core = core_of(arguments); \
  commutant_number(result, 0)

CANARY(fields_side_by_side) {
  BEGIN;
  if (core == 0) all.fields->left.store(1);  // at fields_side_by_side
  else all.fields->right.store(1);           // at fields_side_by_side
}
CANARY(fields_side_by_side_twin) {
  BEGIN;
  if (core == 0) all.fields_apart->left.store(1);
  else all.fields_apart->right.store(1);
}
CANARY(shared_pointer_copied) {
  BEGIN;
  auto own = all.document;  // at shared_pointer_copied
  asm volatile("" ::"r"(own->words[3]));
}  // at shared_pointer_copied
CANARY(shared_pointer_copied_twin) {
  BEGIN;
  const auto &own = all.document;
  asm volatile("" ::"r"(own->words[3]));
}
CANARY(vector_of_counters) {
  BEGIN;
  all.counters[core]++;  // at vector_of_counters
}
CANARY(vector_of_counters_twin) {
  BEGIN;
  all.counters_apart[core].count.fetch_add(1);
}
CANARY(mutexes_side_by_side) {
  BEGIN;
  std::lock_guard guard(all.locks[core]);  // at mutexes_side_by_side
}  // at mutexes_side_by_side
CANARY(mutexes_side_by_side_twin) {
  BEGIN;
  std::lock_guard guard(all.locks_apart[core].lock);
}
CANARY(statistics_counted) {
  BEGIN;
  statistics.hits.fetch_add(1, std::memory_order_relaxed);  // at statistics_counted
}
CANARY(statistics_counted_twin) {
  BEGIN;
  statistics_of_cores[core].count.fetch_add(1, std::memory_order_relaxed);
}
CANARY(shared_lock_of_readers) {
  BEGIN;
  std::shared_lock guard(all.guarded->lock);  // at shared_lock_of_readers
  all.guarded->value.load();
}  // at shared_lock_of_readers
CANARY(shared_lock_of_readers_twin) {
  BEGIN;
  all.guarded->value.load();
}
CANARY(count_of_elements) {
  BEGIN;
  all.bag->elements[core].count.store(1);
  all.bag->count.fetch_add(1);  // at count_of_elements
}
CANARY(count_of_elements_twin) {
  BEGIN;
  all.bag->elements[core].count.store(1);
}
CANARY(node_touched_on_find) {
  BEGIN;
  all.recent.find(1)->second.used = core + 1;  // at node_touched_on_find
}
CANARY(node_touched_on_find_twin) {
  BEGIN;
  asm volatile("" ::"r"(all.recent.find(1)->second.value));
}
CANARY(reads_write_a_flag) {
  BEGIN;
  all.session->is_used.store(true);  // at reads_write_a_flag
}
CANARY(reads_write_a_flag_twin) {
  BEGIN;
  if (!all.session->is_used.load()) all.session->is_used.store(true);
}
CANARY(list_node_counter) {
  BEGIN;
  all.jobs.front().runs.fetch_add(1);  // at list_node_counter
}
CANARY(list_node_counter_twin) {
  BEGIN;
  all.jobs.front().runs.load();
}
CANARY(unique_pointer_target) {
  BEGIN;
  all.config->version.fetch_add(1);  // at unique_pointer_target
}
CANARY(unique_pointer_target_twin) {
  BEGIN;
  all.config->version.load();
}
CANARY(id_drawn) {
  BEGIN;
  next_id.fetch_add(1);  // at id_drawn
}
CANARY(id_drawn_twin) {
  BEGIN;
  ids_of_cores[core].count.fetch_add(2);
}

COMMUTANT_LIBRARY(Canaries,
                  COMMUTANT_CALL(Canaries, "fields_side_by_side(core)", fields_side_by_side),
                  COMMUTANT_CALL(Canaries, "fields_side_by_side_twin(core)", fields_side_by_side_twin),
                  COMMUTANT_CALL(Canaries, "shared_pointer_copied(core)", shared_pointer_copied),
                  COMMUTANT_CALL(Canaries, "shared_pointer_copied_twin(core)", shared_pointer_copied_twin),
                  COMMUTANT_CALL(Canaries, "vector_of_counters(core)", vector_of_counters),
                  COMMUTANT_CALL(Canaries, "vector_of_counters_twin(core)", vector_of_counters_twin),
                  COMMUTANT_CALL(Canaries, "mutexes_side_by_side(core)", mutexes_side_by_side),
                  COMMUTANT_CALL(Canaries, "mutexes_side_by_side_twin(core)", mutexes_side_by_side_twin),
                  COMMUTANT_CALL(Canaries, "statistics_counted(core)", statistics_counted),
                  COMMUTANT_CALL(Canaries, "statistics_counted_twin(core)", statistics_counted_twin),
                  COMMUTANT_CALL(Canaries, "shared_lock_of_readers(core)", shared_lock_of_readers),
                  COMMUTANT_CALL(Canaries, "shared_lock_of_readers_twin(core)", shared_lock_of_readers_twin),
                  COMMUTANT_CALL(Canaries, "count_of_elements(core)", count_of_elements),
                  COMMUTANT_CALL(Canaries, "count_of_elements_twin(core)", count_of_elements_twin),
                  COMMUTANT_CALL(Canaries, "node_touched_on_find(core)", node_touched_on_find),
                  COMMUTANT_CALL(Canaries, "node_touched_on_find_twin(core)", node_touched_on_find_twin),
                  COMMUTANT_CALL(Canaries, "reads_write_a_flag(core)", reads_write_a_flag),
                  COMMUTANT_CALL(Canaries, "reads_write_a_flag_twin(core)", reads_write_a_flag_twin),
                  COMMUTANT_CALL(Canaries, "list_node_counter(core)", list_node_counter),
                  COMMUTANT_CALL(Canaries, "list_node_counter_twin(core)", list_node_counter_twin),
                  COMMUTANT_CALL(Canaries, "unique_pointer_target(core)", unique_pointer_target),
                  COMMUTANT_CALL(Canaries, "unique_pointer_target_twin(core)", unique_pointer_target_twin),
                  COMMUTANT_CALL(Canaries, "id_drawn(core)", id_drawn),
                  COMMUTANT_CALL(Canaries, "id_drawn_twin(core)", id_drawn_twin))
