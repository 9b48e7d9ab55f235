// The repeated blocks among a trace's modules, told by their names: "layers.3" of "layers.3.mlp".
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace memwall {

// "a.b.c" -> "a", "a.b", "a.b.c".
std::vector<std::string> leading_parts(const std::string& path);

// What makes a module with a number at its end a block. Both take "layers.3" of a transformer. Of torchvision's
// ResNet ("layer1.0.conv1") the one takes stages, "layer1", the other blocks, "layer1.0".
enum class BlockRule : std::uint8_t {
  numbered,  // the number is all of its name ("layers.3"), or siblings share its name ("Block_3"); no container of
             // others
  alike      // the number stands behind '.' or '_', and a sibling has the same kinds of modules right inside
};

class ModuleBlocks {
 public:
  // `paths`: all modules that are to be compared.
  ModuleBlocks(const std::set<std::string>& paths, BlockRule rule);
  // The outermost block that `path` is, or is in; "" if there is none.
  std::string of(const std::string& path) const;

 private:
  std::set<std::string> blocks_;
};

}  // namespace memwall
