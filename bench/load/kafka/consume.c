/* Reads --records records of --partitions partitions from the beginning (or from --offset) and checks that no offset is skipped. */
#include <stdlib.h>

#include "kafka.h"

struct reading {
    int64_t *next;
    long count;
    int64_t bytes;
    int64_t first_ns;
};

static void on_message(rd_kafka_message_t *message, void *opaque) {
    struct reading *reading = opaque;
    if (message->err) {
        if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) error_note("consume", rd_kafka_message_errstr(message));
        return;
    }
    if (reading->count == 0) reading->first_ns = now_ns();
    if (message->offset != reading->next[message->partition]) error_note("consume", "an offset was skipped or repeated");
    reading->next[message->partition] = message->offset + 1;
    reading->count++;
    reading->bytes += (int64_t)(message->len + message->key_len);
}

void load_consume(void) {
    const char *topic_name = option_text("topic", NULL);
    long partitions = option_number("partitions", 1), records = option_number("records", 0);
    long offset = option_number("offset", 0), seconds = option_number("seconds", 0), time_limit = option_number("time-limit", 60);
    if (records == 0 && seconds == 0) fail("--records or --seconds is needed");

    rd_kafka_conf_t *conf = kafka_conf();
    conf_set(conf, "fetch.message.max.bytes", option_text("partition-bytes", "1048576"));
    conf_set(conf, "fetch.max.bytes", option_text("fetch-bytes", "52428800"));
    conf_set(conf, "queued.min.messages", option_text("queue-records", "1000000"));
    conf_set(conf, "queued.max.messages.kbytes", "262144");
    conf_set(conf, "check.crcs", option_text("check-crcs", "false"));
    options_done();

    rd_kafka_t *client = kafka_new(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    struct reading reading = {.next = calloc((size_t)partitions, sizeof(int64_t))};
    const rd_kafka_metadata_t *metadata;
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, 10000);
    if (error) fail("no metadata: %s", rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);

    int64_t start = now_ns(), deadline = start + time_limit * 1000000000L, stop = seconds ? start + seconds * 1000000000L : deadline;
    for (int32_t partition = 0; partition < partitions; partition++) {
        reading.next[partition] = offset;
        if (rd_kafka_consume_start_queue(topic, partition, offset, queue))
            fail("cannot read %s-%d: %s", topic_name, partition, rd_kafka_err2str(rd_kafka_last_error()));
    }
    while ((records == 0 || reading.count < records) && now_ns() < stop) {
        rd_kafka_consume_callback_queue(queue, 100, on_message, &reading);
        rd_kafka_poll(client, 0);
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    if (records && reading.count < records) error_note("consume", "fewer records than asked for within the time limit");

    json_begin();
    json_number("records", (double)reading.count);
    json_number("bytes", (double)reading.bytes);
    json_number("seconds", elapsed);
    json_number("per_second", (double)reading.count / elapsed);
    json_number("first_record_ms", reading.count ? (double)(reading.first_ns - start) / 1e6 : -1);
    json_errors();
    json_end();
    for (int32_t partition = 0; partition < partitions; partition++) rd_kafka_consume_stop(topic, partition);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    free(reading.next);
}
