// Schedules as text: docs/schedule_format.md.
#include <algorithm>
#include <charconv>
#include <vector>

#include "sim/error.h"
#include "sim/number_text.h"
#include "sim/trace/trace_check.h"
#include "validate/measurement/text_file.h"
#include "validate/replay/schedule.h"
#include "validate/replay/schedule_lines.h"

namespace memwall {
namespace {

// The second format has what the first lacks: collectives, and numbers of contents. What needs neither is of the first,
// which older programs execute.
constexpr const char* kFirstLines[] = {"memwall schedule 1", "memwall schedule 2"};
constexpr std::int64_t kMost16 = 0xffff, kMost32 = 0xffffffff;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 50;
// Columns of an op, its kind included; and of the other lines, their first word included.
constexpr std::size_t kOpColumns = 18, kCollectiveColumns = 22, kStorageColumns = 7;
constexpr std::string_view kContentFlag = "content=";

std::string_view to_string(WaitFor wait_for) {
  static constexpr std::string_view kWords[] = {"nothing", "own_op", "stream", "event", "device"};
  const auto i = static_cast<std::size_t>(wait_for);
  return i < std::size(kWords) ? kWords[i] : std::string_view("?");
}

// The shortest text that reads back to the same number.
std::string float_text(float number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : "?";
}

bool has_collectives(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return op.kind == OpKind::collective; });
}

// Words joined by commas, "-" for none.
class FlagList {
 public:
  FlagList& add(bool given, const char* word) {
    if (given) text_ += (text_.empty() ? "" : ",") + std::string(word);
    return *this;
  }
  std::string text() const { return text_.empty() ? "-" : text_; }

 private:
  std::string text_;
};

class ScheduleWriter {
 public:
  ScheduleWriter(const Trace& trace, const StepContents& contents) : t_(trace), contents_(contents) {}

  std::string run() {
    const bool collectives = has_collectives(t_);
    text_ = std::string(kFirstLines[collectives || !contents_.empty() ? 1 : 0]) + "\n";
    line({"name", percent_encoded(t_.name)});
    line({"per_step", shortest_text(t_.samples_per_step), shortest_text(t_.tokens_per_step)});
    line({"reserved_at_start", std::to_string(t_.reserved_at_start)});
    line({"launch_queue_depth", std::to_string(t_.constants.launch_queue_depth)});
    line({"knows", FlagList()
                       .add(t_.knowledge.dataflow, "dataflow")
                       .add(t_.knowledge.modules, "modules")
                       .add(t_.knowledge.shapes, "shapes")
                       .text()});
    line({"events", std::to_string(t_.event_count)});
    for (const std::string& note : t_.notes) line({"note", percent_encoded(note)});
    for (const HostThread& thread : t_.threads) line({"thread", percent_encoded(thread.name)});
    for (const Stream& s : t_.streams)
      line({"stream", percent_encoded(s.name), std::to_string(s.device), std::string(memwall::to_string(s.role))});
    for (const std::string& place : t_.places) line({"place", percent_encoded(place)});
    if (collectives)
      for (const ProcessGroup& group : t_.groups)
        line({"group", percent_encoded(group.name), std::to_string(group.ranks)});
    for (StorageId id = 0; id < t_.storages.size(); ++id) storage(id);
    for (const Step& s : t_.steps)
      line({"step", percent_encoded(s.name), std::to_string(s.first), std::to_string(s.last)});
    for (const Op& o : t_.ops) op(o);
    line({"end", std::to_string(t_.ops.size())});
    return std::move(text_);
  }

 private:
  void line(const std::vector<std::string>& fields) {
    bool first = true;
    for (const std::string& field : fields) {
      if (!first) text_ += '\t';
      first = false;
      text_ += field;
    }
    text_ += '\n';
  }

  void storage(StorageId id) {
    const Storage& s = t_.storages[id];
    const std::uint32_t content = contents_.initially(id);
    const std::string flag = std::string(kContentFlag) + std::to_string(content);
    line({"storage", std::to_string(s.bytes), std::string(memwall::to_string(s.kind)), std::to_string(s.place),
          std::to_string(s.stream),
          FlagList().add(s.preexisting, "preexisting").add(s.pinned, "pinned").add(content != 0, flag.c_str()).text(),
          percent_encoded(t_.strings[s.label])});
  }

