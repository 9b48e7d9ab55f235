// The part of a model that one rank of a pipeline holds: layers in a row, and what stands at the model's ends.
//
// Where passes begin is said by marks in the rank's program, of which one stands before each pass: they have no number
// of a micro-batch, so that equal passes are equal ops. The n-th forward mark of a stage within a step is micro-batch
// n.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct PipelineChunk {
  std::uint32_t stage = 0;                    // of the whole pipeline, from 0
  std::uint32_t first_layer = 0, layers = 0;  // of the model
  bool embedding = false, loss = false;       // before the first layer, behind the last
  bool operator==(const PipelineChunk&) const = default;
};

// Names of marks: followed by the stage's number; and of what comes behind the last pass of a step.
inline constexpr std::string_view kForwardMark = "forward pass of stage ";
inline constexpr std::string_view kBackwardMark = "backward pass of stage ";
inline constexpr std::string_view kUpdateMark = "optimizer step";

// "embedding, layers 0 to 11", "layers 84 to 95, loss", "layer 5", "no layers".
std::string to_string(const PipelineChunk& chunk);
// Of all chunks of a rank: "layers 4 to 7, 36 to 39, 68 to 71", with embedding and loss at their ends. "" of none.
std::string layers_text(const std::vector<PipelineChunk>& chunks);

}  // namespace memwall
