#include "models/workload/import/snapshot/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "models/workload/import/bytes/byte_window.h"
#include "models/workload/import/snapshot/pickle_opcodes.h"
#include "models/workload/import/bytes/utf8.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kLongestText = 16 << 20;
// CPython appends in batches of 1,000, so that a few thousand values wait at most.
constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
constexpr std::size_t kDeepest = 1'000;
// A remembered value has an opcode of its own and is made by another; the densest snapshots need 15 bytes for one.
constexpr std::size_t kBytesPerMemo = 8, kFreeMemos = 65'536;

class PickleMachine {
 public:
  PickleMachine(const std::filesystem::path& path, PickleContent& content)
      : path_(path), window_(path), content_(content) {}

  PickleValue run();

 private:
  using Kind = PickleValue::Kind;
  static constexpr std::uint32_t kNoMemo = 0xffffffff;

  // A list or dict on the stack that no other value holds yet.
  struct Open {
    std::uint32_t position = 0;    // on the stack
    std::uint32_t memo = kNoMemo;  // where it is remembered
    bool list = false;
    bool filled = false, used = false;  // used: referred to; must not change any more
    PickleValue content;                // what the owner made of it so far
  };

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(fmt::format("{}, byte {}: found {}; expected {}.", path_.string(), at_, found, expected));
  }
  void start();
  void step(std::uint8_t opcode);
  void stop();
  const char* take(std::size_t n) {
    const char* at = window_.take(n);
    if (at == nullptr) fail("the end of the file in the middle of a pickle", "more bytes");
    return at;
  }
  template <class T>
  T number() {  // little-endian
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }

  void push(PickleValue value) {
    if (stack_.size() >= kMostWaiting)
      fail(fmt::format("more than {} values that wait for a list or dict", kMostWaiting),
           "a pickle that fills them in batches, as CPython does");
    stack_.push_back(value);
  }
  void push_mark();
  void push_open(bool list);
  void push_long();
  void push_real();
  void push_text(std::size_t length);
  void push_tuple(std::size_t size);
  void begin_frame();

  void remember(std::uint64_t index);
  void recall(std::uint64_t index) {
    if (index >= memo_.size())
      fail(fmt::format("a reference to value {} of {} remembered", index, memo_.size()), "one of these");
    PickleValue value = memo_[index];
    if (value.kind() == Kind::open) value = settle(open_[value.index()]);
    if (value.kind() == Kind::unique)
      fail(fmt::format("a second reference to {}", content_.name(value)), "each in one place only");
    push(value);
  }

  // The lowest stack position that may be taken now.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::size_t pop_mark(std::size_t below);
  void need(std::size_t values, const char* opcode) const;
  Open& target(std::size_t position, bool list, const char* opcode);
  PickleValue settle(Open& open);
  std::span<const PickleValue> taken(std::size_t from);
  void append(std::size_t from, const char* opcode);
  void fill(std::size_t from, const char* opcode);

  std::filesystem::path path_;
  ByteWindow window_;
  PickleContent& content_;
  std::uint64_t at_ = 0;         // position of the present opcode
  std::uint64_t frame_end_ = 0;  // of the present frame
  bool stopped_ = false;
  std::vector<PickleValue> stack_, memo_;
  std::vector<std::uint32_t> marks_;  // stack positions, ascending
  std::vector<Open> open_;            // by position, ascending
  std::string text_, clean_;
};

void PickleMachine::start() {
  const char* first = window_.take(2);
  if (first == nullptr) fail("a file of less than two bytes", "a pickle");
  if (static_cast<std::uint8_t>(first[0]) != static_cast<std::uint8_t>(PickleOpcode::proto))
    fail(fmt::format("byte 0x{:02x}", static_cast<std::uint8_t>(first[0])), "a pickle, which begins with 0x80");
  if (first[1] < 2 || first[1] > 5)
    fail(fmt::format("pickle protocol {}", static_cast<std::uint8_t>(first[1])), "2, 3, 4 or 5");
}

PickleValue PickleMachine::run() {
  start();
  try {
    while (!stopped_) {
      at_ = window_.position();
      step(static_cast<std::uint8_t>(*take(1)));
    }
  } catch (const PickleError& fault) {
    fail(fault.found, fault.expected);
  }
  return stack_[0];
}

