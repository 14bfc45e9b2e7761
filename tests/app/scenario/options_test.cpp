#include "sim/base/options.h"

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab::options_test {
namespace {

struct RoundOptions {
  double radius = 1.5;
  void bind(Fields& fields) { fields.add("radius", radius, positive(), "radius"); }
};
struct SquareOptions {
  int side = 0;
  std::string note;
  void bind(Fields& fields) {
    fields.required().add("side", side, between(1, 9), "side");
    fields.add_name("note", note, {"", "chessboard"}, "note");
  }
};
struct ShapeAxis {
  using Entry = KindEntry;
  static const std::vector<KindEntry>& table() {
    static const std::vector<KindEntry> kinds = {
        {"round", "a disc", RoundOptions{}, RoundOptions{}},
        {"square", "a square", SquareOptions{}, SquareOptions{.side = 2, .note = ""}}};
    return kinds;
  }
  static constexpr const char* kTag = "form";
  static constexpr const char* kNoun = "form";
};

struct Inner {
  bool deep = false;
  std::optional<int> level;
  void bind(Fields& fields) {
    fields.add("deep", deep, "a truth value");
    fields.add("level", level, at_least(0), "a level");
  }
};

/// One field of every type.
struct EveryType {
  enum class Colour { red, green };
  bool flag = true;
  int count = 3;
  std::int64_t large = 5;
  double real = 0.5;
  std::string text = "a";
  Colour colour = Colour::green;
  std::vector<int> wholes = {1, 2};
  std::vector<double> reals;
  std::vector<double> one_or_more = {0.25};
  std::vector<std::vector<double>> rows = {{1}};
  PerGroup rate = {0.1, 0.2};
  Inner inner;
  OneOf<ShapeAxis> form = RoundOptions{};
  std::optional<Inner> more;
  std::optional<OneOf<ShapeAxis>> other;
  std::optional<double> extra;
  std::optional<Colour> tint;
  int needed = 0;

  void bind(Fields& fields) {
    fields.add("flag", flag, "a truth value");
    fields.add("count", count, between(1, 1000), "how many");
    fields.add("large", large, between(1, 1e12), "how many steps");
    fields.add("real", real, fraction(), "a share");
    fields.add("text", text, "words");
    fields.add("colour", colour, {"red", "green"}, "a colour");
    fields.add("wholes", wholes, at_least(0), 1, "whole numbers");
    fields.add("reals", reals, any_number(), 0, "numbers");
    fields.add_number_or_list("one_or_more", one_or_more, positive(), "one, or one for each");
    fields.add("rows", rows, "a matrix");
    fields.add("rate", rate, at_least(0), "one, or one for each");
    fields.add("inner", inner, "fields inside");
    fields.add("form", form, "a form");
    fields.add("more", more, "fields inside, or nothing");
    fields.add("other", other, "a form, or none");
    fields.add("extra", extra, any_number(), "a number, or none");
    fields.add("tint", tint, {"red", "green"}, "a colour, or none");
    fields.required().add("needed", needed, count_of_all(), "has no default");
  }
  static Range count_of_all() { return ::moelab::count(); }
};

EveryType given(const char* text) {
  return resolve_options<EveryType>(Json::parse(text), "at");
}

}  // namespace

TEST_CASE("bound fields become a shape in their order, with the members' values as defaults") {
  const Shape shape = shape_of<EveryType>();
  Json described = Json::object();
  for (const Field& field : shape.fields)
    described[field.name] = field.default_value ? *field.default_value : Json("required");
  CHECK(described.dump() ==
        R"({"flag":true,"count":3,"large":5,"real":0.5,"text":"a","colour":"green","wholes":[1,2],)"
        R"("reals":[],"one_or_more":0.25,"rows":[[1.0]],"rate":{"expert":0.1,"router":0.2},"inner":{},)"
        R"("form":"round","more":null,"other":null,"extra":null,"tint":null,"needed":"required"})");
  CHECK(shape.fields[1].shape.maximum == 1000);
  CHECK(shape.fields[1].help == "how many");
  const Shape* const radius = find_shape(shape, Json::object(), "form.radius");
  REQUIRE(radius != nullptr);
  CHECK(radius->exclusive_minimum);
  const Shape forms = shape_of<OneOf<ShapeAxis>>();
  CHECK(forms.tag == "form");
  REQUIRE(forms.kinds.size() == 2);
  CHECK(forms.kinds[1].help == "a square");
  CHECK_FALSE(forms.kinds[1].fields[0].default_value);
}

TEST_CASE("fields that are not given keep their members' values") {
  const EveryType options = given(R"({"needed": 7})");
  CHECK(options.flag);
  CHECK(options.colour == EveryType::Colour::green);
  CHECK(options.wholes == std::vector<int>{1, 2});
  CHECK(options.rate == PerGroup(0.1, 0.2));
  CHECK(options.form.chosen() == "round");
  CHECK(options.form.as<RoundOptions>()->radius == 1.5);
  CHECK_FALSE(options.more);
  CHECK_FALSE(options.other);
  CHECK_FALSE(options.extra);
  CHECK_FALSE(options.tint);
  CHECK(options.needed == 7);
}

TEST_CASE("every field is read") {
  const EveryType options = given(R"({"flag": false, "count": 4.0, "large": 1e12, "real": 1, "text": "b",
      "colour": "red", "wholes": [0], "reals": [1, 2.5], "one_or_more": [1, 2], "rows": [[1], [2]],
      "rate": 3, "inner": {"deep": true, "level": 0}, "form": {"form": "square", "side": 3},
      "more": {"level": 2}, "other": "round", "extra": -1, "tint": "green", "needed": 1})");
  CHECK_FALSE(options.flag);
  CHECK(options.count == 4);
  CHECK(options.large == 1'000'000'000'000);
  CHECK(options.real == 1);
  CHECK(options.text == "b");
  CHECK(options.colour == EveryType::Colour::red);
  CHECK(options.wholes == std::vector<int>{0});
  CHECK(options.reals == std::vector<double>{1, 2.5});
  CHECK(options.one_or_more == std::vector<double>{1, 2});
  CHECK(options.rows == std::vector<std::vector<double>>{{1}, {2}});
  CHECK(options.rate == PerGroup(3, 3));
  CHECK(options.inner.deep);
  CHECK(options.inner.level == 0);
  CHECK(options.form.as<SquareOptions>()->side == 3);
  CHECK_FALSE(options.more->deep);
  CHECK(options.more->level == 2);
  CHECK(options.other->as<RoundOptions>()->radius == 1.5);
  CHECK(options.extra == -1);
  CHECK(options.tint == EveryType::Colour::green);
  CHECK(given(R"({"needed": 1, "one_or_more": 2})").one_or_more == std::vector<double>{2});
  CHECK(given(R"({"needed": 1, "rate": {"expert": 1, "router": 2}})").rate == PerGroup(1, 2));
}

