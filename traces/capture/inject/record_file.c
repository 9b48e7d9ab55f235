#include "record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "name_table.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are written as they lie in memory; this needs a little-endian machine"
#endif

enum { OUTPUT_BYTES = 1 << 20, LONGEST_NAME = 16 << 10, RESERVED_FOR_END = sizeof(MwiLosses) };

static struct {
  int descriptor;
  int failed; /* errno of a write; what follows is counted as over the limit */
  uint64_t limit, written;
  size_t filled;
  MwiLosses losses; /* the counts so far */
  uint64_t noted;   /* their sum when they were last written */
  uint8_t* output;
} file = {.descriptor = -1};

/* `%p` becomes the process id; any other % stands for itself. Returns 0 or ENAMETOOLONG. */
static int expand(const char* path, char* to, size_t room) {
  size_t at = 0;
  while (*path != '\0') {
    char digits[16];
    const char* part = path;
    size_t length = 1;
    if (path[0] == '%' && path[1] == 'p') {
      length = (size_t)snprintf(digits, sizeof digits, "%d", (int)getpid());
      part = digits;
      path += 2;
    } else {
      ++path;
    }
    if (at + length + 1 > room) return ENAMETOOLONG;
    memcpy(to + at, part, length);
    at += length;
  }
  to[at] = '\0';
  return 0;
}

/* Opens without truncating, and truncates once the lock says that nobody else writes. Returns 0 or an errno. */
static int open_alone(const char* path) {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return errno;
  int error = 0;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    error = EWOULDBLOCK;
  else if (ftruncate(descriptor, 0) != 0 && errno != EINVAL) /* EINVAL: a pipe or a device */
    error = errno;
  if (error != 0) {
    close(descriptor);
    return error;
  }
  file.descriptor = descriptor;
  return 0;
}

static void write_out(void) {
  size_t done = 0;
  while (done < file.filled && file.failed == 0) {
    const ssize_t wrote = write(file.descriptor, file.output + done, file.filled - done);
    if (wrote >= 0)
      done += (size_t)wrote;
    else if (errno != EINTR)
      file.failed = errno;
  }
  if (file.failed != 0 && file.filled > 0)
    fprintf(stderr, "memwall: the capture cannot be written on: %s; the program is not affected.\n",
            strerror(file.failed));
  file.filled = 0;
}

static void append(const void* bytes, size_t count) {
  const uint8_t* from = bytes;
  file.written += count;
  while (count > 0 && file.failed == 0) {
    size_t part = OUTPUT_BYTES - file.filled;
    if (part > count) part = count;
    memcpy(file.output + file.filled, from, part);
    file.filled += part;
    from += part;
    count -= part;
    if (file.filled == OUTPUT_BYTES) write_out();
  }
}

static int has_room(size_t bytes) {
  return file.failed == 0 && (file.limit == 0 || file.written + bytes + RESERVED_FOR_END <= file.limit);
}

int file_open(const char* path, uint64_t limit) {
  char expanded[4096];
  int error = expand(path, expanded, sizeof expanded - 16);
  if (error != 0) return error;
  file.output = malloc(OUTPUT_BYTES);
  if (file.output == NULL) return ENOMEM;
  error = open_alone(expanded);
  if (error == EWOULDBLOCK) {
    snprintf(expanded + strlen(expanded), 16, ".%d", (int)getpid());
    error = open_alone(expanded);
  }
  if (error != 0) return error;
  file.limit = limit;
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  MwiFileHeader header = {.byte_order = MWI_BYTE_ORDER, .version = MWI_VERSION, .header_bytes = sizeof header};
  memcpy(header.magic, MWI_MAGIC, sizeof header.magic);
  header.created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  append(&header, sizeof header);
  return 0;
}

void file_add(void* record, uint16_t kind, size_t bytes) {
  if (file.descriptor < 0) return;
  if (!has_room(bytes)) {
    ++file.losses.over_limit;
    return;
  }
  MwiHeader* header = record;
  header->kind = kind;
  header->reserved = 0;
  header->bytes = (uint32_t)bytes;
  append(record, bytes);
  ++file.losses.records;
}

uint32_t file_name(const char* text) {
  if (text == NULL || text[0] == '\0' || file.descriptor < 0) return 0;
  const size_t length = strnlen(text, LONGEST_NAME);
  const size_t bytes = sizeof(MwiString) + (length + 7) / 8 * 8;
  if (!has_room(bytes)) {
    ++file.losses.lost_names;
    return 0;
  }
  int added = 0;
  const uint32_t id = names_find(text, length, &added);
  if (id == 0) ++file.losses.lost_names;
  if (id == 0 || !added) return id;
  const MwiString record = {{MWI_STRING, 0, (uint32_t)bytes}, id, (uint32_t)length};
  static const uint8_t zeros[8];
  append(&record, sizeof record);
  append(text, length);
  append(zeros, (8 - length % 8) % 8);
  ++file.losses.records;
  return id;
}

void file_count_unknown(void) { ++file.losses.unknown; }

static uint64_t count_losses(uint64_t dropped, uint64_t refused_buffers) {
  file.losses.dropped = dropped;
  file.losses.refused_buffers = refused_buffers;
  return dropped + refused_buffers + file.losses.over_limit + file.losses.unknown + file.losses.lost_names;
}

void file_note_losses(uint64_t dropped, uint64_t refused_buffers) {
  const uint64_t sum = count_losses(dropped, refused_buffers);
  if (sum == file.noted || !has_room(sizeof file.losses)) return;
  file.noted = sum;
  MwiLosses record = file.losses;
  FILE_ADD(record, MWI_LOSSES);
}

void file_flush(void) {
  if (file.descriptor >= 0) write_out();
}

void file_close(uint64_t dropped, uint64_t refused_buffers) {
  if (file.descriptor < 0) return;
  count_losses(dropped, refused_buffers);
  MwiLosses record = file.losses;
  record.header = (MwiHeader){MWI_END, 0, sizeof record};
  append(&record, sizeof record);
  write_out();
  close(file.descriptor);
  file.descriptor = -1;
}
