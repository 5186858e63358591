/** Arguments that start a server as `npm start` does: without the compile cache, it strips types for most of its start. */
export const codeCache: readonly string[] = [
  '--disable-sigusr1',
  '--disable-warning=ExperimentalWarning',
  '--import',
  new URL('../../src/process/codeCache.js', import.meta.url).href,
]