  std::string uses(const Op& o) const {
    std::string text;
    for (std::uint32_t i = o.first_use; i < o.first_use + o.use_count; ++i) {
      const Use& use = t_.uses[i];
      text += std::string(text.empty() ? "" : ",") + (use.access == Access::read ? "r" : "w") +
              std::to_string(use.storage) + ":" + std::to_string(use.version);
      if (const std::uint32_t content = contents_.of(i); content != 0) text += "=" + std::to_string(content);
    }
    return text.empty() ? "-" : text;
  }

  void op(const Op& o) {
    const auto number_or_none = [](std::uint32_t value) { return value == kNoOp ? "-" : std::to_string(value); };
    std::vector<std::string> fields{std::string(memwall::to_string(o.kind)),
                                    std::to_string(o.thread),
                                    std::to_string(o.stream),
                                    std::string(memwall::to_string(o.phase)),
                                    std::string(to_string(o.wait_for)),
                                    number_or_none(o.target),
                                    number_or_none(o.source),
                                    std::to_string(o.from),
                                    std::to_string(o.to),
                                    std::to_string(o.bytes),
                                    shortest_text(o.flops),
                                    std::string(memwall::to_string(o.operator_class)),
                                    std::string(memwall::to_string(o.data_type)),
                                    FlagList().add(o.added, "added").add(o.pageable, "pageable").text(),
                                    percent_encoded(t_.strings[o.name]),
                                    percent_encoded(t_.strings[o.operator_name]),
                                    percent_encoded(t_.strings[o.module]),
                                    uses(o)};
    if (o.kind == OpKind::collective)
      for (const std::string& field : {std::string(memwall::to_string(o.collective)), std::to_string(o.group),
                                       std::to_string(o.duration.count() / 1000), float_text(o.waves)})
        fields.push_back(field);
    line(fields);
  }

  const Trace& t_;
  const StepContents& contents_;
  std::string text_;
};

class ScheduleReader {
 public:
  ScheduleReader(const std::string& text, const std::string& name) : in_(text, name) {}

  Trace run() {
    if (!in_.next() || (in_.line() != kFirstLines[0] && in_.line() != kFirstLines[1]))
      in_.refuse(in_.line(), "\"" + std::string(kFirstLines[0]) + "\" or \"" + kFirstLines[1] + "\"");
    t_.constants.event_latency = Duration{};
    t_.constants.launch_queue_depth = 0;
    t_.knowledge.allocations = true;
    bool ended = false;
    while (in_.next()) {
      if (ended) in_.refuse(in_.line(), "nothing after the line \"end\"");
      const std::string_view word = in_.line().substr(0, in_.line().find('\t'));
      if (word == "end") {
        ended = in_.integer(in_.fields('\t', 2)[1], 0, kMost32) == static_cast<std::int64_t>(t_.ops.size());
        if (!ended) in_.refuse(in_.line(), "the number of ops, " + std::to_string(t_.ops.size()));
      } else if (!table(word)) {
        op(word);
      }
    }
    if (!ended) in_.refuse("the end of the file", "a line \"end\": the file was cut off");
    const auto says = [](const std::vector<std::uint32_t>& numbers) {
      return std::any_of(numbers.begin(), numbers.end(), [](std::uint32_t number) { return number != 0; });
    };
    if (!says(contents_.uses) && !says(contents_.initial)) contents_ = {};
    return std::move(t_);
  }

  const StepContents& contents() const { return contents_; }

 private:
  // The enumerator that is written as `field`.
  template <class E>
  E word(std::string_view field, const char* what) const {
    for (int i = 0; text_of(static_cast<E>(i)) != "?"; ++i)
      if (text_of(static_cast<E>(i)) == field) return static_cast<E>(i);
    in_.refuse(field, what);
  }
  template <class E>
  static std::string_view text_of(E value) {
    return memwall::to_string(value);
  }
  static std::string_view text_of(WaitFor value) { return to_string(value); }

