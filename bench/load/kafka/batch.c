#include "batch.h"

#include <endian.h>
#include <string.h>
#include <sys/time.h>

#include "kafka.h"

enum { LENGTH_AT = 8, CRC_AT = 17, CRC_FROM = 21, ATTRIBUTES_AT = 21, PRODUCER_AT = 43, EPOCH_AT = 51, SEQUENCE_AT = 53 };
enum { TRANSACTIONAL = 16 };

static uint32_t crc32c(const uint8_t *bytes, size_t length) {
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t each = i;
            for (int bit = 0; bit < 8; bit++) each = (each >> 1) ^ (0x82f63b78u & -(each & 1));
            table[i] = each;
        }
    }
    uint32_t crc = ~0u;
    while (length-- > 0) crc = table[(crc ^ *bytes++) & 255] ^ (crc >> 8);
    return ~crc;
}

static void put_varint(struct frame *frame, int64_t value) {
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    for (; left > 127; left >>= 7) put_int8(frame, (int8_t)(left | 128));
    put_int8(frame, (int8_t)left);
}

static int varint_length(int64_t value) {
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    int length = 1;
    for (; left > 127; left >>= 7) length++;
    return length;
}

static void seal(struct frame *batch) {
    uint32_t length = htobe32((uint32_t)batch->length - 12), crc = htobe32(crc32c(batch->bytes + CRC_FROM, batch->length - CRC_FROM));
    memcpy(batch->bytes + LENGTH_AT, &length, sizeof length);
    memcpy(batch->bytes + CRC_AT, &crc, sizeof crc);
}

void batch_make(struct frame *batch, long records, long size) {
    struct timeval now;
    gettimeofday(&now, NULL);
    int64_t timestamp = (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000;
    const char *payload = payload_make((size_t)size);
    batch->length = 0;
    put_int64(batch, 0);  /* base offset */
    put_int32(batch, 0);  /* length */
    put_int32(batch, -1); /* leader epoch */
    put_int8(batch, 2);   /* format */
    put_int32(batch, 0);  /* checksum */
    put_int16(batch, 0);  /* attributes */
    put_int32(batch, (int32_t)records - 1);
    put_int64(batch, timestamp);
    put_int64(batch, timestamp);
    put_int64(batch, -1); /* no producer id, epoch, sequence */
    put_int16(batch, -1);
    put_int32(batch, -1);
    put_int32(batch, (int32_t)records);
    for (long i = 0; i < records; i++) {
        /* attributes, timestamp delta, offset delta, null key, value, no headers */
        put_varint(batch, 1 + 1 + varint_length(i) + 1 + varint_length(size) + size + 1);
        put_int8(batch, 0);
        put_varint(batch, 0);
        put_varint(batch, i);
        put_varint(batch, -1);
        put_varint(batch, size);
        put_raw(batch, payload + i % PAYLOAD_STARTS, (size_t)size);
        put_varint(batch, 0);
    }
    seal(batch);
}

void batch_of_producer(struct frame *batch, int64_t producer_id, int16_t epoch, int32_t sequence) {
    uint16_t attributes = htobe16(TRANSACTIONAL), big_epoch = htobe16((uint16_t)epoch);
    uint64_t big_id = htobe64((uint64_t)producer_id);
    uint32_t big_sequence = htobe32((uint32_t)sequence);
    memcpy(batch->bytes + ATTRIBUTES_AT, &attributes, sizeof attributes);
    memcpy(batch->bytes + PRODUCER_AT, &big_id, sizeof big_id);
    memcpy(batch->bytes + EPOCH_AT, &big_epoch, sizeof big_epoch);
    memcpy(batch->bytes + SEQUENCE_AT, &big_sequence, sizeof big_sequence);
    seal(batch);
}
