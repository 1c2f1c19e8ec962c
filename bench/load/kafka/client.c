#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka.h"
#include "security.h"

static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static long errors;
static char first_error[256];

void error_note(const char *where, const char *what) {
    pthread_mutex_lock(&error_lock);
    if (errors++ == 0) snprintf(first_error, sizeof first_error, "%s: %s", where, what);
    pthread_mutex_unlock(&error_lock);
}

long error_count(void) {
    pthread_mutex_lock(&error_lock);
    long count = errors;
    pthread_mutex_unlock(&error_lock);
    return count;
}

void json_errors(void) {
    json_number("errors", (double)error_count());
    if (errors) json_text("first_error", first_error);
}

static void on_error(rd_kafka_t *client, int code, const char *reason, void *opaque) {
    (void)client, (void)opaque;
    error_note(rd_kafka_err2name(code), reason);
}

void conf_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK) fail("%s", reason);
}

void conf_set_number(rd_kafka_conf_t *conf, const char *name, long value) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    conf_set(conf, name, text);
}

rd_kafka_conf_t *kafka_conf(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    conf_set(conf, "bootstrap.servers", option_text("address", NULL));
    conf_set(conf, "socket.nagle.disable", "true");
    conf_set(conf, "log_level", "2");
    security_configure(conf);
    rd_kafka_conf_set_error_cb(conf, on_error);
    return conf;
}

rd_kafka_t *kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char reason[256];
    rd_kafka_t *client = rd_kafka_new(type, conf, reason, sizeof reason);
    if (client == NULL) fail("no client: %s", reason);
    return client;
}

int64_t end_offsets(rd_kafka_t *client, const char *topic, long partitions) {
    int64_t sum = 0;
    for (int32_t partition = 0; partition < partitions; partition++) {
        int64_t low, high, deadline = now_ns() + 10000000000L;
        rd_kafka_resp_err_t error;
        /* A topic made a moment ago may have no leader yet. */
        while ((error = rd_kafka_query_watermark_offsets(client, topic, partition, &low, &high, 10000)) && now_ns() < deadline) usleep(20000);
        if (error) fail("no end offset of %s-%d: %s", topic, partition, rd_kafka_err2str(error));
        sum += high;
    }
    return sum;
}
