/* Times single fetches at the start, the middle and the end of one partition, on one connection, in turn.
 * Each place is read at --reads random offsets: once as it comes from the disk (cold), then twice from memory (warm). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kafka.h"
#include "raw.h"

static int connection;
static const char *topic_name;
static int32_t correlation;

/* One fetch; returns how long it took, having checked that the wanted offset is in the first batch. */
static int64_t fetch(int64_t offset, int32_t bytes) {
    static struct frame request, reply;
    frame_open(&request, API_FETCH, 4, ++correlation);
    put_int32(&request, -1); /* replica id: a consumer */
    put_int32(&request, 500);
    put_int32(&request, 1);
    put_int32(&request, bytes);
    put_int8(&request, 0); /* read uncommitted */
    put_int32(&request, 1);
    put_string(&request, topic_name);
    put_int32(&request, 1);
    put_int32(&request, 0);
    put_int64(&request, offset);
    put_int32(&request, bytes);
    int64_t start = now_ns();
    if (frame_exchange(&request, &reply, connection) < 0) fail("a fetch at offset %ld got no answer", (long)offset);
    int64_t elapsed = now_ns() - start;

    get_int32(&reply); /* throttle time */
    if (get_int32(&reply) != 1) fail("a fetch answered with another number of topics than asked for");
    get_skip(&reply, (size_t)get_int16(&reply));
    if (get_int32(&reply) != 1) fail("a fetch answered with another number of partitions than asked for");
    get_int32(&reply);
    int16_t error = get_int16(&reply);
    if (error) fail("a fetch at offset %ld got error code %d", (long)offset, error);
    get_int64(&reply);
    get_int64(&reply);
    int32_t aborted = get_int32(&reply);
    if (aborted > 0) get_skip(&reply, (size_t)aborted * 16);
    if (get_int32(&reply) < 61) fail("a fetch at offset %ld brought no batch", (long)offset);
    int64_t base = get_int64(&reply);
    get_skip(&reply, 4 + 4 + 1 + 4 + 2);
    int64_t last = base + get_int32(&reply);
    if (offset < base || offset > last)
        fail("a fetch at offset %ld brought offsets %ld to %ld first", (long)offset, (long)base, (long)last);
    return elapsed;
}

void load_positions(void) {
    topic_name = option_text("topic", NULL);
    int64_t end = option_number("end-offset", 0);
    long reads = option_number("reads", 200);
    int32_t bytes = (int32_t)option_number("fetch-bytes", 65536);
    option_number("time-limit", 60);
    connection = raw_connect(option_text("address", NULL));
    options_done();
    if (connection < 0) fail("no connection");
    if (end < 1000) fail("--end-offset must be at least 1000");

    static const char *names[3] = {"start", "middle", "end"};
    struct timings cold[3], warm[3];
    int64_t span = end / 50, places[3] = {0, end / 2, end - span};
    int64_t *offsets = malloc(sizeof(int64_t) * (size_t)reads * 3);
    srandom(7);
    for (int place = 0; place < 3; place++) {
        timings_init(&cold[place], (size_t)reads);
        timings_init(&warm[place], (size_t)reads * 2);
    }
    for (long read = 0; read < reads; read++)
        for (int place = 0; place < 3; place++) offsets[read * 3 + place] = places[place] + random() % span;
    for (int pass = 0; pass < 3; pass++)
        for (long read = 0; read < reads; read++)
            for (int place = 0; place < 3; place++)
                timings_add(pass == 0 ? &cold[place] : &warm[place], fetch(offsets[read * 3 + place], bytes));

    json_begin();
    char name[32];
    for (int place = 0; place < 3; place++) {
        snprintf(name, sizeof name, "%s_cold_ms", names[place]);
        json_number(name, timings_percentile_ms(&cold[place], 50));
        snprintf(name, sizeof name, "%s_ms", names[place]);
        json_number(name, timings_percentile_ms(&warm[place], 50));
        snprintf(name, sizeof name, "%s_p99_ms", names[place]);
        json_number(name, timings_percentile_ms(&warm[place], 99));
    }
    json_number("reads", (double)reads * 9);
    json_errors();
    json_end();
    close(connection);
    free(offsets);
}
