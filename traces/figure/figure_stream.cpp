#include "traces/figure/figure_stream.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::string_view kMagic = "memwall-figure 1\n";

enum class Tag : std::uint8_t { end, rectangle, line, polyline, text, group_begin, group_end };

class FigureWriter {
 public:
  explicit FigureWriter(std::string& out) : out_(out) {}

  void operator()(const Rectangle& r) {
    tag(Tag::rectangle);
    numbers(r.x, r.y, r.width, r.height, r.radius);
    colors(r.fill, r.stroke);
  }
  void operator()(const Line& l) {
    tag(Tag::line);
    numbers(l.from.x, l.from.y, l.to.x, l.to.y, l.width);
    colors(l.stroke);
    out_ += l.dashed ? '\1' : '\0';
  }
  void operator()(const Polyline& p) {
    tag(Tag::polyline);
    count(p.points.size());
    for (const Point& point : p.points) numbers(point.x, point.y);
    numbers(p.width);
    colors(p.stroke, p.fill);
  }
  void operator()(const Text& t) {
    tag(Tag::text);
    numbers(t.at.x, t.at.y, t.size, t.angle);
    text(t.text);
    colors(t.color);
    out_ += static_cast<char>(t.anchor);
    out_ += t.bold ? '\1' : '\0';
  }
  void operator()(const GroupBegin& group) {
    tag(Tag::group_begin);
    text(group.title);
  }
  void operator()(const GroupEnd&) { tag(Tag::group_end); }

  void tag(Tag value) { out_ += static_cast<char>(value); }
  void text(const std::string& value) {
    count(value.size());
    out_ += value;
  }
  template <class... Numbers>
  void numbers(Numbers... values) {
    (raw(std::bit_cast<std::uint64_t>(values)), ...);
  }

 private:
  void count(std::size_t value) { raw(static_cast<std::uint64_t>(value)); }
  void raw(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(value >> shift & 0xff);
  }
  template <class... Colors>
  void colors(Colors... values) {
    for (const Color& c : {values...})
      for (const std::uint8_t part : {c.red, c.green, c.blue, c.opacity}) out_ += static_cast<char>(part);
  }

  std::string& out_;
};

class FigureReader {
 public:
  explicit FigureReader(std::string_view bytes) : all_(bytes), rest_(bytes) {}

  Figure read() {
    if (take(kMagic.size()) != kMagic) fail("does not begin as a figure of this version of memwall");
    Figure figure;
    figure.width = number();
    figure.height = number();
    if (figure.width < 0 || figure.height < 0) fail("has a negative size");
    figure.title = text();
    int depth = 0;
    for (Tag tag = next_tag(); tag != Tag::end; tag = next_tag()) {
      depth += tag == Tag::group_begin ? 1 : tag == Tag::group_end ? -1 : 0;
      if (depth < 0) fail("ends a group that did not begin");
      figure.items.push_back(item(tag));
    }
    if (depth != 0) fail("ends within a group");
    if (!rest_.empty()) fail("goes on after its end");
    return figure;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(
        fmt::format("the figure on standard input {} (at byte {}); expected what memwall render hands over.", what,
                    all_.size() - rest_.size()));
  }

  Item item(Tag tag) {
    switch (tag) {
      case Tag::rectangle: {
        Rectangle r{number(), number(), number(), number(), {}, {}, number()};
        r.fill = color();
        r.stroke = color();
        if (r.width < 0 || r.height < 0) fail("has a rectangle of negative size");
        return r;
      }
      case Tag::line: {
        Line l{{number(), number()}, {number(), number()}, {}, number()};
        l.stroke = color();
        l.dashed = byte(1) != 0;
        return l;
      }
      case Tag::polyline:
        return polyline();
      case Tag::text: {
        Text t{{number(), number()}, "", number(), Anchor::start, {}, false, number()};
        t.text = text();
        t.color = color();
        t.anchor = static_cast<Anchor>(byte(2));
        t.bold = byte(1) != 0;
        return t;
      }
      case Tag::group_begin:
        return GroupBegin{text()};
      default:
        return GroupEnd{};
    }
  }

  Polyline polyline() {
    Polyline p;
    const std::uint64_t points = raw();
    if (points > rest_.size() / 16) fail("has more points than bytes");
    p.points.reserve(points);
    for (std::uint64_t i = 0; i < points; ++i) p.points.push_back({number(), number()});
    p.width = number();
    p.stroke = color();
    p.fill = color();
    return p;
  }

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail("is cut");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint8_t byte(std::uint8_t most) {
    const auto value = static_cast<std::uint8_t>(take(1).front());
    if (value > most) fail(fmt::format("has {} where at most {} is expected", value, most));
    return value;
  }
  Tag next_tag() { return static_cast<Tag>(byte(static_cast<std::uint8_t>(Tag::group_end))); }
  std::uint64_t raw() {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char c : take(8)) {
      value |= std::uint64_t{static_cast<unsigned char>(c)} << shift;
      shift += 8;
    }
    return value;
  }
  double number() {
    const auto value = std::bit_cast<double>(raw());
    if (!std::isfinite(value)) fail("has a number that is not finite");
    return value;
  }
  std::string text() { return std::string(take(raw())); }
  Color color() {
    const std::string_view c = take(4);
    const auto part = [&](std::size_t i) { return static_cast<std::uint8_t>(c[i]); };
    return {part(0), part(1), part(2), part(3)};
  }

  std::string_view all_, rest_;
};

}  // namespace

std::string figure_bytes(const Figure& figure) {
  std::string out(kMagic);
  FigureWriter writer(out);
  writer.numbers(figure.width, figure.height);
  writer.text(figure.title);
  for (const Item& item : figure.items) std::visit(writer, item);
  writer.tag(Tag::end);
  return out;
}

Figure figure_from_bytes(std::string_view bytes) { return FigureReader(bytes).read(); }

}  // namespace memwall
