/* What the programs do with the lock and without it: they call `hold` with the lock, `rest` without. */
#include <stdint.h>
#include <time.h>

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

struct times { int64_t begin, end; };

/* Computes for so many nanoseconds, and tells from when to when. */
struct times hold(int64_t nanoseconds) {
    struct times times = {now(), 0};
    do times.end = now(); while (times.end < times.begin + nanoseconds);
    return times;
}

/* Sleeps for so many nanoseconds, and returns when it woke: from then on the caller wants the lock. */
int64_t rest(int64_t nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0);
    return now();
}
