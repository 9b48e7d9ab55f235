#include "sim/json_text.h"

#include <cassert>
#include <cmath>

#include "sim/number_text.h"
#include "sim/presentable.h"
#include "sim/utf8.h"

namespace memwall {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        out += {'\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
      else
        out += c;
  }
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 1)
      append_escaped(out, text.front());
    else
      out += presentable(text.substr(0, length == 0 ? 1 : length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

void JsonText::new_line() {
  if (layout_ == Layout::line) return;
  out_ += '\n';
  out_.append(2 * has_items_.size(), ' ');
}

void JsonText::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += layout_ == Layout::line ? ", " : ",";
  has_items_.back() = true;
  new_line();
}

JsonText& JsonText::open(char bracket) {
  separate();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonText& JsonText::close(char bracket) {
  assert(!has_items_.empty() && !after_key_);
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  out_ += bracket;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  separate();
  out_ += json_quoted(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonText& JsonText::value(std::string_view text) {
  separate();
  out_ += json_quoted(text);
  return *this;
}

JsonText& JsonText::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  out_ += plain_number(number);
  return *this;
}

JsonText& JsonText::value(bool truth) {
  separate();
  out_ += truth ? "true" : "false";
  return *this;
}

JsonText& JsonText::value(std::int64_t number) {
  separate();
  out_ += std::to_string(number);
  return *this;
}

JsonText& JsonText::value(std::uint64_t number) {
  separate();
  out_ += std::to_string(number);
  return *this;
}

JsonText& JsonText::null() {
  separate();
  out_ += "null";
  return *this;
}

std::string JsonText::finish() {
  assert(has_items_.empty());
  return std::move(out_) + '\n';
}

}  // namespace memwall
