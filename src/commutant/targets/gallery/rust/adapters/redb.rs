//! redb in memory: a B-tree with transactions.
use commutant_adapter::{Answer, Arguments, Errno, Items, Member, Sequence};
use redb::backends::InMemoryBackend;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

const TABLE: TableDefinition<i64, i64> = TableDefinition::new("entries");

fn begin(store: &Database) -> WriteTransaction {
    let mut transaction = store.begin_write().unwrap();
    transaction.set_durability(Durability::None).unwrap();
    transaction
}

fn make() -> Database {
    let store = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
    let transaction = begin(&store);
    transaction.open_table(TABLE).unwrap();
    transaction.commit().unwrap();
    store
}

fn get(store: &Database, arguments: Arguments) -> Result<Member, Errno> {
    let table = store.begin_read().unwrap().open_table(TABLE).unwrap();
    table.get(arguments.number(0)).unwrap().map(|value| Member(value.value())).ok_or(Errno::ENOENT)
}

fn put(store: &Database, arguments: Arguments) {
    let transaction = begin(store);
    transaction.open_table(TABLE).unwrap().insert(arguments.number(0), arguments.number(1)).unwrap();
    transaction.commit().unwrap();
}

fn remove(store: &Database, arguments: Arguments) {
    let transaction = begin(store);
    transaction.open_table(TABLE).unwrap().remove(arguments.number(0)).unwrap();
    transaction.commit().unwrap();
}

fn compare_and_swap(store: &Database, arguments: Arguments) -> bool {
    let transaction = begin(store);
    let fits = {
        let mut table = transaction.open_table(TABLE).unwrap();
        let fits = table.get(arguments.number(0)).unwrap().is_some_and(|value| value.value() == arguments.number(1));
        if fits {
            table.insert(arguments.number(0), arguments.number(2)).unwrap();
        }
        fits
    };
    transaction.commit().unwrap();
    fits
}

fn scan(store: &Database, arguments: Arguments) -> impl Answer + use<> {
    let table = store.begin_read().unwrap().open_table(TABLE).unwrap();
    let (low, high) = (arguments.number(0), arguments.number(1));
    Sequence(move |items: &mut Items| {
        if low <= high {
            table.range(low..=high).unwrap().for_each(|entry| items.put(Member(entry.unwrap().1.value())));
        }
    })
}

commutant_adapter::library! { Database: make;
    "get(key)" => get, "put(key, value)" => put, "remove(key)" => remove,
    "compare_and_swap(key, old, new)" => compare_and_swap, "scan(low, high)" => scan }
