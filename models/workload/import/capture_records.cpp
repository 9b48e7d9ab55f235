#include "models/workload/import/capture_records.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <cstring>

#include "models/workload/import/in_quotes.h"
#include "models/workload/import/line_source.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace od = simdjson::ondemand;
using std::string_view;
using Type = CaptureRecordType;

constexpr std::int64_t kNewestVersion = 1;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // 64 MiB: a million tensors and more
constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;  // a pebibyte, as sim/trace_check.h has it
constexpr std::uint64_t kMostStreams = (1 << 16) - 1;         // Op::stream, Op::thread
constexpr std::uint64_t kMostRanks = 1 << 24;
constexpr double kMostFlops = 1e18;        // of one op: a GPU of today works on it for a quarter of an hour
constexpr double kMostMicroseconds = 1e9;  // of one op: a quarter of an hour

string_view key_of(od::field& field) {
  const char* begin = field.key().raw();
  return {begin, static_cast<std::size_t>(static_cast<const char*>(std::memchr(begin, '"', kLongestLine)) - begin)};
}

// The members of one line, each in its range.
class LineParser {
 public:
  LineParser(od::parser& parser, const LineSource& lines) : parser_(parser), lines_(lines) {}

  // Calls `take(key, value)` for every member; which keys are of interest is the caller's business.
  template <typename Take>
  void parse(string_view line, Take take) {
    const simdjson::padded_string_view padded(line, line.size() + LineSource::kPadding);
    od::document document;
    if (const auto error = parser_.iterate(padded).get(document)) bad_json(error);
    od::object object;
    if (const auto error = document.get_object().get(object)) bad_json(error);
    members(object, take);
    const char* rest = nullptr;
    if (!document.current_location().get(rest)) lines_.fail("found more behind the object; expected one per line.");
  }

  template <typename Take>
  void members(od::object& object, Take take) {
    for (auto item : object) {
      od::field field;
      if (const auto error = std::move(item).get(field)) bad_json(error);
      const string_view key = key_of(field);
      od::value value = field.value();
      bool is_null = false;
      if (const auto error = value.is_null().get(is_null)) bad_json(error);
      if (!is_null) take(key, value);  // null: not given
    }
  }

  std::uint64_t number(string_view key, od::value value, std::uint64_t most) {
    std::uint64_t n = 0;
    if (value.get_uint64().get(n) || n > most) wrong(key, value, fmt::format("a whole number from 0 to {}", most));
    return n;
  }

  double real(string_view key, od::value value, double most) {
    double x = 0;
    if (value.get_double().get(x) || !(x >= 0) || x > most)
      wrong(key, value, fmt::format("a number from 0 to {}", most));
    return x;
  }

  bool truth(string_view key, od::value value) {
    bool b = false;
    if (value.get_bool().get(b)) wrong(key, value, "true or false");
    return b;
  }

  string_view text(string_view key, od::value value) {
    string_view t;
    if (const auto error = value.get_string().get(t)) {
      if (error == simdjson::INCORRECT_TYPE) wrong(key, value, "text");
      bad_json(error);
    }
    return t;
  }

  void numbers(string_view key, od::value value, std::vector<std::uint32_t>& to) {
    od::array array;
    if (value.get_array().get(array)) wrong(key, value, "a list of storage numbers");
    for (auto item : array) {
      od::value element;
      if (const auto error = std::move(item).get(element)) bad_json(error);
      to.push_back(static_cast<std::uint32_t>(number(key, element, kMostNumber)));
    }
  }

  od::object object(string_view key, od::value value) {
    od::object inner;
    if (value.get_object().get(inner)) wrong(key, value, "an object");
    return inner;
  }

  void texts(string_view key, od::value value, std::vector<std::string>& to) {
    od::array array;
    if (value.get_array().get(array)) wrong(key, value, "a list of sentences");
    for (auto item : array) {
      od::value element;
      if (const auto error = std::move(item).get(element)) bad_json(error);
      to.emplace_back(text(key, element));
    }
  }

  // One of the first `count` values of an enumeration, by its word.
  template <typename E>
  E word(string_view key, od::value value, int count, int first = 0) {
    const string_view t = text(key, value);
    std::vector<std::string> known;
    for (int i = first; i < count; ++i)
      if (to_string(static_cast<E>(i)) == t) return static_cast<E>(i);
    for (int i = first; i < count; ++i) known.emplace_back(to_string(static_cast<E>(i)));
    unknown_word(key, t, known);
  }

  [[noreturn]] void unknown_word(string_view key, string_view found, const std::vector<std::string>& known) {
    const std::string near = nearest_name(std::string(found), known);
    std::string all;
    for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
    lines_.fail(fmt::format("\"{}\" is {}{}; expected one of {}.", key, in_quotes(found),
                            near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), all));
  }

  std::string raw(od::value& value) {
    string_view token = value.raw_json_token();
    while (!token.empty() && std::strchr(" \t\r\n", token.back()) != nullptr) token.remove_suffix(1);
    return in_quotes(token);
  }

  [[noreturn]] void wrong(string_view key, od::value& value, const std::string& expected) {
    lines_.fail(fmt::format("\"{}\" is {}; expected {}.", key, raw(value), expected));
  }

 private:
  [[noreturn]] void bad_json(simdjson::error_code error) {
    lines_.fail(fmt::format("found JSON that cannot be parsed ({}); expected one object per line.",
                            simdjson::error_message(error)));
  }

  od::parser& parser_;
  const LineSource& lines_;
};

