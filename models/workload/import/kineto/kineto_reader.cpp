// Reads Kineto's Chrome trace, event by event.
#include "models/workload/import/kineto/kineto_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/kineto/kineto_categories.h"
#include "models/workload/import/kineto/kineto_fields.h"
#include "models/workload/import/kineto/kineto_number.h"
#include "models/workload/import/timed/event_order.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::int64_t kAbsent = KinetoFields::kAbsent;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : source_(path) { capture_.path = path; }

  TimedCapture read() {
    bool found_events = false;
    while (const std::optional<std::string> key = source_.next_member()) {
      if (*key == "traceEvents" && source_.at_array()) {
        found_events = true;
        read_events();
      } else if (*key == "deviceProperties") {
        read_devices(source_.value());
      } else if (*key == "distributedInfo") {
        read_distribution(source_.value());
      } else if (*key == "schemaVersion") {
        const string_view text = source_.value();
        capture_.schema_version = integer(text, "schemaVersion");
      } else if (*key == "profile_memory") {
        capture_.profiled_memory = source_.value() != "0";
      } else if (*key == "baseTimeNanoseconds") {
        const string_view text = source_.value();
        if (!parse_integer(trimmed_token(text), capture_.base_time_ns)) capture_.base_time_ns = 0;
      } else if (*key == "displayTimeUnit") {
        source_.value();  // ts is in microseconds whatever it says
      }
    }
    if (!found_events)
      source_.fail("the document ends without an array \"traceEvents\", where a Kineto trace keeps its events.");
    finish();
    return std::move(capture_);
  }

 private:
  // --- values ---
  [[noreturn]] void wrong(const char* field, string_view found, const char* expected) {
    source_.fail(std::string("\"") + field + "\" is " + (found.empty() ? "missing" : std::string(found.substr(0, 60))) +
                 "; expected " + expected + ".");
  }

  std::int64_t integer(string_view token, const char* field) {
    std::int64_t value = 0;
    if (!parse_integer(trimmed_token(token), value)) wrong(field, token, "a whole number");
    return value;
  }

  std::int64_t nanoseconds_of(string_view token, const char* field) {
    std::int64_t value = 0;
    if (!parse_microseconds(trimmed_token(token), value)) wrong(field, trimmed_token(token), "a time in microseconds");
    return value;
  }

  std::int64_t duration_of(const KinetoFields& f) {
    const std::int64_t ns = nanoseconds_of(f.dur, "dur");
    if (ns < 0) wrong("dur", trimmed_token(f.dur), "a duration of 0 or more, in microseconds");
    if (ns > kLongestWindow) wrong("dur", trimmed_token(f.dur), "a duration of at most 10 days, in microseconds");
    return ns;
  }

  std::int64_t size_of(std::int64_t value, const char* field) {
    if (value == kAbsent) return -1;
    if (value < 0 || value > std::int64_t{1} << 60) wrong(field, std::to_string(value), "a number of bytes, 0 or more");
    return value;
  }

  static std::int64_t or_minus_one(std::int64_t value) { return value == kAbsent ? -1 : value; }

  // What no writer means is cut to the nearest number that fits.
  template <class Number>
  static Number fitting(std::int64_t value) {
    using Limits = std::numeric_limits<Number>;
    return static_cast<Number>(std::clamp<std::int64_t>(value, Limits::min(), Limits::max()));
  }

  static std::uint32_t small(std::int64_t value) {
    return value < 0 ? 0 : static_cast<std::uint32_t>(std::min<std::int64_t>(value, 0x7fffffff));
  }

  // --- one event ---
  // A profiler that is stopped leaves a file without its end: say what can be done.
  void read_events() {
    std::uint64_t whole = 0;
    try {
      for (; const auto element = source_.next_element(); ++whole) read_event(*element);
    } catch (const InputError& error) {
      const string_view what = error.what();
      if (what.find("the end of the file") == string_view::npos) throw;
      throw InputError(std::string(what) +
                       " The profiler was stopped before it had written all: " + std::to_string(whole) +
                       " events are whole. To import those, cut the file behind the last whole event and append ]}, or "
                       "let the profiler finish (prof.stop() before the process ends).");
    }
  }

  static bool first_letter(string_view token, char c) { return token.size() > 1 && token[0] == '"' && token[1] == c; }

  void read_event(string_view text) { store(parser_.parse(text, source_)); }

  // --- storing ---
  void count(string_view category) {
    if (category == last_category_ && last_count_ != nullptr) {
      ++*last_count_;
      return;
    }
    last_category_ = std::string(category);
    last_count_ = &capture_.events_by_category[last_category_];
    ++*last_count_;
  }

  void store(const KinetoFields& f) {
    const bool is_memory = f.name == "[memory]" && first_letter(f.phase, 'i');
    count(is_memory && f.category.empty() ? string_view("[memory]") : f.category);
    if (is_memory) return store_memory(f);
    if (!first_letter(f.phase, 'X')) return;
    switch (kineto_category(f.category)) {
      case KinetoCategory::operation:
        return store_operator(f, false);
      case KinetoCategory::annotation:
        // A capture without Python stacks names its modules by annotations (validate/pytorch/matrix.py does).
        return f.name.starts_with(kModulePrefix) ? store_module(f) : store_operator(f, true);
      case KinetoCategory::call:
        return store_call(f);
      case KinetoCategory::kernel:
        return store_device_op(f, DeviceWork::kernel);
      case KinetoCategory::copy:
        return store_device_op(f, DeviceWork::copy);
      case KinetoCategory::memset:
        return store_device_op(f, DeviceWork::memset);
      case KinetoCategory::sync:
        return store_sync(f);
      case KinetoCategory::python:
        return store_module(f);
      default:
        return;
    }
  }

  // Absolute nanoseconds for now; order_events() subtracts the first and turns them into picoseconds.
  Time time_of(string_view token) {
    const std::int64_t ns = nanoseconds_of(token, "ts");
    span_.see(ns);
    return Time(ns);
  }

  std::uint16_t thread_of(const KinetoFields& f) {
    if (f.tid == last_tid_ && f.pid == last_pid_) return last_thread_;
    CapturedThread thread{thread_number(f.pid), thread_number(f.tid)};
    std::size_t i = 0;
    while (i < capture_.threads.size() &&
           (capture_.threads[i].process != thread.process || capture_.threads[i].id != thread.id))
      ++i;
    if (i == capture_.threads.size()) {
      if (i >= 4096) source_.fail("found a 4,097th host thread; expected at most 4,096.");
      capture_.threads.push_back(thread);
    }
    last_tid_ = f.tid;
    last_pid_ = f.pid;
    return last_thread_ = static_cast<std::uint16_t>(i);
  }

  // A number, in quotes or not; any other text gets a number of its own.
  std::int64_t thread_number(string_view token) {
    std::int64_t number = 0;
    if (parse_integer(trimmed_token(token), number)) return number;
    const std::string text(trimmed_token(token));
    return named_threads_.try_emplace(text, -1'000'000'000'000 - static_cast<std::int64_t>(named_threads_.size()))
        .first->second;
  }

  StringId intern(string_view text) { return text.empty() ? 0 : capture_.strings.intern(text); }

  std::uint32_t communication(const KinetoFields& f) {
    if (f.group_name.empty() && f.group_sequence == kAbsent && f.collective.empty()) return kNoIndex;
    CapturedCommunication c;
    c.group_name = intern(f.group_name);
    c.group_ranks = intern(f.group_ranks);
    c.collective = intern(f.collective);
    c.message_type = intern(f.message_type);
    c.elements = or_minus_one(f.message_elements);
    c.group_size = or_minus_one(f.group_size);
    c.sequence = or_minus_one(f.group_sequence);
    c.source = or_minus_one(f.source_rank);
    c.destination = or_minus_one(f.destination_rank);
    capture_.communications.push_back(c);
    return static_cast<std::uint32_t>(capture_.communications.size() - 1);
  }

  std::uint32_t message(const KinetoFields& f) {
    if (f.message_elements == kAbsent && f.group_size == kAbsent && f.message_type.empty()) return kNoIndex;
    capture_.messages.push_back({or_minus_one(f.message_elements), or_minus_one(f.group_size), intern(f.message_type)});
    return static_cast<std::uint32_t>(capture_.messages.size() - 1);
  }

  void store_operator(const KinetoFields& f, bool annotation) {
    CapturedOperator op;
    op.name = intern(f.name);
    op.start = time_of(f.ts);
    op.duration = Duration(duration_of(f));
    op.thread = thread_of(f);
    op.annotation = annotation;
    op.external_id = or_minus_one(f.external_id);
    op.sequence_number = or_minus_one(f.sequence_number);
    op.forward_thread = fitting<std::int32_t>(or_minus_one(f.forward_thread));
    op.input_dims = intern(f.input_dims);
    op.input_types = intern(f.input_types);
    op.concrete_inputs = intern(f.concrete_inputs);
    op.communication = communication(f);
    capture_.operators.push_back(op);
  }

  void store_call(const KinetoFields& f) {
    CapturedCall call;
    call.name = intern(f.name);
    call.start = time_of(f.ts);
    call.duration = Duration(duration_of(f));
    span_.busy_ns += static_cast<double>(call.duration.count());
    call.thread = thread_of(f);
    call.correlation = or_minus_one(f.correlation);
    call.callback = fitting<std::int32_t>(or_minus_one(f.callback));
    call.size = size_of(f.size, "size");
    capture_.calls.push_back(call);
  }

  void store_device_op(const KinetoFields& f, DeviceWork work) {
    CapturedDeviceOp op;
    op.work = work;
    op.name = intern(f.name);
    op.start = time_of(f.ts);
    op.duration = Duration(duration_of(f));
    span_.busy_ns += static_cast<double>(op.duration.count());
    op.device = static_cast<std::int32_t>(small(f.device));
    op.stream = f.stream == kAbsent ? 0 : f.stream;
    op.correlation = or_minus_one(f.correlation);
    op.bytes = size_of(f.bytes, "bytes");
    op.launch = capture_.launches.intern({.blocks_per_multiprocessor = f.blocks_per_multiprocessor,
                                          .occupancy_percent = f.occupancy,
                                          .threads_per_block = small(f.threads_x),
                                          .registers_per_thread = small(f.registers),
                                          .shared_memory = small(f.shared_memory)});
    op.message = message(f);
    op.communication = communication(f);
    capture_.device_ops.push_back(op);
  }

  void store_memory(const KinetoFields& f) {
    CapturedMemory event;
    event.time = time_of(f.ts);
    event.thread = thread_of(f);
    event.device_type = fitting<std::int16_t>(small(f.device_type));
    event.device =
        f.device_id == kAbsent ? -1 : static_cast<std::int16_t>(std::clamp<std::int64_t>(f.device_id, -1, 0x7fff));
    event.has_address = f.address != kAbsent;
    event.address = event.has_address ? static_cast<std::uint64_t>(f.address) : 0;
    constexpr std::int64_t kMost = std::int64_t{1} << 44;  // 17.6 TB
    if (f.bytes == kAbsent) wrong("Bytes", "", "the size of an allocation or, negative, of a free");
    if (f.bytes > kMost || f.bytes < -kMost) wrong("Bytes", std::to_string(f.bytes), "less than 17.6 TB");
    event.bytes = f.bytes;
    event.total_allocated = size_of(f.total_allocated, "Total Allocated");
    event.total_reserved = size_of(f.total_reserved, "Total Reserved");
    capture_.memory.push_back(event);
    capture_.profiled_memory = true;
  }

  void store_sync(const KinetoFields& f) {
    CapturedSync sync;
    const string_view kind = f.sync_kind.empty() ? f.name : f.sync_kind;
    if (kind == "Stream Sync")
      sync.kind = SyncKind::stream;
    else if (kind == "Context Sync")
      sync.kind = SyncKind::context;
    else if (kind == "Event Sync")
      sync.kind = SyncKind::event;
    else if (kind == "Stream Wait Event")
      sync.kind = SyncKind::stream_wait_event;
    else
      return;
    sync.start = time_of(f.ts);
    sync.duration = Duration(duration_of(f));
    sync.device = static_cast<std::int32_t>(small(f.device));
    sync.stream = or_minus_one(f.stream);
    sync.correlation = or_minus_one(f.correlation);
    sync.awaited_stream = or_minus_one(f.awaited_stream);
    sync.record_correlation = or_minus_one(f.record_correlation);
    capture_.syncs.push_back(sync);
  }

  static constexpr string_view kModulePrefix = "nn.Module: ";

  void store_module(const KinetoFields& f) {
    if (!f.name.starts_with(kModulePrefix)) return;
    CapturedModule module;
    module.name = intern(f.name.substr(kModulePrefix.size()));
    module.start = time_of(f.ts);
    module.duration = Duration(duration_of(f));
    module.thread = thread_of(f);
    capture_.modules.push_back(module);
  }

  // --- the document's other members ---
  void read_devices(string_view text) {
    simdjson::padded_string copy(text);
    simdjson::dom::parser parser;
    simdjson::dom::array list;
    if (parser.parse(copy).get(list)) source_.fail("\"deviceProperties\" is not an array of objects.");
    for (const simdjson::dom::element element : list) {
      CapturedDevice device;
      string_view name;
      if (!element["name"].get(name)) device.name = std::string(name);
      device.id = number(element, "id", 0);
      device.memory = std::max<std::int64_t>(0, number(element, "totalGlobalMem", 0));
      device.multiprocessors = small(number(element, "numSms", 0));
      device.threads_per_multiprocessor = small(number(element, "maxThreadsPerMultiprocessor", 2048));
      device.registers_per_multiprocessor = small(number(element, "regsPerMultiprocessor", 65536));
      capture_.devices.push_back(device);
    }
  }

  static std::int64_t number(simdjson::dom::element element, const char* key, std::int64_t otherwise) {
    std::int64_t value = 0;
    return element[key].get(value) ? otherwise : value;
  }

  void read_distribution(string_view text) {
    simdjson::padded_string copy(text);
    simdjson::dom::parser parser;
    simdjson::dom::element element;
    if (parser.parse(copy).get(element)) source_.fail("\"distributedInfo\" is not an object.");
    capture_.rank = number(element, "rank", -1);
    capture_.world_size = number(element, "world_size", -1);
    simdjson::dom::array groups;
    if (element["pg_config"].get(groups) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element group : groups) read_group(group);
  }

  // {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}; what has another form is left out.
  void read_group(simdjson::dom::element element) {
    string_view name;
    simdjson::dom::array ranks;
    if (element["pg_name"].get(name) != simdjson::SUCCESS || element["ranks"].get(ranks) != simdjson::SUCCESS) return;
    ProcessGroup group{.name = std::string(name), .ranks = 0, .members = {}};
    for (const simdjson::dom::element rank : ranks) {
      std::int64_t number = 0;
      if (rank.get(number) != simdjson::SUCCESS || number < 0 || number > 0x7fffffff) return;
      group.members.push_back(static_cast<std::uint32_t>(number));
    }
    std::sort(group.members.begin(), group.members.end());
    if (std::adjacent_find(group.members.begin(), group.members.end()) != group.members.end()) return;
    group.ranks = static_cast<std::uint32_t>(group.members.size());
    capture_.process_groups.push_back(std::move(group));
  }

  void finish() {
    if (const std::string problem = span_.problem(); !problem.empty()) source_.fail(problem);
    order_events(capture_, span_);
  }

  JsonSource source_;
  KinetoFieldParser parser_;
  TimedCapture capture_;
  CaptureTimeRange span_;
  std::string last_category_;
  std::uint64_t* last_count_ = nullptr;
  std::string last_tid_, last_pid_;
  std::uint16_t last_thread_ = 0;
  std::unordered_map<std::string, std::int64_t> named_threads_;
};

}  // namespace

TimedCapture read_kineto(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace memwall
