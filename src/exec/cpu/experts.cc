#include "exec/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace doppler::cpu {
namespace {

void route_row(const float* logits, uint32_t experts, uint32_t top_k, graph::Routing routing,
               std::vector<uint32_t>& order, float* out) {
  order.resize(experts);
  std::iota(order.begin(), order.end(), 0u);
  std::partial_sort(order.begin(), order.begin() + top_k, order.end(), [&](uint32_t a, uint32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  const float largest = logits[order[0]];
  double sum = 0;
  if (routing == graph::Routing::kSoftmaxOverAll) {
    for (uint32_t e = 0; e < experts; ++e) sum += std::exp(static_cast<double>(logits[e]) - largest);
  } else {
    for (uint32_t s = 0; s < top_k; ++s) sum += std::exp(static_cast<double>(logits[order[s]]) - largest);
  }
  for (uint32_t s = 0; s < top_k; ++s) {
    out[s] = static_cast<float>(order[s]);
    out[top_k + s] = static_cast<float>(std::exp(static_cast<double>(logits[order[s]]) - largest) / sum);
  }
}

// One row's use of an expert.
struct Use {
  uint32_t row, slot;
};

}  // namespace

void route(ThreadPool& pool, const Rows& in, uint32_t top_k, graph::Routing routing, const Rows& out) {
  pool.parallel_for(in.rows, 64, [&](size_t begin, size_t end) {
    std::vector<uint32_t> order;
    for (size_t r = begin; r < end; ++r)
      route_row(in.row(static_cast<uint32_t>(r)), in.width, top_k, routing, order,
                out.row(static_cast<uint32_t>(r)));
  });
}

void expert_linear(ThreadPool& pool, const Simd& simd, const Rows& in, const Rows& routes, uint32_t top_k,
                   std::span<const ExpertWeight> weights, bool int8, ExpertScratch& scratch,
                   const Rows& out) {
  const uint32_t experts = weights[0].weight->experts, columns = weights[0].weight->columns;
  const bool shared = in.width == columns;  // every slot reads the same columns
  const uint32_t width = out.width / top_k;
  std::vector<std::vector<Use>> uses(experts);
  for (uint32_t r = 0; r < in.rows; ++r)
    for (uint32_t s = 0; s < top_k; ++s) uses[static_cast<uint32_t>(routes.row(r)[s])].push_back({r, s});

  for (uint32_t e = 0; e < experts; ++e) {
    if (uses[e].empty()) continue;
    const auto count = static_cast<uint32_t>(uses[e].size());
    scratch.in.resize(static_cast<size_t>(count) * columns);
    scratch.out.resize(static_cast<size_t>(count) * width);
    const Rows gathered{scratch.in.data(), columns, count, columns};
    const Rows products{scratch.out.data(), width, count, width};
    for (uint32_t i = 0; i < count; ++i)
      std::copy_n(in.row(uses[e][i].row) + (shared ? 0 : uses[e][i].slot * columns), columns,
                  gathered.row(i));
    std::vector<LinearWeight> stack;
    for (const ExpertWeight& w : weights) stack.push_back({w.weight, &w.data[e]});
    linear(pool, simd, gathered, stack, int8, scratch.linear, products);
    uint32_t column = 0;
    for (const ExpertWeight& w : weights) {
      const uint32_t rows = w.weight->rows;
      if (!w.bias.empty())
        add_bias(pool, w.bias.subspan(static_cast<size_t>(e) * rows, rows),
                 {products.data + column, width, count, rows});
      column += rows;
    }
    for (uint32_t i = 0; i < count; ++i)
      std::copy_n(products.row(i), width,
                  out.row(uses[e][i].row) + static_cast<size_t>(uses[e][i].slot) * width);
  }
}

void expert_sum(ThreadPool& pool, const Rows& in, const Rows& routes, uint32_t top_k, const Rows& out) {
  pool.parallel_for(in.rows, 16, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const auto row = static_cast<uint32_t>(r);
      float* sum = out.row(row);
      std::fill_n(sum, out.width, 0.0f);
      for (uint32_t s = 0; s < top_k; ++s) {
        const float weight = routes.row(row)[top_k + s];
        const float* part = in.row(row) + static_cast<size_t>(s) * out.width;
        for (uint32_t i = 0; i < out.width; ++i) sum[i] += weight * part[i];
      }
    }
  });
}

}  // namespace doppler::cpu
