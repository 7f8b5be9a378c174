/* Where the threads of a pass meet. The others are microseconds away, so whoever waits spins; when it takes
   longer, somebody else has their core and may have this one. */

#ifndef TEAM_H
#define TEAM_H

#if defined(__linux__)
#include <sched.h>
#endif

#if defined(_MSC_VER)
#include <windows.h>
#define ADD(place, number) InterlockedExchangeAdd64(place, number)
#define READ(place) InterlockedExchangeAdd64(place, 0)
#define WRITE(place, number) InterlockedExchange64(place, number)
#define PAUSE() YieldProcessor()
#define YIELD() SwitchToThread()
#else
#include <sched.h>
#define ADD(place, number) __atomic_fetch_add(place, number, __ATOMIC_ACQ_REL)
#define READ(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define WRITE(place, number) __atomic_store_n(place, number, __ATOMIC_RELEASE)
#define YIELD() sched_yield()
#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif
#endif

#define SPINS 2000

/* Each number has a cache line of its own. */
typedef struct {
    long long size, stopped, pad[6];
    long long arrived, pad_arrived[7];
    long long rounds, pad_rounds[7];
    unsigned long long cores[16];
} team;

/* Let the calling thread leave a core that another of the team is on, if it may use one that is free of them. The
   system may leave two threads on one core for a tenth of a second. */
static inline void team_spread(team *t) {
#if defined(__linux__)
    cpu_set_t allowed, others;
    const int core = sched_getcpu(), many = 64 * sizeof t->cores / sizeof t->cores[0];
    if (core < 0 || core >= many) return;
    if (!(__atomic_fetch_or(t->cores + core / 64, 1ULL << core % 64, __ATOMIC_ACQ_REL) >> core % 64 & 1)) return;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    others = allowed;
    for (int k = 0; k < many; k++)
        if (READ(&t->cores[k / 64]) >> k % 64 & 1) CPU_CLR(k, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others)) return;
    sched_setaffinity(0, sizeof allowed, &allowed);
    __atomic_fetch_or(t->cores + sched_getcpu() / 64, 1ULL << sched_getcpu() % 64, __ATOMIC_ACQ_REL);
#else
    (void)t;
#endif
}

/* Nobody waits for anybody from here on. */
static inline void team_stop(team *t) { WRITE(&t->stopped, 1); }

/* Wait until all have come here; true if the team was stopped. */
static inline int team_meet(team *t) {
    const long long round = READ(&t->rounds);
    if (ADD(&t->arrived, 1) == t->size - 1) {
        WRITE(&t->arrived, 0);
        ADD(&t->rounds, 1);
        return READ(&t->stopped) != 0;
    }
    for (int spins = 0; READ(&t->rounds) == round; spins++) {
        if (READ(&t->stopped)) return 1;
        if (spins < SPINS) PAUSE(); else YIELD();
    }
    return READ(&t->stopped) != 0;
}
#endif
