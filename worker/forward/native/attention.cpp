// The attention backend: stores new keys and values, then attends over the pages of each sequence.
#include <omp.h>

#include <atomic>
#include <memory>
#include <new>

#include "attention_plan.h"

namespace rg {
namespace {

// Fewer rows than this are stored by one thread: waking the others takes longer.
constexpr int STORED_ALONE = 64;

// A vector that lies across two cache lines takes twice as long to load.
constexpr std::align_val_t ALIGNED{64};

struct FreeAligned {
    void operator()(float* memory) const { operator delete[](memory, ALIGNED); }
};

class Attention {
public:
    Attention(int heads, int kv_heads, int dim)
        : heads_(heads), kv_heads_(kv_heads), dim_(dim), width_(padded(dim)) {}

    void plan(int64_t sequences, const int64_t* row_starts, const int64_t* contexts,
              const int64_t* const* tables, int64_t page_size, const int64_t* slots) {
        plan_.clear();
        plan_.page_size = static_cast<int>(page_size);
        plan_.slots.assign(slots, slots + row_starts[sequences]);
        Planner planner(plan_, group());
        for (int64_t i = 0; i < sequences; i++) {
            const int rows = static_cast<int>(row_starts[i + 1] - row_starts[i]);
            planner.chunk(static_cast<int>(row_starts[i]), rows, static_cast<int>(contexts[i]),
                          tables[i]);
        }
        planner.finish();
        const size_t results = static_cast<size_t>(plan_.segment_results) * heads_;
        if (parts_.size() < results) parts_.resize(results);
        if (part_outs_.size() < results * width_) part_outs_.resize(results * width_);
    }

    // q, k and v are rows of [heads][dim] with a stride each; out is [rows][heads][dim].
    template <class T>
    void run(Stored<T> keys, Stored<T> values, const float* q, int64_t q_stride, const float* k,
             int64_t k_stride, const float* v, int64_t v_stride, float* out) {
        const int rows = static_cast<int>(plan_.slots.size());
        const int split = static_cast<int>(plan_.split_rows.size());
        const int threads = omp_get_max_threads();
        std::atomic<int> claimed{0};
        ensure_scratch(threads);
        const auto save = [&](int row) {
            for (int head = 0; head < kv_heads_; head++) {
                write_row(keys, plan_.slots[row], head, k + row * k_stride + head * dim_);
                write_row(values, plan_.slots[row], head, v + row * v_stride + head * dim_);
            }
        };
        if (rows <= STORED_ALONE)
            for (int row = 0; row < rows; row++) save(row);
#pragma omp parallel num_threads(threads)
        {
            if (rows > STORED_ALONE) {
#pragma omp for schedule(static)
                for (int row = 0; row < rows; row++) save(row);
            }
            attend_all(keys, values, claimed, q, q_stride, out, scratches_[omp_get_thread_num()]);
#pragma omp barrier
#pragma omp for schedule(static)
            for (int i = 0; i < split; i++) merge_row(plan_.split_rows[i], out);
        }
    }

private:
    int group() const { return heads_ / kv_heads_; }

    // One head of one item, in the order in which a thread takes them up.
    struct Task {
        const Item* item = nullptr;  // null: there are no more
        int head = 0;
    };

    // The threads share the items out among them as they go. The heads of a token lie together, so
    // where there is enough to do one thread takes them all.
    template <class T>
    void attend_all(Stored<T> keys, Stored<T> values, std::atomic<int>& claimed, const float* q,
                    int64_t q_stride, float* out, Scratch& scratch) {
        const int tasks = static_cast<int>(plan_.items.size()) * kv_heads_;
        const int grain = tasks > 8 * kv_heads_ * omp_get_num_threads() ? kv_heads_ : 1;
        int place = 0, end = 0;
        const auto claim = [&] {
            if (place == end) place = claimed.fetch_add(grain), end = place + grain;
            if (place >= tasks) return Task{};
            const Task task{&plan_.items[place / kv_heads_], place % kv_heads_};
            place++;
            return task;
        };
        Task task = claim();
        Place here, next;
        locate(task, 0, here);
        while (task.item) {
            const Task following = claim();
            take_queries(task, q, q_stride, scratch.queries);
            for (int first = task.item->first_token; first < task.item->end_token;
                 first += SEGMENT) {
                if (first + SEGMENT < task.item->end_token)
                    locate(task, first + SEGMENT - task.item->first_token, next);
                else
                    locate(following, 0, next);
                attend(keys, values, task, first, here, next, scratch);
                std::swap(here, next);
            }
            if (task.item->whole) write_out(task, out, scratch);
            task = following;
        }
    }

