// Which linear layers tensor parallelism splits by their outputs and which by their inputs: by the last name of a
// module's path, as the field's implementations call them (GPT-2, Llama, BERT and T5 of Hugging Face, Megatron-LM,
// torchtitan, torchtune, memwall's generators).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

enum class TensorRole : std::uint8_t {
  whole,       // every rank has all of it
  column,      // rows of the weight: outputs
  row,         // columns of the weight: inputs; results are summed over ranks
  vocabulary,  // rows of an embedding, which may be the output layer's weight too
  output       // the output layer: as column, and its results stay split for the loss
};

class TensorRoles {
 public:
  // Names that are added to those known; they stand before them.
  TensorRoles(const std::vector<std::string>& column, const std::vector<std::string>& row);

  // Of a module by its path ("layers.3.mlp.down"): the last name decides.
  TensorRole of_module(std::string_view path) const;

 private:
  std::vector<std::string> column_, row_;
};

// Throws UsageError for names of which no module of the trace has one as its last, and for one that is in both lists.
void require_names(const Trace& trace, const std::vector<std::string>& column, const std::vector<std::string>& row);

// The path of the module that a parameter is of: its label without "weight" or "bias", else that of the first op that
// reads it.
std::string module_of_parameter(const Trace& trace, StorageId parameter, StringId module_of_reader);

}  // namespace memwall
