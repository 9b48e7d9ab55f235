#include "models/workload/import/mwc/mwc_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/workload/import/mwc/mwc_line.h"
#include "models/workload/import/bytes/line_source.h"

namespace memwall {
namespace {

using std::string_view;
using Type = MwcRecordType;

constexpr std::int64_t kNewestVersion = 1;
constexpr std::uint64_t kMostNumber = MwcLine::kMostNumber;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;  // a pebibyte, as sim/trace/trace_check.h has it
constexpr std::uint64_t kMostStreams = (1 << 16) - 1;         // Op::stream, Op::thread
constexpr std::uint64_t kMostRanks = 1 << 24;
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 48;
constexpr std::size_t kMostDimensions = 64;  // as PyTorch has it
constexpr double kMostFlops = 1e18;          // of one op: a GPU of today works on it for a quarter of an hour
constexpr double kMostMicroseconds = 1e9;    // of one op: a quarter of an hour

class RecordParser {
 public:
  RecordParser(MwcLine& parser, const LineSource& lines, MwcRecord& record)
      : p_(parser), lines_(lines), r_(record) {}

  void read(string_view line) {
    p_.parse(line, [this](string_view key, od::value value) { member(key, value); });
    if (r_.type != Type::none) return;
    std::string types;
    for (int i = 1; i < kMwcRecordTypes; ++i)
      types += (types.empty() ? "" : ", ") + std::string(to_string(static_cast<Type>(i)));
    lines_.fail(fmt::format("the record is of an unknown kind; expected one of the keys {}.", types));
  }

 private:
  void is(Type type) {
    if (r_.type != Type::none)
      lines_.fail(fmt::format("the record is both \"{}\" and \"{}\"; expected one of them.", to_string(r_.type),
                              to_string(type)));
    r_.type = type;
  }

  std::uint32_t id(string_view key, od::value& value) {
    return static_cast<std::uint32_t>(p_.number(key, value, kMostNumber));
  }
  Bytes bytes(string_view key, od::value& value) { return static_cast<Bytes>(p_.number(key, value, kMostBytes)); }
  Duration time(string_view key, od::value& value) { return from_microseconds(p_.real(key, value, kMostMicroseconds)); }
  MwcPlace place(string_view key, od::value& value) { return p_.word<MwcPlace>(key, value, 4, 1); }

  void extents(string_view key, od::value& value, Shape& to) {
    p_.elements(key, value, "a list of extents", [&](od::value& element) {
      if (to.size() >= kMostDimensions)
        lines_.fail(fmt::format("a tensor in \"{}\" has more than {} dimensions.", key, kMostDimensions));
      to.push_back(static_cast<std::int64_t>(p_.number(key, element, kMostBytes)));
    });
  }

  // [[shape, dtype, storage], [shape, dtype, storage, strides], ...]
  void tensors(string_view key, od::value& value, std::vector<CapturedTensor>& to) {
    const char* const expected = "a list of tensors [shape, dtype, storage] or [shape, dtype, storage, strides]";
    p_.elements(key, value, expected, [&](od::value& tensor) {
      CapturedTensor& t = to.emplace_back();
      int given = 0;
      p_.elements(key, tensor, expected, [&](od::value& part) {
        if (given == 0) extents(key, part, t.shape);
        if (given == 1) t.element_bytes = element_bytes(p_.text(key, part));
        if (given == 2) t.storage = id(key, part);
        if (given == 3) extents(key, part, t.strides);
        ++given;
      });
      if (given < 3 || (given > 3 && t.strides.size() != t.shape.size()))
        lines_.fail(fmt::format("\"{}\" has a tensor of {} parts{}; expected {}.", key, given,
                                given < 3 ? "" : " with other than one stride per extent", expected));
      if (!countable(t.shape)) lines_.fail(fmt::format("a tensor in \"{}\" has more than 2^50 elements.", key));
    });
  }

  // Elements of a tensor, and of a part of its extents, are counted without a look from here on.
  static bool countable(const Shape& shape) {
    double elements = 1;
    for (const std::int64_t extent : shape) elements *= static_cast<double>(std::max<std::int64_t>(extent, 1));
    return elements <= static_cast<double>(kMostBytes);
  }

