#include "models/workload/import/tables/dtr_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/tables/dtr_lines.h"
#include "models/workload/import/tables/longest_step.h"
#include "models/workload/import/timed/imported_step.h"
#include "models/workload/operator_class.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

using simdjson::dom::element;
using std::string_view;

constexpr std::int64_t kMostStorageBytes = std::int64_t{1} << 44;
constexpr std::int64_t kMostNs = 86'400'000'000'000;  // of one operator: a day
constexpr std::size_t kMostOps = 0x7fffffff;

// A storage of the log, of which the trace knows a part.
struct RefCountedStorage {
  Bytes bytes = 0;
  std::uint64_t handles = 0;
  StorageId id = kNoStorage;  // in the trace; kNoStorage: made and gone before the first step
  bool constant = false;
};

struct Result {
  std::string name;
  Bytes bytes = 0;
  std::int64_t alias = -1;
  bool has_bytes = false, has_alias = false;
};

class DtrReader {
 public:
  explicit DtrReader(const std::filesystem::path& path) : path_(path), lines_(path) { begin_trace(); }

  ImportedStep run() {
    while (const auto object = lines_.next()) read(*object);
    if (ops_ == 0) lines_.fail("the log ends without any CALL or MUTATE.");
    end_step();
    finish();
    return std::move(step_);
  }

 private:
  std::uint32_t held_by(const std::string& name) const {
    const auto found = handles_.find(name);
    if (found == handles_.end())
      lines_.fail(
          fmt::format("tensor {} is used, which no line before made, or which was released.", quote_for_message(name)));
    return found->second;
  }

  void bind(const std::string& name, std::uint32_t storage) {
    if (!handles_.emplace(name, storage).second)
      lines_.fail(fmt::format("tensor {} is made, which exists already.", quote_for_message(name)));
    ++held_[storage].handles;
  }

  void read(element object) {
    const std::string instruction = lines_.text(object, "INSTRUCTION");
    ++counts_[instruction.size() > 40 ? "others" : instruction];
    if (counts_.size() > 200) lines_.fail("more than 200 kinds of instructions; expected a log of DTR.");
    if (instruction == "CALL") return call(object);
    if (instruction == "MUTATE") return mutate(object);
    if (instruction == "CONSTANT") return constant(object);
    if (instruction == "RELEASE") return release(object);
    if (instruction == "COPY") return bind(lines_.text(object, "DST"), held_by(lines_.text(object, "SRC")));
    if (instruction == "COPY_FROM") return copy_from(object);
    if (instruction == "ANNOTATE") return annotate(lines_.text(object, "ANNOTATION"));
    if (instruction == "MEMORY" || instruction == "ALIAS")
      lines_.fail(fmt::format("{} does not follow the CONSTANT or CALL that it belongs to.", instruction));
    ++skipped_;  // of a later logger
  }

  void constant(element object) {
    const std::string name = lines_.text(object, "NAME");
    const element memory = lines_.following("the MEMORY of a CONSTANT");
    if (lines_.text(memory, "INSTRUCTION") != "MEMORY" || lines_.text(memory, "NAME") != name)
      lines_.fail(fmt::format("expected the MEMORY of constant {}.", quote_for_message(name)));
    const Bytes bytes = lines_.number(memory, "MEMORY", 0, kMostStorageBytes);
    const bool late = ops_ > 0;  // of the trace: what was before the first START is none of it
    late_constants_ += late;
    ++constants_;
    bind(name, hold(bytes, late ? StorageKind::input : StorageKind::parameter, name, !late));
    held_.back().constant = true;
    if (late) bring_in(held_.back().id);
  }

  // Lives from here on. Who wrote it, and in what time, is not in the log.
  void bring_in(StorageId storage) {
    builder_.alloc(storage, 0);
    Op op;
    op.kind = OpKind::host_work;
    op.phase = phase_;
    op.name = builder_.trace().strings.intern("constant");
    const std::vector<Use> uses{{storage, 0, Access::write}};
    builder_.append(op, uses);
  }

  std::uint32_t hold(Bytes bytes, StorageKind kind, const std::string& label, bool preexisting) {
    if (held_.size() >= kMostOps) lines_.fail("more than 2 billion storages.");
    RefCountedStorage held;
    held.bytes = bytes;
    held.id = builder_.add_storage(bytes, kind, "hbm", label, preexisting);
    held_.push_back(held);
    return static_cast<std::uint32_t>(held_.size() - 1);
  }

