#include "models/hw/machine_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>

#include "models/hw/bus_setting.h"
#include "models/hw/machine_base.h"
#include "models/hw/machine_fields.h"
#include "models/hw/quantity.h"
#include "sim/error.h"

namespace memwall {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using Locations = TextFormat::ParseInfoTree;

// Lines and columns count from 1, as editors show them; 0 = unknown.
struct Place {
  int line = 0, column = 0;
};

Place place_of(const Locations* tree, const FieldDescriptor* field, int index) {
  if (!tree) return {};
  const TextFormat::ParseLocation location = tree->GetLocation(field, index);
  return {location.line + 1, location.column + 1};
}

[[noreturn]] void fail(const std::string& file, Place place, const std::string& sentence) {
  if (place.line <= 0) throw InputError(fmt::format("{}: {}", file, sentence));
  throw InputError(fmt::format("{}:{}:{}: {}", file, place.line, place.column, sentence));
}

Dimension dimension_of(const FieldDescriptor* f) {
  return static_cast<Dimension>(f->options().GetExtension(schema::unit));
}
Dimension curve_dimension(const FieldDescriptor* f) {
  return f->options().HasExtension(schema::unit) ? dimension_of(f) : Dimension::share;
}
bool is_required(const FieldDescriptor* f) { return f->options().GetExtension(schema::required); }

std::vector<std::string> field_names(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

std::string source_of(const Message& number) {
  return number.GetReflection()->GetString(number, number.GetDescriptor()->FindFieldByName("source"));
}

// A message inside the file, with its dotted path and its place.
struct Node {
  const Message* message;
  const Locations* locations;
  Place place;
  std::string path;  // "" for the machine itself
  std::string below(const std::string& name) const { return path.empty() ? name : path + "." + name; }
};

// The sub-messages of `node`, in schema order, lists in file order.
void for_each_child(const Node& node, const std::function<void(const FieldDescriptor*, const Node&)>& visit) {
  const auto* reflection = node.message->GetReflection();
  const Descriptor* type = node.message->GetDescriptor();
  for (int f = 0; f < type->field_count(); ++f) {
    const FieldDescriptor* field = type->field(f);
    if (!field->message_type()) continue;
    const auto child = [&](const Message& m, int index, const std::string& path) {
      const Locations* nested = node.locations ? node.locations->GetTreeForNested(field, index) : nullptr;
      visit(field, Node{&m, nested, place_of(node.locations, field, index), path});
    };
    if (!field->is_repeated()) {
      if (reflection->HasField(*node.message, field))
        child(reflection->GetMessage(*node.message, field), -1, node.below(field->name()));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*node.message, field); ++i) {
      const Message& m = reflection->GetRepeatedMessage(*node.message, field, i);
      child(m, i, node.below(field->name()) + "." + key_of(m));
    }
  }
}

// Turns the parser's words into a sentence with the nearest valid name.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (found_) return;
    found_ = true;
    place_ = {line + 1, column + 1};
    sentence_ = sentence(message);
  }
  void AddWarning(int, int, const std::string&) override {}
  bool found() const { return found_; }
  Place place() const { return place_; }
  const std::string& sentence() const { return sentence_; }

 private:
  static std::string sentence(const std::string& message) {
    static const std::regex unknown_key(R"re(Message type "([^"]+)" has no field named "([^"]+)".*)re");
    static const std::regex unknown_value(R"re(Unknown enumeration value of "([^"]+)" for field "([^"]+)".*)re");
    // std::regex recurses once per character: a hostile name must not reach it.
    if (message.size() > 2000) return fmt::format("the text is not well formed: {}...", message.substr(0, 100));
    std::smatch m;
    if (std::regex_match(message, m, unknown_key)) {
      const Descriptor* type = schema::Machine::descriptor()->file()->pool()->FindMessageTypeByName(m[1]);
      if (!type) return message;
      const std::vector<std::string> known = field_names(type);
      const std::string near = nearest_name(m[2], known);
      return fmt::format("unknown key \"{}\" in {}{}; expected one of {}", m[2].str(), type->name(),
                         near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", "));
    }
    if (std::regex_match(message, m, unknown_value))
      return fmt::format("unknown value \"{}\" of key \"{}\"; see the schema machine.proto for the valid ones",
                         m[1].str(), m[2].str());
    return fmt::format("the text is not well formed: {}", message);
  }
  bool found_ = false;
  Place place_;
  std::string sentence_;
};

