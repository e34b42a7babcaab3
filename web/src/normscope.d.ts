declare module '*/normscope.mjs' {
  const create: (options?: object) => Promise<unknown>;
  export default create;
  export const packed: string; // made by vite.config.ts
}
