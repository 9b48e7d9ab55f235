// Chakra's protobuf files: message by message, none larger than its place in the file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "import/chakra/chakra.pb.h"
#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/chakra/chakra_graph.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kLargestMessage = std::size_t{512} << 20, kMessagePiece = std::size_t{1} << 20;

class Messages {
 public:
  explicit Messages(const std::filesystem::path& path) : path_(path), bytes_(path) {}

  // The next message, or nothing at the end of the file. Valid until the next call.
  std::optional<std::string_view> next() {
    std::uint64_t size = 0;
    if (!read_size(size)) return std::nullopt;
    if (size > kLargestMessage)
      fail(fmt::format("is said to have {} bytes; expected at most {}", size, kLargestMessage));
    message_.clear();
    while (message_.size() < size) {  // what the file does not hold is not allocated
      const std::size_t before = message_.size(), piece = std::min<std::size_t>(size - before, kMessagePiece);
      message_.resize(before + piece);
      const std::size_t got = bytes_.read(message_.data() + before, piece);
      if (got < piece)
        fail(fmt::format("has {} bytes, of which {} are there: the file was cut off", size, before + got));
    }
    at_ += size;
    ++number_;
    return std::string_view(message_);
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw InputError(fmt::format("{}: message {} (byte {}) {}.", path_.string(), number_, at_, found));
  }

 private:
  bool read_size(std::uint64_t& size) {
    for (int shift = 0; shift < 35; shift += 7) {
      char byte = 0;
      if (bytes_.read(&byte, 1) == 0) {
        if (shift == 0) return false;
        fail("ends within its size: the file was cut off");
      }
      ++at_;
      size |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    fail("has a size of more than 5 bytes; expected a varint of 32 bits");
  }

  std::filesystem::path path_;
  ByteSource bytes_;
  std::string message_;
  std::uint64_t at_ = 0, number_ = 0;
};

// Any integer type is as good as another.
std::optional<std::int64_t> number_of(const chakra::Attribute& a) {
  using A = chakra::Attribute;
  switch (a.value_case()) {
    case A::kInt32Val:
      return a.int32_val();
    case A::kInt64Val:
      return a.int64_val();
    case A::kUint32Val:
      return a.uint32_val();
    case A::kUint64Val:
      return static_cast<std::int64_t>(a.uint64_val());
    case A::kSint32Val:
      return a.sint32_val();
    case A::kSint64Val:
      return a.sint64_val();
    case A::kFixed32Val:
      return a.fixed32_val();
    case A::kFixed64Val:
      return static_cast<std::int64_t>(a.fixed64_val());
    case A::kSfixed32Val:
      return a.sfixed32_val();
    case A::kSfixed64Val:
      return a.sfixed64_val();
    case A::kBoolVal:
      return a.bool_val() ? 1 : 0;
    default:
      return std::nullopt;
  }
}

void set_attributes(const chakra::Node& from, ChakraGraphBuilder& builder) {
  for (const chakra::Attribute& a : from.attr()) {
    if (const auto number = number_of(a))
      builder.set_attribute(a.name(), *number);
    else if (a.value_case() == chakra::Attribute::kStringVal)
      builder.set_attribute(a.name(), std::string_view(a.string_val()));
    else if (a.name() != "involved_dim")  // of the simulated network; says nothing about this rank's program
      builder.skip_attribute();
  }
}

void read_node(const chakra::Node& from, ChakraGraphBuilder& builder) {
  ChakraNode& node = builder.begin_node();
  node.id = from.id();
  builder.set_name(from.name());
  if (from.type() < 0 || from.type() > static_cast<int>(ChakraNodeType::collective))
    builder.fail_node(fmt::format("its type is {}; expected 0 to 7.", from.type()));
  node.type = static_cast<ChakraNodeType>(from.type());
  for (const std::uint64_t id : from.ctrl_deps()) builder.depend(id, false);
  for (const std::uint64_t id : from.data_deps()) builder.depend(id, true);
  builder.set_duration(from.duration_micros());
  set_attributes(from, builder);
  for (const bool inputs : {true, false}) {
    const chakra::Arguments& arguments = inputs ? from.inputs() : from.outputs();
    builder.set_arguments(arguments.values(), arguments.shapes(), arguments.types(), inputs);
  }
}

void read_metadata(const chakra::GlobalMetadata& from, ChakraGraph& graph) {
  graph.version = from.version();
  for (const chakra::Attribute& a : from.attr()) {
    const auto number = number_of(a);
    graph.metadata.emplace_back(a.name(), number ? std::to_string(*number) : a.string_val());
  }
}

// A message's fields by number and wire type, without their content. False where they are none of its kind's; fields
// with higher numbers than are known may be of a newer version. `fields` counts the known ones.
bool may_be(std::string_view message, std::span<const char> wire_types, std::size_t& fields) {
  constexpr std::uint64_t kHighestNumber = 100;
  const auto varint = [&](std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (message.empty()) return false;
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  const auto skip = [&](std::uint64_t bytes) {
    if (bytes > message.size()) return false;
    message.remove_prefix(bytes);
    return true;
  };
  while (!message.empty()) {
    std::uint64_t tag = 0, value = 0;
    if (!varint(tag)) return false;
    const std::uint64_t number = tag >> 3, wire = tag & 7;
    if (number == 0 || number > kHighestNumber) return false;
    if (number <= wire_types.size()) {
      const char known = wire_types[number - 1];  // 'v' a number, 'b' bytes, 'p' numbers one by one or in a row
      if (wire != (known == 'b' ? 2U : 0U) && !(known == 'p' && wire == 2)) return false;
      ++fields;
    }
    if (wire == 0   ? !varint(value)
        : wire == 1 ? !skip(8)
        : wire == 5 ? !skip(4)
        : wire == 2 ? !varint(value) || !skip(value)
                    : true)
      return false;
  }
  return true;
}

// A size, and as many bytes of a message; false if the head does not hold them.
bool cut_message(std::string_view& text, std::string_view& message) {
  std::uint64_t size = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (text.empty()) return false;
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    size |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (size > text.size()) return false;
      message = text.substr(0, size);
      text.remove_prefix(size);
      return true;
    }
  }
  return false;
}

}  // namespace