  // Is `flag` in a list of flags? What else is in it, the comparison with the canonical text finds.
  static bool has(std::string_view list, std::string_view flag) {
    for (std::size_t from = 0; from <= list.size();) {
      const std::size_t end = std::min(list.find(',', from), list.size());
      if (list.substr(from, end - from) == flag) return true;
      from = end + 1;
    }
    return false;
  }

  template <class T>
  T whole(std::string_view field, std::int64_t highest) const {
    return static_cast<T>(in_.integer(field, 0, highest));
  }
  std::uint32_t number_or_none(std::string_view field) const {
    return field == "-" ? kNoOp : whole<std::uint32_t>(field, kMost32 - 1);
  }
  StringId string(std::string_view field) { return t_.strings.intern(in_.decoded(field)); }

  bool table(std::string_view word) {
    if (word == "storage") return storage(), true;
    if (word == "stream" || word == "step") return stream_or_step(word), true;
    if (word == "group") {
      const auto& f = in_.fields('\t', 3);
      add(t_.groups, ProcessGroup{in_.decoded(f[1]), whole<std::uint32_t>(f[2], kMost32), {}}, kMost16);
      return true;
    }
    if (word == "per_step") {
      const auto& f = in_.fields('\t', 3);
      t_.samples_per_step = in_.number(f[1], 0);
      t_.tokens_per_step = in_.number(f[2], 0);
      return true;
    }
    static constexpr std::string_view kOfOneField[] = {
        "name", "reserved_at_start", "launch_queue_depth", "knows", "events", "note", "thread", "place"};
    if (std::find(std::begin(kOfOneField), std::end(kOfOneField), word) == std::end(kOfOneField)) return false;
    const std::string_view value = in_.fields('\t', 2)[1];
    if (word == "name") t_.name = in_.decoded(value);
    if (word == "reserved_at_start") t_.reserved_at_start = in_.integer(value, 0, kMostBytes);
    if (word == "launch_queue_depth") t_.constants.launch_queue_depth = whole<std::uint32_t>(value, kMost32);
    if (word == "events") t_.event_count = whole<std::uint32_t>(value, kMost32);
    if (word == "note") t_.notes.push_back(in_.decoded(value));
    if (word == "thread") add(t_.threads, HostThread{in_.decoded(value)}, kMost16);
    if (word == "place") add(t_.places, in_.decoded(value), 0xff);
    if (word == "knows") {
      t_.knowledge.dataflow = has(value, "dataflow");
      t_.knowledge.modules = has(value, "modules");
      t_.knowledge.shapes = has(value, "shapes");
    }
    return true;
  }

  template <class T>
  void add(std::vector<T>& list, T item, std::int64_t most) {
    if (static_cast<std::int64_t>(list.size()) >= most)
      in_.refuse(in_.line(), "at most " + std::to_string(most) + " such lines");
    list.push_back(std::move(item));
  }

  void stream_or_step(std::string_view word_found) {
    const auto& f = in_.fields('\t', 4);
    if (word_found == "stream") {
      add(t_.streams,
          Stream{in_.decoded(f[1]), whole<std::uint16_t>(f[2], kMost16),
                 word<StreamRole>(f[3], "the role of a stream")},
          kMost16);
    } else {
      t_.steps.push_back({in_.decoded(f[1]), whole<OpId>(f[2], kMost32), whole<OpId>(f[3], kMost32)});
    }
  }

  // The number behind "content=" in a list of flags; 0 = none.
  std::uint32_t content_of(std::string_view list) const {
    const std::size_t at = list.find(kContentFlag);
    return at == std::string_view::npos ? 0 : whole<std::uint32_t>(list.substr(at + kContentFlag.size()), kMost32);
  }

  void storage() {
    const auto& f = in_.fields('\t', kStorageColumns);
    Storage s;
    s.bytes = in_.integer(f[1], 0, kMostBytes);
    s.kind = word<StorageKind>(f[2], "the kind of a storage");
    s.place = whole<std::uint8_t>(f[3], 0xff);
    s.stream = whole<std::uint16_t>(f[4], kMost16);
    s.preexisting = has(f[5], "preexisting");
    s.pinned = has(f[5], "pinned");
    s.label = string(f[6]);
    contents_.initial.push_back(content_of(f[5]));
    add(t_.storages, s, kMost32 - 1);
  }

