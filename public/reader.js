// The worker that reads a model's file while the engine computes: `runtime/src/ahead/beside.rs` is
// the other side, and says what the words mean.

const [SERVES, HERE, ASKED, ANSWERED, FILLED, AT_LOW, AT_HIGH, TO, LEN] = Array(9).keys();

// Where a second handle is refused nobody serves, and the engine reads everything itself.
const open = (file) => file.createSyncAccessHandle({ mode: "read-only" }).catch(() => null);

function serve(memory, words, number, handle) {
  const word = (index) => Atomics.load(words, index) >>> 0;

  const fill = () => {
    const into = new Uint8Array(memory.buffer, word(TO), word(LEN));
    let at = word(AT_HIGH) * 2 ** 32 + word(AT_LOW);
    for (let got = 0; got < into.length; ) {
      const read = handle.read(into.subarray(got), { at });
      if (read < 1) return 0;
      got += read;
      at += read;
    }
    return 1;
  };

  if (word(SERVES) !== number) return;
  let seen = word(ASKED);
  Atomics.store(words, ANSWERED, seen);
  Atomics.store(words, HERE, number);
  for (;;) {
    Atomics.wait(words, ASKED, seen | 0);
    if (word(SERVES) !== number) return;
    const asked = word(ASKED);
    if (asked === seen) continue;
    seen = asked;
    let filled = 0;
    try {
      filled = fill();
    } catch {
      // The engine reads it itself, and its failure counts.
    }
    Atomics.store(words, FILLED, filled);
    Atomics.store(words, ANSWERED, seen);
    Atomics.notify(words, ANSWERED);
  }
}

self.onmessage = async ({ data: { memory, words, number, file } }) => {
  const handle = await open(file);
  if (handle) {
    serve(memory, new Int32Array(memory.buffer, words, 9), number, handle);
    handle.close();
  }
  self.close();
};
