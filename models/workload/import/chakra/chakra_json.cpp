// Chakra in JSON: the graph that json_node of its feeder reads, and what chakra_jsonizer prints.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>

#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/chakra/chakra_graph.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/bytes/json_source.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;
using std::string_view;

constexpr std::size_t kLargestObject = std::size_t{256} << 20, kTextPiece = std::size_t{64} << 10;

// Objects one behind another, as a printer leaves them.
class Objects {
 public:
  explicit Objects(const std::filesystem::path& path) : path_(path), bytes_(path) {}

  // The next object's text, or "" at the end.
  std::string next() {
    std::string object;
    int depth = 0;
    bool inside = false;  // a string
    for (int c = get(); c >= 0; c = get()) {
      if (depth == 0) {
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',') continue;
        if (c != '{') fail("found something else than an object; expected the messages of a Chakra execution trace");
      }
      object += static_cast<char>(c);
      if (object.size() > kLargestObject) fail(fmt::format("an object of more than {} bytes", kLargestObject));
      if (inside) {
        if (c == '\\') {
          if ((c = get()) < 0) break;
          object += static_cast<char>(c);
        } else if (c == '"') {
          inside = false;
        }
        continue;
      }
      if (c == '"') inside = true;
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) return object;
    }
    if (!object.empty()) fail("the file ends within an object: it was cut off");
    return "";
  }

 private:
  int get() {
    if (used_ == buffer_.size()) {
      buffer_.resize(kTextPiece);
      buffer_.resize(bytes_.read(buffer_.data(), buffer_.size()));
      used_ = 0;
      if (buffer_.empty()) return -1;
    }
    ++at_;
    return static_cast<unsigned char>(buffer_[used_++]);
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw InputError(fmt::format("{}: byte {}: {}.", path_.string(), at_, found));
  }

  std::filesystem::path path_;
  ByteSource bytes_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::uint64_t at_ = 0;
};

class NodeReader {
 public:
  explicit NodeReader(ChakraGraphBuilder& builder) : b_(builder) {}

  void read(dom::element element) {
    dom::object object;
    b_.begin_node();
    if (element.get(object) != simdjson::SUCCESS) b_.fail_node("it is no JSON object.");
    for (const auto& [key, value] : object) set(key, value);
  }

  static bool number(dom::element value, std::int64_t& n) {
    if (value.get(n) == simdjson::SUCCESS) return true;
    if (std::uint64_t u = 0; value.get(u) == simdjson::SUCCESS) return n = static_cast<std::int64_t>(u), true;
    if (bool b = false; value.get(b) == simdjson::SUCCESS) return n = b ? 1 : 0, true;
    // Protobuf prints numbers of 64 bits as text.
    string_view text;
    if (value.get(text) != simdjson::SUCCESS || text.empty()) return false;
    const char* end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, n); r.ec == std::errc{} && r.ptr == end) return true;
    std::uint64_t u = 0;
    const auto r = std::from_chars(text.data(), end, u);
    n = static_cast<std::int64_t>(u);
    return r.ec == std::errc{} && r.ptr == end;
  }

 private:
  std::int64_t whole(string_view key, dom::element value) {
    std::int64_t n = 0;
    if (!number(value, n))
      b_.fail_node(fmt::format("\"{}\" is {}; expected a whole number.", key, quote_for_message(simdjson::to_string(value))));
    return n;
  }

  void set(string_view key, dom::element value) {
    ChakraNode& node = b_.graph().nodes.back();
    if (value.is_null()) return;
    if (key == "Id" || key == "id") {
      node.id = static_cast<std::uint64_t>(whole(key, value));
    } else if (key == "Name" || key == "name") {
      string_view name;
      if (value.get(name) != simdjson::SUCCESS) b_.fail_node(fmt::format("\"{}\" is no text.", key));
      b_.set_name(name);
    } else if (key == "NodeType" || key == "type") {
      node.type = type(key, value);
    } else if (key == "runtime" || key == "durationMicros" || key == "duration_micros") {
      b_.set_duration(static_cast<std::uint64_t>(whole(key, value)));
    } else if (key == "ctrlDeps" || key == "ctrl_deps") {
      depend(key, value, false);
    } else if (key == "dataDeps" || key == "data_deps") {
      depend(key, value, true);
    } else if (key == "inputs" || key == "outputs") {
      arguments(value, key == "inputs");
    } else if (key == "attr") {
      attributes(value);
    } else if (key != "startTimeMicros" && key != "start_time_micros") {
      attribute(key, value);
    }
  }

  ChakraNodeType type(string_view key, dom::element value) {
    static constexpr string_view kNames[] = {"INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
                                             "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};
    string_view text;
    if (value.get(text) == simdjson::SUCCESS)
      for (std::size_t i = 0; i < std::size(kNames); ++i)
        if (kNames[i] == text) return static_cast<ChakraNodeType>(i);
    std::int64_t n = -1;
    if (!number(value, n) || n < 0 || n > static_cast<int>(ChakraNodeType::collective))
      b_.fail_node(fmt::format("\"{}\" is {}; expected 0 to 7, or COMP_NODE and the like.", key,
                               quote_for_message(simdjson::to_string(value))));
    return static_cast<ChakraNodeType>(n);
  }

  void depend(string_view key, dom::element value, bool data) {
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS)
      return b_.depend(static_cast<std::uint64_t>(whole(key, value)), data);  // a single one
    for (const dom::element id : list) b_.depend(static_cast<std::uint64_t>(whole(key, id)), data);
  }

  void arguments(dom::element value, bool inputs) {
    string_view text[3];
    const char* names[] = {"values", "shapes", "types"};
    for (int i = 0; i < 3; ++i)
      if (value[names[i]].get(text[i]) != simdjson::SUCCESS) text[i] = "";
    b_.set_arguments(text[0], text[1], text[2], inputs);
  }

  void attributes(dom::element list) {
    dom::array array;
    if (list.get(array) != simdjson::SUCCESS) b_.fail_node("\"attr\" is no list.");
    for (const dom::element entry : array) {
      string_view name;
      dom::object object;
      if (entry["name"].get(name) != simdjson::SUCCESS || entry.get(object) != simdjson::SUCCESS) {
        b_.skip_attribute();
        continue;
      }
      for (const auto& [key, value] : object)
        if (key != "name" && key != "docString" && key != "doc_string") attribute(name, value);
    }
  }

  void attribute(string_view name, dom::element value) {
    string_view text;
    const bool is_text = value.get(text) == simdjson::SUCCESS;
    if (std::int64_t n = 0; name != "pg_name" && number(value, n))
      b_.set_attribute(name, n);
    else if (is_text)
      b_.set_attribute(name, text);
    else if (name != "involved_dim")
      b_.skip_attribute();
  }

  ChakraGraphBuilder& b_;
};