ChakraGraph read_chakra_messages(const std::filesystem::path& path) {
  ChakraGraphBuilder builder(path);
  Messages messages(path);
  chakra::GlobalMetadata metadata;
  const auto first = messages.next();
  if (!first) builder.fail("the file is empty; expected a Chakra execution trace.");
  if (!metadata.ParseFromArray(first->data(), static_cast<int>(first->size())))
    messages.fail("is no GlobalMetadata, with which a Chakra execution trace begins");
  read_metadata(metadata, builder.graph());
  chakra::Node node;
  while (const auto message = messages.next()) {
    if (!node.ParseFromArray(message->data(), static_cast<int>(message->size())))
      messages.fail("is no Node of a Chakra execution trace");
    read_node(node, builder);
  }
  return std::move(builder).finish();
}

// The first messages, as far as the head goes, have a GlobalMetadata's and then Nodes' fields.
bool recognizes_chakra_messages(const FileHead& head) {
  constexpr std::array metadata{'b', 'b'};
  constexpr std::array node{'v', 'b', 'v', 'p', 'p', 'v', 'v', 'b', 'b', 'b'};
  constexpr int kEnough = 8;          // what is wrong behind them, the reader says
  std::string bytes(64 << 10, '\0');  // head.text has lost leading blanks, which here are a size
  try {
    bytes.resize(ByteSource(head.path).read(bytes.data(), bytes.size()));
  } catch (const InputError&) {
    return false;
  }
  std::string_view text(bytes), message;
  std::size_t fields = 0;
  if (!cut_message(text, message) || !may_be(message, metadata, fields)) return false;
  int nodes = 0;
  for (; nodes < kEnough && cut_message(text, message); ++nodes) {
    std::size_t in_node = 0;
    if (!may_be(message, node, in_node) || in_node == 0) return false;
  }
  return nodes > 0 || (fields > 0 && !text.empty());  // the first node may be longer than the head
}

}  // namespace memwall
