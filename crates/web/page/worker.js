"use strict";
// Answers one question by the simulator, which src/memory.rs lets in and out.
onmessage = async ({ data: { module, question } }) => {
  let exports, panic;
  const text = (at, length) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, length));
  try {
    const imports = { page: { panicked: (at, length) => panic = text(at, length) } };
    ({ exports } = await WebAssembly.instantiate(module, imports));
    const bytes = new TextEncoder().encode(JSON.stringify(question));
    const at = exports.room(bytes.length);
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    const length = exports.answer();
    postMessage(JSON.parse(text(exports.answered(), length)));
  } catch (error) {
    postMessage({ error: panic ?? String(error) });
  }
};
