// Networks of images.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/workload/generate/configuration/hugging_face_families.h"

namespace memwall {
namespace {

std::int64_t classes(const HuggingFaceConfig& c) {
  const auto named = static_cast<std::int64_t>(c.members("id2label"));
  return named > 0 ? named : c.size("num_labels", 2, kMostWords);
}

void read_vit(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::vision;
  m.layers = c.size("num_hidden_layers", 12, kMostLayers);
  m.width = c.size("hidden_size", 768, kMostWidth);
  m.heads = c.size("num_attention_heads", 12, kMostHeads);
  m.inner = c.size("intermediate_size", 3072, kMostInner);
  m.activation = c.activation("hidden_act", "gelu", false);
  m.joint_query_key_value = false;
  m.image = c.size("image_size", 224, 100000);
  m.patch = c.size("patch_size", 16, 100000);
  m.classes = classes(c);
  m.query_key_value_bias = c.flag("qkv_bias", true);
  m.dropout = c.one_dropout({{"hidden_dropout_prob", 0.0}, {"attention_probs_dropout_prob", 0.0}});
  if (c.integer("num_channels", 3, 1000) != 3) c.fail("\"num_channels\" is not 3; expected images of three colours");
}

void read_resnet(const HuggingFaceConfig& c, TrainingJob& job) {
  Model& m = job.model;
  m.architecture = Architecture::resnet;
  m.blocks = c.list("depths", {3, 4, 6, 3});
  m.classes = classes(c);
  if (const std::string kind = c.text("layer_type", "bottleneck"); kind != "bottleneck")
    c.fail(fmt::format("\"layer_type\" is \"{:.60}\"; expected \"bottleneck\": others are not implemented", kind));
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < std::min<std::size_t>(m.blocks.size(), 16); ++i) widths.push_back(std::int64_t{256} << i);
  if (c.integer("embedding_size", 64, kMostWidth) != 64 || c.list("hidden_sizes", {256, 512, 1024, 2048}) != widths)
    c.fail(fmt::format("\"embedding_size\" and \"hidden_sizes\" are not ResNet's; expected 64 and {} for {} stages",
                       fmt::join(widths, ", "), m.blocks.size()));
  if (c.flag("downsample_in_first_stage", false) || c.flag("downsample_in_bottleneck", false))
    c.fail("\"downsample_in_first_stage\" and \"downsample_in_bottleneck\" are not implemented; expected false");
  if (c.integer("num_channels", 3, 1000) != 3) c.fail("\"num_channels\" is not 3; expected images of three colours");
}

}  // namespace

void add_vision_families(HuggingFaceFamilies& families) {
  families.insert({{"resnet", read_resnet}, {"vit", read_vit}});
}

}  // namespace memwall
