#include "models/workload/import/chakra/python_lists.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

namespace memwall {
namespace {

using std::string_view;

constexpr int kDeepest = 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
constexpr std::size_t kLongestValue = 64 << 10;

// A value of a list, in the order in which values begin; what is inside it stands behind it.
struct Item {
  string_view text;  // of what is no list, quotes included
  bool is_list = false;
  std::uint32_t end = 0;  // the item behind all that is inside
  std::uint32_t elements = 0;
};

class Parser {
 public:
  explicit Parser(string_view text) : text_(text) {}

  // False where the text is no list; `items` then holds what came before the fault.
  bool run(std::vector<Item>& items) {
    blanks();
    if (!at('[') && !at('(')) return false;
    if (!value(items, 0)) return false;
    blanks();
    return i_ == text_.size();
  }

 private:
  bool at(char c) const { return i_ < text_.size() && text_[i_] == c; }
  void blanks() {
    while (i_ < text_.size() && (text_[i_] == ' ' || text_[i_] == '\n' || text_[i_] == '\t')) ++i_;
  }

  bool value(std::vector<Item>& items, int depth) {
    blanks();
    if (i_ >= text_.size()) return false;
    const std::size_t mine = items.size();
    items.push_back({});
    const char c = text_[i_];
    const bool read = c == '[' || c == '('    ? list(items, mine, depth)
                      : c == '\'' || c == '"' ? quoted(items[mine], c)
                                              : bare(items[mine]);
    items[mine].end = static_cast<std::uint32_t>(items.size());
    return read;
  }

  bool list(std::vector<Item>& items, std::size_t mine, int depth) {
    const char close = text_[i_++] == '[' ? ']' : ')';
    items[mine].is_list = true;
    if (depth == kDeepest) return false;
    for (blanks(); !at(close); blanks()) {
      if (!value(items, depth + 1)) return false;
      ++items[mine].elements;
      blanks();
      if (at(','))
        ++i_;
      else if (!at(close))
        return false;
    }
    ++i_;
    return true;
  }

  bool quoted(Item& item, char quote) {
    const std::size_t begin = i_;
    for (++i_; i_ < text_.size() && text_[i_] != quote; ++i_)
      if (text_[i_] == '\\') ++i_;
    if (i_ >= text_.size()) return false;
    item.text = text_.substr(begin, ++i_ - begin);
    return true;
  }

  bool bare(Item& item) {
    const std::size_t begin = i_;
    while (i_ < text_.size() && text_[i_] != ',' && text_[i_] != ']' && text_[i_] != ')') ++i_;
    item.text = text_.substr(begin, i_ - begin);
    while (!item.text.empty() && item.text.back() == ' ') item.text.remove_suffix(1);
    return !item.text.empty();
  }

  string_view text_;
  std::size_t i_ = 0;
};

bool to_number(const Item& item, std::int64_t& n) {
  if (item.is_list) return false;
  const char* end = item.text.data() + item.text.size();
  if (const auto [stop, error] = std::from_chars(item.text.data(), end, n); error == std::errc{} && stop == end)
    return true;
  std::uint64_t large = 0;  // a pointer above the signed range wraps
  const auto [stop, error] = std::from_chars(item.text.data(), end, large);
  n = static_cast<std::int64_t>(large);
  return error == std::errc{} && stop == end;
}

string_view unquoted(string_view text) {
  return text.size() >= 2 && (text.front() == '\'' || text.front() == '"') ? text.substr(1, text.size() - 2) : text;
}

// As ExecutionTrace has it: JSON text.
std::string json_value(const Item& item) {
  if (item.text == "True") return "true";
  if (item.text == "False") return "false";
  if (item.text.empty() || (item.text.front() != '\'' && item.text.front() != '"')) return std::string(item.text);
  std::string out = "\"";
  const string_view inner = unquoted(item.text);
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '\\' && i + 1 < inner.size() && inner[i + 1] == '\'') continue;  // \' is ' in JSON
    if (inner[i] == '\\' && i + 1 < inner.size()) {
      out += inner[i++];
      out += inner[i];
    } else {
      out += inner[i] == '"' ? std::string("\\\"") : std::string(1, inner[i]);
    }
  }
  return out + "\"";
}

class Reader {
 public:
  Reader(ExecutionTrace& trace, const std::vector<Item>& values, const std::vector<Item>& shapes)
      : trace_(trace), values_(values), shapes_(shapes) {}

