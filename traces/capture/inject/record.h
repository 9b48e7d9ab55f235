/* The records of a .mwi file, as they lie in it.
 *
 * FORMAT.md says what each means; importers read the bytes by that page, not by this header. All numbers are little
 * endian, every record begins at a multiple of 8 bytes, times are nanoseconds of CUPTI's clock (start 0: not known),
 * and names are numbers of string records that came before. */
#ifndef MEMWALL_INJECT_RECORD_H
#define MEMWALL_INJECT_RECORD_H

#include <stdint.h>

#define MWI_MAGIC "\x89MWI\r\n\x1a\n"
#define MWI_BYTE_ORDER 0x01020304u
#define MWI_VERSION 1u
#define MWI_NO_DEVICE 0xffffffffu

enum {
  MWI_STRING = 1,
  MWI_PROCESS = 2,
  MWI_CLOCK = 3,
  MWI_DEVICE = 4,
  MWI_CONTEXT = 5,
  MWI_STREAM = 6,
  MWI_KERNEL = 7,
  MWI_COPY = 8,
  MWI_MEMSET = 9,
  MWI_SYNCHRONIZATION = 10,
  MWI_EVENT = 11,
  MWI_MEMORY = 12,
  MWI_POOL = 13,
  MWI_UNIFIED = 14,
  MWI_CALL = 15,
  MWI_MARKER = 16,
  MWI_EXTERNAL = 17,
  MWI_OVERHEAD = 18,
  MWI_GRAPH = 19,
  MWI_REFUSED = 20,
  MWI_LOSSES = 21,
  MWI_END = 22
};

typedef struct {
  char magic[8];
  uint32_t byte_order, version;
  uint32_t header_bytes, reserved;
  uint64_t created_ns; /* CLOCK_REALTIME */
} MwiFileHeader;

typedef struct {
  uint16_t kind, reserved;
  uint32_t bytes; /* of the whole record, a multiple of 8 */
} MwiHeader;

typedef struct { /* the characters follow, then zeros up to a multiple of 8 */
  MwiHeader header;
  uint32_t id, length;
} MwiString;

typedef struct {
  MwiHeader header;
  uint32_t process, executable, command_line;
  int32_t driver_version, runtime_version; /* as cuDriverGetVersion counts them; 0 = not known */
  uint32_t cupti_version, compiled_version, library_version;
} MwiProcess;

typedef struct { /* the same instant in three clocks */
  MwiHeader header;
  uint64_t cupti_ns, realtime_ns, monotonic_ns;
} MwiClock;

typedef struct {
  MwiHeader header;
  uint64_t memory_bytes, bytes_per_second;
  uint32_t id, name;
  uint32_t multiprocessors, warps_per_multiprocessor, threads_per_warp, blocks_per_multiprocessor;
  uint32_t registers_per_multiprocessor, shared_memory_per_multiprocessor;
  uint32_t l2_bytes, copy_engines;
  uint32_t capability_major, capability_minor;
  uint8_t uuid[16];
} MwiDevice;

typedef struct {
  MwiHeader header;
  uint32_t id, device, null_stream, reserved;
} MwiContext;

typedef struct {
  MwiHeader header;
  uint32_t context, stream, priority, flag;
} MwiStream;

typedef struct {
  MwiHeader header;
  uint64_t start, end, graph_node;
  uint32_t device, context, stream, correlation;
  uint32_t name, graph;
  uint32_t grid[3], block[3];
  uint32_t registers, static_shared_memory, dynamic_shared_memory, local_memory;
} MwiKernel;

typedef struct {
  MwiHeader header;
  uint64_t start, end, bytes, graph_node;
  uint32_t device, context, stream, correlation;
  uint32_t source_device, destination_device, graph;
  uint8_t copy_kind, source_kind, destination_kind, asynchronous;
} MwiCopy;

typedef struct {
  MwiHeader header;
  uint64_t start, end, bytes, graph_node;
  uint32_t device, context, stream, correlation;
  uint32_t value, graph;
  uint16_t memory_kind, asynchronous;
  uint32_t reserved;
} MwiMemset;

typedef struct {
  MwiHeader header;
  uint64_t start, end, event_sync;
  uint32_t type, correlation, context, stream, event, result;
} MwiSynchronization;

typedef struct {
  MwiHeader header;
  uint64_t event_sync;
  uint32_t correlation, context, stream, event;
} MwiEvent;

typedef struct {
  MwiHeader header;
  uint64_t time, address, size, pool;
  uint32_t operation, memory_kind, correlation, device, context, stream, asynchronous, name;
} MwiMemory;

typedef struct {
  MwiHeader header;
  uint64_t time, address, size, release_threshold, utilized, least_kept;
  uint32_t operation, type, correlation, device;
} MwiPool;

typedef struct {
  MwiHeader header;
  uint64_t start, end, value, address;
  uint32_t counter, source, destination, stream, flags, process;
} MwiUnified;

typedef struct {
  MwiHeader header;
  uint64_t start, end;
  uint32_t domain, callback, name, thread, correlation, result;
} MwiCall;

typedef struct {
  MwiHeader header;
  uint64_t time;
  uint32_t id, flags, name, domain, thread, reserved;
} MwiMarker;

typedef struct {
  MwiHeader header;
  uint64_t external;
  uint32_t type, correlation;
} MwiExternal;

typedef struct {
  MwiHeader header;
  uint64_t start, end;
  uint32_t type, thread;
} MwiOverhead;

typedef struct {
  MwiHeader header;
  uint64_t start, end;
  uint32_t device, context, stream, correlation, graph, reserved;
} MwiGraph;

typedef struct { /* a kind of activity that CUPTI would not record */
  MwiHeader header;
  uint32_t activity, result, name, reason;
} MwiRefused;

/* MWI_LOSSES and MWI_END: what is known so far, sums since the start. */
typedef struct {
  MwiHeader header;
  uint64_t records;         /* in the file before this one */
  uint64_t dropped;         /* by CUPTI, by its own count */
  uint64_t refused_buffers; /* times that no buffer was free, so that CUPTI dropped */
  uint64_t over_limit;      /* records left out because of MEMWALL_INJECT_LIMIT */
  uint64_t unknown;         /* records of kinds that are not written */
  uint64_t lost_names;      /* names that the table had no room for; they stand as 0 */
} MwiLosses;

#endif
