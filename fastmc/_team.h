/* Where the threads of a pass meet. The others are microseconds away, so whoever waits spins; when it takes
   longer, somebody else has their core and may have this one. */

#ifndef TEAM_H
#define TEAM_H

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
    long long tickets, pad_tickets[7];
    long long arrived, pad_arrived[7];
    long long rounds, pad_rounds[7];
} team;

/* The next number that nobody in the team has had. */
static long long team_ticket(team *t) { return ADD(&t->tickets, 1); }

/* Nobody waits for anybody from here on. */
static void team_stop(team *t) { WRITE(&t->stopped, 1); }

/* Wait until all have come here; true if the team was stopped. */
static int team_meet(team *t) {
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