// Everything that the schema promises, with places.
class Checker {
 public:
  Checker(const std::string& file, const schema::Machine& machine) : file_(file) {
    tiers_ = {"hbm", "host"};
    links_ = {"hbm", "host_dram"};
    for (const auto& t : machine.tier()) tiers_.push_back(t.name());
    for (const auto& l : machine.link()) links_.push_back(l.name());
  }

  // What a file with a base says: keys that are not there are the base's.
  void check_given(const Node& node) {
    has_base_ = true;
    check(node);
  }

  void check(const Node& node) {
    if (!has_base_) check_required(node);
    if (!has_base_) check_residual(node);
    check_names(node);
    std::set<std::string> paths;
    for_each_child(node, [&](const FieldDescriptor* field, const Node& child) {
      if (is_quantity(field)) return check_quantity(field, child);
      if (!paths.insert(child.path).second)
        fail(file_, child.place, fmt::format("{} is given twice; expected different names", child.path));
      check(child);
      if (is_curve(field)) check_curve(field, child);
    });
  }

 private:
  void check_required(const Node& node) {
    const auto* reflection = node.message->GetReflection();
    const Descriptor* type = node.message->GetDescriptor();
    for (int f = 0; f < type->field_count(); ++f) {
      const FieldDescriptor* field = type->field(f);
      if (!is_required(field)) continue;
      const bool present = field->is_repeated() ? reflection->FieldSize(*node.message, field) > 0
                                                : reflection->HasField(*node.message, field);
      const bool empty = present && !field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
                         reflection->GetString(*node.message, field).empty();
      if (present && !empty) continue;
      const std::string wanted = is_quantity(field) ? fmt::format("{} {{ value: \"{}\" source: \"...\" }}",
                                                                  field->name(), example(dimension_of(field)))
                                                    : fmt::format("the key \"{}\"", field->name());
      fail(file_, node.place,
           fmt::format("{} {}; expected {}", node.below(field->name()), empty ? "is empty" : "is missing", wanted));
    }
  }

  // A block whose numbers were fitted must say how well they fit.
  void check_residual(const Node& node) {
    const FieldDescriptor* residual = node.message->GetDescriptor()->FindFieldByName("residual");
    if (!residual || node.message->GetReflection()->HasField(*node.message, residual)) return;
    for_each_child(node, [&](const FieldDescriptor* field, const Node& child) {
      const bool number = is_quantity(field) || is_curve(field);
      if (!number || !source_of(*child.message).starts_with("fit")) return;
      fail(file_, child.place,
           fmt::format("{} was fitted, but {} is missing; expected residual {{ value: \"0.1\" source: \"...\" }}",
                       child.path, node.below("residual")));
    });
  }

  void check_quantity(const FieldDescriptor* field, const Node& node) {
    const auto& quantity = static_cast<const schema::Quantity&>(*node.message);
    const Descriptor* type = quantity.GetDescriptor();
    if (quantity.value().empty())
      fail(file_, node.place,
           fmt::format("{} has no value; expected value: \"{}\"", node.path, example(dimension_of(field))));
    if (quantity.source().empty())
      fail(file_, node.place,
           fmt::format("{} has no source; expected source: \"where {} comes from\"", node.path, quantity.value()));
    try {
      parse_quantity(quantity.value(), dimension_of(field));
    } catch (const QuantityError& error) {
      fail(file_, place_of(node.locations, type->FindFieldByName("value"), -1),
           fmt::format("{}: {}", node.path, error.what()));
    }
  }

