#include "app/json/options.h"

namespace moelab {
namespace {

Shape number_shape(Shape shape, const Range& range) {
  shape.minimum = range.minimum;
  shape.maximum = range.maximum;
  shape.exclusive_minimum = range.exclusive_minimum;
  return shape;
}

Shape group_shape(const Range& range) {
  const Shape number = number_shape(Shape::real(), range);
  return Shape::either({number, Shape::object({{"expert", number, "experts (and dense models)"},
                                               {"router", number, "router"}})});
}

/// Collects the fields of a binding as a schema has them.
class Describer final : public Fields {
 public:
  std::vector<Field> fields;

  void boolean(const About& about, bool& value) override { add_field(about, Shape::boolean(), value); }
  void whole(const About& about, const Range& range, std::int64_t& value) override {
    add_field(about, number_shape(Shape::count(), range), value);
  }
  void real(const About& about, const Range& range, double& value) override {
    add_field(about, number_shape(Shape::real(), range), value);
  }
  void text(const About& about, std::string& value) override { add_field(about, Shape::text(), value); }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    add_field(about, Shape::choice({names.begin(), names.end()}), names[static_cast<std::size_t>(index)]);
  }
  void wholes(const About& about, const Range& range, int least_length,
              std::vector<std::int64_t>& values) override {
    add_field(about, Shape::list(number_shape(Shape::count(), range), least_length), values);
  }
  void reals(const About& about, const Range& range, int least_length, std::vector<double>& values) override {
    add_field(about, Shape::list(number_shape(Shape::real(), range), least_length), values);
  }
  void real_or_reals(const About& about, const Range& range, std::vector<double>& values) override {
    const Shape number = number_shape(Shape::real(), range);
    add_field(about, Shape::either({number, Shape::list(number, 1)}),
              values.size() == 1 ? Json(values.front()) : Json(values));
  }
  void rows(const About& about, std::vector<std::vector<double>>& values) override {
    add_field(about, Shape::list(Shape::list(Shape::real(), 1), 1), values);
  }
  void per_group(const About& about, const Range& range, PerGroup& value) override {
    add_field(about, group_shape(range),
              value.expert == value.router ? Json(value.expert)
                                           : Json{{"expert", value.expert}, {"router", value.router}});
  }
  void object(const About& about, const Binding& binding) override {
    add_field(about, Shape::object(fields_of(binding)), Json::object());
  }
  void one_of(const About& about, KindChoice& choice) override {
    add_field(about, shape_of(choice), choice.chosen());
  }
  void texts(const About& about, std::vector<std::string>& values) override {
    const Shape text = Shape::text();
    add_field(about, Shape::either({text, Shape::list(Shape::either({text, Shape::count(0)}))}), values);
  }
  void named(const About& about, NamedChoices& choices) override {
    const std::vector<Field> of_one = fields_of([&](Fields& one) { choices.describe(one); });
    add_field(about, Shape::map(Shape::either({Shape::text(), Shape::real(), Shape::object(of_one)})),
              Json::object());
  }

 private:
  void add_field(const About& about, Shape shape, Json value) {
    std::optional<Json> default_value;
    if (about.presence == Presence::optional) default_value = kOptional;
    if (about.presence == Presence::defaulted) default_value = std::move(value);
    fields.push_back({about.name, std::move(shape), about.help, std::move(default_value)});
  }
};

/// Sets the members of a binding from a resolved object.
class Reader final : public Fields {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  void boolean(const About& about, bool& value) override { set(about, value); }
  void whole(const About& about, const Range&, std::int64_t& value) override { set(about, value); }
  void real(const About& about, const Range&, double& value) override { set(about, value); }
  void text(const About& about, std::string& value) override { set(about, value); }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    const Json* const given = find(about);
    for (std::size_t i = 0; given && i < names.size(); ++i) {
      if (*given == names[i]) index = static_cast<int>(i);
    }
  }
  void wholes(const About& about, const Range&, int, std::vector<std::int64_t>& values) override {
    set(about, values);
  }
  void reals(const About& about, const Range&, int, std::vector<double>& values) override {
    set(about, values);
  }
  void real_or_reals(const About& about, const Range&, std::vector<double>& values) override {
    const Json* const given = find(about);
    if (!given) return;
    values = given->is_array() ? given->get<std::vector<double>>() : std::vector{given->get<double>()};
  }
  void rows(const About& about, std::vector<std::vector<double>>& values) override { set(about, values); }
  void per_group(const About& about, const Range&, PerGroup& value) override {
    const Json* const given = find(about);
    if (!given) return;
    value = given->is_object() ? PerGroup(given->at("expert"), given->at("router"))
                               : PerGroup(given->get<double>());
  }
  void object(const About& about, const Binding& binding) override {
    if (const Json* const given = find(about)) read_fields(*given, binding);
  }
  void one_of(const About& about, KindChoice& choice) override {
    if (const Json* const given = find(about)) read_choice(*given, choice);
  }
  void texts(const About& about, std::vector<std::string>& values) override {
    const Json* const given = find(about);
    if (!given) return;
    values.clear();
    for (const Json& value : given->is_array() ? *given : Json::array({*given})) {
      values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  void named(const About& about, NamedChoices& choices) override {
    const Json* const given = find(about);
    if (!given) return;
    for (const auto& [name, value] : given->items()) {
      Json fields = value;
      if (value.is_string()) fields = {{choices.text_field(), value}};
      if (value.is_number()) fields = {{choices.number_field(), value}};
      Reader of_one(fields);
      choices.add(name, of_one);
    }
  }

 private:
  /// Null where the field is absent.
  const Json* find(const About& about) const {
    const auto found = object_.find(about.name);
    const bool given = found != object_.end();
    if (about.given) *about.given = given;
    return given ? &*found : nullptr;
  }
  template <class Value>
  void set(const About& about, Value& value) const {
    if (const Json* const given = find(about)) value = given->get<Value>();
  }

  const Json& object_;
};

}  // namespace

std::vector<Field> fields_of(const Binding& binding) {
  Describer describer;
  binding(describer);
  return describer.fields;
}

Shape shape_of(KindChoice& choice) {
  const std::string before = choice.chosen();
  std::vector<Kind> kinds;
  for (const KindChoice::Kind& kind : choice.kinds()) {
    choice.choose(kind.name);
    kinds.push_back({kind.name, kind.help, fields_of([&](Fields& fields) { choice.bind(fields); })});
  }
  if (!before.empty()) choice.choose(before);
  return Shape::variant(std::move(kinds), choice.tag());
}

void read_fields(const Json& resolved, const Binding& binding) {
  Reader reader(resolved);
  binding(reader);
}

void read_choice(const Json& resolved, KindChoice& choice) {
  if (resolved.is_string()) return choice.choose(resolved.get<std::string>());
  choice.choose(resolved.at(choice.tag()).get<std::string>());
  read_fields(resolved, [&](Fields& fields) { choice.bind(fields); });
}

}  // namespace moelab
