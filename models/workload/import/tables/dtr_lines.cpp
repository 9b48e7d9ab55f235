#include "models/workload/import/tables/dtr_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/trace/op.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::size_t kLongestLine = 16 << 20, kLongestName = 1024;
constexpr std::size_t kMostElements = kMostUsesOfAnOp / 2;  // of an operator's arguments or results: an op uses both

}  // namespace

DtrLines::DtrLines(const std::filesystem::path& path) : lines_(path, kLongestLine) {}

std::optional<DtrLines::Object> DtrLines::next() {
  string_view line;
  if (!lines_.next(line)) return std::nullopt;
  Object object;
  if (parser_.parse(line.data(), line.size(), false).get(object) != simdjson::SUCCESS || !object.is_object())
    fail(fmt::format("found {}; expected a JSON object with a member \"INSTRUCTION\".", quote_for_message(line)));
  return object;
}

DtrLines::Object DtrLines::following(const char* expected) {
  const auto object = next();
  if (!object) fail(fmt::format("the log ends where {} was expected.", expected));
  return *object;
}

std::string DtrLines::text(Object object, const char* key) const {
  string_view value;
  if (object[key].get(value) != simdjson::SUCCESS) fail(fmt::format("there is no text \"{}\".", key));
  std::string name(value.substr(0, kLongestName));
  std::replace(name.begin(), name.end(), '\0', '?');
  return name;
}

std::int64_t DtrLines::number(Object object, const char* key, std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  string_view digits;
  bool good = object[key].get(value) == simdjson::SUCCESS;
  if (!good && object[key].get(digits) == simdjson::SUCCESS) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    good = error == std::errc() && end == digits.data() + digits.size();
  }
  if (!good || value < least || value > most)
    fail(fmt::format("\"{}\" is not a whole number from {} to {}.", key, least, most));
  return value;
}

void DtrLines::list(Object object, const char* key, const std::function<void(Object)>& add) const {
  simdjson::dom::array elements;
  if (object[key].get(elements) != simdjson::SUCCESS) fail(fmt::format("there is no list \"{}\".", key));
  std::size_t count = 0;
  for (const Object one : elements) {
    if (++count > kMostElements) fail(fmt::format("\"{}\" has more than {} elements.", key, kMostElements));
    add(one);
  }
}

std::vector<std::string> DtrLines::names(Object object, const char* key) const {
  std::vector<std::string> result;
  list(object, key, [&](Object one) {
    string_view name;
    if (one.get(name) != simdjson::SUCCESS) fail(fmt::format("\"{}\" holds something else than text.", key));
    result.emplace_back(name.substr(0, kLongestName));
  });
  return result;
}

}  // namespace memwall
