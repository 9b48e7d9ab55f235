// Reads the tables of a rocpd database, which rocprofv3 writes by default since ROCm 7, and rocprof-sys on request.
//
// Tables are named rocpd_NAME_UUID (a merged database has a set per UUID; views of the plain names stand beside them
// and are not needed). Two forms of schema 3 are read, told apart by their columns: rows that hold start, end, process,
// thread, agent, queue and stream themselves, and rows that refer to rocpd_timestamp and rocpd_track.
//   rocpd_kernel_dispatch, rocpd_memory_copy   device work; its event's stack_id is the call that launched it
//   rocpd_region        calls (HIP, HSA, RCCL) and ranges of roctx; their kind is their event's category
//   rocpd_event         stack_id, parent_stack_id, category, extdata (of roctx {"message": "..."})
//   rocpd_arg           arguments of calls; those called stream and event are used
//   rocpd_memory_allocate   allocations of HSA, on which hipMalloc stands (--memory-allocation-trace)
//   rocpd_info_agent, rocpd_info_kernel_symbol, rocpd_info_process, rocpd_string   names
// Source: rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd/rocpd_tables.sql and lib/output/generateRocpd.cpp.
// Internal to the importer of ROCm's profiles.
#pragma once

#include <filesystem>

#include "models/workload/import/rocm/rocm_profile.h"

namespace memwall {

// Is it an SQLite database with tables of rocpd, or of rocmProfileData (RPD), whose tables have the same prefix? Never
// throws.
bool has_rocpd_tables(const std::filesystem::path& path);

// Throws InputError naming file, table, found and expected; for a trace of rocmProfileData (RPD), which is another
// format under similar names, saying so.
RocmProfile read_rocpd(const std::filesystem::path& path);

}  // namespace memwall
