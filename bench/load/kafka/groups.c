/* rebalance: a group of --members; one more joins, and crashes, --rounds times; how long until all the others are stable again.
 * idle-groups: --groups groups of one member each, that do nothing but heartbeat for --seconds. */
#include <stdio.h>
#include <stdlib.h>

#include "kafka.h"
#include "members.h"

#define SECOND 1000000000L

/* Serves the members until all are stable; returns when that was. */
static int64_t until_stable(struct member *members, long count, int64_t deadline) {
    while (!members_stable(members, count)) {
        if (now_ns() > deadline) fail("the group was not stable within the time limit");
        members_serve(members, count, now_ns() + SECOND / 10);
    }
    return now_ns();
}

void load_rebalance(void) {
    const char *address = option_text("address", NULL), *group = option_text("group", "rebalance");
    long members = option_number("members", 2), rounds = option_number("rounds", 3);
    long session_ms = option_number("session-ms", 1000), heartbeat_ms = option_number("heartbeat-ms", 20);
    int64_t deadline = now_ns() + option_number("time-limit", 60) * SECOND;
    options_done();
    struct member *all = calloc((size_t)members, sizeof *all);
    struct timings joins, crashes;
    timings_init(&joins, (size_t)rounds);
    timings_init(&crashes, (size_t)rounds);
    coordinator_await(address, group);
    for (long i = 0; i < members - 1; i++)
        member_start(&all[i], address, group, (int32_t)session_ms, heartbeat_ms * 1000000);
    until_stable(all, members - 1, deadline);
    for (long round = 0; round < rounds; round++) {
        int64_t start = now_ns();
        int32_t generation = all[0].generation;
        member_start(&all[members - 1], address, group, (int32_t)session_ms, heartbeat_ms * 1000000);
        do members_serve(all, members, now_ns() + SECOND / 10);
        while (all[0].generation == generation);
        timings_add(&joins, until_stable(all, members, deadline) - start);
        for (int64_t calm = now_ns() + SECOND / 5; now_ns() < calm;) members_serve(all, members, calm);

        start = now_ns();
        generation = all[0].generation;
        member_crash(&all[members - 1]);
        do members_serve(all, members - 1, now_ns() + SECOND / 10);
        while (all[0].generation == generation);
        timings_add(&crashes, until_stable(all, members - 1, deadline) - start);
        for (int64_t calm = now_ns() + SECOND / 5; now_ns() < calm;) members_serve(all, members - 1, calm);
    }
    json_begin();
    json_number("join_ms", timings_percentile_ms(&joins, 50));
    json_number("crash_ms", timings_percentile_ms(&crashes, 50));
    json_errors();
    json_end();
}

void load_idle_groups(void) {
    const char *address = option_text("address", NULL);
    long groups = option_number("groups", 1000), seconds = option_number("seconds", 20);
    long session_ms = option_number("session-ms", 45000), heartbeat_ms = option_number("heartbeat-ms", 3000);
    int64_t deadline = now_ns() + option_number("time-limit", 120) * SECOND;
    options_done();
    struct member *all = calloc((size_t)groups, sizeof *all);
    coordinator_await(address, "idle-0");
    int64_t start = now_ns();
    for (long i = 0; i < groups; i++) {
        char group[32];
        snprintf(group, sizeof group, "idle-%ld", i);
        member_start(&all[i], address, group, (int32_t)session_ms, heartbeat_ms * 1000000);
        members_serve(all, i + 1, now_ns());
    }
    for (long stable = 0; stable < groups;) {
        if (now_ns() > deadline) fail("%ld of %ld groups were stable within the time limit", stable, groups);
        members_serve(all, groups, now_ns() + SECOND / 10);
        stable = 0;
        for (long i = 0; i < groups; i++) stable += all[i].stable;
    }
    double ready = (double)(now_ns() - start) / 1e9;
    for (int64_t end = now_ns() + seconds * SECOND; now_ns() < end;) members_serve(all, groups, end);
    for (long i = 0; i < groups; i++)
        if (!all[i].stable) error_note("group", "a quiet group lost its member");
    json_begin();
    json_number("groups", (double)groups);
    json_number("ready_seconds", ready);
    json_errors();
    json_end();
}
