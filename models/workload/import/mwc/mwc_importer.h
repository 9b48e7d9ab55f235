// Reads a captured step record by record into a trace: the state in between. Internal to mwc_import.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/mwc/mwc_import.h"
#include "models/workload/import/mwc/mwc_notes.h"
#include "models/workload/import/mwc/mwc_records.h"
#include "models/workload/import/mwc/mwc_storages.h"
#include "models/workload/import/mwc/number_table.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

struct MwcThread {
  bool used = false;
  Phase phase = Phase::unknown;  // of its last op
  StringId module = 0;
  std::vector<OpId> pending;        // allocs whose phase and module are those of its next op
  std::uint64_t waiting_calls = 0;  // of operators without a kernel since its last op
};

struct MwcStream {
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

class MwcImporter {
 public:
  explicit MwcImporter(const std::filesystem::path& path)
      : path_(path), reader_(path), t_(builder_.trace()), storages_(builder_, reader_) {}

  ImportedMwc run();

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
  void assign_pending_allocs(const Op& op);
  void account(const Op& op);
  std::uint16_t group_index();

  ImportedMwc finish();
  void close_steps();
  void number_threads_and_streams();

  std::filesystem::path path_;
  MwcReader reader_;
  MwcRecord r_;
  TraceBuilder builder_;
  Trace& t_;
  MwcStorages storages_;
  NumberTable op_of_, event_of_;
  std::vector<MwcThread> threads_;
  std::vector<MwcStream> streams_;
  std::vector<Use> uses_;     // of the present record
  std::uint16_t thread_ = 0;  // of the last record that has one
  double flops_ = 0, bytes_ = 0, picoseconds_ = 0;
  MwcCounts counts_;
};

}  // namespace memwall
