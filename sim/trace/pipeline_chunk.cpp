#include "sim/trace/pipeline_chunk.h"

#include <algorithm>

namespace memwall {
namespace {

std::string range_of(const PipelineChunk& chunk) {
  const std::string first = std::to_string(chunk.first_layer);
  return chunk.layers == 1 ? first : first + " to " + std::to_string(chunk.first_layer + chunk.layers - 1);
}

}  // namespace

std::string to_string(const PipelineChunk& chunk) { return layers_text({chunk}); }

std::string layers_text(const std::vector<PipelineChunk>& chunks) {
  if (chunks.empty()) return "";
  std::string ranges;
  std::uint64_t layers = 0;
  for (const PipelineChunk& chunk : chunks) {
    layers += chunk.layers;
    if (chunk.layers > 0) ranges += (ranges.empty() ? "" : ", ") + range_of(chunk);
  }
  std::string text = layers == 0 ? "no layers" : (layers == 1 ? "layer " : "layers ") + ranges;
  if (std::any_of(chunks.begin(), chunks.end(), [](const PipelineChunk& c) { return c.embedding; }))
    text = "embedding, " + text;
  if (std::any_of(chunks.begin(), chunks.end(), [](const PipelineChunk& c) { return c.loss; })) text += ", loss";
  return text;
}

}  // namespace memwall