  void op(std::string_view kind) {
    Op o;
    o.kind = word<OpKind>(kind, "the first word of a line of a schedule");
    const auto& f = in_.fields('\t', o.kind == OpKind::collective ? kCollectiveColumns : kOpColumns);
    o.thread = whole<std::uint16_t>(f[1], kMost16);
    o.stream = whole<std::uint16_t>(f[2], kMost16);
    o.phase = word<Phase>(f[3], "a phase");
    o.wait_for = word<WaitFor>(f[4], "what a call waits for");
    o.target = number_or_none(f[5]);
    o.source = number_or_none(f[6]);
    o.from = whole<std::uint8_t>(f[7], 0xff);
    o.to = whole<std::uint8_t>(f[8], 0xff);
    o.bytes = in_.integer(f[9], 0, kMostBytes);
    o.flops = in_.number(f[10], 0);
    o.operator_class = word<OperatorClass>(f[11], "the class of an operator");
    o.data_type = word<DataType>(f[12], "a data type");
    o.added = has(f[13], "added");
    o.pageable = has(f[13], "pageable");
    o.name = string(f[14]);
    o.operator_name = string(f[15]);
    o.module = string(f[16]);
    uses(f[17], o);
    if (o.kind == OpKind::collective) {
      o.collective = word<CollectiveKind>(f[18], "the kind of a collective");
      o.group = whole<std::uint16_t>(f[19], kMost16);
      o.duration = nanoseconds(in_.integer(f[20], 1, kMostNanoseconds));
      o.waves = static_cast<float>(in_.number(f[21], 0));
    }
    add(t_.ops, o, kMost32 - 1);
  }

  void uses(std::string_view field, Op& o) {
    o.first_use = static_cast<std::uint32_t>(t_.uses.size());
    if (field == "-") return;
    for (std::size_t from = 0; from <= field.size();) {
      const std::size_t end = std::min(field.find(',', from), field.size());
      const std::string_view item = field.substr(from, end - from);
      const std::size_t colon = item.find(':');
      if (item.empty() || (item[0] != 'r' && item[0] != 'w') || colon == std::string_view::npos ||
          o.use_count == kMostUsesOfAnOp || static_cast<std::int64_t>(t_.uses.size()) >= kMost32)
        in_.refuse(item, "a use such as r3:1 or w3:2, at most " + std::to_string(kMostUsesOfAnOp) + " of an op");
      Use use;
      use.access = item[0] == 'r' ? Access::read : Access::write;
      const std::size_t equals = std::min(item.find('=', colon), item.size());
      use.storage = whole<StorageId>(item.substr(1, colon - 1), kMost32 - 1);
      use.version = whole<std::uint32_t>(item.substr(colon + 1, equals - colon - 1), kMost32);
      t_.uses.push_back(use);
      contents_.uses.push_back(equals == item.size() ? 0 : whole<std::uint32_t>(item.substr(equals + 1), kMost32));
      ++o.use_count;
      from = end + 1;
    }
  }

  LineReader in_;
  Trace t_;
  StepContents contents_;
};

}  // namespace

std::string schedule_text(const Trace& schedule, const StepContents& contents) {
  return ScheduleWriter(schedule, contents).run();
}

Trace parse_schedule(const std::string& text, const std::string& name, StepContents* contents) {
  ScheduleReader reader(text, name);
  Trace trace = reader.run();
  require_canonical(text, schedule_text(trace, reader.contents()), name);
  const std::vector<std::string> faults = check(trace, 1);
  const std::string fault = faults.empty() ? not_executable(trace) : faults.front();
  if (!fault.empty()) throw InputError(name + ": found a schedule that cannot be executed: " + fault);
  if (contents != nullptr) *contents = reader.contents();
  return trace;
}

void write_schedule(const Trace& schedule, const std::filesystem::path& path) {
  write_text_file(path, schedule_text(schedule));
}

Trace read_schedule(const std::filesystem::path& path, StepContents* contents) {
  return parse_schedule(read_text_file(path, kLargestSchedule), path.string(), contents);
}

}  // namespace memwall
