struct table *table_new(void);
int table_get(struct table *table, long key, long *value);
int table_put(struct table *table, long key, long value);
int table_remove(struct table *table, long key);
void table_free(struct table *table);
