#include "app/json/schema.h"

namespace moelab {

Shape Shape::boolean() {
  Shape shape;
  shape.type = Type::boolean;
  return shape;
}

Shape Shape::count(double minimum, double maximum) {
  Shape shape;
  shape.type = Type::count;
  shape.minimum = minimum;
  shape.maximum = maximum;
  return shape;
}

Shape Shape::real() {
  Shape shape;
  shape.type = Type::real;
  return shape;
}

Shape Shape::real_at_least(double minimum) {
  Shape shape = real();
  shape.minimum = minimum;
  return shape;
}

Shape Shape::positive_real() {
  Shape shape = real_at_least(0.0);
  shape.exclusive_minimum = true;
  return shape;
}

Shape Shape::fraction() {
  Shape shape = real_at_least(0.0);
  shape.maximum = 1.0;
  return shape;
}

Shape Shape::text() {
  Shape shape;
  shape.type = Type::text;
  return shape;
}

Shape Shape::choice(std::vector<std::string> names) {
  Shape shape;
  shape.type = Type::choice;
  shape.choices = std::move(names);
  return shape;
}

Shape Shape::list(Shape element, double minimum_length) {
  Shape shape;
  shape.type = Type::list;
  shape.element = std::make_shared<const Shape>(std::move(element));
  shape.minimum = minimum_length;
  return shape;
}

Shape Shape::map(Shape element) {
  Shape shape;
  shape.type = Type::map;
  shape.element = std::make_shared<const Shape>(std::move(element));
  return shape;
}

Shape Shape::object(std::vector<Field> fields) {
  Shape shape;
  shape.type = Type::object;
  shape.fields = std::move(fields);
  return shape;
}

Shape Shape::variant(std::vector<Kind> kinds, std::string tag) {
  Shape shape;
  shape.type = Type::variant;
  shape.kinds = std::move(kinds);
  shape.tag = std::move(tag);
  return shape;
}

Shape Shape::variant_with_default(std::vector<Kind> kinds) {
  Shape shape = variant(std::move(kinds));
  shape.has_default_kind = true;
  return shape;
}

Shape Shape::either(std::vector<Shape> alternatives) {
  Shape shape;
  shape.type = Type::either;
  shape.alternatives = std::move(alternatives);
  return shape;
}

Shape Shape::any() {
  return {};
}

}  // namespace moelab
