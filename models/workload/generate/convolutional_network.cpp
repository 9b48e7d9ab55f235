// ResNet with bottlenecks (He et al. 2015; the stride in the 3x3 convolution) and VGG (Simonyan and Zisserman 2014), as
// their modules are written in PyTorch. Local variables go where Python's go: what is freed when follows from that.
#include <fmt/format.h>

#include <utility>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_image.h"

namespace memwall {
namespace {

// Convolution, and the normalization behind it if it has one.
struct Convolution {
  std::string name, norm_name;
  Tensor weight, bias;
  std::int64_t stride = 1, padding = 0;
  BatchNormalization norm;
};

struct Linear {
  std::string name;
  Tensor weight, bias;
};

// What both networks have: images, classes, parameters that are made as their modules would.
class ImageNetwork : public Network {
 protected:
  ImageNetwork(Tape& tape, const Model& model, const Recipe& recipe)
      : tape_(tape), model_(model), recipe_(recipe), type_(parameter_type(recipe.precision)) {}

  void make_inputs() {
    const DataType type = autocast_type(recipe_) ? DataType::fp32 : type_;
    images_ = tape_.permanent("images", {recipe_.batch, 3, model_.image, model_.image}, type, StorageKind::input);
    targets_ = tape_.permanent("targets", {recipe_.batch}, DataType::int64, StorageKind::input);
  }
  Tensor parameter(const std::string& name, const Shape& shape) { return tape_.parameter(name, shape, type_).value; }

  Convolution make_convolution(const std::string& prefix, const std::string& name, std::int64_t inputs,
                               std::int64_t outputs, std::int64_t kernel, bool bias) {
    Convolution c;
    c.name = name;
    c.padding = kernel / 2;
    c.weight = parameter(prefix + name + ".weight", {outputs, inputs, kernel, kernel});
    if (bias) c.bias = parameter(prefix + name + ".bias", {outputs});
    return c;
  }
  BatchNormalization make_norm(const std::string& path, std::int64_t channels) {
    BatchNormalization n;
    n.weight = parameter(path + ".weight", {channels});
    n.bias = parameter(path + ".bias", {channels});
    n.mean = tape_.permanent(path + ".running_mean", {channels}, type_, StorageKind::parameter);
    n.variance = tape_.permanent(path + ".running_var", {channels}, type_, StorageKind::parameter);
    n.seen = tape_.permanent(path + ".num_batches_tracked", {}, DataType::int64, StorageKind::parameter);
    return n;
  }
  Linear make_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    return {name, parameter(name + ".weight", {outputs, inputs}), parameter(name + ".bias", {outputs})};
  }

  Tensor apply(const Linear& l, const Tensor& x) {
    const ModuleScope scope(tape_, l.name);
    return linear(tape_, x, l.weight, l.bias);
  }
  Tensor convolve(const Convolution& c, const Tensor& x) {
    const ModuleScope scope(tape_, c.name);
    return convolution(tape_, x, c.weight, c.bias, c.stride, c.padding);
  }
  Tensor normalize(const Convolution& c, const Tensor& x) {
    const ModuleScope scope(tape_, c.norm_name);
    return batch_norm(tape_, x, c.norm);
  }
  Tensor normalized(const Convolution& c, const Tensor& x) { return normalize(c, convolve(c, x)); }
  Tensor loss_of(Tensor logits) {
    if (recipe_.loss_in_fp32 && !tape_.autocast) logits = cast(tape_, logits, DataType::fp32);
    return cross_entropy(tape_, logits, targets_);
  }

  Tape& tape_;
  const Model& model_;
  const Recipe& recipe_;
  DataType type_;
  Tensor images_, targets_;
};

class ResNet : public ImageNetwork {
 public:
  ResNet(Tape& tape, const Model& model, const Recipe& recipe) : ImageNetwork(tape, model, recipe) {
    stem_ = make("stem.", "0", "1", 3, kResnetStem, 7, 2);
    std::int64_t inputs = kResnetStem;
    for (std::size_t stage = 0; stage < model.blocks.size(); ++stage)
      for (std::int64_t i = 0; i < model.blocks[stage]; ++i) {
        const std::int64_t in = kResnetStem << stage;
        blocks_.push_back(
            make_bottleneck(fmt::format("blocks.{}", blocks_.size()), inputs, in, stage > 0 && i == 0 ? 2 : 1));
        inputs = 4 * in;
      }
    head_ = make_linear("head", inputs, model.classes);
    make_inputs();
  }

  Tensor loss() override {
    Tensor x = stem();
    for (const Bottleneck& b : blocks_) x = block(b, x);
    x = mean_of_positions(tape_, x);
    return loss_of(apply(head_, x));
  }

 private:
  struct Bottleneck {
    std::string name;
    Convolution first, second, third;
    std::optional<Convolution> shortcut;
  };