TEST_CASE("what is wrong is refused at its path, before anything is read") {
  struct Row {
    const char* text;
    const char* path;
  };
  const Row rows[] = {
      {R"({})", "at.needed"},
      {R"({"needed": 0})", "at.needed"},
      {R"({"needed": 1, "count": 1001})", "at.count"},
      {R"({"needed": 1, "real": 1.5})", "at.real"},
      {R"({"needed": 1, "colour": "blue"})", "at.colour"},
      {R"({"needed": 1, "wholes": []})", "at.wholes"},
      {R"({"needed": 1, "one_or_more": 0})", "at.one_or_more"},
      {R"({"needed": 1, "rows": [[]]})", "at.rows[0]"},
      {R"({"needed": 1, "rate": {"expert": 1, "router": -1}})", "at.rate.router"},
      {R"({"needed": 1, "inner": {"depe": true}})", "at.inner.depe"},
      {R"({"needed": 1, "form": "square"})", "at.form.side"},
      {R"({"needed": 1, "form": {"form": "rund"}})", "at.form.form"},
      {R"({"needed": 1, "form": {"form": "square", "side": 1, "note": "x"}})", "at.form.note"},
      {R"({"needed": 1, "more": 1})", "at.more"}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    try {
      given(row.text);
      FAIL_CHECK("accepted");
    } catch (const UserError& error) {
      CHECK(error.path() == row.path);
    }
  }
}

TEST_CASE("a choice is read from its bare name, and describing it leaves its kind") {
  OneOf<ShapeAxis> form = SquareOptions{.side = 4, .note = ""};
  shape_of(form);
  CHECK(form.chosen() == "square");
  CHECK(read_options<OneOf<ShapeAxis>>("round").as<RoundOptions>()->radius == 1.5);
}

}  // namespace moelab::options_test
