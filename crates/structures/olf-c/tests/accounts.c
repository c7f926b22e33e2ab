/* Coins that two threads hand to and fro between accounts, and one that counts them at one moment: none is lost. */
#include <pthread.h>

#include "check.h"

enum { COINS = 6, ROUNDS = 3000 };

int freed;
static olf_domain *domain;
static olf_list *accounts[2];

/* Whether a coin is in one of the accounts: both looks are of one moment. */
static int is_somewhere(olf_steps *steps, void *argument) {
  uint64_t coin = *(uint64_t *)argument;
  int in_first = olf_step_contains(steps, accounts[0], coin);
  if (in_first < 0) return in_first;
  int in_second = olf_step_contains(steps, accounts[1], coin);
  if (in_second < 0) return in_second;
  return in_first + in_second;
}

static int hand_over(olf_steps *steps, void *argument) {
  uint64_t coin = *(uint64_t *)argument;
  olf_link *link;
  int from = 0, error = olf_step_remove(steps, accounts[0], coin, &link);
  if (error == OLF_ABSENT) error = olf_step_remove(steps, accounts[from = 1], coin, &link);
  return error ? error : olf_step_insert(steps, accounts[1 - from], link);
}

static void *pay(void *seed) {
  olf_thread *thread;
  EXPECT(0, olf_enter(domain, &thread));
  uint64_t random = (uintptr_t)seed;
  for (int round = 0; round < ROUNDS; round++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uint64_t coin = (random >> 33) % COINS;
    if (round % 3 == 0)
      EXPECT(0, olf_atomically(thread, hand_over, &coin));
    else if (round % 3 == 1)
      (void)olf_move(thread, accounts[round % 2], accounts[1 - round % 2], coin);
    else
      EXPECT(1, olf_atomically(thread, is_somewhere, &coin));
    if (round % 64 == 0) olf_maintain(thread);
  }
  EXPECT(0, olf_leave(thread));
  return NULL;
}

int main(void) {
  olf_thread *thread;
  pthread_t threads[2];
  EXPECT(0, olf_domain_new(3, 2, &domain));
  EXPECT(0, olf_enter(domain, &thread));
  EXPECT(0, olf_map_new(domain, &accounts[0]));
  EXPECT(0, olf_sorted_new(domain, &accounts[1]));
  for (uint64_t coin = 0; coin < COINS; coin++)
    EXPECT(0, olf_insert(thread, accounts[coin % 2], &thing_new(domain, coin, 1)->link));
  for (uintptr_t number = 0; number < 2; number++)
    EXPECT(0, pthread_create(&threads[number], NULL, pay, (void *)(number + 1)));
  for (int number = 0; number < 2; number++) EXPECT(0, pthread_join(threads[number], NULL));
  int sum = 0;
  for (uint64_t coin = 0; coin < COINS; coin++) {
    olf_link *link;
    if (olf_remove(thread, accounts[0], coin, &link)) EXPECT(0, olf_remove(thread, accounts[1], coin, &link));
    sum += thing_of(link)->amount;
    EXPECT(0, olf_retire(thread, link));
  }
  EXPECT(COINS, sum);
  EXPECT(0, olf_list_free(accounts[0]));
  EXPECT(0, olf_list_free(accounts[1]));
  EXPECT(0, olf_leave(thread));
  EXPECT(0, olf_domain_free(domain));
  EXPECT(COINS, freed);
  return 0;
}
