#include "members.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka.h"

enum { ERROR_ILLEGAL_GENERATION = 22, ERROR_UNKNOWN_MEMBER = 25, ERROR_REBALANCE = 27, ERROR_RETRY_FROM = 14, ERROR_RETRY_TO = 16 };

static struct frame request, reply;

static void ask(struct member *member, enum asked what) {
    member->asked = what;
    if (frame_send(&request, member->descriptor) < 0) fail("%s: a member was cut off", member->group);
}

static void put_subscription(void) {
    /* version 0, no topics, no user data: the broker does not look inside */
    static const uint8_t nothing[] = {0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    put_bytes(&request, nothing, sizeof nothing);
}

static void join(struct member *member) {
    frame_open(&request, API_JOIN_GROUP, 3, ++member->correlation);
    put_string(&request, member->group);
    put_int32(&request, member->session_ms);
    put_int32(&request, 60000); /* time to rejoin */
    put_string(&request, member->id);
    put_string(&request, "consumer");
    put_int32(&request, 1);
    put_string(&request, "range");
    put_subscription();
    ask(member, ASKED_JOIN);
}

static void heartbeat(struct member *member) {
    frame_open(&request, API_HEARTBEAT, 2, ++member->correlation);
    put_string(&request, member->group);
    put_int32(&request, member->generation);
    put_string(&request, member->id);
    ask(member, ASKED_HEARTBEAT);
}

void member_start(struct member *member, const char *address, const char *group, int32_t session_ms, int64_t heartbeat_ns) {
    memset(member, 0, sizeof *member);
    member->session_ms = session_ms;
    member->heartbeat_ns = heartbeat_ns;
    snprintf(member->group, sizeof member->group, "%s", group);
    member->descriptor = raw_connect(address);
    if (member->descriptor < 0) fail("a member cannot connect");
    join(member);
}

void member_crash(struct member *member) {
    close(member->descriptor);
    member->descriptor = -1;
    member->stable = false;
}

static void joined(struct member *member) {
    char text[256], leader[256];
    get_skip(&reply, 4); /* throttle time */
    int16_t error = get_int16(&reply);
    if (error >= ERROR_RETRY_FROM && error <= ERROR_RETRY_TO) {
        usleep(10000);
        join(member);
        return;
    }
    if (error == ERROR_UNKNOWN_MEMBER) {
        member->id[0] = '\0';
        join(member);
        return;
    }
    if (error != 0) fail("%s: a join was refused with code %d", member->group, error);
    member->generation = get_int32(&reply);
    get_string(&reply, text, sizeof text); /* protocol */
    get_string(&reply, leader, sizeof leader);
    get_string(&reply, member->id, sizeof member->id);
    int32_t members = get_int32(&reply);
    frame_open(&request, API_SYNC_GROUP, 2, ++member->correlation);
    put_string(&request, member->group);
    put_int32(&request, member->generation);
    put_string(&request, member->id);
    put_int32(&request, members); /* only the leader was told of any */
    for (int32_t i = 0; i < members; i++) {
        get_string(&reply, text, sizeof text);
        get_skip(&reply, (size_t)get_int32(&reply));
        put_string(&request, text);
        put_subscription(); /* an assignment without partitions looks the same */
    }
    ask(member, ASKED_SYNC);
}

static void answered(struct member *member) {
    get_skip(&reply, 4); /* throttle time */
    int16_t error = get_int16(&reply);
    if (error == 0) {
        member->stable = true;
        member->asked = ASKED_NOTHING;
        member->next_ns = now_ns() + member->heartbeat_ns;
        return;
    }
    if (error == ERROR_UNKNOWN_MEMBER) member->id[0] = '\0';
    if (error != ERROR_REBALANCE && error != ERROR_ILLEGAL_GENERATION && error != ERROR_UNKNOWN_MEMBER)
        fail("%s: a member was refused with code %d", member->group, error);
    member->stable = false;
    join(member);
}

void members_serve(struct member *members, long count, int64_t until_ns) {
    static struct pollfd *polled;
    static long capacity;
    if (count > capacity) {
        polled = realloc(polled, (size_t)count * sizeof *polled);
        capacity = count;
    }
    int64_t now = now_ns(), wake = until_ns;
    for (long i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = members[i].descriptor, .events = POLLIN};
        if (members[i].descriptor < 0 || members[i].asked != ASKED_NOTHING) continue;
        if (members[i].next_ns <= now) heartbeat(&members[i]);
        else if (members[i].next_ns < wake) wake = members[i].next_ns;
    }
    int64_t wait_ms = (wake - now + 999999) / 1000000;
    if (poll(polled, (nfds_t)count, wait_ms < 0 ? 0 : (int)wait_ms) <= 0) return;
    for (long i = 0; i < count; i++) {
        if (polled[i].fd < 0 || polled[i].revents == 0) continue;
        if (frame_receive(&reply, members[i].correlation, members[i].descriptor) < 0) fail("%s: a member was not answered", members[i].group);
        if (members[i].asked == ASKED_JOIN)
            joined(&members[i]);
        else
            answered(&members[i]);
    }
}

bool members_stable(const struct member *members, long count) {
    for (long i = 0; i < count; i++)
        if (!members[i].stable || members[i].generation != members[0].generation) return false;
    return true;
}

void coordinator_await(const char *address, const char *group) {
    int connection = raw_connect(address);
    if (connection < 0) fail("%s cannot be reached", address);
    for (int attempt = 1; attempt <= 1500; attempt++) {
        frame_open(&request, API_FIND_COORDINATOR, 0, attempt);
        put_string(&request, group);
        if (frame_exchange(&request, &reply, connection) < 0) fail("FindCoordinator was not answered");
        if (get_int16(&reply) == 0) {
            close(connection);
            return;
        }
        usleep(20000);
    }
    fail("the group %s has no coordinator", group);
}
