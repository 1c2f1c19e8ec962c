/* What every load program here shares: options, a clock, a set of timings, payload bytes, and one JSON line as the answer. */
#ifndef HEADRACE_LOAD_SUPPORT_H
#define HEADRACE_LOAD_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program with one sentence on standard error. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* --name value pairs. An option nobody asked for is an error (options_done), so a typing mistake cannot pass unseen. */
void options_init(int argc, char **argv);
const char *option_text(const char *name, const char *otherwise);
long option_number(const char *name, long otherwise);
void options_done(void);

/* Nanoseconds on the monotonic clock. */
int64_t now_ns(void);
void sleep_until_ns(int64_t when);

/* Timings in nanoseconds; more than `capacity` are counted but not kept. */
struct timings {
    int64_t *values;
    size_t count, capacity;
};
void timings_init(struct timings *timings, size_t capacity);
void timings_add(struct timings *timings, int64_t nanoseconds);
double timings_percentile_ms(struct timings *timings, double percentile);

/* Text-like bytes, the same in every run, long enough to take a record of `size` from any start below PAYLOAD_STARTS. */
#define PAYLOAD_STARTS 65536
const char *payload_make(size_t size);

/* The answer: one JSON object on one line. */
void json_begin(void);
void json_number(const char *name, double value);
void json_text(const char *name, const char *value);
void json_end(void);

#endif
