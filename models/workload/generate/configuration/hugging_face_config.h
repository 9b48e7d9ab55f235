// The config.json that comes with a model of Hugging Face's transformers, read key by key with the defaults of its
// configuration class. What is of another type or out of range is refused with the file, the key, found and expected.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/generate/configuration/model.h"

namespace memwall {

class HuggingFaceConfig {
 public:
  // Throws InputError where the text is no JSON object.
  HuggingFaceConfig(std::string_view json, std::string file);
  HuggingFaceConfig(const HuggingFaceConfig&) = delete;  // members_ points into parser_
  HuggingFaceConfig& operator=(const HuggingFaceConfig&) = delete;

  // Throws InputError: the file, and the sentence, which has no end yet.
  [[noreturn]] void fail(const std::string& sentence) const;

  // Absent and null are the same, as in Python's configuration classes; so are they below, where `otherwise` is taken.
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool holds(std::string_view key) const;                                                       // also null
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t high) const;  // from 0
  std::int64_t size(std::string_view key, std::int64_t otherwise, std::int64_t high) const;     // from 1
  double number(std::string_view key, double otherwise) const;
  double share(std::string_view key, double otherwise) const;  // at least 0, less than 1
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> list(std::string_view key, std::vector<std::int64_t> otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;  // a list of them; empty where absent
  bool is_empty_list(std::string_view key) const;              // absent, or a list of nothing
  HuggingFaceConfig within(std::string_view key) const;        // an object as a file of its own; refused where absent
  std::size_t members(std::string_view key) const;             // of the object under `key`; 0 where it is absent
  // A number of the object under `key`, or of the key itself where the object is absent or lacks it.
  double number_within(std::string_view object, std::string_view key, double otherwise) const;

  // The activation that a key names. `gated`: of an MLP with a gate. Refuses what is not known.
  Activation activation(std::string_view key, std::string_view otherwise, bool gated) const;
  // The generators know one dropout: all keys, each with its default, must have the same.
  double one_dropout(const std::vector<std::pair<const char*, double>>& keys) const;

 private:
  std::optional<simdjson::dom::element> find(std::string_view key) const;

  std::string file_;
  simdjson::padded_string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::object members_;
};

}  // namespace memwall
