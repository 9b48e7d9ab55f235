// What an operator is called whichever library carries it out: the name by which a captured step and a complete one of
// the same network are compared.
#pragma once

#include <string>
#include <string_view>

namespace memwall {

// "aten::cudnn_convolution" and "aten::convolution" give "convolution", "aten::relu_" and "aten::clamp_min" "relu",
// "aten::cudnn_convolution_backward_weight" "convolution_backward", "aten::_to_copy" and "aten::copy_" "copy". Names
// are those of PyTorch 1.8 to 2.15; others pass as they are, without namespace and the underscore of what works in
// place.
std::string operator_key(std::string_view operator_name);

}  // namespace memwall
