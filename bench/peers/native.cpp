// llama.cpp on the prompts of the browsers: one line in, one line of JSON out.
//
//   native MODEL THREADS
//   read FILE          the prompt's positions and the choice of one token
//   write FILE COUNT   and COUNT - 1 further tokens, which alone are timed
#include "llama.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <vector>

struct Clock {
    double wall = std::chrono::duration<double>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
    double cpu;
    Clock() {
        rusage used;
        getrusage(RUSAGE_SELF, &used);
        cpu = used.ru_utime.tv_sec + used.ru_utime.tv_usec * 1e-6
            + used.ru_stime.tv_sec + used.ru_stime.tv_usec * 1e-6;
    }
};

static llama_context *context;
static const llama_vocab *vocab;

static std::vector<llama_token> tokens_of(const std::string &file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    std::string words = text.str();
    std::vector<llama_token> ids(words.size() + 8);
    ids.resize(llama_tokenize(vocab, words.data(), words.size(), ids.data(), ids.size(), true,
        true));
    return ids;
}

static llama_token step(std::vector<llama_token> ids) {
    if (llama_decode(context, llama_batch_get_one(ids.data(), ids.size()))) exit(1);
    const float *logits = llama_get_logits_ith(context, -1);
    llama_token best = 0;
    for (int id = 1; id < llama_vocab_n_tokens(vocab); id++)
        if (logits[id] > logits[best]) best = id;
    return best;
}

static void tell(int tokens, const Clock &from) {
    Clock to;
    printf("{\"tokens\":%d,\"wall_s\":%.6f,\"cpu_s\":%.6f}\n", tokens, to.wall - from.wall,
        to.cpu - from.cpu);
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    Clock start;
    llama_backend_init();
    auto of_model = llama_model_default_params();
    of_model.n_gpu_layers = 0;
    auto *model = llama_model_load_from_file(arguments[1], of_model);
    if (!model) return 1;
    auto of_context = llama_context_default_params();
    of_context.n_ctx = 1024;
    of_context.n_batch = 2048;
    of_context.n_ubatch = 512;
    of_context.n_threads = of_context.n_threads_batch = atoi(arguments[2]);
    context = llama_init_from_model(model, of_context);
    vocab = llama_model_get_vocab(model);
    tell(0, start);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string what, file;
        int wanted = 0;
        words >> what >> file >> wanted;
        auto ids = tokens_of(file);
        llama_memory_clear(llama_get_memory(context), true);
        Clock begin;
        llama_token id = step(ids);
        if (what == "read") {
            tell(ids.size(), begin);
            continue;
        }
        begin = Clock();
        for (int made = 1; made < wanted; made++) id = step({id});
        tell(wanted - 1, begin);
    }
}