    void locate(const Task& task, int offset, Place& place) const {
        place.tokens = 0;
        if (!task.item) return;
        const int size = plan_.page_size, first = task.item->first_token + offset;
        place.head = task.head;
        const int tokens = std::min(SEGMENT, task.item->end_token - first);
        const int64_t* page = &plan_.pages[task.item->first_page + first / size];
        for (int in_page = first % size; place.tokens < tokens; in_page = 0, page++)
            for (; in_page < size && place.tokens < tokens; in_page++)
                place.slots[place.tokens++] = *page * size + in_page;
    }

    template <class T>
    void attend(Stored<T> keys, Stored<T> values, const Task& task, int first, const Place& here,
                const Place& next, Scratch& scratch) {
        const int* rows = &plan_.rows[task.item->first_row];
        const int queries = task.item->rows * group();
        const auto seen = [&](int query) { return plan_.limits[rows[query / group()]] - first; };
        attend_segment(keys, values, here, next, queries, seen, scratch);
        if (task.item->whole)
            add_up(queries, first == 0, scratch);
        else
            keep(rows, queries, task.head, first / SEGMENT, scratch);
    }

    void write_out(const Task& task, float* out, const Scratch& scratch) const {
        for (int query = 0; query < task.item->rows * group(); query++) {
            const int row = plan_.rows[task.item->first_row + query / group()];
            finish(scratch.totals[query], scratch.total + query * width_,
                   out + out_offset(row, task.head * group() + query % group()));
        }
    }

    void take_queries(const Task& task, const float* q, int64_t q_stride, float* to) const {
        const float scale = 1.0f / std::sqrt(static_cast<float>(dim_));
        for (int i = 0; i < task.item->rows * group(); i++) {
            const int row = plan_.rows[task.item->first_row + i / group()];
            const float* from = q + row * q_stride + (task.head * group() + i % group()) * dim_;
            for (int j = 0; j < width_; j++) to[i * width_ + j] = j < dim_ ? from[j] * scale : 0.0f;
        }
    }

    void add_up(int queries, bool first, Scratch& scratch) {
        for (int query = 0; query < queries; query++) {
            float* total = scratch.total + query * width_;
            const float* part = scratch.part + query * width_;
            if (first) {
                scratch.totals[query] = scratch.parts[query];
                std::memcpy(total, part, sizeof(float) * width_);
            } else if (scratch.parts[query].sum > 0.0f) {
                merge(scratch.totals[query], total, scratch.parts[query], part, width_);
            }
        }
    }

    void keep(const int* rows, int queries, int kv_head, int segment, const Scratch& scratch) {
        for (int query = 0; query < queries; query++) {
            const int row = rows[query / group()], head = kv_head * group() + query % group();
            const size_t place = static_cast<size_t>(plan_.parts[row] + segment) * heads_ + head;
            parts_[place] = scratch.parts[query];
            std::memcpy(&part_outs_[place * width_], scratch.part + query * width_,
                        sizeof(float) * width_);
        }
    }

    void merge_row(int row, float* out) {
        const int segments = (plan_.limits[row] + SEGMENT - 1) / SEGMENT;
        for (int head = 0; head < heads_; head++) {
            const size_t first = static_cast<size_t>(plan_.parts[row]) * heads_ + head;
            Softmax& total = parts_[first];
            float* total_out = &part_outs_[first * width_];
            for (int segment = 1; segment < segments; segment++) {
                const size_t place = first + static_cast<size_t>(segment) * heads_;
                merge(total, total_out, parts_[place], &part_outs_[place * width_], width_);
            }
            finish(total, total_out, out + out_offset(row, head));
        }
    }

