#include "tests/support/pickle_writer.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace memwall {
namespace {
constexpr std::size_t kBatch = 1'000, kFrameBytes = 64 << 10;
}  // namespace

Plain::Plain(std::string value) : kind_(Kind::text), content_(std::make_shared<Content>()) {
  content_->text = std::move(value);
}

Plain Plain::fresh_text(std::string value) {
  Plain result(std::move(value));
  result.content_->fresh = true;
  return result;
}

Plain Plain::list(std::vector<Plain> items) {
  Plain result;
  result.kind_ = Kind::list;
  result.content_ = std::make_shared<Content>();
  result.content_->items = std::move(items);
  return result;
}

Plain Plain::tuple(std::vector<Plain> items) {
  Plain result = list(std::move(items));
  result.kind_ = Kind::tuple;
  return result;
}

Plain Plain::dict(Pairs pairs) {
  Plain result = list({});
  result.kind_ = Kind::dict;
  result.content_->pairs = std::move(pairs);
  return result;
}

void Plain::set(const std::string& key, Plain value) {
  for (auto& [name, old] : content_->pairs)
    if (name.kind_ == Kind::text && name.content_->text == key) {
      old = std::move(value);
      return;
    }
  content_->pairs.emplace_back(key, std::move(value));
}

void Plain::remove(const std::string& key) {
  std::erase_if(content_->pairs, [&](const auto& pair) { return pair.first.content_->text == key; });
}

Plain& Plain::operator[](const std::string& key) {
  for (auto& [name, value] : content_->pairs)
    if (name.content_->text == key) return value;
  throw std::out_of_range(key);
}

Plain::Pairs& Plain::pairs() { return content_->pairs; }
std::vector<Plain>& Plain::items() { return content_->items; }

PickleWriter::PickleWriter(int protocol, std::function<void(std::string_view)> sink)
    : protocol_(protocol), sink_(std::move(sink)) {
  result_ = {'\x80', static_cast<char>(protocol)};
  written_ = 2;
  if (sink_) {
    sink_(result_);
    result_.clear();
  }
}

void PickleWriter::flush() {
  std::string out;
  if (protocol_ >= 4 && frame_.size() >= 4) {
    out += '\x95';
    for (int i = 0; i < 8; ++i) out += static_cast<char>(frame_.size() >> (8 * i));
  }
  out += frame_;
  frame_.clear();
  written_ += out.size();
  if (sink_)
    sink_(out);
  else
    result_ += out;
}

std::string PickleWriter::finish() {
  byte('.');
  flush();
  return std::move(result_);
}

void PickleWriter::little(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) byte(static_cast<int>(value >> (8 * i) & 0xff));
}

void PickleWriter::memoize() {
  const std::uint32_t index = memos_++;
  if (protocol_ >= 4) {
    byte(0x94);
  } else if (index < 256) {
    byte('q');
    little(index, 1);
  } else {
    byte('r');
    little(index, 4);
  }
}

bool PickleWriter::recalled(const Plain& value) {
  std::uint32_t index = 0;
  if (value.kind_ == Plain::Kind::text && !value.content_->fresh) {
    const auto [place, is_new] = texts_.try_emplace(value.content_->text, memos_);
    if (is_new) return false;
    index = place->second;
  } else {
    const auto place = objects_.find(value.content_.get());
    if (place == objects_.end()) {
      // What nobody else holds cannot come again.
      if (value.content_.use_count() > 1) {
        objects_[value.content_.get()] = memos_;
        kept_.push_back(value.content_);
      }
      return false;
    }
    index = place->second;
  }
  byte(index < 256 ? 'h' : 'j');
  little(index, index < 256 ? 1 : 4);
  return true;
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    byte('K');
    little(static_cast<std::uint64_t>(value), 1);
  } else if (value >= 0 && value < 65536) {
    byte('M');
    little(static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    byte('J');
    little(static_cast<std::uint64_t>(value), 4);
  } else {
    int bytes = 8;
    while (bytes > 1 && value >> (8 * (bytes - 1) - 1) == (value < 0 ? -1 : 0)) --bytes;
    byte(0x8a);
    byte(bytes);
    little(static_cast<std::uint64_t>(value), bytes);
  }
}

void PickleWriter::text(const Plain& value) {
  if (recalled(value)) return;
  const std::string& text = value.content_->text;
  const bool is_short = protocol_ >= 4 && text.size() < 256;
  byte(is_short ? 0x8c : 'X');
  little(text.size(), is_short ? 1 : 4);
  frame_ += text;
  memoize();
}

void PickleWriter::begin_list() {
  byte(']');
  memoize();
}

void PickleWriter::begin_dict() {
  byte('}');
  memoize();
}

void PickleWriter::open_batch() { byte('('); }
void PickleWriter::close_list_batch() { byte('e'); }
void PickleWriter::close_dict_batch() { byte('u'); }
void PickleWriter::append() { byte('a'); }

void PickleWriter::list(const std::vector<Plain>& items) {
  begin_list();
  for (std::size_t begin = 0; begin < items.size(); begin += kBatch) {
    const std::size_t end = std::min(items.size(), begin + kBatch);
    if (end - begin == 1) {
      write(items[begin]);
      byte('a');
      continue;
    }
    open_batch();
    for (std::size_t i = begin; i < end; ++i) write(items[i]);
    close_list_batch();
  }
}

void PickleWriter::dict(const Plain::Pairs& pairs) {
  begin_dict();
  for (std::size_t begin = 0; begin < pairs.size(); begin += kBatch) {
    const std::size_t end = std::min(pairs.size(), begin + kBatch);
    if (end - begin > 1) open_batch();
    for (std::size_t i = begin; i < end; ++i) {
      write(pairs[i].first);
      write(pairs[i].second);
    }
    byte(end - begin > 1 ? 'u' : 's');
  }
}

void PickleWriter::tuple(const Plain& value) {
  const std::vector<Plain>& items = value.content_->items;
  if (items.empty()) return byte(')');  // never remembered
  if (items.size() > 3) byte('(');
  for (const Plain& item : items) write(item);
  byte(items.size() > 3 ? 't' : 0x84 + static_cast<int>(items.size()));
  memoize();
}

void PickleWriter::write(const Plain& value) {
  switch (value.kind_) {
    case Plain::Kind::none:
      byte('N');
      break;
    case Plain::Kind::boolean:
      byte(value.integer_ != 0 ? 0x88 : 0x89);
      break;
    case Plain::Kind::integer:
      integer(value.integer_);
      break;
    case Plain::Kind::real: {
      byte('G');
      const auto bits = std::bit_cast<std::uint64_t>(value.real_);
      for (int i = 7; i >= 0; --i) byte(static_cast<int>(bits >> (8 * i) & 0xff));
      break;
    }
    case Plain::Kind::text:
      text(value);
      break;
    case Plain::Kind::list:
      if (!recalled(value)) list(value.content_->items);
      break;
    case Plain::Kind::tuple:
      tuple(value);
      break;
    case Plain::Kind::dict:
      if (!recalled(value)) dict(value.content_->pairs);
      break;
  }
  if (frame_.size() >= kFrameBytes) flush();
}

std::string pickled(const Plain& value, int protocol) {
  PickleWriter writer(protocol);
  writer.write(value);
  return writer.finish();
}

}  // namespace memwall
