// Which queries attend which tokens together in one forward pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "attend_tile.h"

namespace rg {

// Sequences with at most this many new rows are split by segment, so that threads share a long
// context and sequences share a prefix; longer chunks are split by rows.
constexpr int FEW_ROWS = 16;
constexpr int TILE_ROWS = 32;

// Some rows of the batch over some tokens; done once for each KV head.
struct Item {
    int first_row;  // in Plan::rows
    int rows;
    int first_token;  // a multiple of SEGMENT
    int end_token;
    int first_page;  // in Plan::pages: the page of token 0
    bool whole;      // all the rows see: the result is final
};

struct Plan {
    int page_size = 1;
    std::vector<int64_t> slots;   // where each row of the batch is stored
    std::vector<int> limits;      // tokens each row of the batch sees
    std::vector<int> parts;       // index of the row's first segment result; -1: none are kept
    std::vector<int64_t> pages;   // all page tables, end to end
    std::vector<int> rows;        // rows of the batch, item by item
    std::vector<Item> items;      // the largest first
    std::vector<int> split_rows;  // rows whose segments have to be merged
    int segment_results = 0;

    void clear() {
        slots.clear(), limits.clear(), parts.clear(), pages.clear();
        rows.clear(), items.clear(), split_rows.clear();
        segment_results = 0;
    }
};

class Planner {
public:
    Planner(Plan& plan, int heads_of_a_group)
        : plan_(plan), most_rows_(std::max(1, MOST_QUERIES / heads_of_a_group)) {}

    void chunk(int first_row, int rows, int context, const int64_t* pages) {
        const int first_page = static_cast<int>(plan_.pages.size());
        const int page_count = (context + plan_.page_size - 1) / plan_.page_size;
        plan_.pages.insert(plan_.pages.end(), pages, pages + page_count);
        for (int i = 0; i < rows; i++) plan_.limits.push_back(context - rows + 1 + i);
        plan_.parts.resize(plan_.limits.size(), -1);
        if (rows > FEW_ROWS)
            by_rows(first_row, rows, first_page);
        else
            by_segments(first_row, rows, context, first_page);
    }

    void finish() {
        for (const Shared& shared : shared_) add_shared(shared);
        std::stable_sort(plan_.items.begin(), plan_.items.end(),
                         [](const Item& a, const Item& b) { return cost(a) > cost(b); });
    }

private:
    struct Shared {
        Item tokens;
        std::vector<int> rows;
    };

    // Reading a token's keys and values costs about as much as attending it for eight rows.
    static int64_t cost(const Item& item) {
        return static_cast<int64_t>(item.end_token - item.first_token) * (item.rows + 8);
    }

    void by_rows(int first_row, int rows, int first_page) {
        const int each = std::min(TILE_ROWS, most_rows_);
        for (int row = first_row; row < first_row + rows; row += each) {
            const int count = std::min(each, first_row + rows - row);
            const int end = plan_.limits[row + count - 1];
            const int place = static_cast<int>(plan_.rows.size());
            for (int i = 0; i < count; i++) plan_.rows.push_back(row + i);
            plan_.items.push_back({place, count, 0, end, first_page, true});
        }
    }

    // The same pages at the same place hold the same tokens' keys and values, whoever has them.
    void by_segments(int first_row, int rows, int context, int first_page) {
        for (int i = 0; i < rows; i++) {
            plan_.parts[first_row + i] = plan_.segment_results;
            plan_.segment_results += (plan_.limits[first_row + i] + SEGMENT - 1) / SEGMENT;
            plan_.split_rows.push_back(first_row + i);
        }
        for (int first = 0; first < context; first += SEGMENT) {
            const int end = std::min(first + SEGMENT, context);
            const int from = first / plan_.page_size, to = (end - 1) / plan_.page_size + 1;
            std::string key(reinterpret_cast<const char*>(&plan_.pages[first_page + from]),
                            sizeof(int64_t) * (to - from));
            const int place[2] = {first, end};
            key.append(reinterpret_cast<const char*>(place), sizeof place);
            const auto [found, is_new] = index_.try_emplace(std::move(key), shared_.size());
            if (is_new) shared_.push_back({{0, 0, first, end, first_page, false}, {}});
            for (int i = 0; i < rows; i++)
                if (plan_.limits[first_row + i] > first)
                    shared_[found->second].rows.push_back(first_row + i);
        }
    }

    void add_shared(const Shared& shared) {
        const int all = static_cast<int>(shared.rows.size());
        for (int done = 0; done < all; done += most_rows_) {
            Item item = shared.tokens;
            item.first_row = static_cast<int>(plan_.rows.size());
            item.rows = std::min(most_rows_, all - done);
            plan_.rows.insert(plan_.rows.end(), shared.rows.begin() + done,
                              shared.rows.begin() + done + item.rows);
            plan_.items.push_back(item);
        }
    }

    Plan& plan_;
    const int most_rows_;
    std::unordered_map<std::string, size_t> index_;
    std::vector<Shared> shared_;  // in order of appearance
};

}  // namespace rg
