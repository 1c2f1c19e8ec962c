/* redis-load produce|consume|latency|delete --address HOST:PORT --topic STREAM [--option value …]: the same loads on a Redis stream. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../support.h"

static redisContext *redis_connect(void) {
    char host[256];
    const char *address = option_text("address", NULL), *colon = strrchr(address, ':');
    if (colon == NULL || (size_t)(colon - address) >= sizeof host) fail("%s is not HOST:PORT", address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    struct timeval limit = {.tv_sec = 10};
    redisContext *redis = redisConnectWithTimeout(host, atoi(colon + 1), limit);
    if (redis == NULL || redis->err) fail("no connection to %s: %s", address, redis ? redis->errstr : "no memory");
    redisSetTimeout(redis, limit);
    return redis;
}

static redisReply *checked(redisContext *redis, void *reply) {
    if (reply == NULL) fail("Redis did not answer: %s", redis->errstr);
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) fail("Redis: %s", ((redisReply *)reply)->str);
    return reply;
}

static redisReply *next_reply(redisContext *redis) {
    void *reply;
    if (redisGetReply(redis, &reply) != REDIS_OK) fail("Redis did not answer: %s", redis->errstr);
    return checked(redis, reply);
}

/* Sends XADD commands --batch-records at a time, with at most --in-flight of them not yet answered. */
static void produce(void) {
    const char *stream = option_text("topic", NULL);
    long records = option_number("records", 0), seconds = option_number("seconds", 0), size = option_number("size", 100);
    long in_flight = option_number("in-flight", 1000), batch = option_number("batch-records", 500), time_limit = option_number("time-limit", 60);
    if (records == 0 && seconds == 0) fail("--records or --seconds is needed");
    redisContext *redis = redis_connect();
    options_done();
    const char *payload = payload_make((size_t)size);
    int64_t start = now_ns(), stop = start + (seconds ? seconds : time_limit) * 1000000000L;
    long sent = 0, answered = 0;
    while (records == 0 || sent < records) {
        for (long i = 0; i < batch && (records == 0 || sent < records); i++, sent++)
            redisAppendCommand(redis, "XADD %s * v %b", stream, payload + sent % PAYLOAD_STARTS, (size_t)size);
        for (; sent - answered > in_flight - batch; answered++) freeReplyObject(next_reply(redis));
        if (now_ns() >= stop) break;
    }
    for (; answered < sent; answered++) freeReplyObject(next_reply(redis));
    double elapsed = (double)(now_ns() - start) / 1e9;
    json_begin();
    json_number("records", (double)answered);
    json_number("bytes", (double)answered * (double)size);
    json_number("seconds", elapsed);
    json_number("per_second", (double)answered / elapsed);
    json_number("errors", 0);
    json_end();
}

/* Visits each entry of an XREAD reply; returns how many there were and leaves the last id in `last`. */
static long entries(const redisReply *reply, char last[64], void (*visit)(const char *value, size_t length)) {
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) return 0;
    const redisReply *list = reply->element[0]->element[1];
    for (size_t i = 0; i < list->elements; i++) {
        const redisReply *value = list->element[i]->element[1]->element[1];
        visit(value->str, value->len);
    }
    if (list->elements) snprintf(last, 64, "%s", list->element[list->elements - 1]->element[0]->str);
    return (long)list->elements;
}

static int64_t bytes_read;

static void count_bytes(const char *value, size_t length) {
    (void)value;
    bytes_read += (int64_t)length;
}

