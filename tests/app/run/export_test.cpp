#include "app/store/export.h"

#include <doctest/doctest.h>

#include <limits>

#include "app/scenario/overrides.h"

namespace moelab::export_test {
namespace {

RunResults example() {
  RunResults results;
  results.table.arms = {"a, b", "c"};
  results.table.sweep_paths = {"model.experts", "model.router.kind"};
  ResultRow row;
  row.cell = "id1";
  row.arm = "a, b";
  row.point = {{"model.experts", 4}, {"model.router.kind", "say \"hi\""}};
  row.state = "done";
  row.metrics = {{"zeta", 0.1}, {"alpha", 1.0}, {"second", 1e-20}, {"first", 2.5}};
  row.trace = {{0, {{"first", 3.0}}}, {10, {{"first", 2.5}, {"alpha", 1.0}}}};
  results.table.rows.push_back(row);
  results.table.rows.push_back(
      {"id2", "c", 1, {{"model.experts", 0.5}, {"model.router.kind", "linear"}}, "missing", {}, {}});
  return results;
}

}  // namespace

TEST_CASE("export: columns, order, quoting and empty fields") {
  CHECK(export_csv(example(), false, {"first", "unused", "second"}) ==
        "cell,arm,seed,model.experts,model.router.kind,state,first,second,alpha,zeta\n"
        "id1,\"a, b\",0,4,\"say \"\"hi\"\"\",done,2.5,1e-20,1,0.1\n"
        "id2,c,1,0.5,linear,missing,,,,\n");
}

TEST_CASE("export: what the plan names has a column where no cell has a value") {
  RunResults results = example();
  results.metrics = {"steps_to_target", "first", "silhouette_layer1"};
  CHECK(export_csv(results, false, {"first", "steps_to_target"}) ==
        "cell,arm,seed,model.experts,model.router.kind,state,first,steps_to_target,alpha,second,"
        "silhouette_layer1,zeta\n"
        "id1,\"a, b\",0,4,\"say \"\"hi\"\"\",done,2.5,,1,1e-20,,0.1\n"
        "id2,c,1,0.5,linear,missing,,,,,,\n");
  // What is known at the end alone is none of a trace's.
  CHECK(export_csv(results, true, {"first"})
            .starts_with(
                "cell,arm,seed,model.experts,model.router.kind,state,step,layer,first,alpha,silhouette\n"));
}

TEST_CASE("export: a trace has one row per recorded step") {
  RunResults results = example();
  results.table.rows[0].metrics = {{"first", 2.5}, {"alpha", 1.0}};
  CHECK(export_csv(results, true, {"first"}) ==
        "cell,arm,seed,model.experts,model.router.kind,state,step,first,alpha\n"
        "id1,\"a, b\",0,4,\"say \"\"hi\"\"\",done,0,3,\n"
        "id1,\"a, b\",0,4,\"say \"\"hi\"\"\",done,10,2.5,1\n");
}

TEST_CASE("export: a trace has the layers of each model alone") {
  RunResults results = example();
  ResultRow& two = results.table.rows[0];
  two.metrics = {};
  two.trace = {{10, {{"loss", 1.0}, {"entropy_layer0", 2.0}, {"entropy_layer1", 3.0}}}};
  results.table.rows.pop_back();
  ResultRow one = two, none = two;
  one.cell = "one";
  one.trace = {{10, {{"loss", 4.0}, {"entropy", 5.0}}}};
  none.cell = "none";
  none.trace = {{10, {{"loss", 6.0}}}};
  results.table.rows.push_back(one);
  results.table.rows.push_back(none);
  const std::string place = ",\"a, b\",0,4,\"say \"\"hi\"\"\",done,10,";
  CHECK(export_csv(results, true, {}) ==
        "cell,arm,seed,model.experts,model.router.kind,state,step,layer,entropy,loss\n"
        "id1" +
            place + "0,2,1\nid1" + place + "1,3,1\none" + place + "0,5,4\nnone" + place + ",,6\n");
}

TEST_CASE("export: doubles keep every bit in the fewest digits") {
  RunResults results = example();
  results.table.rows.pop_back();
  results.table.rows[0].metrics = {{"a", 0.1 + 0.2}, {"b", -std::numeric_limits<double>::infinity()}};
  const std::string text = export_csv(results, false, {});
  CHECK(text.find(",0.30000000000000004,-inf\n") != std::string::npos);
}

TEST_CASE("export: a field with a line break or a quote is quoted") {
  RunResults results;
  results.table.sweep_paths = {"one\ntwo"};
  results.table.rows = {{"id", "\"", 0, {{"one\ntwo", read_sweep_value(Json())}}, "done", {}, {}}};
  CHECK(export_csv(results, false, {}) == "cell,arm,seed,\"one\ntwo\",state\nid,\"\"\"\",0,,done\n");
}

}  // namespace moelab::export_test
