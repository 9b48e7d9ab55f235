// Reads a captured step record by record into a trace: the state in between. Internal to capture_import.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/capture_import.h"
#include "models/workload/import/capture_notes.h"
#include "models/workload/import/capture_records.h"
#include "models/workload/import/capture_storages.h"
#include "models/workload/import/number_table.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

struct CaptureThread {
  bool used = false;
  Phase phase = Phase::unknown;  // of its last op
  StringId module = 0;
  std::vector<OpId> pending;        // allocs whose phase and module are those of its next op
  std::uint64_t waiting_calls = 0;  // of operators without a kernel since its last op
};

struct CaptureStream {
  bool used = false;
  std::uint64_t kernels = 0, copies = 0, collectives = 0;
};

// The entry of a number that appears in a file, made if absent.
template <typename State>
State& state_of(std::vector<State>& states, std::uint16_t number) {
  if (number >= states.size()) states.resize(number + std::size_t{1});
  states[number].used = true;
  return states[number];
}

class CaptureImporter {
 public:
  explicit CaptureImporter(const std::filesystem::path& path)
      : path_(path), reader_(path), t_(builder_.trace()), storages_(builder_, reader_) {}

  ImportedCapture run();

 private:
  void take();
  void add_storage();
  void allocate();
  void free();
  void compute();
  void copy();
  void collective();
  void event();
  void synchronize();
  void mark(std::string_view name);

  [[noreturn]] void fail(const std::string& sentence) const { reader_.fail(sentence); }
  Op host_part(OpKind kind);
  Op launch(OpKind kind, std::string_view name);
  std::uint64_t calls() const;
  void find_original(Op& op);
  OpId append(Op op);
  void switch_thread(Op next);
  void settle_pending(const Op& op);
  void account(const Op& op);
  std::uint16_t group_index();

  ImportedCapture finish();
  void close_steps();
  void number_threads_and_streams();

  std::filesystem::path path_;
  CaptureReader reader_;
  CaptureRecord r_;
  TraceBuilder builder_;
  Trace& t_;
  CaptureStorages storages_;
  NumberTable op_of_, event_of_;
  std::vector<CaptureThread> threads_;
  std::vector<CaptureStream> streams_;
  std::vector<Use> uses_;     // of the present record
  std::uint16_t thread_ = 0;  // of the last record that has one
  double flops_ = 0, bytes_ = 0, picoseconds_ = 0;
  CaptureCounts counts_;
};

}  // namespace memwall
