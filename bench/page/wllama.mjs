// Drives wllama in a page: version 2 by its steps, version 3 by its only call, a completion.
// Every completion is greedy, goes on after an end of text, and reuses nothing of an earlier one.

const now = () => performance.now();
const silent = { debug() {}, log() {}, warn() {}, error: (...words) => console.error(...words) };
const settings = { suppressNativeLog: true, logger: silent, allowOffline: true };
const context = 1024;

async function version2(root) {
  const { Wllama } = await import(`${root}/esm/index.js`);
  const paths = {
    "single-thread/wllama.wasm": `${root}/esm/single-thread/wllama.wasm`,
    "multi-thread/wllama.wasm": `${root}/esm/multi-thread/wllama.wasm`,
  };
  const engine = new Wllama(paths, settings);
  return {
    engine,
    parameters: { n_ctx: context, n_batch: 2048, seed: 1 },
    tokenize: (text) => engine.tokenize(text, true),
    // `onToken` is called with every new token.
    async complete(text, count, onToken) {
      await engine.samplingInit({ temp: 0, top_k: 1 });
      const ids = await engine.tokenize(text, true);
      await engine.kvClear();
      await engine.decode(ids, {});
      for (let made = 1; ; made++) {
        const { token } = await engine.samplingSample();
        onToken();
        if (made >= count) return { read: ids.length, made };
        await engine.samplingAccept([token]);
        await engine.decode([token], {});
      }
    },
  };
}

async function version3(root) {
  const { Wllama } = await import(`${root}/esm/index.js`);
  const engine = new Wllama({ default: `${root}/esm/wasm/wllama.wasm` }, settings);
  return {
    engine,
    parameters: { n_ctx: context, n_gpu_layers: 0, n_parallel: 1, seed: 1 },
    async complete(prompt, count, onToken) {
      let timings;
      const onData = (data) => {
        if (data.choices?.[0]?.text) onToken();
        timings = data.timings ?? timings;
      };
      const greedy = { temperature: 0, top_k: 1, samplers: ["top_k"] };
      const whole = { cache_prompt: false, ignore_eos: true, stream: true, onData };
      await engine.createCompletion({ prompt, max_tokens: count, ...greedy, ...whole });
      return { read: timings.prompt_n, made: timings.predicted_n };
    },
  };
}

let adapter;

async function begin(version, threads) {
  await adapter?.engine.exit();
  const root = `/${version}/@wllama/wllama`;
  adapter = await (version === "wllama2" ? version2(root) : version3(root));
  adapter.parameters.n_threads = threads;
  return (await (await fetch(`${root}/package.json`)).json()).version;
}

window.peer = {
  begin,
  // From bytes in the page's memory to an engine that can answer.
  async load(url) {
    const blob = await (await fetch(url)).blob();
    const start = now();
    await adapter.engine.loadModel([blob], adapter.parameters);
    return { ms: now() - start };
  },
  tokenize: async (text) => adapter.tokenize?.(text),
  // One token comes from the prompt's own logits, so a completion of one is reading alone.
  async complete(text, count) {
    const start = now();
    let first = 0;
    let last = 0;
    const { read, made } = await adapter.complete(text, count, () => {
      last = now();
      first ||= last;
    });
    const end = now();
    const steps = made - 1;
    return { read, made, total: end - start, steps, writing: last - first };
  },
  // Everything since the navigation began, with the model in the engine's own cache after the
  // first time.
  async fresh(version, threads, url, text) {
    await begin(version, threads);
    const address = new URL(url, location.href).href;
    await adapter.engine.loadModelFromUrl(address, adapter.parameters);
    let first = 0;
    await adapter.complete(text, 2, () => (first ||= now()));
    return { ms: first };
  },
};
