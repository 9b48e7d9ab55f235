/* Names that were met, each with a number from 1 on. Bounded: 64 Ki names of 32 MiB in all. */
#ifndef MEMWALL_INJECT_NAME_TABLE_H
#define MEMWALL_INJECT_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The number of a text; `*added` tells whether it is new. 0 where there is no room. */
uint32_t names_find(const char* text, size_t length, int* added);

#endif