    int64_t out_offset(int row, int head) const {
        return (static_cast<int64_t>(row) * heads_ + head) * dim_;
    }

    void finish(const Softmax& total, const float* from, float* to) const {
        for (int i = 0; i < dim_; i++) to[i] = from[i] / total.sum;
    }

    void ensure_scratch(int threads) {
        const size_t queries = std::max(MOST_QUERIES, group());
        const size_t wide = queries * width_, turned = static_cast<size_t>(width_) * TURNED;
        const size_t each =
            3 * wide + queries * SEGMENT + turned + static_cast<size_t>(SEGMENT) * width_;
        while (static_cast<int>(scratches_.size()) < threads) {
            memory_.emplace_back(new (ALIGNED) float[each]);
            softmaxes_.push_back(std::make_unique<Softmax[]>(2 * queries));
            float* next = memory_.back().get();
            const auto take = [&](size_t floats) { return (next += floats) - floats; };
            Scratch scratch{};
            scratch.queries = take(wide), scratch.part = take(wide), scratch.total = take(wide);
            scratch.scores = take(queries * SEGMENT), scratch.keys = take(turned);
            scratch.values = take(static_cast<size_t>(SEGMENT) * width_);
            scratch.parts = softmaxes_.back().get(), scratch.totals = scratch.parts + queries;
            scratches_.push_back(scratch);
        }
    }

    const int heads_, kv_heads_, dim_, width_;
    Plan plan_;
    std::vector<Softmax> parts_;      // of split rows: [segments][heads]
    std::vector<float> part_outs_;    // beside it: [segments][heads][width]
    std::vector<Scratch> scratches_;  // one a thread
    std::vector<std::unique_ptr<float[], FreeAligned>> memory_;
    std::vector<std::unique_ptr<Softmax[]>> softmaxes_;
};

}  // namespace
}  // namespace rg

extern "C" {

void* rg_attention_new(int64_t heads, int64_t kv_heads, int64_t dim) {
    return new (std::nothrow) rg::Attention(heads, kv_heads, dim);
}

void rg_attention_free(void* attention) { delete static_cast<rg::Attention*>(attention); }

// 0, or 1 if there is not enough memory.
int rg_attention_plan(void* attention, int64_t sequences, const int64_t* row_starts,
                      const int64_t* contexts, const int64_t* const* tables, int64_t page_size,
                      const int64_t* slots) try {
    static_cast<rg::Attention*>(attention)->plan(sequences, row_starts, contexts, tables, page_size,
                                                 slots);
    return 0;
} catch (const std::bad_alloc&) {
    return 1;
}

// `kind` of the pool: 0 float, 1 half, 2 int8 with scales. 0, or 1 if there is not enough memory.
int rg_attention_run(void* attention, int kind, int kv_heads, int dim, void* keys, void* values,
                     float* key_scales, float* value_scales, const float* q, int64_t q_stride,
                     const float* k, int64_t k_stride, const float* v, int64_t v_stride,
                     float* out) try {
    auto& a = *static_cast<rg::Attention*>(attention);
    const auto run = [&](auto* typed) {
        using T = std::remove_pointer_t<decltype(typed)>;
        const rg::Stored<T> stored_keys{typed, key_scales, kv_heads, dim};
        const rg::Stored<T> stored_values{static_cast<T*>(values), value_scales, kv_heads, dim};
        a.run(stored_keys, stored_values, q, q_stride, k, k_stride, v, v_stride, out);
    };
    if (kind == 0) run(static_cast<float*>(keys));
    if (kind == 1) run(static_cast<rg::half*>(keys));
    if (kind == 2) run(static_cast<int8_t*>(keys));
    return 0;
} catch (const std::bad_alloc&) {
    return 1;
}

}  // extern "C"
