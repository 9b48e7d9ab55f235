/* The .mwi file while it is written, by one thread at a time: records, and the names that they point to.
 *
 * Nothing here ends the program: what cannot be written is counted. Memory is bounded: one buffer of output, and a
 * table of names with a limit. */
#ifndef MEMWALL_INJECT_RECORD_FILE_H
#define MEMWALL_INJECT_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* `path` may hold %p, which becomes the process id. Another process that is writing to the same path is left alone:
 * this one then writes to PATH.PID. `limit`: bytes of the file, 0 = none. Returns 0 or an errno. */
int file_open(const char* path, uint64_t limit);
/* Sets the header and adds the record. REQUIRES: `bytes` is a multiple of 8 and `record` begins with an MwiHeader. */
void file_add(void* record, uint16_t kind, size_t bytes);
#define FILE_ADD(record, kind) file_add(&(record), (kind), sizeof(record))
/* The number of a string, whose record is written before the first use. 0 for NULL, for "", and where the table is
 * full. */
uint32_t file_name(const char* text);
void file_count_unknown(void);
/* Writes MWI_LOSSES if a count has changed since the last one. */
void file_note_losses(uint64_t dropped, uint64_t refused_buffers);
/* To the operating system, so that a program that is killed loses little. */
void file_flush(void);
/* Writes MWI_END and closes. */
void file_close(uint64_t dropped, uint64_t refused_buffers);

#endif
