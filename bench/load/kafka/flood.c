/* Produces --records records in batches made beforehand, so that what is measured is the broker and not the making of records.
 * The batches are as large as librdkafka's (--batch-records, --batch-bytes), each in a request of its own, --in-flight of them
 * under way on one connection; the partitions' end offsets prove that all arrived. */
#include <stdlib.h>

#include "batch.h"
#include "kafka.h"
#include "raw.h"

static void request_make(struct frame *request, const char *topic, int32_t partition, const struct frame *batch) {
    frame_open(request, API_PRODUCE, 7, 0);
    put_string(request, NULL);  /* no transaction */
    put_int16(request, 1);      /* acks */
    put_int32(request, 30000);  /* timeout */
    put_int32(request, 1);
    put_string(request, topic);
    put_int32(request, 1);
    put_int32(request, partition);
    put_bytes(request, batch->bytes, (int32_t)batch->length);
}

static void answer_receive(int descriptor, int32_t correlation) {
    static struct frame reply;
    char topic[256];
    if (frame_receive(&reply, correlation, descriptor) < 0) fail("a batch was not answered");
    get_skip(&reply, 4); /* one topic */
    get_string(&reply, topic, sizeof topic);
    get_skip(&reply, 4 + 4); /* one partition, its index */
    if (get_int16(&reply) != 0) error_note("flood", "the broker refused a batch");
}

void load_flood(void) {
    const char *address = option_text("address", NULL), *topic = option_text("topic", NULL);
    long partitions = option_number("partitions", 1), records = option_number("records", 0), size = option_number("size", 100);
    long most = option_number("batch-records", 10000), bytes = option_number("batch-bytes", 1000000);
    long in_flight = option_number("in-flight", 5);
    option_number("time-limit", 60);
    rd_kafka_conf_t *conf = kafka_conf();
    options_done();

    long per_batch = (bytes - BATCH_HEADER) / (size + 12);
    if (per_batch > most) per_batch = most;
    if (per_batch < 1) per_batch = 1;
    struct frame batch = {0}, *requests = calloc((size_t)partitions, sizeof *requests);
    batch_make(&batch, per_batch, size);
    for (int32_t partition = 0; partition < partitions; partition++) request_make(&requests[partition], topic, partition, &batch);
    long batches = (records + per_batch - 1) / per_batch;
    rd_kafka_t *client = kafka_new(RD_KAFKA_CONSUMER, conf);
    int descriptor = raw_connect(address);
    if (descriptor < 0) fail("cannot connect to %s", address);
    int64_t before = end_offsets(client, topic, partitions);

    int64_t start = now_ns();
    for (long sent = 0, answered = 0; answered < batches;) {
        if (sent < batches && sent - answered < in_flight) {
            struct frame *request = &requests[sent % partitions];
            frame_number(request, (int32_t)sent++);
            if (frame_send(request, descriptor) < 0) fail("the connection was cut");
        } else {
            answer_receive(descriptor, (int32_t)answered++);
        }
    }
    double elapsed = (double)(now_ns() - start) / 1e9;

    int64_t arrived = end_offsets(client, topic, partitions) - before;
    if (arrived != batches * per_batch) error_note("flood", "the partitions' ends did not move by the number of records sent");
    json_begin();
    json_number("records", (double)arrived);
    json_number("bytes", (double)arrived * (double)size);
    json_number("seconds", elapsed);
    json_number("per_second", (double)arrived / elapsed);
    json_errors();
    json_end();
    rd_kafka_destroy(client);
}
