/* What the environment says about a capture; FORMAT.md and ../README.md list the variables. */
#ifndef MEMWALL_INJECT_SETTINGS_H
#define MEMWALL_INJECT_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  const char* path;    /* MEMWALL_INJECT_OUT */
  uint64_t limit;      /* MEMWALL_INJECT_LIMIT, bytes of the file; 0 = none */
  size_t buffer_bytes; /* MEMWALL_INJECT_BUFFER */
  uint32_t buffers;    /* MEMWALL_INJECT_BUFFERS */
  uint32_t period_ms;  /* MEMWALL_INJECT_PERIOD; 0 = CUPTI decides */
  int nvtx;            /* MEMWALL_INJECT_NVTX */
  int graphs_as_one;   /* MEMWALL_INJECT_GRAPHS=1 */
} Settings;

/* What cannot be understood is said on standard error, and its default is taken. */
Settings settings_read(void);

#endif