static void consume(void) {
    const char *stream = option_text("topic", NULL);
    long records = option_number("records", 0), time_limit = option_number("time-limit", 60), batch = option_number("batch-records", 5000);
    redisContext *redis = redis_connect();
    options_done();
    char last[64] = "0-0";
    int64_t start = now_ns(), deadline = start + time_limit * 1000000000L;
    long count = 0;
    while (count < records && now_ns() < deadline) {
        redisReply *reply = checked(redis, redisCommand(redis, "XREAD COUNT %ld STREAMS %s %s", batch, stream, last));
        long got = entries(reply, last, count_bytes);
        freeReplyObject(reply);
        if (got == 0) fail("the stream ended after %ld of %ld records", count, records);
        count += got;
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    json_begin();
    json_number("records", (double)count);
    json_number("bytes", (double)bytes_read);
    json_number("seconds", elapsed);
    json_number("per_second", (double)count / elapsed);
    json_number("errors", 0);
    json_end();
}

static struct timings timings;
static int64_t measure_from;
static atomic_long received;

static void time_record(const char *value, size_t length) {
    int64_t sent;
    if (length < sizeof sent) fail("a record that this load did not send");
    memcpy(&sent, value, sizeof sent);
    if (sent >= measure_from) timings_add(&timings, now_ns() - sent);
    atomic_fetch_add(&received, 1);
}

struct receiving {
    redisContext *redis;
    const char *stream;
    long total;
};

static void *receive(void *opaque) {
    struct receiving *receiving = opaque;
    char last[64] = "0-0";
    while (atomic_load(&received) < receiving->total) {
        redisReply *reply =
            checked(receiving->redis, redisCommand(receiving->redis, "XREAD BLOCK 5000 STREAMS %s %s", receiving->stream, last));
        entries(reply, last, time_record);
        freeReplyObject(reply);
    }
    return NULL;
}

static void latency(void) {
    const char *stream = option_text("topic", NULL);
    long rate = option_number("rate", 1000), size = option_number("size", 100), seconds = option_number("seconds", 10);
    long warm_up = option_number("warm-up", 2);
    option_number("time-limit", 60);
    redisContext *producer = redis_connect();
    struct receiving receiving = {.redis = redis_connect(), .stream = stream, .total = rate * (warm_up + seconds)};
    options_done();
    int64_t start = now_ns() + 200000000;
    measure_from = start + warm_up * 1000000000L;
    timings_init(&timings, (size_t)(rate * seconds));
    pthread_t receiver;
    pthread_create(&receiver, NULL, receive, &receiving);
    char *value = malloc((size_t)size);
    memcpy(value, payload_make((size_t)size), (size_t)size);
    for (long number = 0; number < receiving.total; number++) {
        sleep_until_ns(start + number * 1000000000L / rate);
        int64_t sent = now_ns();
        memcpy(value, &sent, sizeof sent);
        freeReplyObject(checked(producer, redisCommand(producer, "XADD %s * v %b", stream, value, (size_t)size)));
    }
    pthread_join(receiver, NULL);
    json_begin();
    json_number("records", (double)atomic_load(&received));
    json_number("seconds", (double)seconds);
    json_number("p50_ms", timings_percentile_ms(&timings, 50));
    json_number("p99_ms", timings_percentile_ms(&timings, 99));
    json_number("max_ms", timings_percentile_ms(&timings, 100));
    json_number("errors", 0);
    json_end();
}

static void delete(void) {
    redisContext *redis = redis_connect();
    freeReplyObject(checked(redis, redisCommand(redis, "DEL %s", option_text("topic", NULL))));
    options_done();
    json_begin();
    json_number("errors", 0);
    json_end();
}

int main(int argc, char **argv) {
    if (argc < 2) fail("usage: redis-load produce|consume|latency|delete --address HOST:PORT --topic STREAM [--option value …]");
    options_init(argc - 2, argv + 2);
    signal(SIGPIPE, SIG_IGN);
    alarm((unsigned)(2 * option_number("time-limit", 60)));
    if (strcmp(argv[1], "produce") == 0)
        produce();
    else if (strcmp(argv[1], "consume") == 0)
        consume();
    else if (strcmp(argv[1], "latency") == 0)
        latency();
    else if (strcmp(argv[1], "delete") == 0)
        delete ();
    else
        fail("%s is not a kind of load: produce, consume, latency or delete", argv[1]);
    return 0;
}
