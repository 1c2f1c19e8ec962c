/* --producers transactional producers that each add a partition of their own to a transaction, write a batch of --records
 * records to it, commit and begin the next, for --seconds. They speak the protocol themselves: a client library's threads
 * would take most of the machine (librdkafka's main thread spins through every millisecond that it waits).
 * A producer told that its last transaction is still being ended asks again after a millisecond.
 * The partitions' end offsets prove that every commit left its records and its marker. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch.h"
#include "kafka.h"
#include "raw.h"

enum { UNKNOWN_TOPIC_OR_PARTITION = 3, NOT_LEADER_OR_FOLLOWER = 6, CONCURRENT_TRANSACTIONS = 51 };
enum { AGAIN_NS = 1000000, LAST_WAIT_MS = 10000 };

enum step { ADD, PRODUCE, END };

struct producer {
    char id[64];
    struct frame batch;
    int descriptor;
    int16_t epoch;
    int32_t partition, correlation, sequence;
    int64_t producer_id, begun_ns, again_ns; /* again_ns: when to ask once more, or 0 */
    enum step step;
    long committed;
};

static const char *topic;
static long records;
static struct frame request, reply;

static void step_send(struct producer *producer) {
    producer->correlation++;
    producer->again_ns = 0;
    if (producer->step == ADD) {
        frame_open(&request, API_ADD_PARTITIONS_TO_TXN, 2, producer->correlation);
        put_string(&request, producer->id);
        put_int64(&request, producer->producer_id);
        put_int16(&request, producer->epoch);
        put_int32(&request, 1);
        put_string(&request, topic);
        put_int32(&request, 1);
        put_int32(&request, producer->partition);
    } else if (producer->step == PRODUCE) {
        batch_of_producer(&producer->batch, producer->producer_id, producer->epoch, producer->sequence);
        frame_open(&request, API_PRODUCE, 7, producer->correlation);
        put_string(&request, producer->id);
        put_int16(&request, -1); /* acks */
        put_int32(&request, 30000);
        put_int32(&request, 1);
        put_string(&request, topic);
        put_int32(&request, 1);
        put_int32(&request, producer->partition);
        put_bytes(&request, producer->batch.bytes, (int32_t)producer->batch.length);
    } else {
        frame_open(&request, API_END_TXN, 2, producer->correlation);
        put_string(&request, producer->id);
        put_int64(&request, producer->producer_id);
        put_int16(&request, producer->epoch);
        put_int8(&request, 1); /* commit */
    }
    if (frame_send(&request, producer->descriptor) < 0) fail("a producer was cut off");
}

static int16_t step_answer(struct producer *producer) {
    char name[256];
    if (frame_receive(&reply, producer->correlation, producer->descriptor) < 0) fail("a producer was not answered");
    if (producer->step != PRODUCE) get_skip(&reply, 4); /* throttle time */
    if (producer->step != END) {
        get_skip(&reply, 4); /* one topic */
        get_string(&reply, name, sizeof name);
        get_skip(&reply, 4 + 4); /* one partition, its index */
    }
    return get_int16(&reply);
}

/* Takes the answer to the present step; true when that ended a transaction. */
static bool step_receive(struct producer *producer) {
    int16_t error = step_answer(producer);
    bool new_topic = error == UNKNOWN_TOPIC_OR_PARTITION || error == NOT_LEADER_OR_FOLLOWER; /* told of before it is led */
    if (error == CONCURRENT_TRANSACTIONS || (new_topic && producer->committed == 0)) {
        producer->again_ns = now_ns() + AGAIN_NS;
        return false;
    }
    if (error != 0) fail("step %d of a transaction failed with error %d", producer->step, error);
    if (producer->step == PRODUCE) producer->sequence += (int32_t)records;
    producer->step = producer->step == END ? ADD : producer->step + 1;
    if (producer->step != ADD) return false;
    producer->committed++;
    return true;
}

