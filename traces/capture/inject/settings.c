#include "settings.h"

#include <stdio.h>
#include <stdlib.h>

/* "256", "64K", "16M", "2G". Returns 0 where it is something else. */
static int parse(const char* text, uint64_t* value) {
  if (text[0] < '0' || text[0] > '9') return 0; /* strtoull would take a sign */
  char* end = NULL;
  const unsigned long long number = strtoull(text, &end, 10);
  unsigned shift = 0;
  if (*end == 'K') shift = 10;
  if (*end == 'M') shift = 20;
  if (*end == 'G') shift = 30;
  if (shift > 0) ++end;
  if (*end != '\0' || number > UINT64_MAX >> shift) return 0;
  *value = (uint64_t)number << shift;
  return 1;
}

static uint64_t number_from(const char* variable, uint64_t least, uint64_t most, uint64_t otherwise) {
  const char* text = getenv(variable);
  if (text == NULL || text[0] == '\0') return otherwise;
  uint64_t value = 0;
  if (parse(text, &value) && value >= least && value <= most) return value;
  fprintf(
      stderr,
      "memwall: %s=%.60s: expected a whole number from %llu to %llu, with K, M or G behind it or not; %llu is taken.\n",
      variable, text, (unsigned long long)least, (unsigned long long)most, (unsigned long long)otherwise);
  return otherwise;
}

Settings settings_read(void) {
  Settings settings;
  const char* path = getenv("MEMWALL_INJECT_OUT");
  settings.path = path != NULL && path[0] != '\0' ? path : "memwall-%p.mwi";
  settings.limit = number_from("MEMWALL_INJECT_LIMIT", 0, UINT64_MAX, UINT64_C(8) << 30);
  settings.buffer_bytes = (size_t)number_from("MEMWALL_INJECT_BUFFER", 4096, 64 << 20, 1 << 20) & ~(size_t)7;
  settings.buffers = (uint32_t)number_from("MEMWALL_INJECT_BUFFERS", 2, 4096, 64);
  settings.period_ms = (uint32_t)number_from("MEMWALL_INJECT_PERIOD", 0, 3600000, 1000);
  settings.nvtx = number_from("MEMWALL_INJECT_NVTX", 0, 1, 1) != 0;
  settings.graphs_as_one = number_from("MEMWALL_INJECT_GRAPHS", 0, 1, 0) != 0;
  return settings;
}