void read_metadata(dom::element object, ChakraGraph& graph) {
  if (string_view version; object["version"].get(version) == simdjson::SUCCESS) graph.version = version;
  dom::array list;
  if (object["attr"].get(list) != simdjson::SUCCESS) return;
  for (const dom::element entry : list) {
    dom::object fields;
    string_view name, text;
    if (entry.get(fields) != simdjson::SUCCESS || entry["name"].get(name) != simdjson::SUCCESS) continue;
    for (const auto& [key, value] : fields)
      if (key != "name" && key != "docString")
        graph.metadata.emplace_back(
            name, value.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::to_string(value));
  }
}

dom::element parsed(dom::parser& parser, const std::string& text, ChakraGraphBuilder& builder) {
  dom::element element;
  if (const auto error = parser.parse(text).get(element))
    builder.fail(fmt::format("behind node number {}: what cannot be parsed ({}); expected JSON.",
                             builder.graph().nodes.size(), simdjson::error_message(error)));
  return element;
}

// "}" and then "{" with a node's member.
bool goes_on_with_a_node(string_view text) {
  const std::size_t close = text.find('}');
  for (std::size_t at = close; at != string_view::npos; at = text.find('}', at + 1)) {
    const std::size_t open = text.find_first_not_of(" \t\r\n", at + 1);
    if (open == string_view::npos || text[open] != '{') continue;
    const std::size_t quote = text.find_first_not_of(" \t\r\n", open + 1);
    if (quote == string_view::npos) return false;
    for (const string_view key : {"\"id\"", "\"name\"", "\"type\"", "\"attr\""})
      if (text.substr(quote).starts_with(key)) return true;
    return false;
  }
  return false;
}

}  // namespace

ChakraGraph read_chakra_json(const std::filesystem::path& path) {
  ChakraGraphBuilder builder(path);
  NodeReader nodes(builder);
  dom::parser parser;
  FileHead head = read_file_head(path);
  const bool whole = !goes_on_with_a_node(head.text) ||
                     std::find(head.members.begin(), head.members.end(), "workload_graph") != head.members.end();
  if (!whole) {
    Objects objects(path);
    read_metadata(parsed(parser, objects.next(), builder), builder.graph());
    for (std::string text = objects.next(); !text.empty(); text = objects.next())
      nodes.read(parsed(parser, text, builder));
    return std::move(builder).finish();
  }
  JsonSource json(path);
  while (const auto key = json.next_member()) {
    if (*key != "workload_graph") continue;
    if (!json.at_array()) json.fail("\"workload_graph\" is no list.");
    while (const auto element = json.next_element()) nodes.read(parsed(parser, std::string(*element), builder));
  }
  return std::move(builder).finish();
}

bool recognizes_chakra_json(const FileHead& head) {
  if (std::find(head.members.begin(), head.members.end(), "workload_graph") != head.members.end()) return true;
  const bool metadata = std::all_of(head.members.begin(), head.members.end(),
                                    [](const std::string& m) { return m == "version" || m == "attr"; });
  return head.text.starts_with('{') && metadata && goes_on_with_a_node(head.text);
}

}  // namespace memwall
