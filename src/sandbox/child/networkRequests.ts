/** Requests over connections that Node pools: the run that asks may have ended, although the connection is open. */
import type http from 'node:http'
import { refusalAfterEnd } from './endedRun.ts'

const builtin = process.getBuiltinModule.bind(process)

type Fetch = typeof globalThis.fetch

export const boundFetch = (fetch: Fetch): Fetch => {
  const bound: { fetch: Fetch } = {
    fetch: (input, init) => {
      const cause = refusalAfterEnd()
      return cause ? Promise.reject(new TypeError('fetch failed', { cause })) : fetch(input, init)
    },
  }
  return bound.fetch
}

/** The class is also a property of `node:http` and of its own prototype. */
export const boundWebSocket = (): unknown => {
  const module = builtin('node:http')
  const { WebSocket } = module
  const bound = new Proxy(WebSocket, {
    construct: (target, args, newTarget) => {
      const refusal = refusalAfterEnd()
      if (refusal) throw refusal
      return Reflect.construct(target, args, newTarget) as object
    },
  })
  for (const [target, name] of [
    [module, 'WebSocket'],
    [WebSocket.prototype, 'constructor'],
  ] as const)
    Object.defineProperty(target, name, { value: bound, writable: true, configurable: true })
  return bound
}

/** Fields that agents use and the types leave out. */
interface Internals {
  onSocket(socket: null, error: Error): void
}

type AddRequest = (this: http.Agent, request: http.ClientRequest, ...rest: unknown[]) => void

export const patchHttp = (): void => {
  const { prototype } = builtin('node:http').Agent
  const addRequest = Reflect.get(prototype, 'addRequest') as AddRequest
  const checked: AddRequest = function (request, ...rest) {
    const refusal = refusalAfterEnd()
    if (refusal) (request as unknown as Internals).onSocket(null, refusal)
    else Reflect.apply(addRequest, this, [request, ...rest])
  }
  Object.defineProperty(prototype, 'addRequest', { value: checked, writable: true, configurable: true })
}
