/* CUPTI's records become records of the file. Called by the writer only. */
#ifndef MEMWALL_INJECT_TRANSLATE_H
#define MEMWALL_INJECT_TRANSLATE_H

#include <stddef.h>
#include <stdint.h>

/* Adds every record of a filled buffer to the file. */
void translate_buffer(uint8_t* buffer, size_t valid);
/* The kind of activity cannot be recorded: `result` is CUPTI's. */
void translate_refusal(uint32_t activity, const char* name, uint32_t result);

#endif
