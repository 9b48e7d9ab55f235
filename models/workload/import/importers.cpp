// The list of formats: one entry each. An entry's functions stand in the format's own files.
#include <algorithm>

#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/chakra/chakra_graph.h"
#include "models/workload/import/chakra/chakra_import.h"
#include "models/workload/import/cupti/inject_import.h"
#include "models/workload/import/cupti/nsys_import.h"
#include "models/workload/import/execution_trace/execution_step.h"
#include "models/workload/import/importer.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "models/workload/import/rocm/rocm_import.h"
#include "models/workload/import/snapshot/snapshot_step.h"
#include "models/workload/import/tables/dtr_import.h"
#include "models/workload/import/tables/g10_csv.h"
#include "models/workload/import/tables/memory_timeline.h"
#include "models/workload/import/tables/triosim_import.h"

namespace memwall {
namespace {

const Importer* first_that_recognizes(const FileHead& head) {
  for (const Importer& importer : importers())
    if (importer.recognizes(head)) return &importer;
  return nullptr;
}

}  // namespace

const std::vector<Importer>& importers() {
  static const std::vector<Importer> all{
      {.name = "captured step",
       .sentence = "memwall_capture, a Python package of memwall: .mwc, .mwc.gz",
       .recognized = "JSON lines whose first says \"format\": \"memwall-capture\"",
       .knows = "allocations, dataflow, modules, shapes; timing where it was captured on a GPU",
       .recognizes = recognizes_mwc,
       .import = import_mwc},
      {.name = "captured CUDA program",
       .sentence = "libmemwall_inject, a library of memwall, around any CUDA program: .mwi",
       .recognized = "its first 8 bytes, \\x89MWI\\r\\n\\x1a\\n",
       .knows = "timing; allocations of cudaMalloc and its kin",
       .takes_step_range = true,
       .recognizes = recognizes_inject,
       .import = import_inject},
      {.name = "Kineto capture",
       .sentence = "torch.profiler, export_chrome_trace or tensorboard_trace_handler: .json, .json.gz",
       .recognized = "JSON with a member \"traceEvents\", or an array of events",
       .knows = "timing; allocations with profile_memory; modules with with_stack or with_modules; dataflow with an "
                "ExecutionTrace of the same run (--et)",
       .takes_execution_trace = true,
       .recognizes = recognizes_kineto,
       .import = import_kineto},
      {.name = "ExecutionTrace",
       .sentence =
           "torch.profiler, ExecutionTraceObserver: .json, .json.gz; alone, or with --et beside a Kineto capture",
       .recognized = "JSON with members \"schema\" and \"nodes\"",
       .knows = "dataflow, shapes; allocations derived from uses; no timing: a machine gives it",
       .recognizes = recognizes_execution_trace,
       .import = import_execution_trace},
      {.name = "Chakra trace",
       .sentence = "Chakra's converters and generators, a file per rank: .et",
       .recognized = "protobuf messages behind their sizes: a GlobalMetadata, then Nodes",
       .knows = "timing where nodes have durations; dataflow and derived allocations where they list tensors; shapes",
       .recognizes = recognizes_chakra_messages,
       .import = import_chakra_messages},
      {.name = "Chakra trace in JSON",
       .sentence = "graphs for Chakra's feeder, and what chakra_jsonizer prints: .json",
       .recognized = "JSON with a member \"workload_graph\", or protobuf messages printed one by one",
       .knows = "as a Chakra trace; graphs for the feeder list no tensors",
       .recognizes = recognizes_chakra_json,
       .import = import_chakra_json},
      {.name = "G10 workload",
       .sentence = "the G10 artifact (MICRO 2023): X.kernels.csv, with X.tensors.csv beside it",
       .recognized = "CSV whose first column is kernel_id",
       .knows = "timing, allocations, dataflow",
       .recognizes = recognizes_g10,
       .import = import_g10},
      {.name = "ROCm profile",
       .sentence = "rocprofv3, whose --output-format is rocpd by default since ROCm 7, and rocprof-sys: .db",
       .recognized = "an SQLite database with tables of rocpd",
       .knows = "timing; operators, phases and steps by roctx ranges; allocations with --memory-allocation-trace",
       .takes_step_range = true,
       .takes_rank = true,
       .recognizes = recognizes_rocpd,
       .import = import_rocm},
      {.name = "ROCm profile in JSON",
       .sentence = "rocprofv3 --output-format json: .json",
       .recognized = "JSON with a member \"rocprofiler-sdk-tool\"",
       .knows = "as a ROCm profile",
       .takes_step_range = true,
       .takes_rank = true,
       .recognizes = recognizes_rocprof_json,
       .import = import_rocm},
      {.name = "Nsight Systems export",
       .sentence = "nsys export --type sqlite: .sqlite",
       .recognized = "any other SQLite database",
       .knows =
           "timing; operators, phases and steps by NVTX ranges; allocations of cudaMalloc with --cuda-memory-usage",
       .takes_step_range = true,
       .takes_rank = true,
       .recognizes = recognizes_nsys,
       .import = import_nsys},
      {.name = "TrioSim workload",
       .sentence = "sarchlab/triosim's tracer: trace.csv, with tensor.csv beside it",
       .recognized = "CSV with columns OperatorID and Operator_cudatime, or TensorID and TensorNumElement",
       .knows = "timing, dataflow, shapes; allocations from first to last use",
       .recognizes = recognizes_triosim,
       .import = import_triosim},
      {.name = "DTR log",
       .sentence = "the DTR prototype (uwsampl/dtr-prototype): .log",
       .recognized = "JSON lines with a member \"INSTRUCTION\"",
       .knows = "timing, allocations, dataflow",
       .recognizes = recognizes_dtr,
       .import = import_dtr},
      {.name = "memory timeline",
       .sentence = "torch.profiler, export_memory_timeline: .raw.json.gz",
       .recognized = "a JSON list of lists of four whole numbers",
       .knows = "allocations and the host's time between them; no device work",
       .recognizes = recognizes_memory_timeline,
       .import = import_memory_timeline},
      {.name = "memory snapshot",
       .sentence = "torch.cuda.memory._dump_snapshot: .pickle (`memwall memory` replays it exact to the byte)",
       .recognized = "a pickle of protocol 2 to 5",
       .knows = "allocations and the host's time between them; no device work",
       .recognizes = recognizes_snapshot,
       .import = import_snapshot},
  };
  return all;
}

const Importer* find_importer(FileHead& head) {
  const Importer* found = first_that_recognizes(head);
  if (found != nullptr || !head.text.starts_with('{') || first_members(head.text).closed) return found;
  JsonSource json(head.path);
  for (std::size_t i = 0; const auto name = json.next_member(); ++i) {
    if (i < head.members.size()) continue;  // seen before
    head.members.push_back(*name);
    if ((found = first_that_recognizes(head)) != nullptr) return found;
  }
  return nullptr;
}

std::string unsupported_file_hint(const FileHead& head) {
  if (is_archive(head.raw) || head.raw.starts_with("\x1f\x8b"))
    return "it holds another archive or compressed file; unpack the outer one";
  if (head.raw.find_first_not_of('\0') == std::string::npos)
    return "it begins with zeros alone, as a tar archive without files does";
  if (head.text.starts_with("tensor_id"))
    return "this is the tensors file of a G10 workload; give its X.kernels.csv, the tensors are found beside it";
  // Told by the name: what is in these is NVIDIA's own.
  const std::string extension = head.path.extension().string();
  if (extension == ".nsys-rep" || extension == ".qdrep") {
    std::filesystem::path exported = head.path;
    exported.replace_extension(".sqlite");
    return "this is a report of Nsight Systems, which only Nsight reads; export it with `nsys export --type sqlite "
           "--output " +
           exported.string() + " " + head.path.string() + "` and give " + exported.string();
  }
  if (extension == ".qdstrm")
    return "this is a recording that Nsight Systems has not finished; make a report of it with `QdstrmImporter "
           "--input-file " +
           head.path.string() + "`, and export that with `nsys export --type sqlite`";
  return "";
}

}  // namespace memwall
