/* libmemwall_inject.so: the CUDA driver loads it where CUDA_INJECTION64_PATH names it, and calls InitializeInjection.
 *
 * Three sides: CUPTI fills buffers of a fixed pool; a thread of our own turns their records into a file; an exit
 * handler has the rest delivered. No callback stands in the program's CUDA calls, no signal is caught, and nothing that
 * goes wrong here reaches the program: a capture that cannot begin says so on standard error and stays away. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer_pool.h"
#include "cupti_record.h"
#include "process.h"
#include "record_file.h"
#include "settings.h"
#include "translate.h"

static pthread_t writer;
static pid_t owner; /* a forked child has our memory, but not our threads */
static atomic_uint_fast64_t dropped;

typedef struct {
  CUpti_ActivityKind kind;
  const char* name;
} Activity;
#define ACTIVITY(kind) \
  { CUPTI_ACTIVITY_KIND_##kind, #kind }
static const Activity activities[] = {
    ACTIVITY(DEVICE),      ACTIVITY(CONTEXT),  ACTIVITY(STREAM),  ACTIVITY(CONCURRENT_KERNEL),
    ACTIVITY(MEMCPY),      ACTIVITY(MEMCPY2),  ACTIVITY(MEMSET),  ACTIVITY(SYNCHRONIZATION),
    ACTIVITY(CUDA_EVENT),  ACTIVITY(MEMORY2),  ACTIVITY(RUNTIME), ACTIVITY(DRIVER),
    ACTIVITY(MEMORY_POOL), ACTIVITY(OVERHEAD), ACTIVITY(MARKER),  ACTIVITY(EXTERNAL_CORRELATION),
};

#if CUPTI_API_VERSION >= 24
/* Questions that programs ask thousands of times a step; they neither launch nor wait. CUDA before 12.6 cannot leave
 * them out. */
static const CUpti_CallbackId quiet_runtime[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceCount_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000};
static const CUpti_CallbackId quiet_driver[] = {
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,       CUPTI_DRIVER_TRACE_CBID_cuCtxSetCurrent,
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice,        CUPTI_DRIVER_TRACE_CBID_cuCtxPushCurrent_v2,
    CUPTI_DRIVER_TRACE_CBID_cuCtxPopCurrent_v2,    CUPTI_DRIVER_TRACE_CBID_cuDeviceGetAttribute,
    CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute, CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttributes,
    CUPTI_DRIVER_TRACE_CBID_cuGetProcAddress_v2,   CUPTI_DRIVER_TRACE_CBID_cuStreamIsCapturing,
    CUPTI_DRIVER_TRACE_CBID_cuStreamGetCtx};
#endif

static void CUPTIAPI buffer_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = pool_take();
  *size = *buffer == NULL ? 0 : pool_buffer_bytes();
  *most_records = 0; /* as many as fit */
}

static void count_dropped(CUcontext context, uint32_t stream) {
  size_t lost = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) atomic_fetch_add(&dropped, lost);
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
  (void)size;
  count_dropped(context, stream);
  pool_fill(buffer, valid);
}

static void* write_records(void* unused) {
  (void)unused;
  int described = 0;
  FilledBuffer filled;
  while (pool_next(&filled)) {
    if (!described) {
      process_describe();
      described = 1;
    }
    translate_buffer(filled.data, filled.valid);
    pool_give_back(filled.data);
    file_note_losses(atomic_load(&dropped), pool_refused());
    file_flush();
  }
  if (!described) process_describe();
  return NULL;
}

/* The program's signals are the program's: none is delivered to the writer. */
static int start_writer(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&writer, NULL, write_records, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

/* NVTX asks its own variable when a program first names a range. CUPTI answers it. */
static void route_nvtx(void) {
  Dl_info found;
  CUptiResult(CUPTIAPI * anchor)(uint32_t*) = cuptiGetVersion;
  void* address = NULL;
  memcpy(&address, &anchor, sizeof address);
  if (getenv("NVTX_INJECTION64_PATH") == NULL && dladdr(address, &found) != 0 && found.dli_fname != NULL)
    setenv("NVTX_INJECTION64_PATH", found.dli_fname, 0);
}

static void enable(CUpti_ActivityKind kind, const char* name) {
  const CUptiResult result = cuptiActivityEnable(kind);
  if (result != CUPTI_SUCCESS) translate_refusal((uint32_t)kind, name, (uint32_t)result);
}

static void enable_unified_memory(void) {
  static const CUpti_ActivityUnifiedMemoryCounterKind counters[] = {
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
  enum { COUNTERS = sizeof counters / sizeof *counters };
  CUpti_ActivityUnifiedMemoryCounterConfig config[COUNTERS];
  for (size_t i = 0; i < COUNTERS; ++i) {
    config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
    config[i].kind = counters[i];
    config[i].deviceId = 0;
    config[i].enable = 1;
  }
  const CUptiResult result = cuptiActivityConfigureUnifiedMemoryCounter(config, COUNTERS);
  if (result == CUPTI_SUCCESS)
    enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, "UNIFIED_MEMORY_COUNTER");
  else
    translate_refusal(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, "UNIFIED_MEMORY_COUNTER", (uint32_t)result);
}

static void leave_out_questions(void) {
#if CUPTI_API_VERSION >= 24
  for (size_t i = 0; i < sizeof quiet_runtime / sizeof *quiet_runtime; ++i)
    cuptiActivityEnableRuntimeApi(quiet_runtime[i], 0);
  for (size_t i = 0; i < sizeof quiet_driver / sizeof *quiet_driver; ++i)
    cuptiActivityEnableDriverApi(quiet_driver[i], 0);
#endif
}

static void enable_activities(const Settings* settings) {
  cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  for (size_t i = 0; i < sizeof activities / sizeof *activities; ++i) enable(activities[i].kind, activities[i].name);
  enable_unified_memory();
  if (settings->graphs_as_one) enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE");
  leave_out_questions();
  if (settings->period_ms > 0) cuptiActivityFlushPeriod(settings->period_ms);
}

static void finish(void) {
  if (getpid() != owner) return;
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); /* also what has not ended yet */
  pool_close();
  pthread_join(writer, NULL);
  count_dropped(NULL, 0); /* since the last buffer came */
  process_note_clock();
  file_close(atomic_load(&dropped), pool_refused());
}

static int give_up(const char* what, const char* reason) {
  fprintf(stderr, "memwall: no capture: %s: %s; the program is not affected.\n", what, reason);
  return 0;
}

static int begin(const Settings* settings) {
  int error = file_open(settings->path, settings->limit);
  if (error != 0) return give_up(settings->path, strerror(error));
  error = pool_open(settings->buffers, settings->buffer_bytes);
  if (error != 0) return give_up("the buffers", strerror(error));
  const CUptiResult result = cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != CUPTI_SUCCESS) {
    const char* reason = NULL;
    if (cuptiGetResultString(result, &reason) != CUPTI_SUCCESS || reason == NULL) reason = "unknown";
    return give_up("CUPTI takes no buffers", reason);
  }
  process_note_clock();
  if (settings->nvtx) route_nvtx();
  enable_activities(settings); /* before the writer begins: until then the file is this thread's */
  error = start_writer();
  if (error != 0) {
    pool_close();
    return give_up("the writer", strerror(error));
  }
  owner = getpid();
  atexit(finish);
  return 1;
}

/* The driver's entry point. Returns 1 where a capture began. */
__attribute__((visibility("default"))) int InitializeInjection(void) {
  static atomic_flag called = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&called)) return 1;
  const Settings settings = settings_read();
  return begin(&settings);
}
