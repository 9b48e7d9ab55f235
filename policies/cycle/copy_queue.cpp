#include "policies/cycle/copy_queue.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace memwall {

CopyQueue::CopyQueue(std::vector<Path> paths, double total) : total_(total) {
  for (const Path& path : paths) lanes_.push_back({path, {}, 0, 0});
}

std::size_t CopyQueue::issue(std::uint8_t path, Bytes bytes, Time ready) {
  Lane& lane = lanes_[path];
  lane.copies.push_back(copies_.size());
  const double latency = to_seconds(lane.path.latency) * lane.path.rate;
  copies_.push_back({ready, kNever, static_cast<double>(bytes) + latency, path});
  return copies_.size() - 1;
}

Time CopyQueue::done(std::size_t copy) {
  while (copies_[copy].done == kNever)
    if (!step()) throw std::logic_error("A copy that was issued never runs.");
  return copies_[copy].done;
}

Time CopyQueue::idle(std::uint8_t path) {
  const Lane& lane = lanes_[path];
  return lane.copies.empty() ? Time{} : done(lane.copies.back());
}

// Max-min fair: a path that needs less than its even share leaves the rest to the others.
void CopyQueue::share(const std::vector<bool>& busy) {
  std::vector<Lane*> open;
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    if (busy[i]) open.push_back(&lanes_[i]);
  std::sort(open.begin(), open.end(), [](const Lane* a, const Lane* b) { return a->path.rate < b->path.rate; });
  double left = total_;
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i]->rate = std::min(open[i]->path.rate, left / static_cast<double>(open.size() - i));
    left -= open[i]->rate;
  }
}

// To the next moment at which a copy begins or ends.
bool CopyQueue::step() {
  std::vector<bool> busy(lanes_.size(), false);
  Time next = kNever;
  bool any = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (lane.next == lane.copies.size()) continue;
    const Copy& copy = copies_[lane.copies[lane.next]];
    any = true;
    if (copy.ready <= now_)
      busy[i] = true;
    else
      next = std::min(next, copy.ready);
  }
  if (!any) return false;
  share(busy);
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    if (busy[i]) {
      const double seconds = copies_[lanes_[i].copies[lanes_[i].next]].left / lanes_[i].rate;
      next = std::min(next, now_ + Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e12))));
    }
  const double passed = to_seconds(next - now_);
  now_ = next;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!busy[i]) continue;
    Copy& copy = copies_[lanes_[i].copies[lanes_[i].next]];
    copy.left -= passed * lanes_[i].rate;
    if (copy.left > 0.5) continue;  // half a byte
    copy.done = now_;
    ++lanes_[i].next;
  }
  return true;
}

}  // namespace memwall
