// The fields of one event of a Kineto file, as text and numbers, whatever its category.
// Internal to the Kineto reader.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "models/workload/import/bytes/json_source.h"

namespace memwall {

// kAbsent or empty where the event says nothing. Views into the event's text or into the parser:
// valid until the next event is parsed.
struct KinetoFields {
  static constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();

  std::string_view phase, category, name, ts, dur, pid, tid;
  std::int64_t device = kAbsent, stream = kAbsent, correlation = kAbsent, external_id = kAbsent, callback = kAbsent;
  std::int64_t bytes = kAbsent, size = kAbsent, threads_x = kAbsent, registers = kAbsent, shared_memory = kAbsent;
  std::int64_t sequence_number = kAbsent, forward_thread = kAbsent;
  std::int64_t device_type = kAbsent, device_id = kAbsent, total_allocated = kAbsent, total_reserved = kAbsent;
  std::int64_t address = kAbsent;
  std::int64_t awaited_stream = kAbsent, record_correlation = kAbsent;
  std::int64_t message_elements = kAbsent, group_size = kAbsent;
  std::int64_t group_sequence = kAbsent, source_rank = kAbsent, destination_rank = kAbsent;
  double blocks_per_multiprocessor = 0, occupancy = 0;
  std::string_view sync_kind, message_type, input_dims, input_types, concrete_inputs;
  std::string_view group_name, group_ranks, collective;
};

// A JSON token without the white space behind it.
std::string_view trimmed_token(std::string_view token);

class KinetoFieldParser {
 public:
  KinetoFieldParser();
  ~KinetoFieldParser();
  // REQUIRES: `event` was just handed out by `source`, which is asked to fail where it is no JSON object.
  KinetoFields parse(std::string_view event, const JsonSource& source);

 private:
  struct Json;  // keeps simdjson out of this header
  std::unique_ptr<Json> json_;
};

}  // namespace memwall
