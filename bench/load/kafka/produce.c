/* Produces --records records (or, with 0, for --seconds; at most --rate a second if given) and proves by the partitions' end offsets that all arrived. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kafka.h"

static atomic_bool finished;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) error_note("delivery", rd_kafka_err2str(message->err));
}

/* Serves error callbacks while the main thread produces. */
static void *serve(void *client) {
    while (!atomic_load(&finished)) rd_kafka_poll(client, 100);
    return NULL;
}

void load_produce(void) {
    const char *topic_name = option_text("topic", NULL);
    long partitions = option_number("partitions", 1), records = option_number("records", 0);
    long size = option_number("size", 100), seconds = option_number("seconds", 0), keys = option_number("keys", 0);
    long time_limit = option_number("time-limit", 60), rate = option_number("rate", 0);
    if (records == 0 && seconds == 0) fail("--records or --seconds is needed");

    rd_kafka_conf_t *conf = kafka_conf();
    conf_set(conf, "acks", option_text("acks", "1"));
    conf_set(conf, "linger.ms", option_text("linger-ms", "5"));
    conf_set(conf, "batch.num.messages", option_text("batch-records", "10000"));
    conf_set(conf, "batch.size", option_text("batch-bytes", "1000000"));
    conf_set(conf, "compression.codec", option_text("compression", "none"));
    conf_set(conf, "max.in.flight.requests.per.connection", option_text("in-flight", "1000"));
    conf_set(conf, "enable.idempotence", option_text("idempotence", "false"));
    conf_set(conf, "queue.buffering.max.messages", option_text("queue-records", "500000"));
    conf_set(conf, "queue.buffering.max.kbytes", "262144");
    conf_set(conf, "delivery.report.only.error", "true");
    conf_set_number(conf, "message.timeout.ms", time_limit * 1000);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    options_done();

    const char *payload = payload_make((size_t)size);
    rd_kafka_t *client = kafka_new(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, topic_name, NULL);
    pthread_t server;
    pthread_create(&server, NULL, serve, client);

    /* The first record to each partition opens the connections; the clock starts after that. */
    for (int32_t partition = 0; partition < partitions; partition++)
        if (rd_kafka_produce(topic, partition, 0, (void *)payload, (size_t)size, "warm-up", 7, NULL))
            fail("cannot produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    if (rd_kafka_flush(client, 60000)) fail("the first record was not acknowledged within 60 s");
    int64_t before = end_offsets(client, topic_name, partitions);

    int64_t start = now_ns(), deadline = start + time_limit * 1000000000L, stop = seconds ? start + seconds * 1000000000L : deadline;
    long sent = 0;
    while (records == 0 || sent < records) {
        uint32_t key = keys ? (uint32_t)(sent % keys) : 0;
        char *value = (char *)payload + sent % PAYLOAD_STARTS;
        if (rd_kafka_produce(topic, (int32_t)(sent % partitions), RD_KAFKA_MSG_F_BLOCK, value, (size_t)size, keys ? &key : NULL,
                             keys ? sizeof key : 0, NULL)) {
            error_note("produce", rd_kafka_err2str(rd_kafka_last_error()));
            break;
        }
        sent++;
        if (rate && sent % 100 == 0) sleep_until_ns(start + sent * 1000000000L / rate);
        if ((sent & 255) == 0 && now_ns() >= stop) break;
    }
    int64_t left = (deadline - now_ns()) / 1000000;
    rd_kafka_flush(client, left > 1 ? (int)left : 1);
    double elapsed = (double)(now_ns() - start) / 1e9;

    int64_t arrived = end_offsets(client, topic_name, partitions) - before;
    if (arrived != sent) error_note("produce", "the partitions' ends did not move by the number of records sent");
    json_begin();
    json_number("records", (double)arrived);
    json_number("bytes", (double)arrived * (double)size);
    json_number("seconds", elapsed);
    json_number("per_second", (double)arrived / elapsed);
    json_errors();
    json_end();
    atomic_store(&finished, true);
    pthread_join(server, NULL);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}
