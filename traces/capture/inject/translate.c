#include "translate.h"

#include <string.h>

#include "cupti_record.h"
#include "kernel_name.h"
#include "record_file.h"

static void add_kernel(const KernelRecord* r) {
  MwiKernel out = {.start = r->start,
                   .end = r->end,
                   .graph_node = r->graphNodeId,
                   .device = r->deviceId,
                   .context = r->contextId,
                   .stream = r->streamId,
                   .correlation = r->correlationId,
                   .name = kernel_name(r->name),
                   .graph = r->graphId,
                   .grid = {(uint32_t)r->gridX, (uint32_t)r->gridY, (uint32_t)r->gridZ},
                   .block = {(uint32_t)r->blockX, (uint32_t)r->blockY, (uint32_t)r->blockZ},
                   .registers = r->registersPerThread,
                   .static_shared_memory = (uint32_t)r->staticSharedMemory,
                   .dynamic_shared_memory = (uint32_t)r->dynamicSharedMemory,
                   .local_memory = r->localMemoryPerThread};
  FILE_ADD(out, MWI_KERNEL);
}

// What CUPTI's two records of copies have in common; `from` and `to` are devices.
#define COPY_OF(r, from, to)                                                                                        \
  {                                                                                                                 \
    .start = (r)->start, .end = (r)->end, .bytes = (r)->bytes, .graph_node = (r)->graphNodeId,                      \
    .device = (r)->deviceId, .context = (r)->contextId, .stream = (r)->streamId, .correlation = (r)->correlationId, \
    .source_device = (from), .destination_device = (to), .graph = (r)->graphId, .copy_kind = (r)->copyKind,         \
    .source_kind = (r)->srcKind, .destination_kind = (r)->dstKind,                                                  \
    .asynchronous = ((r)->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0                                            \
  }

static void add_copy(const CopyRecord* r) {
  MwiCopy out = COPY_OF(r, MWI_NO_DEVICE, MWI_NO_DEVICE);
  FILE_ADD(out, MWI_COPY);
}

static void add_peer_copy(const PeerCopyRecord* r) {
  MwiCopy out = COPY_OF(r, r->srcDeviceId, r->dstDeviceId);
  FILE_ADD(out, MWI_COPY);
}

static void add_memset(const MemsetRecord* r) {
  MwiMemset out = {.start = r->start,
                   .end = r->end,
                   .bytes = r->bytes,
                   .graph_node = r->graphNodeId,
                   .device = r->deviceId,
                   .context = r->contextId,
                   .stream = r->streamId,
                   .correlation = r->correlationId,
                   .value = r->value,
                   .graph = r->graphId,
                   .memory_kind = r->memoryKind,
                   .asynchronous = (r->flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0};
  FILE_ADD(out, MWI_MEMSET);
}

#if WITH_EVENT_SYNC
/* Does the CUPTI that is loaded write the number of an event's record? */
static int writes_event_sync(void) {
  static uint32_t version;
  if (version == 0 && cuptiGetVersion(&version) != CUPTI_SUCCESS) version = 1;
  return version >= 26;
}
#define EVENT_SYNC(record) (writes_event_sync() ? (record)->cudaEventSyncId : 0)
#else
#define EVENT_SYNC(record) 0
#endif

static void add_synchronization(const SynchronizationRecord* r) {
  MwiSynchronization out = {.start = r->start,
                            .end = r->end,
                            .event_sync = EVENT_SYNC(r),
                            .type = (uint32_t)r->type,
                            .correlation = r->correlationId,
                            .context = r->contextId,
                            .stream = r->streamId,
                            .event = r->cudaEventId};
  FILE_ADD(out, MWI_SYNCHRONIZATION);
}

static void add_event(const EventRecord* r) {
  MwiEvent out = {.event_sync = EVENT_SYNC(r),
                  .correlation = r->correlationId,
                  .context = r->contextId,
                  .stream = r->streamId,
                  .event = r->eventId};
  FILE_ADD(out, MWI_EVENT);
}

static void add_memory(const MemoryRecord* r) {
  MwiMemory out = {.time = r->timestamp,
                   .address = r->address,
                   .size = r->bytes,
                   .pool = r->memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID
                               ? 0
                               : r->memoryPoolConfig.address,
                   .operation = (uint32_t)r->memoryOperationType,
                   .memory_kind = (uint32_t)r->memoryKind,
                   .correlation = r->correlationId,
                   .device = r->deviceId,
                   .context = r->contextId,
                   .stream = r->streamId,
                   .asynchronous = r->isAsync != 0,
                   .name = file_name(r->name)};
  FILE_ADD(out, MWI_MEMORY);
}

static void add_pool(const PoolRecord* r) {
  MwiPool out = {.time = r->timestamp,
                 .address = r->address,
                 .size = r->size,
                 .release_threshold = r->releaseThreshold,
                 .utilized = r->utilizedSize,
                 .least_kept = r->minBytesToKeep,
                 .operation = (uint32_t)r->memoryPoolOperationType,
                 .type = (uint32_t)r->memoryPoolType,
                 .correlation = r->correlationId,
                 .device = r->deviceId};
  FILE_ADD(out, MWI_POOL);
}

static void add_unified(const UnifiedRecord* r) {
  MwiUnified out = {.start = r->start,
                    .end = r->end,
                    .value = r->value,
                    .address = r->address,
                    .counter = (uint32_t)r->counterKind,
                    .source = r->srcId,
                    .destination = r->dstId,
                    .stream = r->streamId,
                    .flags = r->flags,
                    .process = r->processId};
  FILE_ADD(out, MWI_UNIFIED);
}

/* CUPTI looks a name up in a table of constants; the file's table then hashes a few characters. */
static void add_call(const CallRecord* r) {
  const int runtime = r->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const char* name = NULL;
  if (cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, r->cbid, &name) !=
      CUPTI_SUCCESS)
    name = NULL;
  MwiCall out = {.start = r->start,
                 .end = r->end,
                 .domain = runtime ? 2 : 1,
                 .callback = r->cbid,
                 .name = file_name(name),
                 .thread = r->threadId,
                 .correlation = r->correlationId,
                 .result = r->returnValue};
  FILE_ADD(out, MWI_CALL);
}

static uint32_t thread_of(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId* id) {
  return kind == CUPTI_ACTIVITY_OBJECT_THREAD ? id->pt.threadId : 0;
}

static void add_marker(const MarkerRecord* r) {
  const CUpti_ActivityObjectKindId object = r->objectId;
  MwiMarker out = {.time = r->timestamp,
                   .id = r->id,
                   .flags = (uint32_t)r->flags & (CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS |
                                                  CUPTI_ACTIVITY_FLAG_MARKER_START | CUPTI_ACTIVITY_FLAG_MARKER_END),
                   .name = file_name(r->name),
                   .domain = file_name(r->domain),
                   .thread = thread_of(r->objectKind, &object)};
  FILE_ADD(out, MWI_MARKER);
}

static void add_external(const ExternalRecord* r) {
  MwiExternal out = {.external = r->externalId, .type = (uint32_t)r->externalKind, .correlation = r->correlationId};
  FILE_ADD(out, MWI_EXTERNAL);
}

static void add_overhead(const OverheadRecord* r) {
  const CUpti_ActivityObjectKindId object = r->objectId;
  MwiOverhead out = {
      .start = r->start, .end = r->end, .type = (uint32_t)r->overheadKind, .thread = thread_of(r->objectKind, &object)};
  FILE_ADD(out, MWI_OVERHEAD);
}

static void add_graph(const GraphRecord* r) {
  MwiGraph out = {.start = r->start,
                  .end = r->end,
                  .device = r->deviceId,
                  .context = r->contextId,
                  .stream = r->streamId,
                  .correlation = r->correlationId,
                  .graph = r->graphId};
  FILE_ADD(out, MWI_GRAPH);
}

static void add_device(const DeviceRecord* r) {
  MwiDevice out = {.memory_bytes = r->globalMemorySize,
                   .bytes_per_second = r->globalMemoryBandwidth * 1000, /* CUPTI: kBytes/s */
                   .id = r->id,
                   .name = file_name(r->name),
                   .multiprocessors = r->numMultiprocessors,
                   .warps_per_multiprocessor = r->maxWarpsPerMultiprocessor,
                   .threads_per_warp = r->numThreadsPerWarp,
                   .blocks_per_multiprocessor = r->maxBlocksPerMultiprocessor,
                   .registers_per_multiprocessor = r->maxRegistersPerMultiprocessor,
                   .shared_memory_per_multiprocessor = r->maxSharedMemoryPerMultiprocessor,
                   .l2_bytes = r->l2CacheSize,
                   .copy_engines = r->numMemcpyEngines,
                   .capability_major = r->computeCapabilityMajor,
                   .capability_minor = r->computeCapabilityMinor};
  memcpy(out.uuid, r->uuid.bytes, sizeof out.uuid);
  FILE_ADD(out, MWI_DEVICE);
}

static void add_context(const ContextRecord* r) {
  MwiContext out = {.id = r->contextId, .device = r->deviceId, .null_stream = r->nullStreamId};
  FILE_ADD(out, MWI_CONTEXT);
}

static void add_stream(const StreamRecord* r) {
  MwiStream out = {.context = r->contextId, .stream = r->streamId, .priority = r->priority, .flag = (uint32_t)r->flag};
  FILE_ADD(out, MWI_STREAM);
}

/* What ran on a device. Returns 0 for another kind. */
static int add_device_work(const CUpti_Activity* r) {
  switch (r->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      add_kernel((const KernelRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      add_copy((const CopyRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      add_peer_copy((const PeerCopyRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      add_memset((const MemsetRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      add_graph((const GraphRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
      add_unified((const UnifiedRecord*)r);
      return 1;
    default:
      return 0;
  }
}

/* What the host did. Returns 0 for another kind. */
static int add_host_work(const CUpti_Activity* r) {
  switch (r->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      add_call((const CallRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      add_synchronization((const SynchronizationRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      add_event((const EventRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      add_memory((const MemoryRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      add_pool((const PoolRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_MARKER:
      add_marker((const MarkerRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      add_external((const ExternalRecord*)r);
      return 1;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      add_overhead((const OverheadRecord*)r);
      return 1;
    default:
      return 0;
  }
}

static void add(const CUpti_Activity* r) {
  if (add_device_work(r) || add_host_work(r)) return;
  if (r->kind == CUPTI_ACTIVITY_KIND_DEVICE)
    add_device((const DeviceRecord*)r);
  else if (r->kind == CUPTI_ACTIVITY_KIND_CONTEXT)
    add_context((const ContextRecord*)r);
  else if (r->kind == CUPTI_ACTIVITY_KIND_STREAM)
    add_stream((const StreamRecord*)r);
  else
    file_count_unknown();
}

void translate_buffer(uint8_t* buffer, size_t valid) {
  CUpti_Activity* record = NULL;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(record);
}

void translate_refusal(uint32_t activity, const char* name, uint32_t result) {
  const char* reason = NULL;
  if (cuptiGetResultString((CUptiResult)result, &reason) != CUPTI_SUCCESS) reason = NULL;
  MwiRefused out = {.activity = activity, .result = result, .name = file_name(name), .reason = file_name(reason)};
  FILE_ADD(out, MWI_REFUSED);
}