  // How many tensors value number `v` is or holds; `s`: the item of its shape, 0 = unknown.
  std::size_t tensors(std::uint32_t v, std::uint32_t s, TensorUse like) {
    const Item& item = values_[v];
    if (!item.is_list) return 0;
    if (tensor(v, s, like)) return 1;
    const bool shaped = s != 0 && shapes_[s].is_list && shapes_[s].elements == item.elements;
    std::size_t count = 0;
    std::uint32_t shape = shaped ? s + 1 : 0;
    for (std::uint32_t inner = v + 1; inner < item.end; inner = values_[inner].end) {
      count += tensors(inner, shape, like);
      if (shaped) shape = shapes_[shape].end;
    }
    return count;
  }

  bool sound = true;  // no tensor was left out

 private:
  bool tensor(std::uint32_t v, std::uint32_t s, TensorUse t) {
    if (values_[v].elements < 6 || values_[v].end < v + 7) return false;
    std::int64_t part[5];
    for (std::uint32_t i = 0; i < 5; ++i)
      if (values_[v + 1 + i].is_list || !to_number(values_[v + 1 + i], part[i])) return false;
    const Item& device = values_[v + 6];
    if (device.is_list || (device.text.front() != '\'' && device.text.front() != '"')) return false;
    if (part[2] < 0 || part[3] < 0 || part[4] < 0 || part[3] > kMostElements || part[4] > 64) {
      sound = false;  // it is one, and nonsense
      return true;
    }
    t.tensor = part[0];
    t.storage = part[1];
    t.offset = part[2];
    t.elements = part[3];
    t.element_bytes = static_cast<std::uint32_t>(part[4]);
    place_on_device(t, unquoted(device.text));
    read_shape(t, s);
    trace_.tensors.push_back(t);
    return true;
  }

  void read_shape(TensorUse& t, std::uint32_t s) {
    t.first_dimension = static_cast<std::uint32_t>(trace_.dimensions.size());
    if (s == 0 || !shapes_[s].is_list || shapes_[s].elements > 64) return;
    for (std::uint32_t i = s + 1; i < shapes_[s].end; i = shapes_[i].end) {
      std::int64_t extent = 0;
      if (!to_number(shapes_[i], extent) || extent < 0 || extent > kMostElements) {
        trace_.dimensions.resize(t.first_dimension);
        t.dimensions = 0;
        return;
      }
      trace_.dimensions.push_back(extent);
      ++t.dimensions;
    }
  }

  ExecutionTrace& trace_;
  const std::vector<Item>& values_;
  const std::vector<Item>& shapes_;
};

}  // namespace

bool read_python_arguments(string_view values, string_view shapes, string_view types, bool inputs,
                           ExecutionTrace& trace, ExecutionNode& node) {
  std::vector<Item> items, shape_items, type_items;
  bool sound = Parser(values).run(items);
  if (items.empty()) items.push_back({});
  sound = Parser(shapes).run(shape_items) && sound;
  sound = Parser(types).run(type_items) && sound;
  const bool shaped = !shape_items.empty() && shape_items[0].elements == items[0].elements && shape_items[0].end != 0;
  const bool typed = !type_items.empty() && type_items[0].elements == items[0].elements && type_items[0].end != 0;
  Reader reader(trace, items, shape_items);
  const auto first = static_cast<std::uint32_t>(trace.tensors.size());
  if (inputs) node.first_value = static_cast<std::uint32_t>(trace.values.size());
  TensorUse like;
  std::uint32_t shape = shaped ? 1 : 0, type = typed ? 1 : 0, count = 0;
  const std::uint32_t end = items[0].end == 0 ? 0 : items[0].end;  // 0: the list was not closed
  for (std::uint32_t v = 1; v < end && count < std::numeric_limits<std::uint16_t>::max(); v = items[v].end, ++count) {
    like.type = typed ? tensor_data_type(unquoted(type_items[type].text)) : DataType::unknown;
    like.argument = static_cast<std::uint16_t>(count);
    const std::size_t found = reader.tensors(v, shape, like);
    if (inputs) {
      const bool kept = found == 0 && !items[v].is_list && items[v].text.size() <= kLongestValue;
      trace.values.push_back(kept ? trace.strings.intern(json_value(items[v])) : 0);
    }
    if (shaped) shape = shape_items[shape].end;
    if (typed) type = type_items[type].end;
  }
  (inputs ? node.first_input : node.first_output) = first;
  (inputs ? node.input_count : node.output_count) = static_cast<std::uint32_t>(trace.tensors.size()) - first;
  if (inputs) node.value_count = count;
  return sound && reader.sound;
}

}  // namespace memwall
