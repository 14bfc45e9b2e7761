#include "sim/model/blocks/slots.h"

#include <algorithm>

#include "sim/base/kernels/multiply.h"

namespace moelab {
namespace {

/// Slots of a group.
template <class Real>
int slots_of_group(const GatingScratch<Real>& gating) {
  return gating.routing.experts * gating.slots.each;
}

/// Calls visit(first row, rows, first slot) for every group.
template <class Real, class Visit>
void for_each_slot_group(const GatingScratch<Real>& gating, const Visit& visit) {
  const int most = gating.slots.group_rows, rows = gating.routing.rows;
  for (int first = 0, slot = 0; first < rows; first += most, slot += slots_of_group(gating))
    visit(first, std::min(most, rows - first), slot);
}

/// A slot is read by its expert alone.
template <class Real>
void route_slots(const GatingScratch<Real>& gating, SlotScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const int most = gating.slots.group_rows, of_group = slots_of_group(gating);
  routing.experts = gating.routing.experts;
  routing.stride = gating.routing.stride;
  routing.rows = (gating.routing.rows + most - 1) / most * of_group;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.gates, count);
  std::fill_n(scratch.gates.begin(), count, Real(0));
  for (int slot = 0; slot < routing.rows; ++slot) {
    const int expert = slot % of_group / gating.slots.each;
    scratch.gates[entries(slot, routing.stride) + size(expert)] = 1;
  }
  routing.gates = scratch.gates.data();
  list_pairs(routing);
}

/// Rows of D, C or their gradients.
template <class Real, class Values>
auto slot_weights(const GatingScratch<Real>& gating, Values& values) {
  return kernels::padded_rows(values.data(), gating.routing.rows, slots_of_group(gating));
}

}  // namespace

template <class Real>
void forward_slots(const View<const Real>& x, const GatingScratch<Real>& gating, const ExpertBank<Real>& bank,
                   const Real* parameters, Scratch& bank_scratch, SlotScratch<Real>& scratch,
                   const View<Real>& outputs, bool keep) {
  route_slots(gating, scratch);
  const int slots = scratch.routing.rows, of_group = slots_of_group(gating);
  reserve_entries(scratch.rows, entries(x.rows, kernels::padded(x.columns)));
  reserve_entries(scratch.slots, entries(slots, kernels::padded(x.columns)));
  reserve_entries(scratch.outputs, entries(slots, kernels::padded(outputs.columns)));
  // Products read whole vectors of a row.
  const View<Real> rows = kernels::padded_rows(scratch.rows.data(), x.rows, x.columns);
  for (int row = 0; row < x.rows; ++row) {
    std::copy_n(x.row(row), x.columns, rows.row(row));
    std::fill(rows.row(row) + x.columns, rows.row(row) + rows.row_stride, Real(0));
  }
  const View<Real> read = kernels::padded_rows(scratch.slots.data(), slots, x.columns);
  const View<Real> answers = kernels::padded_rows(scratch.outputs.data(), slots, outputs.columns);
  const View<const Real> dispatch = slot_weights(gating, gating.slots.dispatch);
  const View<const Real> combine = slot_weights(gating, gating.slots.combine);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(dispatch.middle_rows(first, count).transposed(), rows.middle_rows(first, count),
                      read.middle_rows(slot, of_group));
  });
  bank.forward(read, scratch.routing, parameters, bank_scratch, scratch.outputs.data(), keep);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(combine.middle_rows(first, count), answers.middle_rows(slot, of_group),
                      outputs.middle_rows(first, count));
  });
}

template <class Real>
void backward_slots(GatingScratch<Real>& gating, const ExpertBank<Real>& bank, const Real* parameters,
                    Scratch& bank_scratch, SlotScratch<Real>& scratch, int input_dim, int output_dim,
                    const ExpertGradients<Real>& gradients) {
  const int slots = scratch.routing.rows, of_group = slots_of_group(gating), row_count = gating.routing.rows;
  reserve_entries(scratch.of_slots, entries(slots, kernels::padded(input_dim)));
  reserve_entries(scratch.of_outputs, entries(slots, kernels::padded(output_dim)));
  const View<const Real> upstream =
      kernels::padded_rows<const Real>(gradients.outputs, row_count, output_dim);
  const View<const Real> answers =
      kernels::padded_rows<const Real>(scratch.outputs.data(), slots, output_dim);
  const View<Real> of_answers = kernels::padded_rows(scratch.of_outputs.data(), slots, output_dim);
  const View<Real> of_read = kernels::padded_rows(scratch.of_slots.data(), slots, input_dim);
  const View<const Real> rows = kernels::padded_rows<const Real>(scratch.rows.data(), row_count, input_dim);
  const View<const Real> dispatch = slot_weights(gating, gating.slots.dispatch);
  const View<const Real> combine = slot_weights(gating, gating.slots.combine);
  const View<Real> of_dispatch = slot_weights(gating, gating.slots.of_dispatch);
  const View<Real> of_combine = slot_weights(gating, gating.slots.of_combine);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(combine.middle_rows(first, count).transposed(), upstream.middle_rows(first, count),
                      of_answers.middle_rows(slot, of_group));
    kernels::multiply(upstream.middle_rows(first, count), answers.middle_rows(slot, of_group).transposed(),
                      of_combine.middle_rows(first, count));
  });
  ExpertGradients<Real> of_bank;
  of_bank.outputs = scratch.of_outputs.data();
  of_bank.parameters = gradients.parameters;
  of_bank.inputs = scratch.of_slots.data();
  of_bank.take = gradients.take;
  const View<const Real> read = kernels::padded_rows<const Real>(scratch.slots.data(), slots, input_dim);
  bank.backward(read, scratch.routing, parameters, bank_scratch, of_bank);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(rows.middle_rows(first, count), of_read.middle_rows(slot, of_group).transposed(),
                      of_dispatch.middle_rows(first, count));
    if (!gradients.inputs) return;
    kernels::multiply(dispatch.middle_rows(first, count), of_read.middle_rows(slot, of_group),
                      kernels::padded_rows(gradients.inputs, row_count, input_dim).middle_rows(first, count));
  });
}

#define MOELAB_SLOTS(Real)                                                                                  \
  template void forward_slots(const View<const Real>&, const GatingScratch<Real>&, const ExpertBank<Real>&, \
                              const Real*, Scratch&, SlotScratch<Real>&, const View<Real>&, bool);          \
  template void backward_slots(GatingScratch<Real>&, const ExpertBank<Real>&, const Real*, Scratch&,        \
                               SlotScratch<Real>&, int, int, const ExpertGradients<Real>&)
MOELAB_SLOTS(float);
MOELAB_SLOTS(double);
#undef MOELAB_SLOTS

}  // namespace moelab