  Convolution make(const std::string& prefix, const std::string& name, const std::string& norm_name,
                   std::int64_t inputs, std::int64_t outputs, std::int64_t kernel, std::int64_t stride) {
    Convolution c = make_convolution(prefix, name, inputs, outputs, kernel, false);
    c.stride = stride;
    c.norm_name = norm_name;
    c.norm = make_norm(prefix + norm_name, outputs);
    return c;
  }

  Bottleneck make_bottleneck(const std::string& name, std::int64_t inputs, std::int64_t in, std::int64_t stride) {
    const std::string prefix = name + ".";
    Bottleneck b;
    b.name = name;
    b.first = make(prefix, "conv1", "bn1", inputs, in, 1, 1);
    b.second = make(prefix, "conv2", "bn2", in, in, 3, stride);
    b.third = make(prefix, "conv3", "bn3", in, 4 * in, 1, 1);
    if (stride != 1 || inputs != 4 * in)
      b.shortcut = make(prefix, "shortcut.0", "shortcut.1", inputs, 4 * in, 1, stride);
    return b;
  }

  Tensor stem() {
    const ModuleScope scope(tape_, "stem");
    Tensor x = normalized(stem_, images_);
    {
      const ModuleScope relu(tape_, "2");
      x = relu_in_place(tape_, x);
    }
    const ModuleScope pool(tape_, "3");
    return max_pool(tape_, x, 3, 2, 1);
  }

  Tensor block(const Bottleneck& b, const Tensor& x) {
    const ModuleScope scope(tape_, b.name);
    Tensor y = relu_in_place(tape_, normalized(b.first, x));
    y = relu_in_place(tape_, normalized(b.second, y));
    y = normalized(b.third, y);
    y = add_to(tape_, y, b.shortcut ? normalized(*b.shortcut, x) : x);
    return relu_in_place(tape_, y);
  }

  Convolution stem_;
  std::vector<Bottleneck> blocks_;
  Linear head_;
};

// Modules are numbered as torchvision's: "features.0" is a convolution, "features.2" the next layer but one.
class Vgg : public ImageNetwork {
 public:
  Vgg(Tape& tape, const Model& model, const Recipe& recipe) : ImageNetwork(tape, model, recipe) {
    std::int64_t inputs = 3;
    int number = 0;
    for (const std::int64_t outputs : model.channels) {
      Layer layer;
      if (outputs == 0) {
        layer.pool_name = fmt::format("features.{}", number++);
        layers_.push_back(layer);
        continue;
      }
      layer.convolution = make_convolution("", fmt::format("features.{}", number++), inputs, outputs, 3, true);
      if (model.batch_norm) {
        layer.convolution.norm_name = fmt::format("features.{}", number++);
        layer.convolution.norm = make_norm(layer.convolution.norm_name, outputs);
      }
      layer.relu_name = fmt::format("features.{}", number++);
      layers_.push_back(layer);
      inputs = outputs;
    }
    classifier_.push_back(make_linear("classifier.0", inputs * kVggSide * kVggSide, kVggHidden));
    classifier_.push_back(make_linear("classifier.3", kVggHidden, kVggHidden));
    classifier_.push_back(make_linear("classifier.6", kVggHidden, model.classes));
    make_inputs();
  }

  Tensor loss() override {
    Tensor x = images_;
    for (const Layer& l : layers_) x = layer(l, x);
    {
      const ModuleScope scope(tape_, "avgpool");
      x = adaptive_average_pool(tape_, x, kVggSide);
    }
    x = reshape(tape_, x, {x.shape[0], x.elements() / x.shape[0]});
    x = hidden(classifier_[0], "classifier.1", "classifier.2", x);
    x = hidden(classifier_[1], "classifier.4", "classifier.5", x);
    return loss_of(apply(classifier_[2], x));
  }

 private:
  struct Layer {
    Convolution convolution;
    std::string relu_name, pool_name;  // one of them is ""
  };

  Tensor layer(const Layer& l, const Tensor& x) {
    if (!l.pool_name.empty()) {
      const ModuleScope scope(tape_, l.pool_name);
      return max_pool(tape_, x, 2, 2, 0);
    }
    const Tensor y = l.convolution.norm_name.empty() ? convolve(l.convolution, x) : normalized(l.convolution, x);
    const ModuleScope scope(tape_, l.relu_name);
    return relu_in_place(tape_, y);
  }

  Tensor hidden(const Linear& l, const std::string& relu_name, const std::string& dropout_name, const Tensor& x) {
    Tensor y = apply(l, x);
    {
      const ModuleScope scope(tape_, relu_name);
      y = relu_in_place(tape_, y);
    }
    const ModuleScope scope(tape_, dropout_name);
    return dropout(tape_, y, model_.dropout);
  }

  std::vector<Layer> layers_;
  std::vector<Linear> classifier_;
};

}  // namespace

std::unique_ptr<Network> make_convolutional_network(Tape& tape, const Model& model, const Recipe& recipe) {
  if (model.architecture == Architecture::vgg) return std::make_unique<Vgg>(tape, model, recipe);
  return std::make_unique<ResNet>(tape, model, recipe);
}

}  // namespace memwall
