// Is a text well-formed XML?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/figure/text_metrics.h"

namespace memwall {

// "" if `text` is well-formed XML of the kind that a drawing needs: tags balanced, attributes quoted,
// no bare markup, only characters that XML 1.0 allows. Written against the standard, not the writer.
inline std::string fault_in_xml(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const Character c = first_character(rest);
    if (!c.valid) return "bytes that are not UTF-8";
    if (c.code < 0x20 && c.code != '\t' && c.code != '\n' && c.code != '\r') return "a control character";
    rest.remove_prefix(c.bytes);
  }
  std::vector<std::string> open;
  std::size_t at = 0;
  if (text.substr(0, 5) == "<?xml") at = text.find("?>") + 2;
  while (at < text.size()) {
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      const std::string_view entity = text.substr(at, end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") return "a bare &";
      at = end + 1;
    } else if (text[at] != '<') {
      ++at;
    } else {
      std::size_t end = at + 1;
      bool quoted = false;
      for (; end < text.size() && (quoted || text[end] != '>'); ++end) {
        if (text[end] == '"') quoted = !quoted;
        if (text[end] == '<') return "a < within a tag";
      }
      if (end == text.size()) return "a tag without end";
      const std::string_view tag = text.substr(at + 1, end - at - 1);
      const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
      if (tag[0] == '/') {
        if (open.empty() || open.back() != tag.substr(1)) return "an end tag that fits nothing: " + std::string(tag);
        open.pop_back();
      } else if (tag.back() != '/') {
        open.push_back(name);
      }
      at = end + 1;
    }
  }
  return open.empty() ? "" : "an element without end: " + open.back();
}

}  // namespace memwall
