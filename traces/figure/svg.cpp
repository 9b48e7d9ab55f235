#include "traces/figure/svg.h"

#include <fmt/format.h>

#include <cassert>
#include <iterator>
#include <ostream>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

// Two decimals are a hundredth of a point; no exponent, no locale, no "-0".
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string hex(Color color) { return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue); }

// An attribute like fill="#0072b2", with its opacity where it is not full.
std::string paint(std::string_view name, Color color) {
  if (color.opacity == 0) return fmt::format(" {}=\"none\"", name);
  std::string text = fmt::format(" {}=\"{}\"", name, hex(color));
  if (color.opacity != 255) text += fmt::format(" {}-opacity=\"{}\"", name, number(color.opacity / 255.0));
  return text;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void operator()(const Rectangle& r) {
    print("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", number(r.x), number(r.y), number(r.width),
          number(r.height), paint("fill", r.fill));
    if (r.radius > 0) print(" rx=\"{}\"", number(r.radius));
    if (r.stroke.opacity) print("{} stroke-width=\"0.75\"", paint("stroke", r.stroke));
    out_ += "/>\n";
  }

  void operator()(const Line& l) {
    print("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{} stroke-width=\"{}\"", number(l.from.x), number(l.from.y),
          number(l.to.x), number(l.to.y), paint("stroke", l.stroke), number(l.width));
    out_ += l.dashed ? " stroke-dasharray=\"5 3\"/>\n" : "/>\n";
  }

  void operator()(const Polyline& p) {
    const bool closed = p.fill.opacity != 0;
    out_ += closed ? "<polygon points=\"" : "<polyline points=\"";
    for (std::size_t i = 0; i < p.points.size(); ++i)
      print("{}{},{}", i ? " " : "", number(p.points[i].x), number(p.points[i].y));
    print("\"{}", paint("fill", p.fill));
    if (p.stroke.opacity)
      print("{} stroke-width=\"{}\" stroke-linejoin=\"round\"", paint("stroke", p.stroke), number(p.width));
    out_ += "/>\n";
  }

  void operator()(const Text& t) {
    print("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}", number(t.at.x), number(t.at.y), number(t.size),
          paint("fill", t.color));
    if (t.anchor != Anchor::start) print(" text-anchor=\"{}\"", t.anchor == Anchor::middle ? "middle" : "end");
    if (t.bold) out_ += " font-weight=\"bold\"";
    if (t.angle != 0) print(" transform=\"rotate({} {} {})\"", number(-t.angle), number(t.at.x), number(t.at.y));
    print(">{}</text>\n", xml_text(t.text));
  }

  void operator()(const GroupBegin& group) {
    ++depth_;
    out_ += "<g>";
    if (!group.title.empty()) print("<title>{}</title>", xml_text(group.title));
    out_ += '\n';
  }

  void operator()(const GroupEnd&) {
    assert(depth_ > 0);
    --depth_;
    out_ += "</g>\n";
  }

  bool balanced() const { return depth_ == 0; }

 private:
  template <class... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  std::string& out_;
  int depth_ = 0;
};

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::string_view bytes = text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
    // XML 1.0, section 2.2: no control characters but tab and line ends, no surrogates, no U+FFFE or U+FFFF.
    // Nor do we write what turns the direction of text (sim/presentable.h).
    if (c.code == '&')
      out += "&amp;";
    else if (c.code == '<')
      out += "&lt;";
    else if (c.code == '>')
      out += "&gt;";
    else if (c.code == '"')
      out += "&quot;";
    else if ((c.code < 0x20 && c.code != '\t' && c.code != '\n') || (c.code >= 0x7f && c.code < 0xa0) ||
             c.code == 0xfffe || c.code == 0xffff || !c.valid || (c.code >= 0x202a && c.code <= 0x202e) ||
             (c.code >= 0x2066 && c.code <= 0x2069))
      out += "\xef\xbf\xbd";
    else
      out += bytes;
  }
  return out;
}

void write_svg(const Figure& figure, std::ostream& out) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}pt\" height=\"{1}pt\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" role=\"img\">\n",
      number(figure.width), number(figure.height));
  if (!figure.title.empty()) text += fmt::format("<title>{}</title>\n", xml_text(figure.title));
  Writer writer(text);
  writer(Rectangle{0, 0, figure.width, figure.height, palette::kBackground});
  for (const Item& item : figure.items) std::visit(writer, item);
  assert(writer.balanced());
  text += "</svg>\n";
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace memwall
