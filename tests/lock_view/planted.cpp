// The pattern of planted.c under C++'s own locks: `planted KIND PERCENT`.
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

constexpr int THREADS = 3, ROUNDS = 600;

struct alignas(64) Place { long value; };
static Place places[THREADS], common_place;
static std::mutex planted_mutex;
static std::shared_mutex planted_shared;
static std::counting_semaphore<2> two_of_three{2};
static volatile long seen;

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *kind = arguments[1];
    const long percent = std::atol(arguments[2]);
    std::barrier ready{THREADS};
    std::vector<std::thread> threads;
    for (int own = 0; own < THREADS; own++)
        threads.emplace_back([&, own] {
            ready.arrive_and_wait();
            for (int round = 0; round < ROUNDS; round++) {
                Place &place = round * 37 % 100 < percent ? places[own] : common_place;
                if (!std::strcmp(kind, "mutex")) {
                    std::lock_guard held{planted_mutex};
                    place.value++;
                } else if (!std::strcmp(kind, "shared") && round / 100 % 2) {
                    std::shared_lock held{planted_shared};
                    seen = seen + (place.value > 1000000);
                } else if (!std::strcmp(kind, "shared")) {
                    std::unique_lock held{planted_shared};
                    place.value++;
                } else { // none: two of three threads may be here
                    two_of_three.acquire();
                    places[own].value++;
                    two_of_three.release();
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
}
