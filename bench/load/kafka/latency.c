/* Sends --rate records a second for --seconds and times each from just before the send to its arrival at a waiting consumer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kafka.h"

static atomic_bool finished;
static atomic_long received;
static struct timings timings;
static int64_t measure_from;

struct stamp {
    int64_t sent_ns;
    int64_t number;
};

static void on_message(rd_kafka_message_t *message, void *opaque) {
    int64_t *expected = opaque;
    if (message->err) {
        if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) error_note("consume", rd_kafka_message_errstr(message));
        return;
    }
    struct stamp stamp;
    if (message->len < sizeof stamp) return;
    memcpy(&stamp, message->payload, sizeof stamp);
    if (stamp.number != (*expected)++) error_note("consume", "a record was lost or out of order");
    if (stamp.number < 0) fail("a record that this load did not send");
    atomic_fetch_add(&received, 1);
    if (stamp.sent_ns >= measure_from) timings_add(&timings, now_ns() - stamp.sent_ns);
}

static void *receive(void *queue) {
    int64_t expected = 0;
    while (!atomic_load(&finished)) rd_kafka_consume_callback_queue(queue, 50, on_message, &expected);
    return NULL;
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) error_note("delivery", rd_kafka_err2str(message->err));
}

static void *serve(void *client) {
    while (!atomic_load(&finished)) rd_kafka_poll(client, 50);
    return NULL;
}

void load_latency(void) {
    const char *topic_name = option_text("topic", NULL);
    long rate = option_number("rate", 1000), size = option_number("size", 100), seconds = option_number("seconds", 10);
    long warm_up = option_number("warm-up", 2), time_limit = option_number("time-limit", 60);
    if (size < (long)sizeof(struct stamp)) fail("--size must be at least %zu", sizeof(struct stamp));
    if (warm_up + seconds >= time_limit) fail("--time-limit must be above --warm-up plus --seconds");

    rd_kafka_conf_t *conf = kafka_conf();
    conf_set(conf, "acks", option_text("acks", "1"));
    conf_set(conf, "linger.ms", option_text("linger-ms", "0"));
    conf_set(conf, "delivery.report.only.error", "true");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *producer = kafka_new(RD_KAFKA_PRODUCER, conf);
    rd_kafka_t *consumer = kafka_new(RD_KAFKA_CONSUMER, kafka_conf());
    options_done();

    rd_kafka_topic_t *to = rd_kafka_topic_new(producer, topic_name, NULL), *from = rd_kafka_topic_new(consumer, topic_name, NULL);
    int64_t low, high;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(consumer, topic_name, 0, &low, &high, 10000);
    if (error) fail("no end offset of %s-0: %s", topic_name, rd_kafka_err2str(error));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer);
    if (rd_kafka_consume_start_queue(from, 0, high, queue)) fail("cannot read %s-0", topic_name);

    int64_t start = now_ns() + 500000000;
    measure_from = start + warm_up * 1000000000L;
    timings_init(&timings, (size_t)(rate * seconds));
    pthread_t receiver, servers[2];
    pthread_create(&receiver, NULL, receive, queue);
    pthread_create(&servers[0], NULL, serve, producer);
    pthread_create(&servers[1], NULL, serve, consumer);

    char *value = malloc((size_t)size);
    memcpy(value, payload_make((size_t)size), (size_t)size);
    long total = rate * (warm_up + seconds);
    for (int64_t number = 0; number < total; number++) {
        sleep_until_ns(start + number * 1000000000L / rate);
        struct stamp stamp = {.sent_ns = now_ns(), .number = number};
        memcpy(value, &stamp, sizeof stamp);
        if (rd_kafka_produce(to, 0, RD_KAFKA_MSG_F_COPY, value, (size_t)size, NULL, 0, NULL))
            error_note("produce", rd_kafka_err2str(rd_kafka_last_error()));
    }
    int64_t deadline = now_ns() + 10000000000L;
    while (atomic_load(&received) < total && now_ns() < deadline) sleep_until_ns(now_ns() + 5000000);
    atomic_store(&finished, true);
    pthread_join(receiver, NULL);
    pthread_join(servers[0], NULL);
    pthread_join(servers[1], NULL);
    if (atomic_load(&received) < total) error_note("consume", "not every record arrived within 10 s of the last send");

    json_begin();
    json_number("records", (double)atomic_load(&received));
    json_number("seconds", (double)seconds);
    json_number("p50_ms", timings_percentile_ms(&timings, 50));
    json_number("p90_ms", timings_percentile_ms(&timings, 90));
    json_number("p99_ms", timings_percentile_ms(&timings, 99));
    json_number("p999_ms", timings_percentile_ms(&timings, 99.9));
    json_number("max_ms", timings_percentile_ms(&timings, 100));
    json_errors();
    json_end();
    rd_kafka_consume_stop(from, 0);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(to);
    rd_kafka_topic_destroy(from);
    rd_kafka_destroy(producer);
    rd_kafka_destroy(consumer);
}