  void check_curve(const FieldDescriptor* field, const Node& node) {
    try {
      parse_curve(static_cast<const schema::Curve&>(*node.message), curve_dimension(field));
    } catch (const QuantityError& error) {
      fail(file_, node.place, fmt::format("{}: {}", node.path, error.what()));
    }
  }

  // Strings that must name a tier or a link.
  void check_names(const Node& node) {
    const auto* reflection = node.message->GetReflection();
    const Descriptor* type = node.message->GetDescriptor();
    for (int f = 0; f < type->field_count(); ++f) {
      const FieldDescriptor* field = type->field(f);
      const std::string kind = field->options().GetExtension(schema::names);
      if (kind.empty()) continue;
      const std::vector<std::string>& known = kind == "tier" ? tiers_ : links_;
      const int present = !field->is_repeated() && reflection->HasField(*node.message, field) ? 1 : 0;
      const int size = field->is_repeated() ? reflection->FieldSize(*node.message, field) : present;
      for (int i = 0; i < size; ++i) {
        const std::string name = field->is_repeated() ? reflection->GetRepeatedString(*node.message, field, i)
                                                      : reflection->GetString(*node.message, field);
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        const std::string near = nearest_name(name, known);
        fail(file_, place_of(node.locations, field, field->is_repeated() ? i : -1),
             fmt::format("{} names the {} \"{}\", which this machine does not have{}; expected one of {}",
                         node.below(field->name()), kind, name,
                         near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
      }
    }
  }

  const std::string& file_;
  std::vector<std::string> tiers_, links_;
  bool has_base_ = false;
};

// Every Quantity that the existing messages could hold: what an override may name.
void settable(const Node& node, std::vector<std::string>& paths) {
  const Descriptor* type = node.message->GetDescriptor();
  for (int f = 0; f < type->field_count(); ++f)
    if (is_quantity(type->field(f))) paths.push_back(node.below(type->field(f)->name()));
  for_each_child(node, [&](const FieldDescriptor* field, const Node& child) {
    if (!is_quantity(field) && !is_curve(field)) settable(child, paths);
  });
}

// Finds the Quantity at `path`, creating it if its message is there. Null where there is none.
schema::Quantity* find_quantity(Message& message, const std::string& path, const FieldDescriptor*& found) {
  const auto* reflection = message.GetReflection();
  const std::size_t dot = path.find('.');
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  if (!field || !field->message_type() || is_curve(field)) return nullptr;
  if (is_quantity(field)) {
    if (dot != std::string::npos) return nullptr;
    found = field;
    return static_cast<schema::Quantity*>(reflection->MutableMessage(&message, field));
  }
  if (dot == std::string::npos) return nullptr;
  const std::string rest = path.substr(dot + 1);
  if (!field->is_repeated()) {
    if (!reflection->HasField(message, field)) return nullptr;
    return find_quantity(*reflection->MutableMessage(&message, field), rest, found);
  }
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    Message* element = reflection->MutableRepeatedMessage(&message, field, i);
    const std::string key = key_of(*element) + ".";  // a key may hold dots itself: "1g.10gb"
    if (!rest.starts_with(key)) continue;
    if (schema::Quantity* quantity = find_quantity(*element, rest.substr(key.size()), found)) return quantity;
  }
  return nullptr;
}

void list_numbers(const Node& node, std::vector<MachineNumber>& numbers) {
  for_each_child(node, [&](const FieldDescriptor* field, const Node& child) {
    if (is_quantity(field)) {
      const auto& q = static_cast<const schema::Quantity&>(*child.message);
      numbers.push_back({child.path, q.value(), q.source()});
    } else if (is_curve(field)) {
      const auto& c = static_cast<const schema::Curve&>(*child.message);
      numbers.push_back({child.path, fmt::format("{}", fmt::join(c.point(), ", ")), c.source()});
    } else {
      list_numbers(child, numbers);
    }
  });
}

}  // namespace