  void member(string_view key, od::value value) {
    switch (key.size()) {
      case 2:
        if (key == "op") is(Type::op), r_.name = p_.text(key, value);
        if (key == "id") r_.id = id(key, value);
        if (key == "to") r_.to = place(key, value);
        break;
      case 3:
        if (key == "end") is(Type::end), r_.count = p_.number(key, value, kMostRecords);
        break;
      case 4:
        four_letters(key, value);
        break;
      case 5:
        five_letters(key, value);
        break;
      case 6:
        six_letters(key, value);
        break;
      case 7:
        seven_letters(key, value);
        break;
      default:
        if (key.size() > 7) long_key(key, value);
    }
  }

  void four_letters(string_view key, od::value& value) {
    if (key == "free") is(Type::free), r_.storage = id(key, value);
    if (key == "copy") is(Type::copy), r_.bytes = bytes(key, value);
    if (key == "step") is(Type::step), r_.name = p_.text(key, value);
    if (key == "loss") is(Type::loss);
    if (key == "name") r_.call = p_.text(key, value);
    if (key == "kind") r_.kind = p_.word<StorageKind>(key, value, kStorageKinds);
    if (key == "from") r_.from = place(key, value);
  }

  void five_letters(string_view key, od::value& value) {
    if (key == "alloc") is(Type::alloc), r_.storage = id(key, value);
    if (key == "reads") p_.numbers(key, value, r_.reads);
    if (key == "saves") p_.numbers(key, value, r_.saves);
    if (key == "phase") r_.phase = p_.word<Phase>(key, value, 5), r_.has_phase = true;
    if (key == "bytes") r_.bytes = bytes(key, value);
    if (key == "flops") r_.flops = p_.real(key, value, kMostFlops);
    if (key == "class") r_.operator_class = p_.word<OperatorClass>(key, value, 10);
    if (key == "dtype") r_.data_type = data_type(p_.text(key, value));
    if (key == "place") r_.place = place(key, value);
    if (key == "label") r_.label = p_.text(key, value);
    if (key == "group") r_.group = p_.text(key, value);
    if (key == "calls") r_.calls = id(key, value);
    if (key == "width") r_.width = static_cast<std::int64_t>(p_.number(key, value, kMostBytes));
    if (key == "ranks") r_.ranks = static_cast<std::uint32_t>(p_.number(key, value, kMostRanks));
    if (key == "event") is(Type::event), r_.event_call = event_call(key, value);
  }

  void six_letters(string_view key, od::value& value) {
    if (key == "writes") p_.numbers(key, value, r_.writes);
    if (key == "module") r_.module = p_.text(key, value);
    if (key == "thread") r_.thread = static_cast<std::uint16_t>(p_.number(key, value, kMostStreams));
    if (key == "stream") r_.stream = static_cast<std::uint16_t>(p_.number(key, value, kMostStreams));
    if (key == "random") r_.random = p_.truth(key, value);
    if (key == "number") r_.event = id(key, value);
    if (key == "gap_us") r_.gap = time(key, value);
    if (key == "inputs") tensors(key, value, r_.inputs);
    if (key == "causal") r_.causal = p_.truth(key, value);
  }

  void seven_letters(string_view key, od::value& value) {
    if (key == "storage") is(Type::storage), r_.storage = id(key, value);
    if (key == "forward") r_.forward = id(key, value);
    if (key == "kernels") r_.kernels = static_cast<std::uint32_t>(p_.number(key, value, kMostNumber));
    if (key == "host_us") r_.host = time(key, value);
    if (key == "outputs") tensors(key, value, r_.outputs);
    if (key == "streams")
      p_.elements(key, value, "a list of stream numbers", [&](od::value& element) {
        r_.streams.push_back(static_cast<std::uint32_t>(p_.number(key, element, kMostStreams)));
      });
  }

