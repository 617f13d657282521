"use strict";
// Answers one question by the simulator, which src/memory.rs lets in and out.
onmessage = async ({ data: { module, question } }) => {
  let exports, panic;
  const text = (at, length) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, length));
  try {
    const imports = { page: { panicked: (at, length) => panic = text(at, length) } };
    ({ exports } = await WebAssembly.instantiate(module, imports));
    const bytes = new TextEncoder().encode(JSON.stringify(question));
    // Addresses of the upper half come as negative numbers.
    const at = exports.room(bytes.length) >>> 0;
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    const length = exports.answer() >>> 0;
    postMessage(JSON.parse(text(exports.answered() >>> 0, length)));
  } catch (error) {
    const memory = error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
    postMessage({ error: panic ?? (memory ? `no memory left, or a fault of the simulator (${error.message})` : String(error)) });
  }
};
