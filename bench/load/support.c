#include "support.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

#define MAX_OPTIONS 64
static struct {
    const char *name, *value;
    bool asked;
} options[MAX_OPTIONS];
static int option_count;

void options_init(int argc, char **argv) {
    for (int i = 0; i < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0) fail("%s is not an option: options are --name value pairs", argv[i]);
        if (i + 1 == argc) fail("%s needs a value", argv[i]);
        if (option_count == MAX_OPTIONS) fail("more than %d options", MAX_OPTIONS);
        options[option_count].name = argv[i] + 2;
        options[option_count++].value = argv[i + 1];
    }
}

const char *option_text(const char *name, const char *otherwise) {
    for (int i = 0; i < option_count; i++)
        if (strcmp(options[i].name, name) == 0) {
            options[i].asked = true;
            return options[i].value;
        }
    if (otherwise == NULL) fail("--%s is needed", name);
    return otherwise;
}

long option_number(const char *name, long otherwise) {
    const char *text = option_text(name, "");
    if (*text == '\0') return otherwise;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0') fail("--%s must be a whole number, not %s", name, text);
    return value;
}

void options_done(void) {
    for (int i = 0; i < option_count; i++)
        if (!options[i].asked) fail("--%s is not an option of this kind of load", options[i].name);
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_until_ns(int64_t when) {
    struct timespec target = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, NULL) == EINTR)
        ;
}

void timings_init(struct timings *timings, size_t capacity) {
    timings->values = malloc(sizeof(int64_t) * (capacity ? capacity : 1));
    if (timings->values == NULL) fail("no memory for %zu timings", capacity);
    timings->capacity = capacity;
    timings->count = 0;
}

void timings_add(struct timings *timings, int64_t nanoseconds) {
    if (timings->count < timings->capacity) timings->values[timings->count] = nanoseconds;
    timings->count++;
}

static int compare_int64(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

double timings_percentile_ms(struct timings *timings, double percentile) {
    size_t kept = timings->count < timings->capacity ? timings->count : timings->capacity;
    if (kept == 0) return NAN;
    qsort(timings->values, kept, sizeof(int64_t), compare_int64);
    size_t rank = (size_t)ceil(percentile / 100 * (double)kept);
    return (double)timings->values[rank == 0 ? 0 : rank - 1] / 1e6;
}

const char *payload_make(size_t size) {
    size_t length = size + PAYLOAD_STARTS;
    char *bytes = malloc(length);
    if (bytes == NULL) fail("no memory for a payload of %zu bytes", length);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < length; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        bytes[i] = "abcdefghijklmnopqrstuvwxyz012345"[state & 31];
    }
    return bytes;
}

static bool json_first;

void json_begin(void) {
    putchar('{');
    json_first = true;
}

static void json_name(const char *name) {
    printf(json_first ? "\"%s\": " : ", \"%s\": ", name);
    json_first = false;
}

void json_number(const char *name, double value) {
    json_name(name);
    if (isfinite(value))
        printf("%.9g", value);
    else
        printf("null");
}

void json_text(const char *name, const char *value) {
    json_name(name);
    putchar('"');
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') putchar('\\');
        if ((unsigned char)*value >= 0x20) putchar(*value);
    }
    putchar('"');
}

void json_end(void) {
    puts("}");
    fflush(stdout);
}
