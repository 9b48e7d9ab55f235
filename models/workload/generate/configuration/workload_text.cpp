#include "models/workload/generate/configuration/workload_text.h"
#include "models/workload/generate/configuration/other_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "models/workload/generate/configuration/workload_fields.h"
#include "sim/error.h"

namespace memwall {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using Locations = TextFormat::ParseInfoTree;

constexpr std::size_t kLongestName = 200, kLongestList = 1000;

std::string shortened(const std::string& text) {
  constexpr std::size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

std::string nearest_in_words(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = name.size() > kLongestName ? "" : nearest_name(name, known);
  return near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near);
}

std::vector<std::string> field_names(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

std::vector<std::string> value_names(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return names;
}

const FieldDescriptor* find_setting(const std::string& name) {
  const FieldDescriptor* of_model = workload_schema::Model::descriptor()->FindFieldByName(name);
  return of_model ? of_model : workload_schema::Recipe::descriptor()->FindFieldByName(name);
}

std::string unknown_value(const std::string& value, const FieldDescriptor* field) {
  const std::vector<std::string> known = value_names(field->enum_type());
  return fmt::format("unknown value \"{}\" of \"{}\"{}; expected one of {}", shortened(value), field->name(),
                     nearest_in_words(value, known), fmt::join(known, ", "));
}

// What is wrong with a value, or "".
std::string whole_number_wrong(std::int64_t value, const FieldDescriptor* field) {
  const std::int64_t low = field->options().GetExtension(workload_schema::low),
                     high = field->options().GetExtension(workload_schema::high);
  if (value >= low && value <= high) return "";
  return fmt::format("{} is {}; expected {} to {}", field->name(), value, low, high);
}
std::string share_wrong(double value, const FieldDescriptor* field) {
  if (value >= 0 && value < static_cast<double>(field->options().GetExtension(workload_schema::high))) return "";
  return fmt::format("{} is {}; expected at least 0 and less than {}", field->name(), value,
                     field->options().GetExtension(workload_schema::high));
}
std::string name_wrong(const std::string& value) {
  const bool plain = value.find_first_of(std::string("\0\n\r", 3)) == std::string::npos;
  if (!value.empty() && value.size() <= kLongestName && plain) return "";
  return fmt::format("the name has {} bytes; expected 1 to {}, all in one line", value.size(), kLongestName);
}

// Lines and columns count from 1, as editors show them; 0 = unknown.
struct Place {
  int line = 0, column = 0;
};

[[noreturn]] void fail(const std::string& file, Place at, const std::string& sentence) {
  if (at.line <= 0) throw InputError(fmt::format("{}: {}.", file, sentence));
  throw InputError(fmt::format("{}:{}:{}: {}.", file, at.line, at.column, sentence));
}

Place place_of(const std::string& content, std::size_t offset) {
  const auto begin = content.begin(), at = begin + static_cast<std::ptrdiff_t>(offset);
  const std::size_t line_end = offset == 0 ? std::string::npos : content.rfind('\n', offset - 1);
  return {static_cast<int>(std::count(begin, at, '\n')) + 1,
          static_cast<int>(offset - (line_end == std::string::npos ? 0 : line_end + 1)) + 1};
}

// The parser complains of a word once it has read the one behind it: the last `word` before `complaint`.
Place place_before(const std::string& content, Place complaint, const std::string& word) {
  std::size_t line_start = 0;
  for (int line = 1; line < complaint.line && line_start < content.size(); ++line)
    line_start = std::min(content.find('\n', line_start), content.size() - 1) + 1;
  const std::size_t end = line_start + static_cast<std::size_t>(complaint.column) - 1;
  const std::size_t found = end < word.size() ? std::string::npos : content.rfind(word, end - word.size());
  return found == std::string::npos || word.empty() ? complaint : place_of(content, found);
}

// The piece of `text` within the n-th pair of quotes, n from 0.
std::string quoted(const std::string& text, int n) {
  std::size_t at = 0;
  for (int i = 0; i <= 2 * n; ++i) at = text.find('"', at) + 1;
  return text.substr(at, text.find('"', at) - at);
}

// Turns the parser's words into a sentence with the nearest valid name.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& content) : content_(content) {}
  void AddError(int line, int column, const std::string& message) override {
    if (!sentence_.empty()) return;
    place_ = {line + 1, column + 1};
    sentence_ = sentence(message);
  }
  void AddWarning(int, int, const std::string&) override {}
  Place place() const { return place_; }
  const std::string& sentence() const { return sentence_; }  // "" = none

 private:
  std::string sentence(const std::string& message) {
    if (message.starts_with("Message type \"") && message.find("\" has no field named \"") != std::string::npos) {
      const auto* type =
          workload_schema::Workload::descriptor()->file()->pool()->FindMessageTypeByName(quoted(message, 0));
      place_ = place_before(content_, place_, quoted(message, 1));
      if (type) return unknown_key(quoted(message, 1), type);
    }
    if (message.starts_with("Unknown enumeration value of \"")) {
      place_ = place_before(content_, place_, quoted(message, 0));
      if (const FieldDescriptor* field = find_setting(quoted(message, 1)))
        return unknown_value(quoted(message, 0), field);
    }
    return fmt::format("the text is not well formed: {}", shortened(message));
  }
  static std::string unknown_key(const std::string& key, const Descriptor* type) {
    const std::vector<std::string> known = field_names(type);
    std::string place = type->name();
    if (place == "Workload" && find_setting(key))
      return fmt::format("the key \"{0}\" stands outside of its block; expected {1} {{ {0}: ... }}", key,
                         find_setting(key)->containing_type()->name() == "Model" ? "model" : "recipe");
    return fmt::format("unknown key \"{}\" in {}{}; expected one of {}", shortened(key), place,
                       nearest_in_words(key, known), fmt::join(known, ", "));
  }
  const std::string& content_;
  Place place_;
  std::string sentence_;
};

// Compares every number and name with its limits.
class LimitCheck {
 public:
  LimitCheck(const std::string& file, const std::string& content, const Message& message, const Locations* locations)
      : file_(file), content_(content), message_(message), locations_(locations) {
    const Descriptor* type = message.GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) check(type->field(i));
  }

