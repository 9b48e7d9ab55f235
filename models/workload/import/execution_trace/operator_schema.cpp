#include "models/workload/import/execution_trace/operator_schema.h"

namespace memwall {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "Tensor(a!)[] self=[]": the type up to the last blank before a default, then the name.
SchemaArgument parse_argument(std::string_view text) {
  SchemaArgument argument;
  argument.written = text.find("!)") != std::string_view::npos;
  text = trimmed(text.substr(0, text.find('=')));
  const std::size_t blank = text.rfind(' ');
  if (blank != std::string_view::npos) argument.name = text.substr(blank + 1);
  return argument;
}

}  // namespace

std::size_t OperatorSchema::position(std::string_view wanted) const {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == wanted) return i;
  return arguments.size();
}

std::string_view OperatorSchema::name(std::size_t at) const {
  return at < arguments.size() ? arguments[at].name : std::string_view();
}

OperatorSchema parse_schema(std::string_view text) {
  OperatorSchema schema;
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return schema;
  text.remove_prefix(open + 1);
  std::size_t begin = 0;
  int depth = 0;
  const auto take = [&](std::size_t end) {
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    if (!part.empty() && part != "*") schema.arguments.push_back(parse_argument(part));
    begin = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && depth == 0) take(i);
    if (c == '(' || c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ')' && depth-- == 0) {
      take(i);
      return schema;
    }
  }
  return {};  // never closed: not a schema
}

bool writes_argument(const OperatorSchema& schema, std::string_view operator_name, std::size_t position) {
  if (!schema.arguments.empty()) return position < schema.arguments.size() && schema.arguments[position].written;
  return position == 0 && operator_name.ends_with('_') && !operator_name.ends_with("__");
}

}  // namespace memwall
