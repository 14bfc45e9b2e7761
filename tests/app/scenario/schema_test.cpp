#include "app/scenario/schema.h"

#include <doctest/doctest.h>

#include <limits>

#include "sim/base/error.h"

namespace moelab::schema_test {
namespace {

/// One field of every type.
const Shape& every_type() {
  static const Shape number = Shape::positive_real();
  static const Shape shape = Shape::object({
      {"flag", Shape::boolean(), "", true},
      {"count", Shape::count(1, 1000), "how many"},
      {"real", Shape::real(), "", 0.5},
      {"share", Shape::fraction(), "", 0},
      {"rate", Shape::either({number, Shape::object({{"a", number, ""}, {"b", number, "", 2.0}})}), "", 1},
      {"text", Shape::text(), "", kOptional},
      {"choice", Shape::choice({"moe", "dense"}), "", "moe"},
      {"list", Shape::list(Shape::count(0), 1), "", kOptional},
      {"map", Shape::map(Shape::boolean()), "", Json::object()},
      {"router",
       Shape::variant({{"linear", "", {{"scale", Shape::real(), "", 1.0}}},
                       {"mlp", "", {{"depth", Shape::count(), ""}, {"width", Shape::count(), "", 96}}}}),
       "", "linear"},
      {"free", Shape::any(), "", kOptional},
  });
  return shape;
}

Json parsed(const char* text) {
  return Json::parse(text);
}

}  // namespace

TEST_CASE("resolving fills defaults in the order of the fields and makes short forms whole") {
  CHECK(resolve(every_type(), parsed(R"({"count": 10.0})"), "").dump() ==
        R"({"flag":true,"count":10,"real":0.5,"share":0,"rate":1,"choice":"moe","map":{},)"
        R"("router":{"kind":"linear","scale":1.0}})");
  const Json full = resolve(every_type(), parsed(R"({"router": {"kind": "mlp", "depth": 2}, "rate": {"a": 3},
                                                     "count": 1, "list": [1.0], "free": [null]})"),
                            "");
  CHECK(full.at("router").dump() == R"({"kind":"mlp","depth":2,"width":96})");
  CHECK(full.at("rate").dump() == R"({"a":3,"b":2.0})");
  CHECK(full.at("list").dump() == "[1]");
  CHECK(full.at("free").dump() == "[null]");
}

TEST_CASE("a whole number is kept to the last digit, or refused") {
  const Shape count = Shape::count(-9007199254740992.0);
  const std::int64_t limit = std::int64_t{1} << 53;
  for (const std::int64_t whole : {limit, limit - 1, -limit})
    CHECK(resolve(count, whole, "").get<std::int64_t>() == whole);
  CHECK(resolve(count, static_cast<std::uint64_t>(limit), "").get<std::int64_t>() == limit);
  // As doubles these are the limits.
  CHECK_THROWS_WITH_AS(resolve(count, limit + 1, "n"),
                       doctest::Contains("got 9007199254740993, needs a whole number"), UserError);
  CHECK_THROWS_AS(resolve(count, static_cast<std::uint64_t>(limit + 1), "n"), UserError);
  CHECK_THROWS_AS(resolve(count, -limit - 1, "n"), UserError);
  CHECK_THROWS_AS(resolve(count, std::numeric_limits<std::uint64_t>::max(), "n"), UserError);
}

TEST_CASE("resolving twice changes nothing") {
  for (const char* text : {R"({"count": 3})", R"({"count": 3, "router": "linear", "rate": {"a": 1}})",
                           R"({"count": 1e3, "router": {"kind": "mlp", "depth": 1}, "map": {"x": false},
                               "text": null, "list": [0, 5.0], "free": {"y": 1}})"}) {
    const Json once = resolve(every_type(), parsed(text), "");
    CHECK(resolve(every_type(), once, "").dump() == once.dump());
  }
}

TEST_CASE("a null stands for a field left out, but not for a required one") {
  CHECK(resolve(every_type(), parsed(R"({"count": 1, "real": null})"), "").at("real") == 0.5);
  CHECK_FALSE(resolve(every_type(), parsed(R"({"count": 1, "text": null})"), "").contains("text"));
  CHECK_THROWS_AS(resolve(every_type(), parsed(R"({"count": null})"), ""), UserError);
}

