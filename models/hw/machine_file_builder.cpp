#include "models/hw/machine_file_builder.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <functional>
#include <stdexcept>

#include "models/hw/machine_fields.h"
#include "models/hw/machine_text.h"
#include "models/hw/quantity.h"

namespace memwall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What a path names: a field of a message, and for a field that is a message that one.
struct Found {
  Message* parent = nullptr;
  const FieldDescriptor* field = nullptr;
  Message* message = nullptr;  // null: absent, or a plain field
  int index = -1;              // in a list
};

void set_key(Message& m, const std::string& key) {
  const FieldDescriptor* first = m.GetDescriptor()->field(0);
  if (first->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return m.GetReflection()->SetString(&m, first, key);
  const auto* value = first->enum_type()->FindValueByName(key);
  if (!value) throw std::logic_error("a machine has no such class: " + key);
  m.GetReflection()->SetEnum(&m, first, value);
}

// The element of a list that `rest` begins with; names of elements may hold dots. Takes it off `rest`.
Found element(Message& parent, const FieldDescriptor* field, std::string& rest, bool create) {
  const auto* reflection = parent.GetReflection();
  for (int i = 0; i < reflection->FieldSize(parent, field); ++i) {
    Message* m = reflection->MutableRepeatedMessage(&parent, field, i);
    const std::string key = key_of(*m);
    if (rest != key && !rest.starts_with(key + ".")) continue;
    rest = rest == key ? "" : rest.substr(key.size() + 1);
    return {&parent, field, m, i};
  }
  if (!create) return {};
  const std::string key = rest.substr(0, rest.find('.'));
  rest = key.size() == rest.size() ? "" : rest.substr(key.size() + 1);
  Message* m = reflection->AddMessage(&parent, field);
  set_key(*m, key);
  return {&parent, field, m, reflection->FieldSize(parent, field) - 1};
}

// Absent and not to be made: `field` is null.
Found find(Message& message, const std::string& path, bool create) {
  const std::size_t dot = path.find('.');
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  if (!field) return {};
  std::string rest = dot == std::string::npos ? "" : path.substr(dot + 1);
  if (!field->message_type()) return rest.empty() ? Found{&message, field, nullptr, -1} : Found{};
  Found found{&message, field, nullptr, -1};
  if (field->is_repeated()) {
    found = element(message, field, rest, create);
  } else if (create || message.GetReflection()->HasField(message, field)) {
    found.message = message.GetReflection()->MutableMessage(&message, field);
  }
  if (!found.message) return {};
  return rest.empty() ? found : find(*found.message, rest, create);
}

// Every Quantity and Curve, with its path.
void for_each_number(Message& message, const std::string& above,
                     const std::function<void(const std::string& path, Message& number)>& visit) {
  const auto* reflection = message.GetReflection();
  const auto* type = message.GetDescriptor();
  const auto step = [&](const FieldDescriptor* field, Message& child, const std::string& path) {
    if (is_quantity(field) || is_curve(field)) return visit(path, child);
    for_each_number(child, path + ".", visit);
  };
  for (int f = 0; f < type->field_count(); ++f) {
    const FieldDescriptor* field = type->field(f);
    if (!field->message_type()) continue;
    if (!field->is_repeated()) {
      if (reflection->HasField(message, field))
        step(field, *reflection->MutableMessage(&message, field), above + field->name());
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      Message* child = reflection->MutableRepeatedMessage(&message, field, i);
      step(field, *child, above + field->name() + "." + key_of(*child));
    }
  }
}

const FieldDescriptor* source_field(const Message& number) { return number.GetDescriptor()->FindFieldByName("source"); }

// As a string of the text format: what is not plain in octal.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string plain(const Message& message, const FieldDescriptor* field, int index) {
  const auto* reflection = message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
    return quoted(index < 0 ? reflection->GetString(message, field)
                            : reflection->GetRepeatedString(message, field, index));
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, index, &text);
  return text;
}

// Of a message without lists: "value: \"1\" source: \"...\"".
std::string on_one_line(const Message& message) {
  const auto* reflection = message.GetReflection();
  std::string text;
  for (int f = 0; f < message.GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor* field = message.GetDescriptor()->field(f);
    if (!reflection->HasField(message, field)) continue;
    text += text.empty() ? "" : " ";
    if (field->message_type())
      text += fmt::format("{} {{ {} }}", field->name(), on_one_line(reflection->GetMessage(message, field)));
    else
      text += fmt::format("{}: {}", field->name(), plain(message, field, -1));
  }
  return text;
}

// In the form of the shipped files: a number on one line, everything else in blocks.
class Printer {
 public:
  std::string text;

  void print(const Message& message, int depth) {
    const auto* reflection = message.GetReflection();
    const auto* type = message.GetDescriptor();
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    for (int f = 0; f < type->field_count(); ++f) {
      const FieldDescriptor* field = type->field(f);
      const bool list = field->is_repeated();
      const int count =
          list ? reflection->FieldSize(message, field) : static_cast<int>(reflection->HasField(message, field));
      for (int i = 0; i < count; ++i) {
        if (!field->message_type()) {
          text += fmt::format("{}{}: {}\n", indent, field->name(), plain(message, field, list ? i : -1));
          continue;
        }
        block(field, list ? reflection->GetRepeatedMessage(message, field, i) : reflection->GetMessage(message, field),
              depth);
      }
    }
  }

