/* --committers connections that each commit one offset, wait for the answer and commit the next, for --seconds.
 * They are consumers without a membership, all of one group (--groups 1) or spread over several. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kafka.h"
#include "raw.h"

struct committer {
    int descriptor;
    int32_t partition, correlation;
    int64_t offset, sent_ns;
    char group[32];
};

static struct frame request, reply;

static void commit_send(struct committer *committer, const char *topic) {
    frame_open(&request, API_OFFSET_COMMIT, 7, ++committer->correlation);
    put_string(&request, committer->group);
    put_int32(&request, -1); /* no generation: not a member */
    put_string(&request, "");
    put_string(&request, NULL); /* no instance id */
    put_int32(&request, 1);
    put_string(&request, topic);
    put_int32(&request, 1);
    put_int32(&request, committer->partition);
    put_int64(&request, ++committer->offset);
    put_int32(&request, -1); /* no leader epoch */
    put_string(&request, "");
    committer->sent_ns = now_ns();
    if (frame_send(&request, committer->descriptor) < 0) fail("a committer was cut off");
}

static int16_t commit_receive(struct committer *committer) {
    char topic[256];
    if (frame_receive(&reply, committer->correlation, committer->descriptor) < 0) fail("a commit was not answered");
    get_skip(&reply, 4 + 4); /* throttle time, one topic */
    get_string(&reply, topic, sizeof topic);
    get_skip(&reply, 4 + 4); /* one partition, its index */
    return get_int16(&reply);
}

/* Until the group has a coordinator that takes its commits: asking for it is what creates the offsets topic. */
static void committer_prepare(struct committer *committer, const char *topic, int64_t deadline) {
    for (;;) {
        frame_open(&request, API_FIND_COORDINATOR, 0, ++committer->correlation);
        put_string(&request, committer->group);
        if (frame_exchange(&request, &reply, committer->descriptor) < 0) fail("FindCoordinator was not answered");
        if (get_int16(&reply) == 0) {
            commit_send(committer, topic);
            if (commit_receive(committer) == 0) return;
        }
        if (now_ns() > deadline) fail("the group %s has no coordinator", committer->group);
        usleep(20000);
    }
}

void load_commits(void) {
    const char *address = option_text("address", NULL), *topic = option_text("topic", NULL);
    long committers = option_number("committers", 1), groups = option_number("groups", 1), seconds = option_number("seconds", 5);
    option_number("time-limit", 60);
    options_done();
    struct committer *all = calloc((size_t)committers, sizeof *all);
    struct pollfd *polled = calloc((size_t)committers, sizeof *polled);
    struct timings timings;
    timings_init(&timings, 10000000);
    for (long i = 0; i < committers; i++) {
        all[i].descriptor = raw_connect(address);
        if (all[i].descriptor < 0) fail("a committer cannot connect");
        all[i].partition = (int32_t)i;
        snprintf(all[i].group, sizeof all[i].group, "committers-%ld", i % groups);
        committer_prepare(&all[i], topic, now_ns() + 30000000000L);
        polled[i] = (struct pollfd){.fd = all[i].descriptor, .events = POLLIN};
    }
    int64_t start = now_ns(), end = start + seconds * 1000000000L;
    long committed = 0, under_way = committers;
    for (long i = 0; i < committers; i++) commit_send(&all[i], topic);
    while (under_way > 0) {
        if (poll(polled, (nfds_t)committers, 10000) <= 0) fail("no commit was answered for 10 seconds");
        for (long i = 0; i < committers; i++) {
            if (polled[i].revents == 0) continue;
            int16_t error = commit_receive(&all[i]);
            int64_t now = now_ns();
            if (error != 0) error_note("commit", "the broker refused a commit");
            timings_add(&timings, now - all[i].sent_ns);
            committed++;
            if (now < end)
                commit_send(&all[i], topic);
            else
                under_way--;
        }
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    json_begin();
    json_number("commits", (double)committed);
    json_number("per_second", (double)committed / elapsed);
    json_number("p50_ms", timings_percentile_ms(&timings, 50));
    json_number("p99_ms", timings_percentile_ms(&timings, 99));
    json_errors();
    json_end();
}
