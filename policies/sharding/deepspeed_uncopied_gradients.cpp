#include "policies/sharding/deepspeed_uncopied_gradients.h"

#include <algorithm>

namespace memwall {

void UncopiedGradients::reduce(InsertionPoint point, const std::vector<UncopiedGradient>& bucket) {
  if (settings_.overlap_comm) {
    p_.synchronize_device(point);
    drop_reduced(point);
  }
  Storages gradients;
  Bytes bytes = 0;
  for (const UncopiedGradient& gradient : bucket) {
    if (!settings_.overlap_comm) p_.wait_stream(point, reduction_, gradient.stream);
    gradients.push_back(gradient.whole);
    bytes += gradient.bytes;
  }
  const bool alone = bucket.size() == 1;
  StorageId flat = gradients.front();
  if (!alone) {
    flat = p_.device_storage(bytes, StorageKind::communication_buffer, reduction_, "flat_bucket");
    p_.edit().alloc(point, flat);
    p_.kernel(point, reduction_, "flatten", 2 * bytes, gradients, {flat});
    largest_buffer_ = std::max(largest_buffer_, bytes);
  }
  p_.kernel(point, reduction_, "divide", 2 * bytes, {flat}, {flat});
  p_.collective(point, reduction_, CollectiveKind::all_reduce, bytes, {flat}, {flat});
  if (!alone) {
    p_.kernel(point, reduction_, "unflatten", 2 * bytes, {flat}, gradients);
    p_.edit().free(point, flat);
  }
  for (const UncopiedGradient& gradient : bucket) {
    if (gradient.own)
      own_.push_back(gradient);
    else
      reduced_.push_back(gradient.whole);
  }
  if (settings_.stage == 2 && !settings_.overlap_comm) drop_reduced(point);
}

void UncopiedGradients::drop_reduced(InsertionPoint point) {
  for (const StorageId gradient : reduced_) p_.edit().free(point, gradient);
  reduced_.clear();
}

void UncopiedGradients::end_pass(InsertionPoint point) {
  if (settings_.overlap_comm) p_.synchronize_device(point);
  drop_reduced(point);
  Bytes bytes = 0;
  for (const UncopiedGradient& gradient : own_) {
    bytes += gradient.bytes;
    const auto [sum, is_new] = sums_.try_emplace(gradient.base, gradient.whole);
    if (is_new) continue;
    p_.kernel(point, compute_, "accumulate", 3 * gradient.bytes, {gradient.whole, sum->second}, {sum->second});
    p_.edit().free(point, gradient.whole);
  }
  own_bytes_ = std::max(own_bytes_, bytes);
  own_.clear();
}

Storages UncopiedGradients::take_own() {
  Storages taken;
  for (const auto& [base, whole] : sums_) taken.push_back(whole);
  sums_.clear();
  return taken;
}

}  // namespace memwall
