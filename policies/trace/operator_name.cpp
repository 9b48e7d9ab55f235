#include "policies/trace/operator_name.h"

namespace memwall {

const std::string& operator_of(const Trace& trace, const Op& op) {
  return trace.strings[op.operator_name != 0 ? op.operator_name : op.name];
}

std::string plain_operator_name(const std::string& operator_name) {
  const std::size_t colons = operator_name.rfind("::");
  std::size_t begin = colons == std::string::npos ? 0 : colons + 2, end = operator_name.size();
  while (begin < end && operator_name[begin] == '_') ++begin;
  while (end > begin && operator_name[end - 1] == '_') --end;
  return operator_name.substr(begin, end - begin);
}

bool is_matrix_product(const Trace& trace, const Op& op) {
  const std::string name = plain_operator_name(operator_of(trace, op));
  return name == "mm" || name == "addmm";
}

}  // namespace memwall
