// What an op is called, for rules that go by names.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// The framework's operator; where none is known, the op's own name ("" if it has none).
const std::string& operator_of(const Trace& trace, const Op& op);

// "aten::_softmax" -> "softmax".
std::string plain_operator_name(const std::string& operator_name);

// "aten::mm" or "aten::addmm": a product of a linear layer.
bool is_matrix_product(const Trace& trace, const Op& op);

}  // namespace memwall
