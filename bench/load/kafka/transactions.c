/* --producers transactional producers that each begin a transaction, write --records records to a partition of their own,
 * commit and begin the next, for --seconds. The partitions' end offsets prove that every commit left its records and its marker. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kafka.h"

struct worker {
    rd_kafka_t *client;
    rd_kafka_topic_t *topic;
    pthread_t thread;
    int32_t partition;
    long committed;
    struct timings timings;
};

static long records, size;
static const char *payload;
static _Atomic int64_t stop_ns;

/* Ends the program with the reason, unless all went well. */
static void expect(rd_kafka_error_t *error, const char *step) {
    if (error) fail("%s failed: %s", step, rd_kafka_error_string(error));
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) error_note("delivery", rd_kafka_err2str(message->err));
}

static void one_transaction(struct worker *worker) {
    expect(rd_kafka_begin_transaction(worker->client), "beginning a transaction");
    for (long i = 0; i < records; i++) {
        char *value = (char *)payload + (worker->committed + i) % PAYLOAD_STARTS;
        if (rd_kafka_produce(worker->topic, worker->partition, 0, value, (size_t)size, NULL, 0, NULL))
            fail("cannot produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    expect(rd_kafka_commit_transaction(worker->client, 30000), "committing a transaction");
    worker->committed++;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (;;) {
        int64_t begun = now_ns();
        if (begun >= atomic_load(&stop_ns)) return NULL;
        one_transaction(worker);
        timings_add(&worker->timings, now_ns() - begun);
    }
}

static int64_t end_offset(struct worker *worker, const char *topic) {
    int64_t low, high;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(worker->client, topic, worker->partition, &low, &high, 10000);
    if (error) fail("no end offset of %s-%d: %s", topic, worker->partition, rd_kafka_err2str(error));
    return high;
}

void load_transactions(void) {
    const char *topic = option_text("topic", NULL);
    long producers = option_number("producers", 1), seconds = option_number("seconds", 5);
    records = option_number("records", 1);
    size = option_number("size", 100);
    option_number("time-limit", 60);
    payload = payload_make((size_t)size);
    struct worker *workers = calloc((size_t)producers, sizeof *workers);
    for (long i = 0; i < producers; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%ld", topic, i);
        rd_kafka_conf_t *conf = kafka_conf();
        conf_set(conf, "transactional.id", name);
        conf_set(conf, "linger.ms", "0");
        /* A report of every delivery wakes the commit, which would else look for the last one every 10 ms. */
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        workers[i].client = kafka_new(RD_KAFKA_PRODUCER, conf);
        workers[i].topic = rd_kafka_topic_new(workers[i].client, topic, NULL);
        workers[i].partition = (int32_t)i;
        timings_init(&workers[i].timings, 1000000);
        expect(rd_kafka_init_transactions(workers[i].client, 30000), "starting a transactional producer");
        one_transaction(&workers[i]); /* opens the connections; does not count */
    }
    options_done();
    int64_t start = now_ns();
    atomic_store(&stop_ns, start + seconds * 1000000000L);
    for (long i = 0; i < producers; i++) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (long i = 0; i < producers; i++) pthread_join(workers[i].thread, NULL);
    double took = (double)(now_ns() - start) / 1e9;

    struct timings all;
    timings_init(&all, 10000000);
    long committed = 0;
    for (long i = 0; i < producers; i++) {
        /* The markers may follow the answer to the commit; a further transaction waits for them. */
        long done = workers[i].committed;
        one_transaction(&workers[i]);
        int64_t expected = (done + 1) * (records + 1), found;
        for (int tries = 0; (found = end_offset(&workers[i], topic)) < expected && tries < 500; tries++)
            sleep_until_ns(now_ns() + 10000000);
        if (found != expected) fail("partition %d ends at %ld, not at %ld", workers[i].partition, (long)found, (long)expected);
        committed += done - 1;
        for (size_t j = 0; j < workers[i].timings.count; j++) timings_add(&all, workers[i].timings.values[j]);
        rd_kafka_topic_destroy(workers[i].topic);
        rd_kafka_destroy(workers[i].client);
    }
    json_begin();
    json_number("transactions", (double)committed);
    json_number("per_second", (double)committed / took);
    json_number("p50_ms", timings_percentile_ms(&all, 50));
    json_number("p99_ms", timings_percentile_ms(&all, 99));
    json_errors();
    json_end();
}