/* Until its coordinator gives it an id: asking for the coordinator is what creates the transactions' topic. */
static void producer_prepare(struct producer *producer, int64_t deadline) {
    for (;;) {
        frame_open(&request, API_FIND_COORDINATOR, 1, ++producer->correlation);
        put_string(&request, producer->id);
        put_int8(&request, 1); /* of a transaction */
        if (frame_exchange(&request, &reply, producer->descriptor) < 0) fail("FindCoordinator was not answered");
        get_skip(&reply, 4);
        if (get_int16(&reply) == 0) {
            frame_open(&request, API_INIT_PRODUCER_ID, 1, ++producer->correlation);
            put_string(&request, producer->id);
            put_int32(&request, 60000);
            if (frame_exchange(&request, &reply, producer->descriptor) < 0) fail("InitProducerId was not answered");
            get_skip(&reply, 4);
            if (get_int16(&reply) == 0) {
                producer->producer_id = get_int64(&reply);
                producer->epoch = get_int16(&reply);
                return;
            }
        }
        if (now_ns() > deadline) fail("%s has no coordinator", producer->id);
        usleep(20000);
    }
}

/* How long to wait for answers: until the first producer has to ask again. */
static int wait_ms(const struct producer *all, long count) {
    int64_t first = 0;
    for (long i = 0; i < count; i++)
        if (all[i].again_ns != 0 && (first == 0 || all[i].again_ns < first)) first = all[i].again_ns;
    if (first == 0) return LAST_WAIT_MS;
    int64_t left = first - now_ns();
    return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

void load_transactions(void) {
    const char *address = option_text("address", NULL);
    topic = option_text("topic", NULL);
    long producers = option_number("producers", 1), seconds = option_number("seconds", 5), size = option_number("size", 100);
    records = option_number("records", 1);
    option_number("time-limit", 60);
    rd_kafka_conf_t *conf = kafka_conf();
    options_done();
    struct producer *all = calloc((size_t)producers, sizeof *all);
    struct pollfd *polled = calloc((size_t)producers, sizeof *polled);
    struct timings timings;
    timings_init(&timings, 10000000);
    for (long i = 0; i < producers; i++) {
        snprintf(all[i].id, sizeof all[i].id, "%s-%ld", topic, i);
        all[i].partition = (int32_t)i;
        all[i].descriptor = raw_connect(address);
        if (all[i].descriptor < 0) fail("a producer cannot connect");
        batch_make(&all[i].batch, records, size);
        producer_prepare(&all[i], now_ns() + 30000000000L);
        polled[i] = (struct pollfd){.fd = all[i].descriptor, .events = POLLIN};
    }
    int64_t start = now_ns(), end = start + seconds * 1000000000L;
    long committed = 0, under_way = producers;
    for (long i = 0; i < producers; i++) {
        all[i].begun_ns = start;
        step_send(&all[i]);
    }
    while (under_way > 0) {
        if (poll(polled, (nfds_t)producers, wait_ms(all, producers)) == 0 && wait_ms(all, producers) == LAST_WAIT_MS)
            fail("no producer was answered for 10 seconds");
        for (long i = 0; i < producers; i++) {
            int64_t now = now_ns();
            if (all[i].again_ns != 0 && all[i].again_ns <= now) {
                step_send(&all[i]);
            } else if (polled[i].revents != 0) {
                bool ended = step_receive(&all[i]);
                now = now_ns();
                if (ended) {
                    timings_add(&timings, now - all[i].begun_ns);
                    all[i].begun_ns = now;
                    committed++;
                }
                if (ended && now >= end)
                    under_way--;
                else if (all[i].again_ns == 0)
                    step_send(&all[i]);
            }
        }
    }
    double elapsed = (double)(now_ns() - start) / 1e9;

    /* The last markers may follow the answers to the commits. */
    rd_kafka_t *client = kafka_new(RD_KAFKA_CONSUMER, conf);
    int64_t expected = committed * (records + 1), found = 0;
    for (int tries = 0; tries < 500 && (found = end_offsets(client, topic, producers)) < expected; tries++) usleep(10000);
    if (found != expected) fail("the partitions hold %ld records and markers, not %ld", (long)found, (long)expected);
    rd_kafka_destroy(client);
    json_begin();
    json_number("transactions", (double)committed);
    json_number("per_second", (double)committed / elapsed);
    json_number("p50_ms", timings_percentile_ms(&timings, 50));
    json_number("p99_ms", timings_percentile_ms(&timings, 99));
    json_errors();
    json_end();
}
