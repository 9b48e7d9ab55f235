/* A CUPTI without a GPU behind it: scripted threads make activity records faster than any writer drains them. */
#ifndef MEMWALL_TESTS_FAKE_CUPTI_H
#define MEMWALL_TESTS_FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* Makes records as threads of a program would: each takes buffers by the registered callback, fills them with a round
 * of every kind of record, and hands them back. Returns when all are done; the last buffer of each thread stays open
 * until cuptiActivityFlushAll, as CUPTI's do. */
void fake_run(unsigned threads, unsigned rounds);
/* Records that were made, and those of them for which no buffer was to be had. */
uint64_t fake_made(void);
uint64_t fake_dropped(void);
/* What the library asked for. */
int fake_enabled(int kind);
uint32_t fake_flush_period(void);
/* The next cuptiActivityEnable of this kind fails; of kind -1 the registration of callbacks does. */
void fake_refuse(int kind);

#endif
