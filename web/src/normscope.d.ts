declare module '*/normscope.mjs' {
  const create: (options?: object) => Promise<unknown>;
  export default create;
}