  void long_key(string_view key, od::value& value) {
    if (key == "duration_us") r_.duration = time(key, value);
    if (key == "blocking") r_.blocking = p_.truth(key, value);
    if (key == "elements") r_.elements = static_cast<std::int64_t>(p_.number(key, value, kMostBytes));
    if (key == "compiled") r_.compiled = p_.truth(key, value);
    if (key == "preexisting") r_.preexisting = p_.truth(key, value);
    if (key == "unreferenced") p_.numbers(key, value, r_.unreferenced);
    if (key == "collective") is(Type::collective), r_.collective = p_.word<CollectiveKind>(key, value, 9, 1);
    if (key == "synchronize") is(Type::synchronize), r_.wait_for = awaited(key, value);
  }

  // 0 = not known.
  static int element_bytes(string_view dtype) {
    constexpr std::pair<string_view, int> known[] = {
        {"fp64", 8},   {"fp32", 4},   {"tf32", 4},    {"fp16", 2},      {"bf16", 2},      {"fp8", 1},
        {"int64", 8},  {"int32", 4},  {"int16", 2},   {"int8", 1},      {"uint8", 1},     {"uint16", 2},
        {"uint32", 4}, {"uint64", 8}, {"boolean", 1}, {"complex32", 4}, {"complex64", 8}, {"complex128", 16}};
    for (const auto& [word, bytes] : known)
      if (word == dtype) return bytes;
    return 0;
  }

  // Types that memwall has no arithmetic rate for are data like any other.
  static DataType data_type(string_view word) {
    for (int i = 0; i <= static_cast<int>(DataType::boolean); ++i)
      if (to_string(static_cast<DataType>(i)) == word) return static_cast<DataType>(i);
    return DataType::unknown;
  }

  MwcEventCall event_call(string_view key, od::value& value) {
    const string_view word = p_.text(key, value);
    if (word == "record") return MwcEventCall::record;
    if (word == "wait") return MwcEventCall::wait;
    p_.unknown_word(key, word, {"record", "wait"});
  }

  WaitFor awaited(string_view key, od::value& value) {
    const string_view word = p_.text(key, value);
    if (word == "stream") return WaitFor::stream;
    if (word == "event") return WaitFor::event;
    if (word == "device") return WaitFor::device;
    if (word == "own_op") return WaitFor::own_op;
    p_.unknown_word(key, word, {"stream", "event", "device", "own_op"});
  }

  MwcLine& p_;
  const LineSource& lines_;
  MwcRecord& r_;
};

class HeaderParser {
 public:
  HeaderParser(MwcLine& parser, const LineSource& lines) : p_(parser), lines_(lines) {}

  MwcHeader read(string_view line) {
    p_.parse(line, [this](string_view key, od::value value) { member(key, value); });
    if (format_ != "memwall-capture")
      lines_.fail("\"format\" is not \"memwall-capture\"; expected the header of a captured step.");
    if (version_ == 0) lines_.fail("the header has no \"version\"; expected 1.");
    if (version_ > kNewestVersion)
      lines_.fail(fmt::format("the capture is of version {}; this program reads version {}. A newer memwall is needed.",
                              version_, kNewestVersion));
    if (!has_mode_) lines_.fail("the header has no \"mode\"; expected \"fake\" or \"real\".");
    return std::move(h_);
  }

 private:
  using Words = std::vector<std::pair<std::string, std::string>>;

  void member(string_view key, od::value value) {
    if (key == "format") format_ = p_.text(key, value);
    if (key == "version") version_ = static_cast<std::int64_t>(p_.number(key, value, kMostNumber));
    if (key == "name") h_.name = p_.text(key, value);
    if (key == "mode") mode(p_.text(key, value));
    if (key == "gpu") h_.gpu = p_.text(key, value);
    if (key == "gpu_bytes") h_.gpu_bytes = static_cast<Bytes>(p_.number(key, value, kMostBytes));
    if (key == "samples_per_step") h_.samples_per_step = p_.real(key, value, 1e15);
    if (key == "tokens_per_step") h_.tokens_per_step = p_.real(key, value, 1e15);
    if (key == "program") words(p_.object(key, value), h_.program);
    if (key == "choices") words(p_.object(key, value), h_.choices);
    if (key == "notes") p_.texts(key, value, h_.notes);
    if (key == "end") h_.has_end = p_.truth(key, value);
  }