 private:
  void check(const FieldDescriptor* field) const {
    const auto* r = message_.GetReflection();
    if (field->is_repeated()) {
      const int size = r->FieldSize(message_, field);
      require(field, 0,
              size <= static_cast<int>(kLongestList)
                  ? ""
                  : fmt::format("{} has {} elements; expected at most {}", field->name(), size, kLongestList));
      for (int i = 0; i < size; ++i)
        require(field, i, whole_number_wrong(r->GetRepeatedInt64(message_, field, i), field));
    } else if (r->HasField(message_, field)) {
      require(field, -1, wrong(field));
    }
  }
  std::string wrong(const FieldDescriptor* field) const {
    const auto* r = message_.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return whole_number_wrong(r->GetInt64(message_, field), field);
      case FieldDescriptor::CPPTYPE_UINT32:
        return whole_number_wrong(r->GetUInt32(message_, field), field);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return share_wrong(r->GetDouble(message_, field), field);
      case FieldDescriptor::CPPTYPE_STRING:
        return name_wrong(r->GetString(message_, field));
      default:
        return "";
    }
  }
  void require(const FieldDescriptor* field, int index, const std::string& why) const {
    if (why.empty()) return;
    const auto at = locations_ ? locations_->GetLocation(field, index) : TextFormat::ParseLocation{};
    if (at.line >= 0) fail(file_, {at.line + 1, at.column + 1}, why);
    // Of elements in brackets the parser keeps no places.
    const std::size_t key = content_.find(field->name());
    fail(file_, key == std::string::npos ? Place{} : place_of(content_, key), why);
  }
  const std::string& file_;
  const std::string& content_;
  const Message& message_;
  const Locations* locations_;
};

// Copies the fields that a message has into the members of that name.
class FieldReader {
 public:
  explicit FieldReader(const Message& message) : message_(message), reflection_(*message.GetReflection()) {}

  template <class T>
  void operator()(const char* name, T& member) const {
    const FieldDescriptor* field = message_.GetDescriptor()->FindFieldByName(name);
    if (field && !field->is_repeated() && reflection_.HasField(message_, field)) read(field, member);
  }
  void operator()(const char* name, std::vector<std::int64_t>& member) const {
    const FieldDescriptor* field = message_.GetDescriptor()->FindFieldByName(name);
    const int size = reflection_.FieldSize(message_, field);
    if (size == 0) return;
    member.clear();
    for (int i = 0; i < size; ++i) member.push_back(reflection_.GetRepeatedInt64(message_, field, i));
  }

 private:
  void read(const FieldDescriptor* f, std::string& member) const { member = reflection_.GetString(message_, f); }
  void read(const FieldDescriptor* f, std::int64_t& member) const { member = reflection_.GetInt64(message_, f); }
  void read(const FieldDescriptor* f, std::uint32_t& member) const { member = reflection_.GetUInt32(message_, f); }
  void read(const FieldDescriptor* f, double& member) const { member = reflection_.GetDouble(message_, f); }
  void read(const FieldDescriptor* f, bool& member) const { member = reflection_.GetBool(message_, f); }
  void read(const FieldDescriptor* f, std::optional<bool>& member) const { member = reflection_.GetBool(message_, f); }
  // The schema's enums repeat those of the headers value by value; workload_file_test.cpp holds them together.
  template <class E>
  void read(const FieldDescriptor* f, E& member) const requires std::is_enum_v<E> {
    member = static_cast<E>(reflection_.GetEnumValue(message_, f));
  }

  const Message& message_;
  const google::protobuf::Reflection& reflection_;
};

