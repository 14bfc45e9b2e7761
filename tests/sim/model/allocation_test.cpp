/// Training steps must not allocate: the program's operator new counts here (for every test of this program).

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "sim/train/optimizer.h"
#include "tests/sim/model/example.h"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// std::stable_sort asks with this form; under AddressSanitizer its own version would not match the delete
// below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace moelab {
namespace {

TEST_CASE("training steps do not allocate once the buffers have grown") {
  constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 8, kTokens = 4, kSteps = 50;
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>("mse");
  for (const Kind& router : router_kinds()) {
    for (const Kind& expert : expert_kinds()) {
      for (const NamedGating& gating : example_gatings()) {
        CAPTURE(router.name);
        CAPTURE(expert.name);
        CAPTURE(gating.name);
        Json flat = example_of(router);
        // Scores start near zero: every pair is active, and later steps skip some. Buffers follow the largest
        // need, so the same run is done twice and counted the second time.
        set_init_scale(flat, 0.1);
        const Json spec = example_model(flat, example_of(expert), gating.spec, kExperts);
        Model<float> model(
            spec, with_image(spec, {.input_dim = kInputs, .output_dim = kOutputs, .tokens = kTokens}), 0.0);
        const ExampleBatch<float> batch(1, kRows, model.layout().sample_dim(), kOutputs);
        const Json adam = resolve(Shape::variant(optimizer_kinds()), "adam", "optimizer");
        long during = 0;
        for (const bool counting : {false, true}) {
          model.initialize({1, 0});
          const std::unique_ptr<Optimizer<float>> optimizer =
              make_optimizer<float>(adam, model.parameters().size());
          const long before = allocations;
          for (int i = 0; i < kSteps; ++i) {
            model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
            optimizer->step(0.01, 0.0, model.gradient().data(), model.parameters().data());
          }
          if (counting) during = allocations - before;
        }
        CHECK(during == 0);
      }
    }
  }
  const long before = allocations;
  const AlignedVector<float> array(3);
  CHECK(allocations - before == 1);  // the counter sees aligned arrays
}

}  // namespace
}  // namespace moelab