  // MEMORY and ALIAS of every result, in any order.
  std::vector<Result> results_of(element object, std::size_t arguments) {
    std::vector<Result> results;
    for (const std::string& name : lines_.names(object, "RESULT")) results.push_back({.name = name});
    for (std::size_t i = 0; i < 2 * results.size(); ++i) {
      const element said = lines_.following("MEMORY and ALIAS of the results of a CALL");
      const std::string instruction = lines_.text(said, "INSTRUCTION"), name = lines_.text(said, "NAME");
      const auto result = std::find_if(results.begin(), results.end(), [&](const Result& r) {
        return r.name == name && !(instruction == "MEMORY" ? r.has_bytes : r.has_alias);
      });
      if ((instruction != "MEMORY" && instruction != "ALIAS") || result == results.end())
        lines_.fail(fmt::format("found {} of {}; expected MEMORY and ALIAS of the results of the CALL before.",
                                quote_for_message(instruction), quote_for_message(name)));
      if (instruction == "MEMORY") {
        result->bytes = lines_.number(said, "MEMORY", 0, kMostStorageBytes);
        result->has_bytes = true;
      } else {
        result->alias = lines_.number(said, "ALIAS", -1, static_cast<std::int64_t>(arguments) - 1);
        result->has_alias = true;
      }
    }
    return results;
  }

  Op op_of(const std::string& name, Duration time) {
    if (name.find("backward") != std::string::npos) phase_ = Phase::backward;
    if (++ops_ > kMostOps) lines_.fail("more than 2 billion operators.");
    total_ += time;
    if (total_ > kLongestStep) lines_.fail("the operators up to here take more than ten days.");
    StringTable& strings = builder_.trace().strings;
    const std::string full = name.find("::") == std::string::npos ? "aten::" + name : name;
    Op op;
    op.kind = OpKind::kernel;
    op.phase = phase_;
    op.wait_for = WaitFor::own_op;
    op.name = strings.intern(name);
    op.operator_name = strings.intern(full);
    op.operator_class = operator_class(full, "");
    op.duration = time;
    return op;
  }

  // Each storage once, in the order of the arguments.
  std::vector<std::uint32_t> storages_of(const std::vector<std::string>& arguments) const {
    std::vector<std::uint32_t> storages;
    for (const std::string& argument : arguments) storages.push_back(held_by(argument));
    std::vector<std::uint32_t> once = storages;
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    return once;
  }

  void call(element object) {
    // The parser's document is replaced with the next line: everything is taken from it first.
    const std::string name = lines_.text(object, "NAME");
    const std::vector<std::string> arguments = lines_.names(object, "ARGS");
    const Duration time = nanoseconds(lines_.number(object, "TIME", 0, kMostNs));
    const std::vector<std::uint32_t> read = storages_of(arguments);
    const std::vector<Result> results = results_of(object, arguments.size());
    Op op = op_of(name, time);
    std::vector<Use> uses;
    for (const std::uint32_t s : read) {
      uses.push_back({held_[s].id, TraceBuilder::kLatest, Access::read});
      op.bytes += held_[s].bytes;
    }
    bool makes = results.empty();
    for (const Result& result : results) {
      if (result.alias >= 0) {
        bind(result.name, held_by(arguments[static_cast<std::size_t>(result.alias)]));
        continue;
      }
      makes = true;
      const std::uint32_t storage = hold(result.bytes, StorageKind::activation, name, false);
      bind(result.name, storage);
      builder_.alloc(held_[storage].id, 0);
      if (phase_ == Phase::backward) made_backward_.push_back(storage);
      uses.push_back({held_[storage].id, 0, Access::write});
      op.bytes += result.bytes;
    }
    append(op, uses, makes);
  }

  void append(Op op, std::vector<Use>& uses, bool makes) {
    if (op.bytes > kMostStorageBytes) op.bytes = 0;
    if (!makes) {
      ++views_;
      op.kind = OpKind::host_work;
      op.wait_for = WaitFor::nothing;
      op.bytes = 0;
      uses.clear();
    }
    builder_.append(op, uses);
  }

  void mutate(element object) {
    const std::string name = lines_.text(object, "NAME");
    const std::vector<std::string> arguments = lines_.names(object, "ARGS");
    Op op = op_of(name, nanoseconds(lines_.number(object, "TIME", 0, kMostNs)));
    std::vector<Use> uses;
    for (const std::uint32_t s : storages_of(arguments)) {
      uses.push_back({held_[s].id, TraceBuilder::kLatest, Access::read});
      op.bytes += held_[s].bytes;
    }
    std::vector<std::uint32_t> written;
    lines_.list(object, "MUTATE", [&](element one) {
      std::int64_t index = -1;
      if (one.get(index) != simdjson::SUCCESS || index < 0 || index >= static_cast<std::int64_t>(arguments.size()))
        lines_.fail(fmt::format("MUTATE names an argument that is none of the {}.", arguments.size()));
      written.push_back(held_by(arguments[static_cast<std::size_t>(index)]));
    });
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    for (const std::uint32_t s : written) {
      uses.push_back({held_[s].id, 0, Access::write});
      op.bytes += held_[s].bytes;
    }
    append(op, uses, true);
  }

  void drop_handle(std::uint32_t storage) {
    RefCountedStorage& held = held_[storage];
    if (--held.handles == 0) builder_.free(held.id, 0);
  }

  void release(element object) {
    const auto found = handles_.find(lines_.text(object, "NAME"));
    if (found == handles_.end()) {
      ++unknown_releases_;
      return;
    }
    const std::uint32_t storage = found->second;
    handles_.erase(found);
    drop_handle(storage);
  }