template <class T>
std::optional<T> parsed(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Gives the member of one name the value that a text says.
class FieldSetter {
 public:
  FieldSetter(const FieldDescriptor* field, const std::string& value) : field_(field), value_(value) {}

  template <class T>
  void operator()(const char* name, T& member) const {
    if (field_->name() == name) set(member);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("\"{}={}\": {}.", field_->name(), shortened(value_), why));
  }
  void require(const std::string& why) const {
    if (!why.empty()) refuse(why);
  }
  std::int64_t whole_number(const std::string& text) const {
    const auto number = parsed<std::int64_t>(text);
    if (!number) refuse(fmt::format("\"{}\" is not a whole number that fits", shortened(text)));
    require(whole_number_wrong(*number, field_));
    return *number;
  }

  void set(std::int64_t& member) const { member = whole_number(value_); }
  void set(std::uint32_t& member) const { member = static_cast<std::uint32_t>(whole_number(value_)); }
  void set(std::string& member) const {
    require(name_wrong(value_));
    member = value_;
  }
  void set(double& member) const {
    const auto number = parsed<double>(value_);
    if (!number) refuse("the value is not a number");
    require(share_wrong(*number, field_));
    member = *number;
  }
  void set(bool& member) const {
    if (value_ != "true" && value_ != "false" && value_ != "1" && value_ != "0") refuse("expected true or false");
    member = value_ == "true" || value_ == "1";
  }
  void set(std::optional<bool>& member) const { set(member.emplace()); }
  void set(std::vector<std::int64_t>& member) const {
    std::vector<std::int64_t> list;
    for (std::size_t at = 0; at <= value_.size() && list.size() <= kLongestList;) {
      const std::size_t end = std::min(value_.find(',', at), value_.size());
      list.push_back(whole_number(value_.substr(at, end - at)));
      at = end + 1;
    }
    if (list.size() > kLongestList) refuse(fmt::format("expected at most {} elements", kLongestList));
    member = std::move(list);
  }
  template <class E>
  void set(E& member) const requires std::is_enum_v<E> {
    const auto* value = field_->enum_type()->FindValueByName(value_);
    if (!value) refuse(unknown_value(value_, field_));
    member = static_cast<E>(value->number());
  }

  const FieldDescriptor* field_;
  const std::string& value_;
};

[[noreturn]] void refuse_key(const std::string& assignment, const std::string& key) {
  std::vector<std::string> known = field_names(workload_schema::Model::descriptor());
  for (std::string& name : field_names(workload_schema::Recipe::descriptor())) known.push_back(std::move(name));
  const std::string_view ours = setting_called(key);
  const std::string near =
      ours.empty() ? nearest_in_words(key, known) : fmt::format(" (it is called \"{}\" here)", ours);
  throw UsageError(fmt::format("\"{}\": there is no setting \"{}\"{}; expected one of {}.", shortened(assignment),
                               shortened(key), near, fmt::join(known, ", ")));
}

}  // namespace

WorkloadText::WorkloadText(std::string file, const std::string& content) : file_(std::move(file)) {
  FirstError errors(content);
  Locations locations;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&locations);
  const bool parsed = parser.ParseFromString(content, &text_);
  if (!parsed || !errors.sentence().empty())
    fail(file_, errors.place(), errors.sentence().empty() ? "the text is not well formed" : errors.sentence());
  const auto* type = text_.GetDescriptor();
  const auto at_base = locations.GetLocation(type->FindFieldByName("base"), -1);
  base_line_ = at_base.line + 1, base_column_ = at_base.column + 1;
  LimitCheck(file_, content, text_.model(), locations.GetTreeForNested(type->FindFieldByName("model"), -1));
  LimitCheck(file_, content, text_.recipe(), locations.GetTreeForNested(type->FindFieldByName("recipe"), -1));
}

void WorkloadText::apply_to(TrainingJob& job) const {
  for_each_model_field(job.model, FieldReader(text_.model()));
  for_each_recipe_field(job.recipe, FieldReader(text_.recipe()));
}

void WorkloadText::refuse_base(const std::string& sentence) const { fail(file_, {base_line_, base_column_}, sentence); }

void apply_assignment(TrainingJob& job, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(
        fmt::format("\"{}\" has no value; expected a key and a value such as \"batch=2\" or \"model.layers=4\".",
                    shortened(assignment)));
  const std::string path = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  const std::size_t dot = path.find('.');
  const std::string block = dot == std::string::npos ? "" : path.substr(0, dot),
                    key = path.substr(dot + 1);  // npos + 1 = 0
  const FieldDescriptor* field = find_setting(key);
  const bool of_model = field && field->containing_type() == workload_schema::Model::descriptor();
  if (!field || (!block.empty() && block != (of_model ? "model" : "recipe"))) refuse_key(assignment, path);
  if (of_model)
    for_each_model_field(job.model, FieldSetter(field, value));
  else
    for_each_recipe_field(job.recipe, FieldSetter(field, value));
}

}  // namespace memwall
