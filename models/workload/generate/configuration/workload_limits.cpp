#include "models/workload/generate/configuration/workload_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/module_structure.h"

namespace memwall {
namespace {

// 2^50 parameters are a petabyte; of everything that a step keeps for one pass there may be 2^52 elements, so that
// bytes and their sums stay within 63 bits.
constexpr double kMostParameters = 1125899906842624.0, kMostElements = 4503599627370496.0;
// Layers, experts and passes are written out one by one, some hundred ops each; tiles are some ten.
constexpr double kMostParts = 20000, kTileParts = 0.1;
constexpr std::size_t kMostStages = 6, kMostConvolutions = 1000;

std::string missing(const char* key) { return fmt::format("model.{} is missing or 0; expected at least 1", key); }

std::string heads_wrong(const Model& m) {
  if (m.head_size == 0 && m.width % m.heads != 0)
    return fmt::format("model.heads {} does not divide model.width {}; expected a divisor, or model.head_size", m.heads,
                       m.width);
  if (key_value_heads(m) > m.heads || m.heads % key_value_heads(m) != 0)
    return fmt::format("model.key_value_heads {} does not divide model.heads {}", m.key_value_heads, m.heads);
  if (m.positions == Positions::rotary && rotary_size(m) % 2 != 0)
    return fmt::format("heads of size {} cannot be rotated; expected an even size", rotary_size(m));
  if (rotary_size(m) > head_size(m))
    return fmt::format("model.rotary_size {} is more than the size of a head, {}", m.rotary_size, head_size(m));
  return "";
}

std::string experts_wrong(const Model& m) {
  if (m.experts == 0 && m.experts_per_token > 0)
    return fmt::format("model.experts_per_token is {}, but model.experts is 0", m.experts_per_token);
  if (m.experts > 0 && (m.experts_per_token == 0 || m.experts_per_token > m.experts))
    return fmt::format("model.experts_per_token is {}; expected 1 to model.experts {}", m.experts_per_token, m.experts);
  return "";
}

std::string transformer_wrong(const Model& m) {
  if (m.layers == 0) return missing("layers");
  if (m.width == 0) return missing("width");
  if (m.heads == 0) return missing("heads");
  if (has_words(m) && m.vocabulary == 0) return missing("vocabulary");
  if (has_words(m) && m.longest == 0 && m.positions == Positions::learned) return missing("longest");
  if (m.architecture == Architecture::vision && (m.patch > m.image || m.image % m.patch != 0))
    return fmt::format("model.patch {} does not divide model.image {}", m.patch, m.image);
  if (const std::string why = heads_wrong(m); !why.empty()) return why;
  if (const std::string why = modules_wrong(m); !why.empty()) return why;
  return experts_wrong(m);
}

std::string convolutional_wrong(const Model& m) {
  if (m.architecture == Architecture::resnet) {
    if (m.blocks.empty() || m.blocks.size() > kMostStages)
      return fmt::format("model.blocks has {} stages; expected 1 to {}", m.blocks.size(), kMostStages);
    return "";
  }
  const auto poolings = std::count(m.channels.begin(), m.channels.end(), 0);
  if (m.channels.size() > kMostConvolutions || m.channels.empty() || m.channels.front() == 0)
    return fmt::format(
        "model.channels has {} elements{}; expected 1 to {}, the first a convolution's channels (0 is a pooling)",
        m.channels.size(), m.channels.empty() ? "" : fmt::format(" and begins with {}", m.channels.front()),
        kMostConvolutions);
  if (poolings > 20 || (m.image >> poolings) == 0)
    return fmt::format("after {} poolings nothing is left of images of {} x {}", poolings, m.image, m.image);
  return "";
}

// Tiles are as wide as high, and all alike.
std::string tiles_wrong(const TrainingJob& job) {
  const auto& [m, r] = std::tie(job.model, job.recipe);
  if (r.tile_factor == 0) return "";
  if (is_convolutional(m) || m.width % r.tile_factor != 0)
    return fmt::format("recipe.tile_factor {} does not divide model.width {}", r.tile_factor, m.width);
  const std::int64_t size = m.width / r.tile_factor;
  const std::pair<const char*, std::int64_t> sides[] = {{"model.inner", inner(m)},
                                                        {"the size of all queries", m.heads * head_size(m)},
                                                        {"the size of all keys", key_value_heads(m) * head_size(m)}};
  for (const auto& [what, side] : sides)
    if (side % size != 0)
      return fmt::format("{} {} is no multiple of a tile's {} (model.width / recipe.tile_factor)", what, side, size);
  return "";
}

double tiles_of_layer(const TrainingJob& job) {
  const auto& [m, r] = std::tie(job.model, job.recipe);
  if (r.tile_factor == 0) return 0;
  const double size = static_cast<double>(m.width) / static_cast<double>(r.tile_factor);
  const double queries = static_cast<double>(m.heads * head_size(m)), width = static_cast<double>(m.width);
  const double keys = static_cast<double>(key_value_heads(m) * head_size(m)), in = static_cast<double>(inner(m));
  const double products = is_gated(m) ? 3 : 2;
  return width * (2 * queries + 2 * keys + products * in) / (size * size);
}

std::string sequence_wrong(const TrainingJob& job) {
  const auto& [m, r] = std::tie(job.model, job.recipe);
  if (!has_words(m)) {
    if (r.sequence != 0)
      return fmt::format("recipe.sequence is {}, but images have no sequence; expected 0", r.sequence);
    if (r.loss_chunks != 1) return fmt::format("recipe.loss_chunks is {}; expected 1 for images", r.loss_chunks);
    return "";
  }
  const std::int64_t length = r.sequence ? r.sequence : m.longest;
  if (length == 0) return "recipe.sequence is 0 and model.longest is too; expected one of them";
  if (m.positions == Positions::learned && length > m.longest)
    return fmt::format("recipe.sequence {} is more than model.longest {}, and positions are learned", length,
                       m.longest);
  if (r.loss_chunks > length)
    return fmt::format("recipe.loss_chunks {} is more than the {} tokens of a sequence", r.loss_chunks, length);
  return "";
}

// Elements of everything that one pass could keep, more or less: an upper bound but for a small factor.
double elements(const TrainingJob& job) {
  const auto& [m, r] = std::tie(job.model, job.recipe);
  const auto batch = static_cast<double>(r.batch), side = static_cast<double>(m.image);
  if (is_convolutional(m)) {
    double depth = 0, widest = 4 * static_cast<double>(kResnetStem << kMostStages);
    for (const std::int64_t b : m.blocks) depth += 4 * static_cast<double>(b);
    for (const std::int64_t c : m.channels) depth += 1, widest = std::max(widest, static_cast<double>(c));
    return batch * side * side * widest * (depth + 1);
  }
  const double patches = side / static_cast<double>(m.patch);
  const double length = has_words(m) ? static_cast<double>(r.sequence ? r.sequence : m.longest) : patches * patches + 1;
  const double tokens = batch * length, heads = static_cast<double>(m.heads);
  const double width =
      std::max({static_cast<double>(m.width), heads * static_cast<double>(head_size(m)),
                static_cast<double>(inner(m)) * std::max(1.0, static_cast<double>(m.experts_per_token))});
  const double scores = r.attention == Attention::plain ? tokens * heads * length : 0;
  const double outputs = static_cast<double>(has_words(m) ? m.vocabulary : m.classes);
  return static_cast<double>(m.layers) * (tokens * width * 8 + scores * 4) + tokens * outputs + batch * side * side * 3;
}

std::string too_large(const TrainingJob& job) {
  const auto& [m, r] = std::tie(job.model, job.recipe);
  if (const double count = approximate_parameter_count(m); count > kMostParameters)
    return fmt::format("{:.3g} parameters are too many; expected at most {:.3g}", count, kMostParameters);
  if (const double count = elements(job) * static_cast<double>(r.accumulation); count > kMostElements)
    return fmt::format("a step of {:.3g} elements is too large; expected at most {:.3g}", count, kMostElements);
  double parts = is_convolutional(m) ? 0
                                     : static_cast<double>(m.layers) *
                                           (1 + static_cast<double>(m.experts) + kTileParts * tiles_of_layer(job));
  for (const std::int64_t b : m.blocks) parts += static_cast<double>(b);
  parts = (parts + static_cast<double>(r.loss_chunks)) * static_cast<double>(r.accumulation);
  if (parts > kMostParts)
    return fmt::format(
        "{:.0f} layers, experts, tens of tiles and pieces of the loss (passes of the accumulation counted) are too "
        "many to be written down one by one; expected at most {:.0f}",
        parts, kMostParts);
  return "";
}

}  // namespace

std::string contradiction(const TrainingJob& job) {
  const Model& m = job.model;
  if (const std::string why = is_convolutional(m) ? convolutional_wrong(m) : transformer_wrong(m); !why.empty())
    return why;
  if (const std::string why = tiles_wrong(job); !why.empty()) return why;
  if (const std::string why = sequence_wrong(job); !why.empty()) return why;
  if (job.recipe.lora_dropout >= 1)
    return fmt::format("recipe.lora_dropout is {}; expected less than 1", job.recipe.lora_dropout);
  return too_large(job);
}

}  // namespace memwall
