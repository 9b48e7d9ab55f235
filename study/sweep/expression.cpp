#include "study/sweep/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "sim/error.h"
#include "sim/presentable.h"

namespace memwall {

// Those from `less` on are true or false.
enum class Operation : std::uint8_t {
  number,
  name,
  negate,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or
};

struct Expression::Node {
  Operation operation = Operation::number;
  double number = 0;
  std::string name{};
  FieldUnit unit{};
  bool is_bare = false;      // a number without a unit
  bool states_unit = false;  // its text says its unit, so that a bare number beside it is in that
  std::unique_ptr<Node> left{}, right{};
};

namespace {

using Node = Expression::Node;
using NodePointer = std::unique_ptr<Node>;

// Parentheses and signs within each other: more is no expression that a person writes.
constexpr int kDeepest = 100;

struct Operator {
  std::string_view word;
  Operation operation;
};

// What fields have and numbers of machines do not: joules, dollars, so many per second; else as typed_number().
std::optional<TypedNumber> with_unit(double number, const std::string& unit) {
  static constexpr std::pair<std::string_view, TypedNumber> kOthers[] = {{"J", {1, {.joules = 1}}},
                                                                         {"kJ", {1e3, {.joules = 1}}},
                                                                         {"MJ", {1e6, {.joules = 1}}},
                                                                         {"$", {1, {.dollars = 1}}},
                                                                         {"/s", {1, {.seconds = -1}}}};
  for (const auto& [name, one] : kOthers)
    if (unit == name) return TypedNumber{number * one.value, one.unit};
  return typed_number(fmt::format("{}{}", number, unit));
}

class ExpressionReader {
 public:
  ExpressionReader(const std::string& text, const std::function<FieldUnit(const std::string&)>& unit_of_name)
      : text_(text), unit_of_name_(unit_of_name) {}

  NodePointer read() {
    NodePointer root = disjunction();
    skip_blanks();
    if (at_ < text_.size()) fail("an operator, or the end");
    return root;
  }

  std::vector<std::string> names;

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw UsageError(fmt::format("Expression \"{}\", character {}: found \"{}\"; expected {}.", presentable(text_),
                                 at_ + 1, at_ < text_.size() ? presentable(text_.substr(at_, 12)) : "the end",
                                 expected));
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  static bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

  bool take(std::string_view word) {
    skip_blanks();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    const std::size_t end = at_ + word.size();
    if (is_name_part(word.back()) && end < text_.size() && is_name_part(text_[end])) return false;  // "order"
    at_ = end;
    return true;
  }

  std::optional<Operation> take_one(std::initializer_list<Operator> operators) {
    for (const Operator& o : operators)
      if (take(o.word)) return o.operation;
    return std::nullopt;
  }

  // 0 is 0 in any unit.
  static bool takes_unit_of(const Node& number, const Node& other) {
    return number.is_bare && (other.states_unit || (number.operation == Operation::number && number.number == 0));
  }

  void require_one_unit(const Node& left, const Node& right) const {
    if (left.unit == right.unit || takes_unit_of(left, right) || takes_unit_of(right, left)) return;
    const std::string units[] = {to_string(left.unit), to_string(right.unit)};
    if (left.is_bare || right.is_bare)
      throw UsageError(
          fmt::format("Expression \"{}\": found a number without a unit beside {}; expected its unit behind it.",
                      presentable(text_), left.is_bare ? units[1] : units[0]));
    throw UsageError(fmt::format("Expression \"{}\": found {} beside {}; expected one unit on both sides.",
                                 presentable(text_), units[0], units[1]));
  }

