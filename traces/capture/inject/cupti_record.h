/* CUPTI's record types under names without a version: the newest that the toolkit's headers have.
 *
 * CUPTI writes a record in the newest layout it knows; a layout only ever grows at its end, and the fields read here
 * stand in all of those listed, except the number of an event's record (WITH_EVENT_SYNC): a CUPTI older than the
 * headers does not write it. CUPTI_API_VERSION counts up: 18 is CUDA 12.1, 22 is 12.4, 24 is 12.6, 26 is 12.8; from
 * CUDA 13.0 on it is 130000 and more (cupti_version.h). */
#ifndef MEMWALL_INJECT_CUPTI_RECORD_H
#define MEMWALL_INJECT_CUPTI_RECORD_H

#include <cupti.h>

#if CUDA_VERSION < 12000
#error "memwall_inject needs CUPTI of CUDA 12.0 or later"
#endif

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 KernelRecord;
typedef CUpti_ActivityMemoryPool3 PoolRecord;
#else
typedef CUpti_ActivityKernel9 KernelRecord;
typedef CUpti_ActivityMemoryPool2 PoolRecord;
#endif

#if CUPTI_API_VERSION >= 26
typedef CUpti_ActivityMemcpy6 CopyRecord;
typedef CUpti_ActivityMemory4 MemoryRecord;
typedef CUpti_ActivityDevice5 DeviceRecord;
typedef CUpti_ActivityContext3 ContextRecord;
typedef CUpti_ActivityOverhead3 OverheadRecord;
typedef CUpti_ActivityUnifiedMemoryCounter3 UnifiedRecord;
typedef CUpti_ActivityCudaEvent2 EventRecord;
typedef CUpti_ActivitySynchronization2 SynchronizationRecord;
typedef CUpti_ActivityGraphTrace2 GraphRecord;
#define WITH_EVENT_SYNC 1
#else
typedef CUpti_ActivityMemcpy5 CopyRecord;
typedef CUpti_ActivityMemory3 MemoryRecord;
typedef CUpti_ActivityDevice4 DeviceRecord;
typedef CUpti_ActivityContext ContextRecord;
typedef CUpti_ActivityOverhead OverheadRecord;
typedef CUpti_ActivityUnifiedMemoryCounter2 UnifiedRecord;
typedef CUpti_ActivityCudaEvent EventRecord;
typedef CUpti_ActivitySynchronization SynchronizationRecord;
typedef CUpti_ActivityGraphTrace GraphRecord;
#define WITH_EVENT_SYNC 0
#endif

typedef CUpti_ActivityMemcpyPtoP4 PeerCopyRecord;
typedef CUpti_ActivityMemset4 MemsetRecord;
typedef CUpti_ActivityAPI CallRecord;
typedef CUpti_ActivityMarker2 MarkerRecord;
typedef CUpti_ActivityStream StreamRecord;
typedef CUpti_ActivityExternalCorrelation ExternalRecord;

#endif