TEST_CASE("wrong values are refused with path, value and what is allowed") {
  struct Row {
    const char* text;
    const char* path;
    const char* message;
  };
  const Row rows[] = {
      {R"([])", "at", "got [], needs an object"},
      {R"({})", "at.count", "missing; needs a whole number of at least 1 (how many)"},
      {R"({"count": 2.5})", "at.count", "got 2.5, needs a whole number of at least 1"},
      {R"({"count": 0})", "at.count", "got 0, needs a whole number of at least 1"},
      {R"({"count": -7})", "at.count", "got -7, needs a whole number of at least 1"},
      {R"({"count": true})", "at.count", "got true, needs a whole number of at least 1"},
      {R"({"count": "3"})", "at.count", "got \"3\", needs a whole number of at least 1"},
      {R"({"count": 1001})", "at.count", "got 1001, needs a whole number of at least 1 and at most 1000"},
      {R"({"count": 1e300})", "at.count", "needs a whole number of at least 1 and at most 1000"},
      {R"({"count": 18446744073709551615})", "at.count", "at most 1000"},
      {R"({"count": 1, "flag": "yes"})", "at.flag", "got \"yes\", needs true or false"},
      {R"({"count": 1, "flag": 0})", "at.flag", "got 0, needs true or false"},
      {R"({"count": 1, "real": []})", "at.real", "got [], needs a finite number"},
      {R"({"count": 1, "share": 1.5})", "at.share", "needs a finite number of at least 0 and at most 1"},
      {R"({"count": 1, "rate": 0})", "at.rate", "got 0, needs a finite number above 0"},
      {R"({"count": 1, "rate": {"a": -1}})", "at.rate.a", "got -1, needs a finite number above 0"},
      {R"({"count": 1, "rate": "fast"})", "at.rate",
       "got \"fast\", needs a finite number above 0, or an object"},
      {R"({"count": 1, "text": ""})", "at.text", "needs a non-empty text"},
      {R"({"count": 1, "choice": "dens"})", "at.choice", "unknown choice 'dens'; did you mean 'dense'?"},
      {R"({"count": 1, "choice": 1})", "at.choice", "got 1, needs one of moe, dense"},
      {R"({"count": 1, "list": []})", "at.list", "needs a list of at least 1 element"},
      {R"({"count": 1, "list": [1, 0.5]})", "at.list[1]", "got 0.5, needs a whole number of at least 0"},
      {R"({"count": 1, "map": {"x": 1}})", "at.map.x", "got 1, needs true or false"},
      {R"({"count": 1, "router": "linaer"})", "at.router", "unknown router 'linaer'; did you mean 'linear'?"},
      {R"({"count": 1, "router": {"kind": "mpl"}})", "at.router.kind", "did you mean 'mlp'?"},
      {R"({"count": 1, "router": {"scale": 1}})", "at.router.kind", "missing; needs one of linear, mlp"},
      {R"({"count": 1, "router": "mlp"})", "at.router.depth", "missing; needs a whole number"},
      {R"({"count": 1, "router": {"kind": "linear", "depth": 1}})", "at.router.depth", "unknown key 'depth'"},
      {R"({"count": 1, "router": 7})", "at.router",
       "got 7, needs an object whose 'kind' is one of linear, mlp"},
      {R"({"cuont": 1})", "at.cuont", "unknown key 'cuont'; did you mean 'count'? Allowed: flag, count"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    try {
      resolve(every_type(), parsed(row.text), "at");
      FAIL("accepted");
    } catch (const UserError& error) {
      CHECK(error.path() == row.path);
      CHECK_MESSAGE(error.message().find(row.message) != std::string::npos, error.message());
    }
  }
}

TEST_CASE("numbers that are not finite are refused even where a program made them") {
  using Limits = std::numeric_limits<double>;
  for (const double value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    CHECK_THROWS_AS(resolve(Shape::real(), value, "x"), UserError);
    CHECK_THROWS_AS(resolve(Shape::count(), value, "x"), UserError);
  }
}

TEST_CASE("a dotted path finds its shape by the kinds that are chosen") {
  const Json linear = parsed(R"({"count": 1})"), mlp = parsed(R"({"count": 1, "router": {"kind": "mlp"}})");
  const auto type_at = [&](const Json& value, const char* path) {
    const Shape* shape = find_shape(every_type(), value, path);
    REQUIRE(shape != nullptr);
    return shape->type;
  };
  CHECK(type_at(linear, "count") == Shape::Type::count);
  CHECK(type_at(linear, "router.scale") == Shape::Type::real);
  CHECK(type_at(mlp, "router.depth") == Shape::Type::count);
  CHECK(type_at(linear, "rate.b") == Shape::Type::real);
  CHECK(type_at(linear, "map.anything") == Shape::Type::boolean);
  CHECK(type_at(linear, "free.any.where") == Shape::Type::any);
  CHECK(type_at(linear, "router.kind") == Shape::Type::variant);
  CHECK(type_at(linear, "") == Shape::Type::object);
  for (const char* path : {"cuont", "router.depth", "count.x", "router.scale.x", "rate.c", "list.0"}) {
    CAPTURE(path);
    CHECK(find_shape(every_type(), linear, path) == nullptr);
  }
  CHECK(find_shape(every_type(), mlp, "router.scale") == nullptr);

  const Json listed = parsed(R"({"list": [4, 5]})");
  CHECK(type_at(listed, "list.1") == Shape::Type::count);
  for (const char* path : {"list.2", "list.x", "list.-1", "list.0.x"}) {
    CAPTURE(path);
    CHECK(find_shape(every_type(), listed, path) == nullptr);
  }
  CHECK(list_index("12") == 12);
  for (const char* key : {"", "x", "-1", "1x", "99999999999999999999999"}) {
    CAPTURE(key);
    CHECK_FALSE(list_index(key));
  }
}

TEST_CASE("the JSON Schema says the same as the shape") {
  const Json schema = json_schema(every_type());
  CHECK(schema.at("$schema") == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema.at("additionalProperties") == false);
  CHECK(schema.at("required") == Json::array({"count"}));
  const Json& properties = schema.at("properties");
  CHECK(properties.at("count").at("type") == "integer");
  CHECK(properties.at("count").at("minimum") == 1);
  CHECK(properties.at("count").at("maximum") == 1000);
  CHECK(properties.at("count").at("description") == "how many");
  CHECK(properties.at("real").at("default") == 0.5);
  CHECK(properties.at("choice").at("enum") == Json::array({"moe", "dense"}));
  CHECK(properties.at("rate").at("anyOf")[0].at("exclusiveMinimum") == 0);
  const Json& router = properties.at("router").at("oneOf");
  CHECK(router[0].at("enum") ==
        Json::array({"linear"}));  // mlp has a required field: its bare name is not enough
  CHECK(router[2].at("properties").at("kind").at("const") == "mlp");
  CHECK(router[2].at("required") == Json::array({"depth", "kind"}));
}

}  // namespace moelab::schema_test