void PickleMachine::step(std::uint8_t opcode) {
  switch (static_cast<PickleOpcode>(opcode)) {
    case PickleOpcode::binget:
      return recall(number<std::uint8_t>());
    case PickleOpcode::long_binget:
      return recall(number<std::uint32_t>());
    case PickleOpcode::binint1:
      return push({Kind::integer, number<std::uint8_t>()});
    case PickleOpcode::binint2:
      return push({Kind::integer, number<std::uint16_t>()});
    case PickleOpcode::binint:
      return push({Kind::integer, number<std::int32_t>()});
    case PickleOpcode::long1:
      return push_long();
    case PickleOpcode::binfloat:
      return push_real();
    case PickleOpcode::short_binunicode:
      return push_text(number<std::uint8_t>());
    case PickleOpcode::binunicode:
      return push_text(number<std::uint32_t>());
    case PickleOpcode::memoize:
      return remember(memo_.size());
    case PickleOpcode::binput:
      return remember(number<std::uint8_t>());
    case PickleOpcode::long_binput:
      return remember(number<std::uint32_t>());
    case PickleOpcode::mark:
      return push_mark();
    case PickleOpcode::empty_dict:
      return push_open(false);
    case PickleOpcode::empty_list:
      return push_open(true);
    case PickleOpcode::setitems:
      return fill(pop_mark(1), "SETITEMS");
    case PickleOpcode::appends:
      return append(pop_mark(1), "APPENDS");
    case PickleOpcode::setitem:
      need(3, "SETITEM");
      return fill(stack_.size() - 2, "SETITEM");
    case PickleOpcode::append:
      need(2, "APPEND");
      return append(stack_.size() - 1, "APPEND");
    case PickleOpcode::empty_tuple:
      return push_tuple(0);
    case PickleOpcode::tuple1:
      return push_tuple(1);
    case PickleOpcode::tuple2:
      return push_tuple(2);
    case PickleOpcode::tuple3:
      return push_tuple(3);
    case PickleOpcode::tuple: {
      const std::size_t from = pop_mark(0);
      return push_tuple(stack_.size() - from);
    }
    case PickleOpcode::none:
      return push({});
    case PickleOpcode::newtrue:
      return push({Kind::boolean, 1});
    case PickleOpcode::newfalse:
      return push({Kind::boolean, 0});
    case PickleOpcode::frame:
      return begin_frame();
    case PickleOpcode::stop:
      return stop();
    case PickleOpcode::proto:
      break;
  }
  const RefusedOpcode refused = refused_opcode(opcode);
  if (refused.name.empty()) fail(fmt::format("byte 0x{:02x}", opcode), "an opcode of pickle protocols 2 to 5");
  fail(fmt::format("opcode {}, {}", refused.name, refused.why), "only what dicts, lists, texts and numbers need");
}

void PickleMachine::stop() {
  if (!marks_.empty() || stack_.size() != 1)
    fail(fmt::format("STOP with {} values and {} marks waiting", stack_.size(), marks_.size()), "one value");
  stack_[0] = taken(0)[0];
  if (frame_end_ > window_.position()) fail("STOP before the end of its frame", "them together");
  if (window_.take(1) != nullptr) fail("bytes after STOP", "the end of the file");
  stopped_ = true;
}

void PickleMachine::begin_frame() {
  const std::uint64_t size = number<std::uint64_t>();
  // Frames only say how much can be read at once, but one within another is damage.
  if (at_ < frame_end_) fail("a frame that begins within another", "frames in a row");
  if (size > std::uint64_t{1} << 48) fail(fmt::format("a frame of {} bytes", size), "at most 2^48");
  frame_end_ = window_.position() + size;
}

void PickleMachine::push_mark() {
  if (marks_.size() >= kDeepest) fail(fmt::format("more than {} lists and dicts within each other", kDeepest), "fewer");
  marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
}

void PickleMachine::push_open(bool list) {
  Open open;
  open.position = static_cast<std::uint32_t>(stack_.size());
  open.list = list;
  push({Kind::open, static_cast<std::int64_t>(open_.size())});
  open_.push_back(open);
}

void PickleMachine::push_long() {
  const std::size_t size = number<std::uint8_t>();
  const char* bytes = take(size);
  if (size > 8) return push({Kind::wide, 0});
  std::uint64_t bits = size > 0 && bytes[size - 1] < 0 ? ~std::uint64_t{0} : 0;
  std::memcpy(&bits, bytes, size);
  const auto value = static_cast<std::int64_t>(bits);
  const bool fits = value >= -PickleValue::kLargest - 1 && value <= PickleValue::kLargest;
  push(fits ? PickleValue(Kind::integer, value) : PickleValue(Kind::wide, 0));
}

void PickleMachine::push_real() {
  std::uint64_t bits = 0;  // big-endian, unlike all else
  const char* bytes = take(8);
  for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<std::uint8_t>(bytes[i]);
  push(content_.real(std::bit_cast<double>(bits)));
}

void PickleMachine::push_text(std::size_t length) {
  if (length > kLongestText) fail(fmt::format("a text of {} bytes", length), fmt::format("at most {}", kLongestText));
  std::string_view text;
  if (length <= ByteWindow::kMost) {
    text = {take(length), length};
  } else {
    text_.clear();
    while (text_.size() < length) {
      const std::size_t piece = std::min(length - text_.size(), ByteWindow::kMost);
      text_.append(take(piece), piece);
    }
    text = text_;
  }
  if (!is_ascii(text)) {
    if (!check_utf8(text, clean_)) fail("a text that is not UTF-8", "UTF-8");
    if (!clean_.empty()) text = clean_;
  }
  push(content_.text(text));
}

