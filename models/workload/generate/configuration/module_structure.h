// Which structure layers may have by whose code writes them (Model::modules): a class of transformers has no other.
#pragma once

#include <string>
#include <string_view>

#include "models/workload/generate/configuration/model.h"

namespace memwall {

// "gpt_neox": as workload files have it.
std::string_view to_string(Modules modules);

// What is wrong, as a sentence without its end ("with model.modules opt, model.positions learned is expected"), or "".
std::string modules_wrong(const Model& model);

}  // namespace memwall