  void copy_from(element object) {
    const std::string to = lines_.text(object, "DST");
    const std::uint32_t source = held_by(lines_.text(object, "SRC")), old = held_by(to);
    handles_[to] = source;
    ++held_[source].handles;
    drop_handle(old);
  }

  void annotate(const std::string& annotation) {
    if (annotation == "BACKWARD") phase_ = Phase::backward;
    if (annotation != "START") return;
    if (!started_)
      start_anew();
    else
      end_step();
    started_ = true;
    phase_ = Phase::forward;
    first_ = mark();
  }

  OpId mark() {
    Op op;
    op.name = builder_.trace().strings.intern("iteration");
    return builder_.append(op);
  }

  void begin_trace() {
    builder_.add_thread("host");
    builder_.add_stream("compute", StreamRole::compute);
    first_ = mark();
  }

  // What lives when the first step begins existed before; the ops that made it are no part of the trace.
  void start_anew() {
    before_start_ = ops_;
    ops_ = late_constants_ = views_ = 0;
    total_ = {};
    made_backward_.clear();
    const Trace before = std::move(builder_).finish();
    builder_ = TraceBuilder();
    begin_trace();
    for (RefCountedStorage& held : held_) {
      if (held.handles == 0) continue;
      const std::string label = before.strings[before.storages[held.id].label];
      held.id = builder_.add_storage(held.bytes, held.constant ? StorageKind::parameter : StorageKind::unknown, "hbm",
                                     label, true);
    }
  }

  void end_step() {
    for (const std::uint32_t storage : made_backward_)
      if (held_[storage].handles > 0) builder_.trace().storages[held_[storage].id].kind = StorageKind::gradient;
    made_backward_.clear();
    const OpId last = mark();
    builder_.trace().steps.push_back({fmt::format("iteration {}", builder_.trace().steps.size()), first_, last});
    first_ = last;
  }

  void finish() {
    step_.trace = std::move(builder_).finish();
    Trace& trace = step_.trace;
    trace.name = path_.stem().string();
    trace.knowledge = {.timing = true, .allocations = true, .dataflow = true};
    trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
    step_.files = {path_};
    std::string line = "Instructions in the log:";
    for (const auto& [name, count] : counts_) line += fmt::format(" {} {},", count, quote_for_message(name));
    line.back() = '.';
    step_.report.push_back(line);
    add_decision(
        step_, "time of operators",
        fmt::format("The host waits for each op, as the log was taken: {} operators take {:.3f} ms in all; {} of "
                    "them only make views and are work of the host.",
                    ops_, to_seconds(total_) * 1e3, views_), 0, 0, NoteKind::assumed);
    add_decision(step_, "start of the step",
                 started_ ? fmt::format("The trace begins at the first START; {} operators before it are left out.",
                                        before_start_)
                          : std::string("The log has no START: the trace is all of it."));
    add_decision(
        step_, "constants",
        fmt::format("{} constants existed before: parameters, inputs and buffers, all called parameters. {} are first "
                    "named after an operator: they live from there, as inputs that came in no time.",
                    constants_ - late_constants_, late_constants_),
        constants_ - late_constants_, constants_, NoteKind::assumed);
    add_decision(
        step_, "traffic of operators",
        "An operator reads and writes the whole storages of what it takes and makes, each once: an upper bound "
        "where a view is smaller.", 0, 0, NoteKind::assumed);
    step_.decisions.push_back({"machine", "The log does not say which GPU it was taken on: --measured-on does.", 0, 0});
    if (unknown_releases_ > 0)
      add_decision(step_, "releases",
                   fmt::format("{} releases of tensors that the log does not know are skipped.", unknown_releases_), 0, 0, NoteKind::missing);
    if (skipped_ > 0)
      add_decision(step_, "instructions",
                   fmt::format("{} lines have instructions that are not known here and are skipped.", skipped_), 0, 0, NoteKind::missing);
  }

  std::filesystem::path path_;
  DtrLines lines_;
  TraceBuilder builder_;
  ImportedStep step_;
  std::vector<RefCountedStorage> held_;
  std::unordered_map<std::string, std::uint32_t> handles_;  // name -> index into held_
  std::vector<std::uint32_t> made_backward_;                // since the step began
  std::map<std::string, std::uint64_t> counts_;             // by instruction
  Phase phase_ = Phase::forward;
  OpId first_ = 0;
  bool started_ = false;
  Duration total_{};
  std::uint64_t ops_ = 0, before_start_ = 0, views_ = 0, constants_ = 0, late_constants_ = 0;
  std::uint64_t unknown_releases_ = 0, skipped_ = 0;
};

}  // namespace

bool recognizes_dtr(const FileHead& head) {
  return std::find(head.members.begin(), head.members.end(), "INSTRUCTION") != head.members.end();
}

ImportedStep import_dtr(const std::filesystem::path& path, const ImportSettings&) { return DtrReader(path).run(); }

}  // namespace memwall
