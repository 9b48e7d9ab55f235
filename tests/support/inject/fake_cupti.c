#include "fake_cupti.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "traces/capture/inject/cupti_record.h"

enum { MOST_KINDS = 64, MOST_THREADS = 64 };

static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static atomic_int enabled[MOST_KINDS];
static atomic_uint_fast64_t made, dropped, told;
static int refused = -2;
static uint32_t period;

/* The buffer that a thread fills. */
typedef struct {
  uint8_t* buffer;
  size_t size, used;
} Open;
static Open open_buffers[MOST_THREADS];

/* --- what the library asks for --- */
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  if (refused == -1) return CUPTI_ERROR_NOT_INITIALIZED;
  requested = request;
  completed = complete;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if ((int)kind == refused) return CUPTI_ERROR_NOT_COMPATIBLE;
  atomic_store(&enabled[kind], 1);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityConfigureUnifiedMemoryCounter(CUpti_ActivityUnifiedMemoryCounterConfig* config,
                                                                uint32_t count) {
  return config != NULL && count > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  return cbid > 0 && enable == 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  return cuptiActivityEnableRuntimeApi(cbid, enable);
}

CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t time) {
  period = time;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* time) {
  static atomic_uint_fast64_t now = 1000;
  *time = atomic_fetch_add(&now, 1000);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_NOT_COMPATIBLE ? "CUPTI_ERROR_NOT_COMPATIBLE" : "CUPTI_ERROR_NOT_INITIALIZED";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (cbid == 99) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaLaunchKernel_v7000" : "cuLaunchKernel";
  return CUPTI_SUCCESS;
}

/* Tells each loss once, as CUPTI does. */
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t* count) {
  (void)context;
  (void)stream;
  const uint64_t now = atomic_load(&dropped);
  *count = (size_t)(now - atomic_exchange(&told, now));
  return CUPTI_SUCCESS;
}

/* --- records, each in front of its size --- */
static size_t padded(size_t size) { return (size + 15) / 8 * 8; }

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* at = buffer;
  if (*record != NULL) {
    uint64_t size = 0;
    memcpy(&size, (uint8_t*)*record - 8, 8);
    at = (uint8_t*)*record - 8 + padded(size);
  }
  if (at + 8 > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity*)(void*)(at + 8);
  return CUPTI_SUCCESS;
}

static void close_buffer(Open* open) {
  if (open->buffer != NULL) completed(NULL, 0, open->buffer, open->size, open->used);
  memset(open, 0, sizeof *open);
}

static void add(Open* open, const void* record, size_t size) {
  atomic_fetch_add(&made, 1);
  if (open->buffer != NULL && open->used + padded(size) > open->size) close_buffer(open);
  if (open->buffer == NULL) {
    size_t most = 0;
    requested(&open->buffer, &open->size, &most);
    open->used = 0;
  }
  if (open->buffer == NULL) {
    atomic_fetch_add(&dropped, 1);
    return;
  }
  const uint64_t length = size;
  memcpy(open->buffer + open->used, &length, 8);
  memcpy(open->buffer + open->used + 8, record, size);
  open->used += padded(size);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  for (size_t i = 0; i < MOST_THREADS; ++i) close_buffer(&open_buffers[i]);
  return CUPTI_SUCCESS;
}

static const char* const kernel_names[] = {"_Z3addPfS_i", "triton_poi_fused_add_0", NULL};

static void add_work(Open* open, uint32_t thread, uint32_t round) {
  const uint64_t start = 1000000 + (uint64_t)round * 1000;
  const uint32_t correlation = thread << 24 | round;
  KernelRecord kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = start + 100;
  kernel.end = start + 200;
  kernel.streamId = thread;
  kernel.contextId = 1;
  kernel.correlationId = correlation;
  kernel.gridX = 12;
  kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
  kernel.blockX = 256;
  kernel.registersPerThread = 40;
  kernel.dynamicSharedMemory = 1024;
  kernel.name = kernel_names[round % 3];
  add(open, &kernel, sizeof kernel);
  CallRecord call;
  memset(&call, 0, sizeof call);
  call.kind = round % 2 == 0 ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  call.cbid = 211;
  call.start = start;
  call.end = start + 50;
  call.threadId = 1000 + thread;
  call.correlationId = correlation;
  add(open, &call, sizeof call);
  CopyRecord copy;
  memset(&copy, 0, sizeof copy);
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  copy.bytes = 4096;
  copy.start = start + 300;
  copy.end = start + 350;
  copy.streamId = thread;
  add(open, &copy, sizeof copy);
}

static void add_markers(Open* open, uint32_t thread, uint32_t round) {
  MarkerRecord marker;
  memset(&marker, 0, sizeof marker);
  marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
  marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_START;
  marker.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  marker.objectId.pt.threadId = 1000 + thread;
  marker.id = thread << 24 | round;
  marker.timestamp = 1000000 + (uint64_t)round * 1000 - 1;
  marker.name = "step";
  add(open, &marker, sizeof marker);
  marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_END;
  marker.timestamp += 999;
  marker.name = NULL;
  add(open, &marker, sizeof marker);
}

static void add_memory(Open* open, uint32_t thread, uint32_t round) {
  MemoryRecord memory;
  memset(&memory, 0, sizeof memory);
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType =
      round % 2 == 0 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  memory.address = 0x10000 + thread;
  memory.bytes = 512;
  memory.timestamp = 1000000 + (uint64_t)round * 1000 + 10;
  memory.correlationId = thread << 24 | round;
  add(open, &memory, sizeof memory);
  /* A kind that the library did not ask for, as a later CUPTI may send one. */
  CUpti_Activity other;
  memset(&other, 0, sizeof other);
  other.kind = CUPTI_ACTIVITY_KIND_PCIE;
  add(open, &other, sizeof other);
}

typedef struct {
  uint32_t thread, rounds;
} Script;

static void* play(void* argument) {
  const Script script = *(const Script*)argument;
  Open* open = &open_buffers[script.thread];
  for (uint32_t round = 0; round < script.rounds; ++round) {
    add_work(open, script.thread, round);
    add_markers(open, script.thread, round);
    add_memory(open, script.thread, round);
  }
  return NULL;
}

void fake_run(unsigned threads, unsigned rounds) {
  pthread_t started[MOST_THREADS];
  Script scripts[MOST_THREADS];
  if (threads > MOST_THREADS) abort();
  for (unsigned i = 0; i < threads; ++i) {
    scripts[i] = (Script){i, rounds};
    if (pthread_create(&started[i], NULL, play, &scripts[i]) != 0) abort();
  }
  for (unsigned i = 0; i < threads; ++i) pthread_join(started[i], NULL);
}

uint64_t fake_made(void) { return atomic_load(&made); }
uint64_t fake_dropped(void) { return atomic_load(&dropped); }
int fake_enabled(int kind) { return kind >= 0 && kind < MOST_KINDS && atomic_load(&enabled[kind]); }
uint32_t fake_flush_period(void) { return period; }
void fake_refuse(int kind) { refused = kind; }