  void mode(string_view word) {
    if (word != "fake" && word != "real") p_.unknown_word("mode", word, {"fake", "real"});
    h_.real = word == "real";
    has_mode_ = true;
  }

  // Values for people: text as it is, anything else as JSON.
  void words(od::object object, Words& to) {
    p_.members(object, [&](string_view key, od::value value) {
      od::json_type type{};
      if (value.type().get(type)) p_.wrong(key, value, "text");
      if (type == od::json_type::string)
        to.emplace_back(key, p_.text(key, value));
      else if (type != od::json_type::array && type != od::json_type::object)
        to.emplace_back(key, p_.raw(value));
    });
  }

  MwcLine& p_;
  const LineSource& lines_;
  MwcHeader h_;
  std::string format_;
  std::int64_t version_ = 0;
  bool has_mode_ = false;
};

// The lists keep their memory.
void clear(MwcRecord& record) {
  MwcRecord fresh;
  std::swap(fresh.reads, record.reads);
  std::swap(fresh.saves, record.saves);
  std::swap(fresh.streams, record.streams);
  std::swap(fresh.unreferenced, record.unreferenced);
  std::swap(fresh.writes, record.writes);
  std::swap(fresh.inputs, record.inputs);
  std::swap(fresh.outputs, record.outputs);
  fresh.reads.clear();
  fresh.saves.clear();
  fresh.streams.clear();
  fresh.unreferenced.clear();
  fresh.writes.clear();
  fresh.inputs.clear();
  fresh.outputs.clear();
  record = std::move(fresh);
}

}  // namespace

std::string_view to_string(MwcRecordType type) {
  constexpr string_view words[] = {"",           "storage", "alloc",       "free", "op",   "copy",
                                   "collective", "event",   "synchronize", "step", "loss", "end"};
  return words[static_cast<std::size_t>(type)];
}

std::string_view to_string(MwcPlace place) {
  constexpr string_view words[] = {"", "hbm", "host", "host_pinned"};
  return words[static_cast<std::size_t>(place)];
}

struct MwcReader::Json {
  explicit Json(const std::filesystem::path& path) : lines(path, MwcLine::kLongest) {}
  LineSource lines;
  od::parser parser;
  MwcHeader header;
  std::uint64_t records = 0;  // so far
};

MwcReader::MwcReader(const std::filesystem::path& path) : json_(std::make_unique<Json>(path)) {
  string_view line;
  if (!json_->lines.next(line)) fail("the file is empty; expected the header of a captured step.");
  MwcLine parser(json_->parser, json_->lines);
  json_->header = HeaderParser(parser, json_->lines).read(line);
}

MwcReader::~MwcReader() = default;

const MwcHeader& MwcReader::header() const { return json_->header; }
std::uint64_t MwcReader::line() const { return json_->lines.number(); }
void MwcReader::fail(const std::string& sentence) const { json_->lines.fail(sentence); }

bool MwcReader::next(MwcRecord& record) {
  clear(record);
  string_view line;
  if (!json_->lines.next(line)) {
    if (json_->header.has_end)
      fail(
          "the file ends without its \"end\" record, which the header announces; expected a whole file: it was cut "
          "off.");
    return false;
  }
  MwcLine parser(json_->parser, json_->lines);
  RecordParser(parser, json_->lines, record).read(line);
  if (record.type != Type::end) {
    ++json_->records;
    return true;
  }
  if (record.count != json_->records)
    fail(fmt::format("\"end\" counts {} records, but the file has {} before it; lines are missing or were added.",
                     record.count, json_->records));
  if (json_->lines.next(line)) fail("a record follows behind \"end\"; expected the end of the file.");
  return false;
}

bool is_mwc(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const std::size_t key = text.find("\"format\"");
  if (key == string_view::npos) return false;
  const std::size_t value = text.find_first_not_of(" \t:", key + 8);
  return value != string_view::npos && text.substr(value).starts_with("\"memwall-capture\"");
}

}  // namespace memwall
