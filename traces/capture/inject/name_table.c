#include "name_table.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 1 << 16, SLOTS = 2 * MOST_NAMES, MOST_BYTES = 32 << 20 };

typedef struct {
  const char* text; /* NULL: free */
  size_t length;
  uint64_t hash;
  uint32_t id;
} Slot;

static Slot* slots;
static uint32_t count;
static size_t held;

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char* text, size_t length) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ (uint8_t)text[i]) * 1099511628211u;
  return hash;
}

uint32_t names_find(const char* text, size_t length, int* added) {
  *added = 0;
  if (slots == NULL) slots = calloc(SLOTS, sizeof *slots);
  if (slots == NULL) return 0;
  const uint64_t hash = hash_of(text, length);
  size_t at = hash % SLOTS;
  for (; slots[at].text != NULL; at = (at + 1) % SLOTS)
    if (slots[at].hash == hash && slots[at].length == length && memcmp(slots[at].text, text, length) == 0)
      return slots[at].id;
  if (count == MOST_NAMES || held + length > MOST_BYTES) return 0;
  char* copy = malloc(length);
  if (copy == NULL) return 0;
  memcpy(copy, text, length);
  held += length;
  slots[at] = (Slot){copy, length, hash, ++count};
  *added = 1;
  return count;
}
