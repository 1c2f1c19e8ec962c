/* Members of groups without a client library: hundreds in one thread, each attentive to the millisecond. */
#ifndef HEADRACE_LOAD_MEMBERS_H
#define HEADRACE_LOAD_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "raw.h"

enum asked { ASKED_NOTHING, ASKED_JOIN, ASKED_SYNC, ASKED_HEARTBEAT };

struct member {
    int descriptor; /* -1 when it has crashed */
    int32_t correlation, generation, session_ms;
    int64_t heartbeat_ns, next_ns;
    enum asked asked;
    bool stable; /* it has its assignment and knows of no newer rebalance */
    char group[32], id[128];
};

/* Asks for the coordinator until there is one, which is what creates the offsets topic. */
void coordinator_await(const char *address, const char *group);

/* Connects and joins. */
void member_start(struct member *member, const char *address, const char *group, int32_t session_ms, int64_t heartbeat_ns);

/* Gone without a word: the broker finds out when the session ends. */
void member_crash(struct member *member);

/* Sends the heartbeats that are due and handles what has arrived, waiting until `until_ns` at most. */
void members_serve(struct member *members, long count, int64_t until_ns);

/* Whether all are stable in the same generation. */
bool members_stable(const struct member *members, long count);

#endif
