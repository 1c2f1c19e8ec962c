/* Just enough of the wire protocol for loads that no client library can make: one exact fetch, a thousand quiet connections, batches made beforehand. */
#ifndef HEADRACE_LOAD_RAW_H
#define HEADRACE_LOAD_RAW_H

#include <stddef.h>
#include <stdint.h>

enum {
    API_PRODUCE = 0,
    API_FETCH = 1,
    API_METADATA = 3,
    API_OFFSET_COMMIT = 8,
    API_FIND_COORDINATOR = 10,
    API_JOIN_GROUP = 11,
    API_HEARTBEAT = 12,
    API_SYNC_GROUP = 14,
    API_SASL_HANDSHAKE = 17,
    API_VERSIONS = 18,
    API_INIT_PRODUCER_ID = 22,
    API_ADD_PARTITIONS_TO_TXN = 24,
    API_END_TXN = 26,
    API_SASL_AUTHENTICATE = 36,
};

struct frame {
    uint8_t *bytes;
    size_t length, capacity, read;
};

/* A connection to HOST:PORT, secured as the options say, with Nagle's delay off and 10-second limits on each send and receive; -1 when
 * it fails. */
int raw_connect(const char *address);

/* A request frame is opened, filled and sent; the reply's body (after the correlation id) is left ready to be read. */
void frame_open(struct frame *frame, int16_t api, int16_t version, int32_t correlation);
void put_int8(struct frame *frame, int8_t value);
void put_int16(struct frame *frame, int16_t value);
void put_int32(struct frame *frame, int32_t value);
void put_int64(struct frame *frame, int64_t value);
void put_string(struct frame *frame, const char *text); /* NULL is the null string */
void put_bytes(struct frame *frame, const void *bytes, int32_t length);
void put_raw(struct frame *frame, const void *bytes, size_t length); /* without a length before it */
void frame_number(struct frame *request, int32_t correlation); /* the same request once more, under another number */
int frame_exchange(struct frame *request, struct frame *reply, int descriptor);

/* The two halves of an exchange, for loads with many requests under way: the reply belongs to `correlation`, or it fails. */
int frame_send(struct frame *request, int descriptor);
int frame_receive(struct frame *reply, int32_t correlation, int descriptor);

int16_t get_int16(struct frame *frame);
int32_t get_int32(struct frame *frame);
int64_t get_int64(struct frame *frame);
void get_skip(struct frame *frame, size_t length);
void get_string(struct frame *frame, char *text, size_t capacity); /* a null string is read as the empty one */
void frame_free(struct frame *frame);

#endif
