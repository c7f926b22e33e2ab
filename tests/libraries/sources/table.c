/* A hash table whose author counts look-ups: the count is what readers share. */
#include <pthread.h>
#include <stdlib.h>
#include "table.h"

struct node {
  struct node *next;
  long key, value;
};

struct bucket {
  pthread_mutex_t lock;
  struct node *first;
  char padding[128 - sizeof(pthread_mutex_t) - sizeof(struct node *)];
};

struct table {
  unsigned long bucket_count;
  struct bucket *buckets;
  char padding[112];
  unsigned long lookups;
  char rest[120];
};

struct table *table_new(void) {
  struct table *table = aligned_alloc(128, sizeof *table);
  table->bucket_count = 4096;
  table->buckets = aligned_alloc(128, table->bucket_count * sizeof(struct bucket));
  for (unsigned long i = 0; i < table->bucket_count; i++) {
    pthread_mutex_init(&table->buckets[i].lock, NULL);
    table->buckets[i].first = NULL;
  }
  table->lookups = 0;
  return table;
}

static struct bucket *bucket_of(struct table *table, long key) {
  return &table->buckets[(unsigned long)key * 0x9e3779b97f4a7c15ul >> 52];
}

int table_get(struct table *table, long key, long *value) {
  __atomic_fetch_add(&table->lookups, 1, __ATOMIC_RELAXED);
  struct bucket *bucket = bucket_of(table, key);
  int found = 0;
  pthread_mutex_lock(&bucket->lock);
  for (struct node *node = bucket->first; node; node = node->next)
    if (node->key == key) {
      *value = node->value;
      found = 1;
    }
  pthread_mutex_unlock(&bucket->lock);
  return found;
}

int table_put(struct table *table, long key, long value) {
  struct bucket *bucket = bucket_of(table, key);
  pthread_mutex_lock(&bucket->lock);
  struct node *node = bucket->first;
  while (node && node->key != key) node = node->next;
  int is_new = !node;
  if (is_new) {
    node = malloc(sizeof *node);
    node->key = key;
    node->next = bucket->first;
    bucket->first = node;
  }
  node->value = value;
  pthread_mutex_unlock(&bucket->lock);
  return is_new;
}

int table_remove(struct table *table, long key) {
  struct bucket *bucket = bucket_of(table, key);
  pthread_mutex_lock(&bucket->lock);
  struct node **place = &bucket->first;
  while (*place && (*place)->key != key) place = &(*place)->next;
  struct node *node = *place;
  if (node) *place = node->next;
  pthread_mutex_unlock(&bucket->lock);
  free(node);
  return node != NULL;
}

void table_free(struct table *table) {
  for (unsigned long i = 0; i < table->bucket_count; i++)
    for (struct node *node = table->buckets[i].first, *next; node; node = next) {
      next = node->next;
      free(node);
    }
  free(table->buckets);
  free(table);
}
