/* The buffers that CUPTI fills: a fixed number of a fixed size, so that memory is bounded whatever the program does.
 *
 * CUPTI's threads take and fill them, the writer drains them in the order in which they came. The one lock is held for
 * a few instructions per buffer, which is per thousands of records. */
#ifndef MEMWALL_INJECT_BUFFER_POOL_H
#define MEMWALL_INJECT_BUFFER_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint8_t* data;
  size_t valid; /* bytes of records in it */
} FilledBuffer;

/* Returns 0, or an errno where memory is short. REQUIRES: called once; count >= 1. */
int pool_open(uint32_t count, size_t bytes);
size_t pool_buffer_bytes(void);
/* A free buffer, or NULL: counted, the caller's records are lost. Never waits. */
uint8_t* pool_take(void);
/* Hands a taken buffer to the writer. One that is empty is free again at once. */
void pool_fill(uint8_t* buffer, size_t valid);
/* The oldest filled buffer; waits for one. Returns 0 when the pool is closed and empty. */
int pool_next(FilledBuffer* filled);
/* REQUIRES: from pool_next, and given back once. */
void pool_give_back(uint8_t* buffer);
/* From now on nothing is taken any more, and pool_next returns what is left. */
void pool_close(void);
uint64_t pool_refused(void);

#endif
