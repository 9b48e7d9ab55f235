// The lines of a DTR log, each a JSON object, and what their members say.
// Internal to the importer of these logs.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/import/bytes/line_source.h"

namespace memwall {

// All members throw InputError with file, line, found and expected.
class DtrLines {
 public:
  using Object = simdjson::dom::element;

  explicit DtrLines(const std::filesystem::path& path);

  // The next line that is not blank, valid until the next call; nothing after the last.
  std::optional<Object> next();
  // Likewise where there must be one: what was `expected`.
  Object following(const char* expected);

  // At most 1 KiB, without zero bytes.
  std::string text(Object object, const char* key) const;
  // The logger writes numbers as text.
  std::int64_t number(Object object, const char* key, std::int64_t least, std::int64_t most) const;
  // At most 32767 elements, one after the other.
  void list(Object object, const char* key, const std::function<void(Object)>& add) const;
  std::vector<std::string> names(Object object, const char* key) const;

  [[noreturn]] void fail(const std::string& sentence) const { lines_.fail(sentence); }

 private:
  LineSource lines_;
  simdjson::dom::parser parser_;
};

}  // namespace memwall
