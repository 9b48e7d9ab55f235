// What an operator's schema says about its arguments.
//
// PyTorch writes a schema as
//   aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
// where (a!) marks an argument that the operator writes and (a) one that its result is a view of
// (aten/src/ATen/native/README.md, "Annotations").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct SchemaArgument {
  std::string_view name;  // into the schema
  bool written = false;   // annotated with '!'
};

struct OperatorSchema {
  std::vector<SchemaArgument> arguments;  // by position, as an ExecutionTrace lists the inputs

  // The position of an argument by name; `arguments.size()` if there is none.
  std::size_t position(std::string_view name) const;
  // The name at a position, "" beyond the end.
  std::string_view name(std::size_t position) const;
};

// An empty schema, or text that is none, has no arguments. REQUIRES: `text` outlives the result.
OperatorSchema parse_schema(std::string_view text);

// Does the operator write the input at `position`? By its schema; without one, by PyTorch's habit
// that a name ending in '_' (not "__") writes its first argument.
bool writes_argument(const OperatorSchema& schema, std::string_view operator_name, std::size_t position);

}  // namespace memwall
