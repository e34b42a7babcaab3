// The C++ core, compiled to WebAssembly by web/wasm. Every arithmetic the page shows is done there.
import createModule, { packed } from '../../build-wasm/normscope.mjs';

// Functions bound in web/wasm/*.cc, by name. Each view states the types of those it calls.
export type Core = Record<string, (...args: never[]) => unknown>;

// The page carries the WebAssembly packed, as text (vite.config.ts).
export async function loadCore(): Promise<Core> {
  const bytes = Uint8Array.from(atob(packed), character => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const wasmBinary = await new Response(unpacked).arrayBuffer();
  return createModule({ wasmBinary }) as Promise<Core>;
}

// Calls a bound function. A C++ exception arrives as { error: sentence } (see bridge.h) and is thrown here as an
// Error with that sentence.
export function call<Result>(core: Core, name: string, ...args: unknown[]): Result {
  const bound = core[name] as ((...args: unknown[]) => unknown) | undefined;
  if (!bound) throw new Error(`This page was built without ${name}; build it again with scripts/web.`);
  const answer = bound(...args);
  if (answer !== null && typeof answer === 'object' && 'error' in answer) {
    throw new Error(String((answer as { error: unknown }).error));
  }
  return answer as Result;
}