void PickleMachine::push_tuple(std::size_t size) {
  need(size, "TUPLE");
  const std::size_t from = stack_.size() - size;
  const PickleValue value = content_.tuple(taken(from));
  stack_.resize(from);
  push(value);
}

void PickleMachine::remember(std::uint64_t index) {
  if (stack_.size() <= floor()) fail("an opcode that remembers a value where there is none", "a value before it");
  if (index > memo_.size())
    fail(fmt::format("a value remembered as number {}", index), fmt::format("{} or less", memo_.size()));
  if (memo_.size() >= window_.position() / kBytesPerMemo + kFreeMemos)
    fail(fmt::format("{} remembered values", memo_.size()), "at most one per 8 bytes");
  const PickleValue value = stack_.back();
  if (value.kind() == Kind::open) {
    Open& open = open_[value.index()];
    if (open.memo != kNoMemo) fail("a list or dict that is remembered twice", "once");
    open.memo = static_cast<std::uint32_t>(index);
  }
  if (index == memo_.size())
    memo_.push_back(value);
  else if (memo_[index].kind() == Kind::open)
    fail(fmt::format("a second value remembered as number {}", index), "the first to be finished before");
  else
    memo_[index] = value;
}

std::size_t PickleMachine::pop_mark(std::size_t below) {
  if (marks_.empty()) fail("an opcode that goes back to a mark where there is none", "a mark before it");
  const std::size_t mark = marks_.back();
  marks_.pop_back();
  if (mark < floor() + below) fail("an opcode that fills a list or dict where there is none", "one before the mark");
  return mark;
}

void PickleMachine::need(std::size_t values, const char* opcode) const {
  if (stack_.size() < floor() + values)
    fail(fmt::format("{} with {} values before it", opcode, stack_.size() - floor()), fmt::format("{}", values));
}

PickleMachine::Open& PickleMachine::target(std::size_t position, bool list, const char* opcode) {
  const PickleValue value = stack_[position];
  const char* expected = list ? "a list that nothing refers to yet" : "a dict that nothing refers to yet";
  if (value.kind() != Kind::open) fail(fmt::format("{} on {}", opcode, content_.name(value)), expected);
  Open& open = open_[value.index()];
  if (open.list != list) fail(fmt::format("{} on {}", opcode, open.list ? "a list" : "a dict"), expected);
  if (open.used) fail(fmt::format("{} on a {} after its use", opcode, list ? "list" : "dict"), expected);
  return open;
}

// What it is, now that another value refers to it.
PickleValue PickleMachine::settle(Open& open) {
  if (open.used) return open.content;
  open.used = true;
  if (!open.filled)
    open.content = open.list ? content_.empty_list() : content_.empty_dict();
  else if (open.list)
    open.content = content_.finish_list(open.content);
  return open.content;
}

// The values from `from` on, each finished. They stay on the stack until it is cut.
std::span<const PickleValue> PickleMachine::taken(std::size_t from) {
  while (!open_.empty() && open_.back().position >= from) {
    Open& open = open_.back();
    const PickleValue value = settle(open);
    stack_[open.position] = value;
    if (open.memo != kNoMemo) memo_[open.memo] = value;
    open_.pop_back();
  }
  return std::span<const PickleValue>(stack_).subspan(from);
}

void PickleMachine::append(std::size_t from, const char* opcode) {
  const std::span<const PickleValue> items = taken(from);
  Open& list = target(from - 1, true, opcode);
  if (!list.filled) list.content = content_.begin_list();
  list.filled = true;
  content_.append(list.content, items);
  stack_.resize(from);
}

void PickleMachine::fill(std::size_t from, const char* opcode) {
  const std::span<const PickleValue> pairs = taken(from);
  Open& dict = target(from - 1, false, opcode);
  if (pairs.size() % 2 != 0) fail(fmt::format("{} with a key that has no value", opcode), "pairs");
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    if (const Kind kind = pairs[i].kind();
        kind != Kind::text && kind != Kind::integer && kind != Kind::none && kind != Kind::boolean)
      fail(fmt::format("{} as the key of a dict", content_.name(pairs[i])), "a text or a number");
  dict.content = dict.filled ? content_.more_of_dict(dict.content, pairs) : content_.dict(pairs);
  dict.filled = true;
  stack_.resize(from);
}

}  // namespace

std::string_view to_string(PickleValue::Kind kind) {
  switch (kind) {
    case PickleValue::Kind::none:
      return "None";
    case PickleValue::Kind::boolean:
      return "a bool";
    case PickleValue::Kind::integer:
      return "an integer";
    case PickleValue::Kind::wide:
      return "an integer beyond 2^55";
    case PickleValue::Kind::text:
      return "a text";
    case PickleValue::Kind::open:
      return "an unfinished list or dict";
    default:
      return "a value of an unknown kind";
  }
}

PickleValue read_pickle(const std::filesystem::path& path, PickleContent& content) {
  return PickleMachine(path, content).run();
}

}  // namespace memwall
