/* --connections clients at once, --active of them at work (half produce, half consume) for --seconds.
 * The quiet ones introduce themselves as every client does (ApiVersions, Metadata) and must still be answered at the end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "kafka.h"
#include "raw.h"

static atomic_long delivered, consumed;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err)
        error_note("delivery", rd_kafka_err2str(message->err));
    else
        atomic_fetch_add(&delivered, 1);
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
    (void)opaque;
    if (message->err && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
        error_note("consume", rd_kafka_message_errstr(message));
    else if (!message->err)
        atomic_fetch_add(&consumed, 1);
}

static int introduce(int connection, struct frame *request, struct frame *reply) {
    frame_open(request, API_VERSIONS, 0, 1);
    if (frame_exchange(request, reply, connection) < 0) return -1;
    if (get_int16(reply) != 0) return -1;
    frame_open(request, API_METADATA, 1, 2);
    put_int32(request, 0); /* no topics */
    if (frame_exchange(request, reply, connection) < 0) return -1;
    return get_int32(reply) >= 1 ? 0 : -1;
}

void load_connections(void) {
    const char *address = option_text("address", NULL), *topic_name = option_text("topic", NULL);
    long connections = option_number("connections", 1000), active = option_number("active", 100);
    long partitions = option_number("partitions", 10), rate = option_number("rate", 20), seconds = option_number("seconds", 10);
    long size = option_number("size", 100);
    option_number("time-limit", 60);
    long quiet = connections - active, producers = active / 2, consumers = active - producers;
    if (quiet < 0) fail("--active must not be above --connections");
    rd_kafka_t **clients = calloc((size_t)active, sizeof *clients);
    rd_kafka_topic_t **topics = calloc((size_t)active, sizeof *topics);
    rd_kafka_queue_t **queues = calloc((size_t)active, sizeof *queues);
    int *idle = calloc((size_t)quiet + 1, sizeof *idle);
    struct frame request = {0}, reply = {0};

    int64_t start = now_ns();
    for (long i = 0; i < quiet; i++) {
        idle[i] = raw_connect(address);
        if (idle[i] < 0 || introduce(idle[i], &request, &reply) < 0) error_note("connect", "a quiet client was not answered");
    }
    for (long i = 0; i < active; i++) {
        rd_kafka_conf_t *conf = kafka_conf();
        if (i < producers) {
            conf_set(conf, "acks", "1");
            conf_set(conf, "linger.ms", "0");
            rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        }
        clients[i] = kafka_new(i < producers ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf);
        topics[i] = rd_kafka_topic_new(clients[i], topic_name, NULL);
        if (i >= producers) {
            queues[i] = rd_kafka_queue_new(clients[i]);
            rd_kafka_consume_start_queue(topics[i], (int32_t)((i - producers) % partitions), RD_KAFKA_OFFSET_BEGINNING, queues[i]);
        }
    }
    options_done();
    double connected = (double)(now_ns() - start) / 1e9;

    const char *payload = payload_make((size_t)size);
    long rounds = rate * seconds;
    start = now_ns();
    for (long round = 0; round < rounds; round++) {
        sleep_until_ns(start + round * 1000000000L / rate);
        for (long i = 0; i < active; i++) {
            if (i < producers && rd_kafka_produce(topics[i], (int32_t)(i % partitions), 0, (void *)payload, (size_t)size, NULL, 0, NULL))
                error_note("produce", rd_kafka_err2str(rd_kafka_last_error()));
            if (i >= producers) rd_kafka_consume_callback_queue(queues[i], 0, on_message, NULL);
            rd_kafka_poll(clients[i], 0);
        }
    }
    int64_t deadline = now_ns() + 10000000000L;
    while ((atomic_load(&delivered) < rounds * producers || atomic_load(&consumed) == 0) && now_ns() < deadline)
        for (long i = 0; i < active; i++) {
            if (i >= producers) rd_kafka_consume_callback_queue(queues[i], 0, on_message, NULL);
            rd_kafka_poll(clients[i], 1);
        }
    if (atomic_load(&delivered) != rounds * producers) error_note("produce", "not every record was acknowledged");
    if (consumers && atomic_load(&consumed) == 0) error_note("consume", "no record arrived");
    for (long i = 0; i < quiet; i++)
        if (introduce(idle[i], &request, &reply) < 0) error_note("connection", "a quiet client was cut off");

    json_begin();
    json_number("connections", (double)connections);
    json_number("connect_seconds", connected);
    json_number("records", (double)atomic_load(&delivered));
    json_number("consumed", (double)atomic_load(&consumed));
    json_errors();
    json_end();
    for (long i = 0; i < quiet; i++) close(idle[i]);
    _exit(0); /* a hundred orderly client shutdowns would take longer than the load */
}
