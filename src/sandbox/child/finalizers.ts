import { AsyncLocalStorage } from 'node:async_hooks'

type Cleanup = (held: unknown) => void

/** Finalizers run in the context that created their registry: V8 would call them in none. */
export const ownFinalizers = (): void => {
  const bound = new Proxy(FinalizationRegistry, {
    construct: (target, [cleanup]: [Cleanup], newTarget) =>
      Reflect.construct(
        target,
        [typeof cleanup === 'function' ? AsyncLocalStorage.bind(cleanup) : cleanup],
        newTarget,
      ) as object,
  })
  for (const [target, name] of [
    [globalThis, 'FinalizationRegistry'],
    [FinalizationRegistry.prototype, 'constructor'],
  ] as const)
    Object.defineProperty(target, name, { value: bound, writable: true, configurable: true })
}
