// One worker of the engine's team: its own instance over the memory that all of them share.
// It acknowledges which module it runs, and then lives inside the engine until it is ended.

const refuse = () => {
  throw new Error("only the engine's first thread reads files");
};

self.onmessage = ({ data }) => {
  const { module, memory, sha256, index, stack, tls, tlsBytes } = data;
  const imports = { env: { memory, host_read: refuse } };
  const { exports } = new WebAssembly.Instance(module, imports);
  const room = exports.__tls_size.value <= tlsBytes && exports.__tls_align.value <= 16;
  if (!room) throw new Error("the engine has more thread-local values than there is room for");
  exports.__stack_pointer.value = stack;
  exports.__wasm_init_tls(tls);
  self.postMessage([index, sha256, exports.rt_abi()]);
  exports.rt_worker(index);
  self.close();
};
