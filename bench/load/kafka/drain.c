/* Reads --records records of --partitions partitions from the beginning without decoding them, so that what is measured is the broker and not
 * the reader: of each batch only the header is looked at, to prove that no offset is skipped. One connection, the next fetch after the reply,
 * with the limits of librdkafka's fetches. */
#include <stdlib.h>
#include <unistd.h>

#include "kafka.h"
#include "raw.h"

enum { BEFORE_LENGTH_ENDS = 12, BEFORE_LAST_DELTA = 11, LAST_DELTA_ENDS = 15, HEADER = 61 };

struct reading {
    int64_t *next;
    int64_t records, bytes;
};

static void request_make(struct frame *request, const char *topic, const struct reading *reading, long partitions, int32_t correlation,
                         long fetch_bytes, long partition_bytes) {
    frame_open(request, API_FETCH, 4, correlation);
    put_int32(request, -1); /* replica id: a consumer */
    put_int32(request, 500);
    put_int32(request, 1);
    put_int32(request, (int32_t)fetch_bytes);
    put_int8(request, 0); /* read uncommitted */
    put_int32(request, 1);
    put_string(request, topic);
    put_int32(request, (int32_t)partitions);
    for (int32_t index = 0; index < partitions; index++) {
        /* Another partition is the first each time, so that all get their part of a full reply. */
        int32_t partition = (index + correlation) % (int32_t)partitions;
        put_int32(request, partition);
        put_int64(request, reading->next[partition]);
        put_int32(request, (int32_t)partition_bytes);
    }
}

/* The whole batches of one partition's records; what is cut off at their end is fetched again. */
static void batches_take(struct frame *reply, struct reading *reading, int32_t partition) {
    int32_t left = get_int32(reply);
    while (left >= HEADER) {
        int64_t base = get_int64(reply);
        int32_t length = get_int32(reply);
        left -= BEFORE_LENGTH_ENDS;
        if (length > left) break;
        if (length < HEADER - BEFORE_LENGTH_ENDS) fail("a batch in a reply is too short");
        get_skip(reply, BEFORE_LAST_DELTA);
        int64_t end = base + get_int32(reply) + 1;
        get_skip(reply, (size_t)(length - LAST_DELTA_ENDS));
        left -= length;
        if (base != reading->next[partition]) error_note("drain", "an offset was skipped or repeated");
        reading->records += end - base;
        reading->bytes += BEFORE_LENGTH_ENDS + length;
        reading->next[partition] = end;
    }
    if (left > 0) get_skip(reply, (size_t)left);
}

static void reply_take(struct frame *reply, struct reading *reading, long partitions) {
    get_int32(reply); /* throttle time */
    if (get_int32(reply) != 1) fail("a fetch answered with another number of topics than asked for");
    get_skip(reply, (size_t)get_int16(reply));
    int32_t count = get_int32(reply);
    while (count-- > 0) {
        int32_t partition = get_int32(reply);
        int16_t error = get_int16(reply);
        if (partition < 0 || partition >= partitions) fail("a fetch answered with partition %d, which was not asked for", partition);
        if (error) fail("a fetch of partition %d got error code %d", partition, error);
        get_skip(reply, 8 + 8); /* high watermark, last stable offset */
        int32_t aborted = get_int32(reply);
        if (aborted > 0) get_skip(reply, (size_t)aborted * 16);
        batches_take(reply, reading, partition);
    }
}

void load_drain(void) {
    const char *topic = option_text("topic", NULL);
    long partitions = option_number("partitions", 1), records = option_number("records", 0), time_limit = option_number("time-limit", 60);
    long partition_bytes = option_number("partition-bytes", 1048576), fetch_bytes = option_number("fetch-bytes", 52428800);
    int connection = raw_connect(option_text("address", NULL));
    options_done();
    if (connection < 0) fail("no connection");
    if (records <= 0) fail("--records is needed");

    struct reading reading = {.next = calloc((size_t)partitions, sizeof(int64_t))};
    struct frame request = {0}, reply = {0};
    int64_t start = now_ns(), stop = start + time_limit * 1000000000L;
    for (int32_t correlation = 0; reading.records < records && now_ns() < stop; correlation++) {
        request_make(&request, topic, &reading, partitions, correlation, fetch_bytes, partition_bytes);
        if (frame_exchange(&request, &reply, connection) < 0) fail("a fetch got no answer");
        reply_take(&reply, &reading, partitions);
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    if (reading.records < records) error_note("drain", "fewer records than asked for within the time limit");

    json_begin();
    json_number("records", (double)reading.records);
    json_number("bytes", (double)reading.bytes);
    json_number("seconds", elapsed);
    json_number("per_second", (double)reading.records / elapsed);
    json_errors();
    json_end();
    close(connection);
    frame_free(&request);
    frame_free(&reply);
    free(reading.next);
}
