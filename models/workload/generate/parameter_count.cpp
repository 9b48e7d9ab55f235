#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/model_size.h"

namespace memwall {
namespace {

// Counted as `Number`: whole for the answer, floating-point to ask whether a whole number can hold it.
template <class Number>
class Count {
 public:
  explicit Count(const Model& model) : m_(model), width_(Number(model.width)) {}

  Number all() const {
    switch (m_.architecture) {
      case Architecture::decoder:
        return embeddings() + (m_.normalized_embedding ? norm() : Number(0)) + layers() + norm() +
               (m_.tied_embedding ? Number(0) : words()) + (m_.output_bias ? Number(m_.vocabulary) : Number(0));
      case Architecture::encoder:
        return encoder();
      case Architecture::vision:
        return vision();
      case Architecture::resnet:
        return resnet();
      case Architecture::vgg:
        return vgg();
    }
    return Number(0);
  }

 private:
  static Number linear(Number inputs, Number outputs, bool bias) {
    return inputs * outputs + (bias ? outputs : Number(0));
  }

  // A square kernel; channels of images are counted from 3.
  static Number convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel, bool bias) {
    return linear(Number(inputs) * Number(kernel) * Number(kernel), Number(outputs), bias);
  }

  // Weight, and bias where the normalization has one.
  Number norm(Number width) const { return m_.normalization == Normalization::layer_norm ? 2 * width : width; }
  Number norm() const { return norm(width_); }
  Number words() const { return Number(m_.vocabulary) * width_; }
  Number embeddings() const {
    return words() + (m_.positions == Positions::learned ? Number(position_rows(m_)) * width_ : Number(0));
  }

  Number attention() const {
    const Number queries = Number(m_.heads) * Number(head_size(m_));
    const Number keys = Number(key_value_heads(m_)) * Number(head_size(m_));
    const Number head(head_size(m_));
    const Number norms = !m_.query_key_norm             ? Number(0)
                         : m_.query_key_norm_over_heads ? norm(queries) + norm(keys)
                                                        : 2 * norm(head);
    return linear(width_, queries, m_.query_key_value_bias) + 2 * linear(width_, keys, m_.query_key_value_bias) +
           linear(queries, width_, m_.bias) + norms;
  }

  Number mlp() const {
    const Number in = Number(inner(m_));
    const Number parts = is_gated(m_) ? Number(2) : Number(1);
    const Number one = parts * linear(width_, in, m_.bias) + linear(in, width_, m_.bias);
    if (m_.experts == 0) return one;
    return Number(m_.experts) * one + width_ * Number(m_.experts);  // the router has no bias
  }

  Number layers() const { return Number(m_.layers) * (attention() + mlp() + Number(norms_of_layer(m_)) * norm()); }

  // Kinds of sentences, a normalization after the embedding; before the output, which shares the word embedding
  // and has a bias, a linear layer and a normalization (Devlin et al. 2018 as Hugging Face's BertForMaskedLM has it).
  Number encoder() const {
    const Number head = linear(width_, width_, true) + norm() + Number(m_.vocabulary);
    return embeddings() + Number(m_.token_types) * width_ + norm() + layers() + head +
           (m_.tied_embedding ? Number(0) : words());
  }

  // Patches, a class token, positions of both (Dosovitskiy et al. 2020).
  Number vision() const {
    const Number side = Number(m_.image / m_.patch);
    return convolution(3, m_.width, m_.patch, true) + width_ + (side * side + 1) * width_ + layers() + norm() +
           linear(width_, Number(m_.classes), true);
  }

  // Bottlenecks of 1x1, 3x3, 1x1, each with batch normalization (He et al. 2015).
  Number resnet() const {
    const auto normalized = [](std::int64_t inputs, std::int64_t outputs, std::int64_t kernel) {
      return convolution(inputs, outputs, kernel, false) + 2 * Number(outputs);
    };
    Number sum = normalized(3, kResnetStem, 7);
    std::int64_t inputs = kResnetStem;
    for (std::size_t stage = 0; stage < m_.blocks.size(); ++stage) {
      const std::int64_t in = kResnetStem << stage, out = 4 * in;
      sum += normalized(inputs, out, 1);  // of the first block's shortcut
      for (std::int64_t block = 0; block < m_.blocks[stage]; ++block, inputs = out)
        sum += normalized(inputs, in, 1) + normalized(in, in, 3) + normalized(in, out, 1);
    }
    return sum + linear(Number(inputs), Number(m_.classes), true);
  }

  // 3x3 convolutions, then three linear layers on 7x7 positions (Simonyan and Zisserman 2014).
  Number vgg() const {
    Number sum(0);
    std::int64_t inputs = 3;
    for (const std::int64_t outputs : m_.channels) {
      if (outputs == 0) continue;  // a pooling
      sum += convolution(inputs, outputs, 3, true) + (m_.batch_norm ? 2 * Number(outputs) : Number(0));
      inputs = outputs;
    }
    const Number hidden(kVggHidden);
    return sum + linear(Number(inputs) * kVggSide * kVggSide, hidden, true) + linear(hidden, hidden, true) +
           linear(hidden, Number(m_.classes), true);
  }

  const Model& m_;
  Number width_;
};

}  // namespace

std::int64_t parameter_count(const Model& model) { return Count<std::int64_t>(model).all(); }

std::int64_t active_parameter_count(const Model& model) {
  if (model.experts == 0) return parameter_count(model);
  Model met = model;
  met.experts = model.experts_per_token;
  return parameter_count(met) +
         model.layers * model.width * (model.experts - met.experts);  // the router knows them all
}

double approximate_parameter_count(const Model& model) { return Count<double>(model).all(); }

}  // namespace memwall
