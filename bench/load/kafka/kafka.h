/* Shared by the kinds of load against a Kafka-compatible broker. */
#ifndef HEADRACE_LOAD_KAFKA_H
#define HEADRACE_LOAD_KAFKA_H

#include <librdkafka/rdkafka.h>

#include "../support.h"

/* A librdkafka configuration from --address, quiet about what the answer already says. */
rd_kafka_conf_t *kafka_conf(void);
void conf_set(rd_kafka_conf_t *conf, const char *name, const char *value);
void conf_set_number(rd_kafka_conf_t *conf, const char *name, long value);
rd_kafka_t *kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf);

/* The end offsets of a topic's partitions, summed up. */
int64_t end_offsets(rd_kafka_t *client, const char *topic, long partitions);

/* Errors seen by the clients of this process, and the first of them in words. */
void error_note(const char *where, const char *what);
long error_count(void);
void json_errors(void);

/* The kinds of load: each reads its options, runs within --time-limit seconds and prints its answer. */
void load_produce(void);
void load_flood(void);
void load_consume(void);
void load_drain(void);
void load_latency(void);
void load_positions(void);
void load_connections(void);
void load_commits(void);
void load_rebalance(void);
void load_idle_groups(void);
void load_transactions(void);

#endif
