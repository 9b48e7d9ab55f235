#include "policies/recipe/attention_operators.h"

namespace memwall {
namespace {

// Of aten::_safe_softmax: softmax, a number filled in, the comparison with it, whether that is so in all of a row,
// another number, and the choice (ATen/native/transformers/attention.cpp).
constexpr int kKernelsOfSafeSoftmax = 6;
// Per element: 5 of softmax, and one of each of the others. Of _softmax_backward_data as captures count it.
constexpr double kSafeSoftmaxFlops = 8, kSoftmaxBackwardFlops = 4;

// Captures name no arithmetic of truth values.
DataType arithmetic_of(DataType type) { return type == DataType::boolean ? DataType::unknown : type; }

OperatorWork rows_work(std::string_view name, const WrittenTensor& x, std::int64_t width, double per_element) {
  return {.name = name,
          .operator_class = OperatorClass::reduction,
          .type = x.type,
          .flops = per_element * static_cast<double>(x.elements()),
          .shape = {x.elements() / width, width}};
}

}  // namespace

WrittenTensor AttentionOperators::made(StorageId result, std::string_view label, const Shape& shape, DataType type) {
  if (result == kNoStorage) return writer_.make(label, shape, type);
  if (const OpId alloc = flow_.alloc(result); alloc != kNoOp) edit_.remove(alloc);
  edit_.tables().storages[result].label = edit_.tables().strings.intern(label);
  writer_.alloc(result);
  return {result, shape, type};
}

WrittenTensor AttentionOperators::elementwise(std::string_view name, const WrittenTensor& x, StorageId result) {
  const WrittenTensor y = made(result, name, x.shape, x.type);
  writer_.kernel(elementwise_work(name, x.type, x.elements()), {&x}, {&y});
  return y;
}

WrittenTensor AttentionOperators::moved(std::string_view name, const WrittenTensor& x, DataType type,
                                        StorageId result) {
  const WrittenTensor y = made(result, name, x.shape, type);
  writer_.kernel(memory_work(name, arithmetic_of(x.type), x.elements()), {&x}, {&y});
  return y;
}

WrittenTensor AttentionOperators::filled(std::string_view name, const Shape& shape, DataType type) {
  const WrittenTensor y = writer_.make(name, shape, type);
  writer_.kernel(memory_work(name, arithmetic_of(type), y.elements()), {}, {&y});
  return y;
}

WrittenTensor AttentionOperators::repeated(const WrittenTensor& x, const Shape& shape) {
  const WrittenTensor y = writer_.make("aten::clone", shape, x.type);
  writer_.kernel(memory_work("aten::clone", x.type, y.elements()), {&x}, {&y});
  return y;
}

WrittenTensor AttentionOperators::summed(const WrittenTensor& x, const Shape& shape, StorageId result) {
  const WrittenTensor y = made(result, "aten::sum", shape, x.type);
  writer_.kernel(rows_work("aten::sum", x, x.elements() / y.elements(), 1), {&x}, {&y});
  writer_.free(x);
  return y;
}

// What autograd keeps of both is named with the second first.
WrittenTensor AttentionOperators::bmm(const WrittenTensor& a, const WrittenTensor& b, const Shape& sizes,
                                      StorageId result, bool saves) {
  const WrittenTensor y = made(result, "aten::bmm", {sizes[0], sizes[1], sizes[2]}, a.type);
  OperatorWork work = product_work(a.type, sizes[1], sizes[2], sizes[3]);
  work.name = "aten::bmm";
  work.flops *= static_cast<double>(sizes[0]);
  work.shape = sizes;
  if (saves) {
    writer_.save_next();
    writer_.kernel(work, {&b, &a}, {&y});
  } else {
    writer_.kernel(work, {&a, &b}, {&y});
  }
  return y;
}

WrittenTensor AttentionOperators::causal_mask(std::int64_t queries, std::int64_t keys) {
  const WrittenTensor ones = filled("aten::ones", {queries, keys}, DataType::boolean);
  const WrittenTensor lower = moved("aten::tril", ones, DataType::boolean);
  writer_.free(ones);
  const WrittenTensor infinity = filled("aten::scalar_tensor", {}, DataType::fp32);
  const WrittenTensor zero = filled("aten::scalar_tensor", {}, DataType::fp32);
  const WrittenTensor mask = writer_.make("aten::where", lower.shape, DataType::fp32);
  writer_.kernel(elementwise_work("aten::where", mask.type, mask.elements()), {&lower, &zero, &infinity}, {&mask});
  for (const WrittenTensor* one : {&zero, &infinity, &lower}) writer_.free(*one);
  return mask;
}

WrittenTensor AttentionOperators::safe_softmax(const WrittenTensor& scores) {
  const WrittenTensor y = writer_.make("aten::_safe_softmax", scores.shape, scores.type);
  OperatorWork work = rows_work("aten::_safe_softmax", scores, scores.shape.back(), kSafeSoftmaxFlops);
  work.kernels = kKernelsOfSafeSoftmax;
  work.bytes = 5 * scores.bytes() + 2 * scores.elements();  // softmax, comparison and choice; truth values twice
  writer_.kernel(work, {&scores}, {&y});
  writer_.free(scores);
  return y;
}

WrittenTensor AttentionOperators::softmax_backward(const WrittenTensor& given, const WrittenTensor& weights) {
  const WrittenTensor y = writer_.make("aten::_softmax_backward_data", given.shape, given.type);
  writer_.kernel(rows_work("aten::_softmax_backward_data", y, y.shape.back(), kSoftmaxBackwardFlops),
                 {&given, &weights}, {&y});
  for (const WrittenTensor* one : {&given, &weights}) writer_.free(*one);
  return y;
}

WrittenTensor AttentionOperators::scaled(const WrittenTensor& x, StorageId result) {
  const WrittenTensor y = elementwise("aten::mul", x, result);
  writer_.free(x);
  return y;
}

}  // namespace memwall