 private:
  void block(const FieldDescriptor* field, const Message& child, int depth) {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    if (is_quantity(field) || field->message_type() == schema::Peak::descriptor()) {
      text += fmt::format("{}{} {{ {} }}\n", indent, field->name(), on_one_line(child));
      return;
    }
    text += fmt::format("{}{}{} {{\n", depth == 0 ? "\n" : "", indent, field->name());
    print(child, depth + 1);
    text += indent + "}\n";
  }
};

std::string commented(const std::string& comment) {
  std::string text;
  for (std::size_t at = 0; at < comment.size();) {
    const std::size_t end = std::min(comment.find('\n', at), comment.size());
    text += "# " + comment.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

template <class Crossing>
std::vector<std::string> bandwidths(const Crossing& crossing) {
  std::vector<std::string> paths;
  for (const std::string& link : crossing.crosses())
    paths.push_back(link == "hbm"         ? "gpu.hbm.bandwidth"
                    : link == "host_dram" ? "host.dram.bandwidth"
                                          : "link." + link + ".bandwidth");
  return paths;
}

}  // namespace

class MachineFileBuilder::Implementation {
 public:
  schema::Machine machine;
  std::set<std::string> set;  // paths of numbers and curves

  Found made(const std::string& path) {
    const Found found = find(machine, path, true);
    if (!found.field) throw std::logic_error("a machine file has no path " + path);
    return found;
  }
  Found existing(const std::string& path) const {
    // Nothing is changed where nothing is made.
    return find(const_cast<schema::Machine&>(machine), path, false);
  }
};

MachineFileBuilder::MachineFileBuilder(const std::string& base) : implementation_(std::make_unique<Implementation>()) {
  implementation_->machine = read_machine_text(base, {}).machine();
}
MachineFileBuilder::~MachineFileBuilder() = default;

void MachineFileBuilder::set(const std::string& path, const std::string& value, const std::string& source) {
  const Found found = implementation_->made(path);
  if (!found.message || !is_quantity(found.field)) throw std::logic_error(path + " is no number of a machine file");
  auto& quantity = static_cast<schema::Quantity&>(*found.message);
  quantity.set_value(value);
  quantity.set_source(source);
  implementation_->set.insert(path);
}

void MachineFileBuilder::set_curve(const std::string& path, const std::vector<std::string>& points,
                                   const std::string& source) {
  const Found found = implementation_->made(path);
  if (!found.message || !is_curve(found.field)) throw std::logic_error(path + " is no curve of a machine file");
  auto& curve = static_cast<schema::Curve&>(*found.message);
  curve.clear_point();
  for (const std::string& point : points) curve.add_point(point);
  curve.set_source(source);
  implementation_->set.insert(path);
}

void MachineFileBuilder::set_source(const std::string& path, const std::string& source) {
  const Found found = implementation_->existing(path);
  if (!found.message || !source_field(*found.message)) throw std::logic_error(path + " has no source");
  found.message->GetReflection()->SetString(found.message, source_field(*found.message), source);
}

void MachineFileBuilder::set_text(const std::string& path, const std::string& text) {
  const Found found = implementation_->made(path);
  if (found.message || found.field->cpp_type() != FieldDescriptor::CPPTYPE_STRING || found.field->is_repeated())
    throw std::logic_error(path + " is no text of a machine file");
  found.parent->GetReflection()->SetString(found.parent, found.field, text);
}

void MachineFileBuilder::clear(const std::string& path) {
  const Found found = implementation_->existing(path);
  if (!found.field) return;
  const auto* reflection = found.parent->GetReflection();
  if (found.index < 0) return reflection->ClearField(found.parent, found.field);
  for (int i = found.index; i + 1 < reflection->FieldSize(*found.parent, found.field); ++i)
    reflection->SwapElements(found.parent, found.field, i, i + 1);
  reflection->RemoveLast(found.parent, found.field);
}

bool MachineFileBuilder::has(const std::string& path) const {
  const Found found = implementation_->existing(path);
  if (!found.field) return false;
  if (found.message) return true;
  const auto* reflection = found.parent->GetReflection();
  return found.field->is_repeated() ? reflection->FieldSize(*found.parent, found.field) > 0
                                    : reflection->HasField(*found.parent, found.field);
}

double MachineFileBuilder::number(const std::string& path, double fallback) const {
  const Found found = implementation_->existing(path);
  if (!found.message || !is_quantity(found.field)) return fallback;
  const auto dimension = static_cast<Dimension>(found.field->options().GetExtension(schema::unit));
  return parse_quantity(static_cast<const schema::Quantity&>(*found.message).value(), dimension);
}

std::vector<std::string> MachineFileBuilder::bandwidths_crossed(const std::string& path) const {
  const Found found = implementation_->existing(path);
  if (const auto* route = dynamic_cast<const schema::Route*>(found.message)) return bandwidths(*route);
  if (const auto* fabric = dynamic_cast<const schema::Fabric*>(found.message)) return bandwidths(*fabric);
  return {};
}

void MachineFileBuilder::mark_unset(const std::string& prefix) {
  for_each_number(implementation_->machine, "", [&](const std::string& path, Message& number) {
    if (implementation_->set.contains(path)) return;
    const auto* reflection = number.GetReflection();
    reflection->SetString(&number, source_field(number), prefix + reflection->GetString(number, source_field(number)));
  });
}

std::vector<MachineNumber> MachineFileBuilder::numbers() const { return MachineText("draft", text(""), {}).numbers(); }

std::string MachineFileBuilder::text(const std::string& comment) const {
  Printer printer;
  printer.text = commented(comment);
  printer.print(implementation_->machine, 0);
  return printer.text;
}

}  // namespace memwall
