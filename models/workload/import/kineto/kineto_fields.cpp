#include "models/workload/import/kineto/kineto_fields.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "models/workload/import/kineto/kineto_number.h"

namespace memwall {
namespace {

namespace od = simdjson::ondemand;
using std::string_view;

class EventReader {
 public:
  EventReader(od::parser& parser, const JsonSource& source) : parser_(parser), source_(source) {}

  KinetoFields read_event(string_view text) {
    KinetoFields f;
    simdjson::padded_string_view padded(text, text.size() + JsonSource::kPadding);
    od::document document;
    if (const auto error = parser_.iterate(padded).get(document)) bad_json(error);
    od::object object;
    if (const auto error = document.get_object().get(object)) bad_json(error);
    for (auto item : object) {
      od::field field;
      if (const auto error = std::move(item).get(field)) bad_json(error);
      read_field(field, f);
    }
    return f;
  }

  void read_field(od::field& field, KinetoFields& f) {
    const string_view key = key_of(field);
    od::value value = field.value();
    if (key == "ph")
      f.phase = value.raw_json_token();
    else if (key == "cat")
      f.category = string_or_empty(value);
    else if (key == "name")
      f.name = string_or_empty(value);
    else if (key == "ts")
      f.ts = value.raw_json_token();
    else if (key == "dur")
      f.dur = value.raw_json_token();
    else if (key == "pid")
      f.pid = value.raw_json_token();
    else if (key == "tid")
      f.tid = value.raw_json_token();
    else if (key == "args")
      read_arguments(value, f);
  }

  string_view string_or_empty(od::value& value) {
    string_view text;
    if (const auto error = value.get_string().get(text)) {
      if (error != simdjson::INCORRECT_TYPE) bad_json(error);
      return {};
    }
    return text;
  }

  void read_arguments(od::value& value, KinetoFields& f) {
    od::object arguments;
    if (const auto error = value.get_object().get(arguments)) {
      if (error != simdjson::INCORRECT_TYPE) bad_json(error);
      return;
    }
    for (auto item : arguments) {
      od::field field;
      if (const auto error = std::move(item).get(field)) bad_json(error);
      read_argument(key_of(field), field.value(), f);
    }
  }

  // A whole number; left absent where it is something else (some fields are text in some vintages).
  static void keep(od::value& value, std::int64_t& to) {
    std::int64_t number = 0;
    if (parse_integer(trimmed_token(value.raw_json_token()), number)) to = number;
  }

  static void keep(od::value& value, double& to) {
    double number = 0;
    if (!value.get_double().get(number) && std::isfinite(number) && number >= 0) to = number;
  }

  void keep_text(od::value& value, string_view& to) {
    // Inputs are kept as JSON; whoever needs shapes parses them.
    string_view raw;
    od::array array;
    if (value.get_array().get(array)) return;
    if (const auto error = array.raw_json().get(raw)) bad_json(error);
    to = raw;
  }

  void read_argument(string_view key, od::value value, KinetoFields& f) {
    switch (key.size()) {
      case 3:
        if (key == "Seq") keep(value, f.group_sequence);
        break;
      case 4:
        if (key == "Addr")
          keep(value, f.address);
        else if (key == "cbid")
          keep(value, f.callback);
        else if (key == "size")
          keep(value, f.size);
        break;
      case 5:
        if (key == "bytes" || key == "Bytes")
          keep(value, f.bytes);
        else if (key == "block")
          read_block(value, f);
        else if (key == "dtype")
          f.message_type = string_or_empty(value);
        break;
      case 6:
        if (key == "device")
          keep(value, f.device);
        else if (key == "stream")
          keep(value, f.stream);
        break;
      case 8:
        if (key == "Src Rank")
          keep(value, f.source_rank);
        else if (key == "Dst Rank")
          keep(value, f.destination_rank);
        break;
      case 9:
        if (key == "Device Id") keep(value, f.device_id);
        break;
      case 10:
        if (key == "Input Dims")
          keep_text(value, f.input_dims);
        else if (key == "Input type")
          keep_text(value, f.input_types);
        else if (key == "Group size")
          keep(value, f.group_size);
        break;
      case 11:
        if (key == "correlation")
          keep(value, f.correlation);
        else if (key == "External id" || key == "external id")
          keep(value, f.external_id);
        else if (key == "Device Type")
          keep(value, f.device_type);
        break;
      case 13:
        if (key == "blocks per SM")
          keep(value, f.blocks_per_multiprocessor);
        else if (key == "Fwd thread id")
          keep(value, f.forward_thread);
        else if (key == "shared memory")
          keep(value, f.shared_memory);
        else if (key == "In msg nelems")
          keep(value, f.message_elements);
        break;
      default:
        read_long_argument(key, value, f);
    }
  }

  void read_long_argument(string_view key, od::value& value, KinetoFields& f) {
    if (key == "Sequence number")
      keep(value, f.sequence_number);
    else if (key == "Concrete Inputs")
      keep_text(value, f.concrete_inputs);
    else if (key == "Total Allocated")
      keep(value, f.total_allocated);
    else if (key == "Total Reserved")
      keep(value, f.total_reserved);
    else if (key == "registers per thread")
      keep(value, f.registers);
    else if (key == "est. achieved occupancy %")
      keep(value, f.occupancy);
    else if (key == "cuda_sync_kind")
      f.sync_kind = string_or_empty(value);
    else if (key == "wait_on_stream")
      keep(value, f.awaited_stream);
    else if (key == "wait_on_cuda_event_record_corr_id")
      keep(value, f.record_correlation);
    else if (key == "Process Group Name")
      f.group_name = string_or_empty(value);
    else if (key == "Process Group Ranks")
      f.group_ranks = string_or_empty(value);
    else if (key == "Collective name")
      f.collective = string_or_empty(value);
  }

  void read_block(od::value& value, KinetoFields& f) {
    od::array sizes;
    if (value.get_array().get(sizes)) return;
    std::int64_t threads = 1;
    for (auto size : sizes) {
      std::int64_t n = 0;
      if (size.get_int64().get(n) || n < 1 || n > 1 << 20) return;
      threads = std::min<std::int64_t>(threads * n, 1 << 20);
    }
    f.threads_x = threads;
  }

 private:
  [[noreturn]] void bad_json(simdjson::error_code error) {
    source_.fail(std::string("found JSON that cannot be parsed (") + simdjson::error_message(error) +
                 "); expected an event object.");
  }

  static string_view key_of(od::field& field) {
    const char* begin = field.key().raw();
    return {begin, static_cast<std::size_t>(static_cast<const char*>(std::memchr(begin, '"', 1 << 20)) - begin)};
  }

  od::parser& parser_;
  const JsonSource& source_;
};

}  // namespace

struct KinetoFieldParser::Json {
  od::parser parser;
};

KinetoFieldParser::KinetoFieldParser() : json_(std::make_unique<Json>()) {}
KinetoFieldParser::~KinetoFieldParser() = default;

KinetoFields KinetoFieldParser::parse(string_view event, const JsonSource& source) {
  return EventReader(json_->parser, source).read_event(event);
}

string_view trimmed_token(string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

}  // namespace memwall
