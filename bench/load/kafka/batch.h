/* Record batches as the wire has them, made once and sent often. */
#ifndef HEADRACE_LOAD_BATCH_H
#define HEADRACE_LOAD_BATCH_H

#include <stdint.h>

#include "raw.h"

enum { BATCH_HEADER = 61 };

/* One batch of format 2 with --records records of --size bytes, without compression, keys or headers. */
void batch_make(struct frame *batch, long records, long size);

/* The same batch as part of a transaction: its producer, and the number of its first record. */
void batch_of_producer(struct frame *batch, int64_t producer_id, int16_t epoch, int32_t sequence);

#endif
