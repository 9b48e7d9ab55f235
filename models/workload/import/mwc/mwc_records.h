// The records of a captured step (.mwc) as its lines give them: numbers and text, each in its range,
// nothing yet about what they mean together. The format is described in traces/capture/FORMAT.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/import/timed/operator_call.h"
#include "sim/trace/op.h"
#include "sim/trace/storage.h"

namespace memwall {

struct MwcHeader {
  std::string name;
  bool real = false;                                         // executed on a device; else fake tensors
  std::string gpu;                                           // the device's own name, "" if unknown
  Bytes gpu_bytes = 0;                                       // its memory, 0 = unknown
  double samples_per_step = 0, tokens_per_step = 0;          // 0 = unknown
  std::vector<std::pair<std::string, std::string>> program;  // torch 2.9.0, ...
  std::vector<std::pair<std::string, std::string>> choices;  // attention flash, ...
  std::vector<std::string> notes;
  bool has_end = false;  // the last line is an `end` record: without it the file was cut off
};

enum class MwcRecordType : std::uint8_t {
  none,
  storage,
  alloc,
  free,
  op,
  copy,
  collective,
  event,
  synchronize,
  step,
  loss,
  end
};
inline constexpr int kMwcRecordTypes = 12;
std::string_view to_string(MwcRecordType type);

// Where a storage or one side of a copy is.
enum class MwcPlace : std::uint8_t { none, hbm, host, host_pinned };
std::string_view to_string(MwcPlace place);

enum class MwcEventCall : std::uint8_t { record, wait };

// One line. Text is valid until the next line is read. A number that is not given is kNone. `name` is the operator of
// an op, a step's own name.
struct MwcRecord : OperatorCall {
  static constexpr std::uint32_t kNone = 0xffffffff;

  MwcRecordType type = MwcRecordType::none;
  std::string_view call;          // copy, collective: the operator that asked for it, "" if none
  std::uint32_t storage = kNone;  // storage, alloc, free
  Bytes bytes = kNoBytes;         // of a storage, a copy, a collective's message, an op's traffic
  std::uint32_t id = kNone;       // of an op
  std::uint32_t forward = kNone;  // id of the op that this one is the backward or the repetition of
  std::uint32_t event = kNone;    // number of an event
  std::uint32_t ranks = kNone;    // in a collective's group
  std::uint32_t kernels = 1;      // that an op launches
  std::uint32_t calls = kNone;    // operators dispatched for it
  std::uint16_t thread = 0, stream = 0;
  std::string_view module, label, group;
  StorageKind kind = StorageKind::unknown;
  MwcPlace place = MwcPlace::none, from = MwcPlace::none, to = MwcPlace::none;
  Phase phase = Phase::unknown;
  bool has_phase = false;
  DataType data_type = DataType::unknown;
  CollectiveKind collective = CollectiveKind::none;
  MwcEventCall event_call = MwcEventCall::record;
  WaitFor wait_for = WaitFor::nothing;  // of a synchronize
  std::uint64_t count = 0;              // end: records of the file, itself not among them
  bool preexisting = false, blocking = false, random = false, compiled = false;
  Duration duration = kNoDuration, host{}, gap{};
  std::vector<std::uint32_t> reads, saves;
  std::vector<std::uint32_t> unreferenced;  // storages that the program refers to no more behind the record
  std::vector<std::uint32_t> streams;  // free: others than the storage's own that use it (record_stream)

  static constexpr Bytes kNoBytes = -1;
  static constexpr Duration kNoDuration{-1};
};

class MwcReader {
 public:
  // Reads the header. Throws InputError, as all members do, with file, line, found and expected.
  explicit MwcReader(const std::filesystem::path& path);
  ~MwcReader();

  const MwcHeader& header() const;
  // The next record; false after the last. An `end` record is checked here and not handed out.
  bool next(MwcRecord& record);
  std::uint64_t line() const;
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  struct Json;  // keeps simdjson out of this header
  std::unique_ptr<Json> json_;
};

// Does the text, a file's first line or the beginning of it, open a capture?
bool is_mwc(std::string_view text);

}  // namespace memwall