MachineText::MachineText(std::string file, const std::string& content, const BaseOf& base_of) : file_(std::move(file)) {
  FirstError errors;
  Locations locations;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&locations);
  const bool parsed = parser.ParseFromString(content, &machine_);
  if (!parsed || errors.found())
    fail(file_, errors.place(), errors.found() ? errors.sentence() : "the text is not well formed");
  const Node whole{&machine_, &locations, {1, 1}, ""};
  if (machine_.base().empty()) {
    Checker(file_, machine_).check(whole);
    return;
  }
  for (const char* key : {"name", "description"})
    if (!machine_.GetReflection()->HasField(machine_, schema::Machine::descriptor()->FindFieldByName(key)))
      fail(file_, whole.place, fmt::format("{} is missing; expected the key \"{}\"", key, key));
  schema::Machine merged;
  try {
    merged = base_of(machine_.base());
  } catch (const UsageError& error) {
    fail(file_, place_of(&locations, schema::Machine::descriptor()->FindFieldByName("base"), -1), error.what());
  }
  put_on_base(machine_, merged);
  Checker(file_, merged).check_given(whole);
  machine_ = std::move(merged);
  Checker(file_, machine_).check(Node{&machine_, nullptr, {}, ""});
}

void MachineText::set(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(
        fmt::format("--set \"{}\" has no value; expected a path and a value such as "
                    "\"gpu.hbm.bandwidth=4TB/s\".",
                    setting));
  const std::string path = setting.substr(0, equals), value = setting.substr(equals + 1);
  std::vector<std::string> known = bus_settings();
  if (std::find(known.begin(), known.end(), path) != known.end()) return set_bus(machine_, path, value);
  const FieldDescriptor* field = nullptr;
  settable(Node{&machine_, nullptr, {}, ""}, known);
  schema::Quantity* quantity = find_quantity(machine_, path, field);
  if (!quantity) {
    const std::string near = nearest_name(path, known);
    throw UsageError(fmt::format("--set {}: {} has no number \"{}\"{}; `memwall machines show {}` lists all of them.",
                                 setting, file_, path, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                                 machine_.name()));
  }
  try {
    parse_quantity(value, dimension_of(field));
  } catch (const QuantityError& error) {
    throw UsageError(fmt::format("--set {}: {}.", path, error.what()));
  }
  quantity->set_value(value);
  quantity->set_source("--set");
}

std::vector<MachineNumber> MachineText::numbers() const {
  std::vector<MachineNumber> numbers;
  list_numbers(Node{&machine_, nullptr, {}, ""}, numbers);
  return numbers;
}

EfficiencyCurve parse_curve(const schema::Curve& curve, Dimension dimension) {
  EfficiencyCurve result;
  for (const std::string& point : curve.point()) {
    const std::size_t colon = point.find(':');
    if (colon == std::string::npos)
      throw QuantityError(fmt::format("the point \"{}\" has no \":\"; expected a size and {} such as \"1 MiB: {}\"",
                                      point, to_string(dimension),
                                      dimension == Dimension::share ? "0.42" : example(dimension)));
    std::string_view share = std::string_view(point).substr(colon + 1);
    while (!share.empty() && share.front() == ' ') share.remove_prefix(1);
    const double size = parse_quantity(std::string_view(point).substr(0, colon), Dimension::size);
    if (size <= 0 || (!result.points.empty() && size <= result.points.back().first))
      throw QuantityError(fmt::format("the point \"{}\" is out of order; expected sizes above 0 and ascending", point));
    const double value = parse_quantity(share, dimension);
    if (value < 0) throw QuantityError(fmt::format("the point \"{}\" is negative; expected 0 or more", point));
    result.points.emplace_back(size, value);
  }
  return result;
}

}  // namespace memwall