class RecordParser {
 public:
  RecordParser(LineParser& parser, const LineSource& lines, CaptureRecord& record)
      : p_(parser), lines_(lines), r_(record) {}

  void read(string_view line) {
    p_.parse(line, [this](string_view key, od::value value) { member(key, value); });
    if (r_.type != Type::none) return;
    std::string types;
    for (int i = 1; i < kCaptureRecordTypes; ++i)
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
  CapturePlace place(string_view key, od::value& value) { return p_.word<CapturePlace>(key, value, 4, 1); }

  void member(string_view key, od::value value) {
    switch (key.size()) {
      case 2:
        if (key == "op") is(Type::op), r_.name = p_.text(key, value);
        if (key == "id") r_.id = id(key, value);
        if (key == "to") r_.to = place(key, value);
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
    if (key == "phase") r_.phase = p_.word<Phase>(key, value, 5), r_.has_phase = true;
    if (key == "bytes") r_.bytes = bytes(key, value);
    if (key == "flops") r_.flops = p_.real(key, value, kMostFlops);
    if (key == "class") r_.operator_class = p_.word<OperatorClass>(key, value, 10);
    if (key == "dtype") r_.data_type = data_type(p_.text(key, value));
    if (key == "place") r_.place = place(key, value);
    if (key == "label") r_.label = p_.text(key, value);
    if (key == "group") r_.group = p_.text(key, value);
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
  }

  void seven_letters(string_view key, od::value& value) {
    if (key == "storage") is(Type::storage), r_.storage = id(key, value);
    if (key == "forward") r_.forward = id(key, value);
    if (key == "kernels") r_.kernels = static_cast<std::uint32_t>(p_.number(key, value, kMostNumber));
    if (key == "host_us") r_.host = time(key, value);
  }

  void long_key(string_view key, od::value& value) {
    if (key == "duration_us") r_.duration = time(key, value);
    if (key == "blocking") r_.blocking = p_.truth(key, value);
    if (key == "preexisting") r_.preexisting = p_.truth(key, value);
    if (key == "collective") is(Type::collective), r_.collective = p_.word<CollectiveKind>(key, value, 9, 1);
    if (key == "synchronize") is(Type::synchronize), r_.wait_for = awaited(key, value);
  }

  // Types that memwall has no arithmetic rate for are data like any other.
  static DataType data_type(string_view word) {
    for (int i = 0; i <= static_cast<int>(DataType::boolean); ++i)
      if (to_string(static_cast<DataType>(i)) == word) return static_cast<DataType>(i);
    return DataType::unknown;
  }

  CaptureEventCall event_call(string_view key, od::value& value) {
    const string_view word = p_.text(key, value);
    if (word == "record") return CaptureEventCall::record;
    if (word == "wait") return CaptureEventCall::wait;
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

  LineParser& p_;
  const LineSource& lines_;
  CaptureRecord& r_;
};

class HeaderParser {
 public:
  HeaderParser(LineParser& parser, const LineSource& lines) : p_(parser), lines_(lines) {}

  CaptureHeader read(string_view line) {
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

  LineParser& p_;
  const LineSource& lines_;
  CaptureHeader h_;
  std::string format_;
  std::int64_t version_ = 0;
  bool has_mode_ = false;
};

void clear(CaptureRecord& record) {
  std::vector<std::uint32_t> reads = std::move(record.reads), writes = std::move(record.writes);
  reads.clear();
  writes.clear();
  record = CaptureRecord{};
  record.reads = std::move(reads);
  record.writes = std::move(writes);
}

}  // namespace

std::string_view to_string(CaptureRecordType type) {
  constexpr string_view words[] = {"",           "storage", "alloc",       "free", "op",  "copy",
                                   "collective", "event",   "synchronize", "step", "loss"};
  return words[static_cast<std::size_t>(type)];
}

std::string_view to_string(CapturePlace place) {
  constexpr string_view words[] = {"", "hbm", "host", "host_pinned"};
  return words[static_cast<std::size_t>(place)];
}

struct CaptureReader::Json {
  explicit Json(const std::filesystem::path& path) : lines(path, kLongestLine) {}
  LineSource lines;
  od::parser parser;
  CaptureHeader header;
};

CaptureReader::CaptureReader(const std::filesystem::path& path) : json_(std::make_unique<Json>(path)) {
  string_view line;
  if (!json_->lines.next(line)) fail("the file is empty; expected the header of a captured step.");
  LineParser parser(json_->parser, json_->lines);
  json_->header = HeaderParser(parser, json_->lines).read(line);
}

CaptureReader::~CaptureReader() = default;

const CaptureHeader& CaptureReader::header() const { return json_->header; }
std::uint64_t CaptureReader::line() const { return json_->lines.number(); }
void CaptureReader::fail(const std::string& sentence) const { json_->lines.fail(sentence); }

bool CaptureReader::next(CaptureRecord& record) {
  clear(record);
  string_view line;
  if (!json_->lines.next(line)) return false;
  LineParser parser(json_->parser, json_->lines);
  RecordParser(parser, json_->lines, record).read(line);
  return true;
}

bool opens_capture(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const std::size_t key = text.find("\"format\"");
  if (key == string_view::npos) return false;
  const std::size_t value = text.find_first_not_of(" \t:", key + 8);
  return value != string_view::npos && text.substr(value).starts_with("\"memwall-capture\"");
}

}  // namespace memwall