  NodePointer binary(Operation operation, NodePointer left, NodePointer right) const {
    auto node = std::make_unique<Node>();
    node->operation = operation;
    if (operation == Operation::multiply)
      node->unit = left->unit * right->unit;
    else if (operation == Operation::divide)
      node->unit = left->unit / right->unit;
    else if (operation != Operation::logical_and && operation != Operation::logical_or) {
      require_one_unit(*left, *right);
      if (operation == Operation::add || operation == Operation::subtract)
        node->unit = left->is_bare ? right->unit : left->unit;
    }
    node->is_bare = left->is_bare && right->is_bare;
    node->states_unit = (left->states_unit || left->is_bare) && (right->states_unit || right->is_bare);
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  static NodePointer unary(Operation operation, NodePointer of) {
    auto node = std::make_unique<Node>();
    node->operation = operation;
    if (operation == Operation::negate) {
      node->unit = of->unit;
      node->is_bare = of->is_bare;
      node->states_unit = of->states_unit;
    }
    node->left = std::move(of);
    return node;
  }

  NodePointer disjunction() {
    NodePointer left = conjunction();
    while (take("or") || take("||")) left = binary(Operation::logical_or, std::move(left), conjunction());
    return left;
  }

  NodePointer conjunction() {
    NodePointer left = negation();
    while (take("and") || take("&&")) left = binary(Operation::logical_and, std::move(left), negation());
    return left;
  }

  NodePointer negation() {
    if (!take("not")) return comparison();
    const Nesting nesting(*this);
    return unary(Operation::logical_not, negation());
  }

  NodePointer comparison() {
    NodePointer left = sum();
    const auto operation = take_one({{"<=", Operation::less_equal},
                                     {">=", Operation::greater_equal},
                                     {"==", Operation::equal},
                                     {"!=", Operation::not_equal},
                                     {"<", Operation::less},
                                     {">", Operation::greater},
                                     {"=", Operation::equal}});
    return operation ? binary(*operation, std::move(left), sum()) : std::move(left);
  }

  NodePointer sum() {
    NodePointer left = product();
    while (const auto operation = take_one({{"+", Operation::add}, {"-", Operation::subtract}}))
      left = binary(*operation, std::move(left), product());
    return left;
  }

  NodePointer product() {
    NodePointer left = factor();
    while (const auto operation = take_one({{"*", Operation::multiply}, {"/", Operation::divide}}))
      left = binary(*operation, std::move(left), factor());
    return left;
  }

  struct Nesting {
    explicit Nesting(ExpressionReader& reader) : depth(reader.depth_) {
      if (++depth > kDeepest) reader.fail(fmt::format("at most {} parentheses and signs within each other", kDeepest));
    }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth;
  };

  NodePointer factor() {
    const Nesting nesting(*this);
    if (take("-")) return unary(Operation::negate, factor());
    if (take("(")) {
      NodePointer inside = disjunction();
      if (!take(")")) fail("\")\"");
      return inside;
    }
    skip_blanks();
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      return number();
    return name();
  }

  // The end of the unit that stands at `at`, with "/s" behind it; `at` where there is none.
  std::size_t end_of_unit(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[end])) || text_[end] == '%')) ++end;
    if (end == at && end < text_.size() && text_[end] == '$') return end + 1;
    if (text_.compare(end, 2, "/s") == 0 && (end + 2 == text_.size() || !is_name_part(text_[end + 2]))) end += 2;
    return end;
  }

  NodePointer number() {
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    auto node = std::make_unique<Node>();
    node->number = std::strtod(begin, &end);
    if (end == begin || !std::isfinite(node->number)) fail("a number");
    at_ += static_cast<std::size_t>(end - begin);
    const std::size_t bare = at_;
    // "80 GB" as well as "80GB"; "80 and" has none.
    std::size_t unit = at_;
    while (unit < text_.size() && text_[unit] == ' ') ++unit;
    const std::size_t behind = end_of_unit(unit);
    if (const auto typed = with_unit(node->number, text_.substr(unit, behind - unit)); behind > unit && typed) {
      node->number = typed->value;
      node->unit = typed->unit;
      at_ = behind;
      return node;
    }
    if (behind > unit && unit == bare && text_[unit] != '/')
      fail("a unit of size, bandwidth, time, power, energy or price (GiB, GB/s, ms, W, J, $), or %");
    node->is_bare = true;
    return node;
  }

  NodePointer name() {
    auto node = std::make_unique<Node>();
    node->operation = Operation::name;
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    node->name = text_.substr(begin, at_ - begin);
    if (node->name.empty()) fail("a number, a field's name or \"(\"");
    node->unit = unit_of_name_ ? unit_of_name_(node->name) : unit_of_field(node->name);
    node->states_unit = !node->unit.is_plain() && unit_of_field(node->name) == node->unit;
    if (std::ranges::find(names, node->name) == names.end()) names.push_back(node->name);
    return node;
  }

  const std::string& text_;
  const std::function<FieldUnit(const std::string&)>& unit_of_name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

double applied(Operation operation, double a, double b) {
  switch (operation) {
    case Operation::add:
      return a + b;
    case Operation::subtract:
      return a - b;
    case Operation::multiply:
      return a * b;
    case Operation::divide:
      return a / b;
    case Operation::less:
      return a < b;
    case Operation::less_equal:
      return a <= b;
    case Operation::greater:
      return a > b;
    case Operation::greater_equal:
      return a >= b;
    case Operation::equal:
      return a == b;
    default:
      return a != b;
  }
}

std::optional<double> value_of(const Node& node, const FieldLookup& lookup) {
  if (node.operation == Operation::number) return node.number;
  if (node.operation == Operation::name) return lookup(node.name);
  const std::optional<double> left = value_of(*node.left, lookup);
  if (node.operation == Operation::logical_and || node.operation == Operation::logical_or) {
    // What one side settles, the other need not be known for.
    const bool settles = node.operation == Operation::logical_or;
    if (left && (*left != 0) == settles) return settles;
    const std::optional<double> right = value_of(*node.right, lookup);
    if (right && (*right != 0) == settles) return settles;
    return left && right ? std::optional<double>(!settles) : std::nullopt;
  }
  if (!left) return std::nullopt;
  if (node.operation == Operation::negate) return -*left;
  if (node.operation == Operation::logical_not) return *left == 0;
  const std::optional<double> right = value_of(*node.right, lookup);
  if (!right) return std::nullopt;
  const double value = applied(node.operation, *left, *right);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

Expression::Expression(std::string text, const std::function<FieldUnit(const std::string&)>& unit_of_name)
    : text_(std::move(text)) {
  ExpressionReader reader(text_, unit_of_name);
  root_ = reader.read();
  names_ = std::move(reader.names);
}
Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

std::optional<double> Expression::value(const FieldLookup& lookup) const { return value_of(*root_, lookup); }

bool Expression::holds(const FieldLookup& lookup) const {
  const std::optional<double> known = value(lookup);
  return known && *known != 0;
}

FieldUnit Expression::unit() const { return root_->unit; }

bool Expression::is_condition() const {
  return root_->operation == Operation::logical_not || root_->operation >= Operation::less;
}

}  // namespace memwall
